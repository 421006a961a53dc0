//! Produce requests of versions 0 to 2: message sets of v0 and v1, or whatever the client put in
//! (Kafka never checked), become one v2 batch.

use bytes::{Bytes, BytesMut};

use super::super::builder::BatchBuilder;
use super::super::compress::{Codec, Compression};
use super::super::error::BatchError;
use super::super::header::{BatchHeader, NO_TIMESTAMP, TimestampType};
use super::super::legacy::{Entry, LegacyView};
use super::super::record::Record;
use super::rejection::{RecordRejection, RecordRejections, Rejection};
use super::{Rules, Scratch, Validated, peek_complete, timestamp_rejection, validate};

/// What a produce request before version 3 becomes.
#[derive(Debug, Clone)]
pub enum ValidatedOld {
    /// It held a v2 batch after all.
    Batch(Validated),
    /// The messages as one v2 batch at offset 0, without leader epoch: assign both with
    /// [`rewrite::assign`](crate::records::rewrite::assign).
    Converted(BytesMut),
}

/// Checks the records of one partition of a produce request of version 0 to 2, and converts them.
/// Memory: the unpacked records, within `rules.max_decompressed`.
///
/// # Errors
/// The first [`Rejection`] in Kafka's order; per-record ones are collected.
pub fn validate_old(
    records: &Bytes,
    rules: &Rules,
    now_ms: i64,
    scratch: &mut Scratch,
) -> Result<ValidatedOld, Rejection> {
    match peek_complete(records)? {
        None => return Err(Rejection::NoBatch),
        Some(first) if first.magic == 2 => {
            return validate(records, rules, now_ms, scratch).map(ValidatedOld::Batch);
        }
        Some(_) => {}
    }
    let entries = entries(records, rules)?;
    let source = entries
        .last()
        .map_or(Ok(Compression::None), LegacyView::compression)?;
    let codec = rules
        .compression
        .target(source, false)
        .unwrap_or_else(|| Codec::from(source));
    let mut conversion = Conversion::new(rules, now_ms, codec);
    for entry in &entries {
        let inner = entry
            .records(rules.max_decompressed)
            .map_err(inner_rejection)?;
        for record in inner {
            conversion.add(entry, record.map_err(inner_rejection)?)?;
        }
    }
    conversion.finish(rules)
}

/// All entries, whole ones only, with right checksums and sizes and of one format.
fn entries(records: &Bytes, rules: &Rules) -> Result<Vec<LegacyView>, Rejection> {
    let mut entries: Vec<LegacyView> = Vec::new();
    let mut compressed = false;
    let mut at = 0;
    while let Some(peek) = peek_complete(&records[at..])? {
        let rest = records.slice(at..);
        let Entry::Legacy(entry) = Entry::parse(&rest).map_err(Rejection::Corrupt)? else {
            return Err(Rejection::Magic { magic: peek.magic });
        };
        let (size, max) = (peek.size, rules.max_message_bytes);
        if size > max {
            return Err(Rejection::TooLarge { size, max });
        }
        entry.check_crc().map_err(Rejection::Corrupt)?;
        if entries
            .first()
            .is_some_and(|first| first.magic != entry.magic)
        {
            return Err(Rejection::Magic { magic: entry.magic });
        }
        compressed |= entry.compression()? != Compression::None;
        if compressed && !entries.is_empty() {
            return Err(Rejection::SeveralBatches);
        }
        entries.push(entry);
        at += size;
    }
    Ok(entries)
}

/// A wrong checksum in a wrapper is damage, as in Kafka; all else is the client's writing.
fn inner_rejection(error: BatchError) -> Rejection {
    use super::super::error::RecordProblem;
    match error {
        BatchError::Record {
            problem: RecordProblem::Crc { .. },
            ..
        } => Rejection::Corrupt(error),
        error => Rejection::from_records(error),
    }
}

struct Conversion<'a> {
    rules: &'a Rules,
    now_ms: i64,
    builder: BatchBuilder,
    rejections: Option<Box<RecordRejections>>,
    index: u32,
}

impl<'a> Conversion<'a> {
    fn new(rules: &'a Rules, now_ms: i64, codec: Codec) -> Self {
        let mut builder = BatchBuilder::new(0).codec(codec);
        if rules.timestamp_type == TimestampType::LogAppendTime {
            builder = builder.log_append_time(now_ms);
        }
        Conversion {
            rules,
            now_ms,
            builder,
            rejections: None,
            index: 0,
        }
    }

    fn add(&mut self, entry: &LegacyView, record: Record) -> Result<(), Rejection> {
        let rejection = self.check(entry, &record);
        let index = self.index;
        self.index += 1;
        if let Some(rejection) = rejection {
            self.rejections
                .get_or_insert_default()
                .push(index, rejection);
        } else if self.rejections.is_none() {
            let record = Record {
                offset: i64::from(index),
                ..record
            };
            self.builder
                .append_record(&record)
                .map_err(Rejection::Unwritable)?;
        }
        Ok(())
    }

    fn check(&self, entry: &LegacyView, record: &Record) -> Option<RecordRejection> {
        if self.rules.compacted && record.key.is_none() {
            return Some(RecordRejection::NoKey);
        }
        let create_time = self.rules.timestamp_type == TimestampType::CreateTime;
        if create_time && record.timestamp != NO_TIMESTAMP {
            return timestamp_rejection(self.rules, self.now_ms, record.timestamp, record.offset);
        }
        (entry.timestamp_type() == TimestampType::LogAppendTime).then(|| {
            RecordRejection::TimestampType {
                compressed: false,
                offset: record.offset,
                timestamp: record.timestamp,
                key_size: record.key.as_ref().map_or(-1, |key| key.len() as i32),
                value_size: record.value.as_ref().map_or(-1, |value| value.len() as i32),
            }
        })
    }

    fn finish(self, rules: &Rules) -> Result<ValidatedOld, Rejection> {
        if let Some(rejections) = self.rejections {
            return Err(Rejection::Records(rejections));
        }
        let batch = self.builder.build().map_err(Rejection::Unwritable)?;
        let (size, max) = (batch.len(), rules.max_message_bytes);
        if size > max {
            return Err(Rejection::TooLarge { size, max });
        }
        debug_assert!(BatchHeader::parse(&batch).is_ok());
        Ok(ValidatedOld::Converted(batch))
    }
}
