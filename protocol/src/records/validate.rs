//! What a leader checks before it appends the batch of a produce request (versions 3 and up).
//!
//! The rules and their order are those of Kafka 4.4's `ProduceRequest.validateRecords`,
//! `UnifiedLog.analyzeAndValidateRecords` and `LogValidator`. Everything is looked at in one pass
//! that allocates nothing per record. Left to the caller, because they need more than the batch:
//! zstd in requests before version 7, whether the client may write transactional batches, and the
//! producer's epoch and sequence.

mod old;
mod rejection;

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};

use super::batch::BatchView;
use super::compress::{Codec, Compression, Scratch};
use super::error::BatchError;
use super::header::{HEADER_UP_TO_MAGIC, LOG_OVERHEAD, NO_TIMESTAMP, Peek, TimestampType};
use super::recompress::{RecompressError, TopicCompression, recompress, renumber};
use super::rewrite;
use super::walk::{Limits, RecordFacts, walk};

pub use old::{ValidatedOld, validate_old};
pub use rejection::{RecordRejection, RecordRejections, Rejection, Violation};

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    #[default]
    Client,
    /// The broker's own coordinators: control batches and any base offset are theirs to write.
    Coordinator,
}

/// What the topic's configuration asks of a batch.
#[derive(Debug, Clone)]
pub struct Rules {
    pub origin: Origin,
    /// `max.message.bytes`: of the batch as it comes, and as it is stored.
    pub max_message_bytes: usize,
    /// `cleanup.policy` holds `compact`: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far a record may lie in the past.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: and in the future.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`.
    pub compression: TopicCompression,
    /// `max.decompressed.message.bytes`: of one record in a compressed batch.
    pub max_record_bytes: usize,
    /// What a compressed batch may unpack to, in bytes. Without recompression this bounds time, not
    /// memory.
    pub max_decompressed: usize,
}

/// A batch that may be appended.
#[derive(Debug, Clone)]
pub struct Validated {
    batch: BatchView,
    rebuild: Option<Rebuild>,
    timestamp_type: TimestampType,
    max_timestamp: i64,
    max_timestamp_delta: i32,
    uncompressed_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Rebuild {
    Recompress(Codec),
    Renumber(Codec),
}

/// Checks the records of one partition of a produce request.
///
/// # Errors
/// The first [`Rejection`] in Kafka's order; per-record ones are collected.
pub fn validate(
    records: &Bytes,
    rules: &Rules,
    now_ms: i64,
    scratch: &mut Scratch,
) -> Result<Validated, Rejection> {
    let batch = only_batch(records)?;
    check_batch(&batch, rules)?;
    let compression = batch.compression()?;
    let mut walked = Walked::new(rules, now_ms, compression);
    let limits = Limits {
        decompressed: rules.max_decompressed,
        record: rules.max_record_bytes,
    };
    let uncompressed_bytes = walk(&batch, limits, scratch, |record| {
        walked.visit(&batch, record);
        ControlFlow::Continue(())
    })
    .map_err(Rejection::from_records)?
    .unwrap_or_default();
    if let Some(rejections) = walked.rejections {
        return Err(Rejection::Records(rejections));
    }

    let target = rules.compression.target(compression, batch.is_control());
    let rebuild = if walked.in_order {
        target.map(Rebuild::Recompress)
    } else {
        Some(Rebuild::Renumber(
            target.unwrap_or_else(|| compression.into()),
        ))
    };
    let max_timestamp = match rules.timestamp_type {
        TimestampType::CreateTime => walked.max_timestamp,
        TimestampType::LogAppendTime => now_ms,
    };
    let max_timestamp_delta = match rules.timestamp_type {
        TimestampType::CreateTime => walked.max_timestamp_delta,
        TimestampType::LogAppendTime => 0,
    };
    Ok(Validated {
        batch,
        rebuild,
        timestamp_type: rules.timestamp_type,
        max_timestamp,
        max_timestamp_delta,
        uncompressed_bytes,
    })
}

impl Validated {
    /// The batch as it came. Offsets in it are still the producer's.
    pub fn batch(&self) -> &BatchView {
        &self.batch
    }

    /// False if the topic wants another compression, or the client numbered the records wrongly:
    /// then the bytes to append are not those that came.
    pub fn is_in_place(&self) -> bool {
        self.rebuild.is_none()
    }

    /// How many offsets the batch takes.
    pub fn records_count(&self) -> i32 {
        self.batch.records_count
    }

    pub fn timestamp_type(&self) -> TimestampType {
        self.timestamp_type
    }

    /// Of the batch as it is stored: the latest record's, or the broker's time.
    pub fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Which record is the first with the maximum timestamp, counted from the base offset. (The
    /// time index stores the batch's last offset instead, as Kafka's does.)
    pub fn max_timestamp_offset_delta(&self) -> i32 {
        self.max_timestamp_delta
    }

    /// Size of the records without compression.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.uncompressed_bytes
    }

    /// Gives the bytes to append if they are not those that came (see [`Validated::is_in_place`]).
    ///
    /// # Errors
    /// `TooLarge` if the batch grew above `max.message.bytes`.
    pub fn rebuild(&self, rules: &Rules) -> Result<Option<BytesMut>, Rejection> {
        let rebuilt = match self.rebuild {
            None => return Ok(None),
            Some(Rebuild::Recompress(codec)) => {
                recompress(&self.batch, codec, rules.max_decompressed)
            }
            Some(Rebuild::Renumber(codec)) => renumber(&self.batch, codec, rules.max_decompressed),
        };
        let rebuilt = rebuilt.map_err(|error| match error {
            RecompressError::Read(error) => Rejection::from_records(error),
            RecompressError::Write(error) => Rejection::Unwritable(error),
        })?;
        let (size, max) = (rebuilt.len(), rules.max_message_bytes);
        if size > max {
            Err(Rejection::TooLarge { size, max })
        } else {
            Ok(Some(rebuilt))
        }
    }

    /// The bytes to append, shared with the request wherever they need no change before offsets
    /// and (with LogAppendTime) the broker's time are assigned: for a log that does that itself.
    ///
    /// # Errors
    /// Those of [`Validated::rebuild`].
    pub fn append_bytes(&self, rules: &Rules) -> Result<Bytes, Rejection> {
        let right_time = match self.timestamp_type {
            TimestampType::LogAppendTime => true,
            // The header may claim another maximum than its records have.
            created => {
                self.batch.timestamp_type() == created
                    && self.batch.max_timestamp == self.max_timestamp
            }
        };
        let mut bytes = match self.rebuild(rules)? {
            Some(rebuilt) => rebuilt,
            None if right_time => return Ok(self.batch.bytes().clone()),
            None => BytesMut::from(&self.batch.bytes()[..]),
        };
        rewrite::set_max_timestamp(&mut bytes, self.timestamp_type, self.max_timestamp);
        Ok(bytes.freeze())
    }

    /// Writes what the leader decides into the batch: its own bytes, copied to where they are
    /// appended, or those of [`Validated::rebuild`].
    ///
    /// # Panics
    /// If `batch` is shorter than a header.
    pub fn assign(&self, batch: &mut [u8], base_offset: i64, partition_leader_epoch: i32) {
        rewrite::assign(batch, base_offset, partition_leader_epoch);
        rewrite::set_max_timestamp(batch, self.timestamp_type, self.max_timestamp);
    }
}

/// Exactly one v2 batch. A few bytes behind it that are no entry yet are cut off, as Kafka does.
fn only_batch(records: &Bytes) -> Result<BatchView, Rejection> {
    let first = match peek_complete(records)? {
        None => return Err(Rejection::NoBatch),
        Some(first) if first.magic != 2 => return Err(Rejection::Magic { magic: first.magic }),
        Some(first) => first,
    };
    if peek_complete(&records[first.size..])?.is_some() {
        return Err(Rejection::SeveralBatches);
    }
    BatchView::parse(records).map_err(Rejection::Corrupt)
}

/// `None` where Kafka's reader sees the end: the entry's header or the rest of it is not all there.
fn peek_complete(bytes: &[u8]) -> Result<Option<Peek>, Rejection> {
    if bytes.len() < LOG_OVERHEAD {
        return Ok(None);
    }
    match Peek::parse(bytes) {
        Ok(peek) => Ok((peek.size <= bytes.len()).then_some(peek)),
        Err(BatchError::Truncated { .. }) if bytes.len() < HEADER_UP_TO_MAGIC => Ok(None),
        Err(error) => Err(Rejection::Corrupt(error)),
    }
}

/// Everything that the header alone decides.
fn check_batch(batch: &BatchView, rules: &Rules) -> Result<(), Rejection> {
    let client = rules.origin == Origin::Client;
    if client && batch.base_offset != 0 {
        return Err(Rejection::Batch(Violation::BaseOffset(batch.base_offset)));
    }
    let (size, max) = (batch.size_in_bytes(), rules.max_message_bytes);
    if size > max {
        return Err(Rejection::TooLarge { size, max });
    }
    batch.check_crc().map_err(Rejection::Corrupt)?;
    if !client {
        return Ok(());
    }
    let (count, delta) = (batch.records_count, batch.last_offset_delta);
    let violation = if delta < 0 {
        Violation::OffsetRange {
            last_offset_delta: delta,
        }
    } else if count <= 0 {
        Violation::Count(count)
    } else if i64::from(delta) + 1 != i64::from(count) {
        Violation::CountAndRange {
            last_offset_delta: delta,
            count,
        }
    } else if batch.is_control() {
        Violation::Control
    } else if batch.has_producer_id() && batch.base_sequence < 0 {
        Violation::Sequence {
            sequence: batch.base_sequence,
            producer_id: batch.producer_id,
        }
    } else {
        return Ok(());
    };
    Err(Rejection::Batch(violation))
}

/// Wraps as Java's arithmetic does.
#[inline]
fn timestamp_rejection(
    rules: &Rules,
    now_ms: i64,
    timestamp: i64,
    offset: i64,
) -> Option<RecordRejection> {
    let age = now_ms.wrapping_sub(timestamp);
    let in_bounds =
        age <= rules.timestamp_before_max_ms && age.wrapping_neg() <= rules.timestamp_after_max_ms;
    (!in_bounds).then(|| RecordRejection::Timestamp {
        timestamp,
        offset,
        least: now_ms.wrapping_sub(rules.timestamp_before_max_ms),
        most: now_ms.wrapping_add(rules.timestamp_after_max_ms),
    })
}

/// What the pass over the records gathers.
struct Walked<'a> {
    rules: &'a Rules,
    now_ms: i64,
    compressed: bool,
    in_order: bool,
    max_timestamp: i64,
    max_timestamp_delta: i32,
    rejections: Option<Box<RecordRejections>>,
}

impl<'a> Walked<'a> {
    fn new(rules: &'a Rules, now_ms: i64, compression: Compression) -> Self {
        Walked {
            rules,
            now_ms,
            compressed: compression != Compression::None,
            in_order: true,
            max_timestamp: NO_TIMESTAMP,
            max_timestamp_delta: 0,
            rejections: None,
        }
    }

    #[inline]
    fn visit(&mut self, batch: &BatchView, record: RecordFacts) {
        if record.timestamp > self.max_timestamp {
            self.max_timestamp = record.timestamp;
            self.max_timestamp_delta = record.index as i32;
        }
        self.in_order &= record.offset_delta as u32 == record.index;
        if self.rules.compacted && record.key_size < 0 {
            self.reject(&record, RecordRejection::NoKey);
        } else {
            self.check_timestamp(batch, record);
        }
    }

    #[inline]
    fn check_timestamp(&mut self, batch: &BatchView, record: RecordFacts) {
        let rules = self.rules;
        if rules.timestamp_type == TimestampType::CreateTime && record.timestamp != NO_TIMESTAMP {
            let offset = batch
                .base_offset
                .wrapping_add(i64::from(record.offset_delta));
            if let Some(rejection) =
                timestamp_rejection(rules, self.now_ms, record.timestamp, offset)
            {
                self.reject(&record, rejection);
            }
        } else if batch.timestamp_type() == TimestampType::LogAppendTime {
            let rejection = RecordRejection::TimestampType {
                compressed: self.compressed,
                offset: batch
                    .base_offset
                    .wrapping_add(i64::from(record.offset_delta)),
                timestamp: record.timestamp,
                key_size: record.key_size,
                value_size: record.value_size,
            };
            self.reject(&record, rejection);
        }
    }

    #[cold]
    fn reject(&mut self, record: &RecordFacts, rejection: RecordRejection) {
        self.rejections
            .get_or_insert_default()
            .push(record.index, rejection);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_old;
