//! Formats v0 and v1: message sets (0.8 to 0.10).
//!
//! ```text
//! offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | timestamp i64 (v1 only)
//! key: length i32 (-1 null), bytes | value: the same
//! ```
//! The checksum is CRC-32 from the magic byte on. A compressed message is a wrapper: its value holds
//! a message set, and its offset is that of the last message in it. The offsets in there are real
//! ones in v0 and count from the first one in v1 (KIP-31).

mod builder;
mod convert;

use bytes::Bytes;

use super::batch::BatchView;
use super::compress::{Compression, Lz4Checksum, decompress_into};
use super::error::{BatchError, RecordProblem, SplitError};
use super::header::{
    LENGTH, LOG_OVERHEAD, MAGIC, NO_TIMESTAMP, Peek, TimestampType, get_i32, get_i64,
};
use super::record::Record;

pub use builder::{LegacyMagic, write_message_set};
pub use convert::{DownConvertError, down_convert};

/// A v0 message with null key and value, without offset and length.
pub const OVERHEAD_V0: usize = 14;
/// The same for v1, which adds the timestamp.
pub const OVERHEAD_V1: usize = 22;

const CRC: usize = 12;
const ATTRIBUTES: usize = 17;
const TIMESTAMP: usize = 18;

/// One entry of a v0 or v1 message set: a message, or a compressed wrapper around several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyView {
    pub magic: i8,
    /// Of the last message in it, if it is a wrapper.
    pub offset: i64,
    pub crc: u32,
    pub attributes: u8,
    /// Unix milliseconds; [`NO_TIMESTAMP`] in v0.
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    bytes: Bytes,
}

impl LegacyView {
    /// The entry at the start of `bytes`; what follows it is left out of the view.
    ///
    /// # Errors
    /// Those of [`Peek::parse`]; `Magic` for 2; `Truncated` if the entry reaches past `bytes`;
    /// `Record` if key and value do not fill the entry. The checksum is not checked.
    pub fn parse(bytes: &Bytes) -> Result<LegacyView, BatchError> {
        let peek = Peek::parse(bytes)?;
        if peek.magic > 1 {
            return Err(BatchError::Magic { magic: peek.magic });
        }
        if peek.size > bytes.len() {
            return Err(BatchError::Truncated {
                needed: peek.size,
                available: bytes.len(),
            });
        }
        let bytes = bytes.slice(..peek.size);
        let (timestamp, mut at) = match peek.magic {
            0 => (NO_TIMESTAMP, TIMESTAMP),
            _ => (get_i64(&bytes, TIMESTAMP), TIMESTAMP + 8),
        };
        let key = nullable(&bytes, &mut at).map_err(|problem| problem.at(0))?;
        let value = nullable(&bytes, &mut at).map_err(|problem| problem.at(0))?;
        if at != bytes.len() {
            let declared = get_i32(&bytes, LENGTH);
            let problem = RecordProblem::SizeMismatch {
                declared,
                read: (at - LOG_OVERHEAD) as u64,
            };
            return Err(problem.at(0));
        }
        Ok(LegacyView {
            magic: peek.magic,
            offset: peek.offset,
            crc: get_i32(&bytes, CRC) as u32,
            attributes: bytes[ATTRIBUTES],
            timestamp,
            key,
            value,
            bytes,
        })
    }

    /// The whole entry.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// # Errors
    /// Compression ids 5 to 7 are not assigned.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::from_id(self.attributes & 0x07)
    }

    /// Always CreateTime in v0, which has no timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.magic > 0 && self.attributes & 0x08 != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    pub fn crc_ok(&self) -> bool {
        self.computed_crc() == self.crc
    }

    /// # Errors
    /// `Crc` with both checksums.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.crc, self.computed_crc());
        if stored == computed {
            Ok(())
        } else {
            Err(BatchError::Crc { stored, computed })
        }
    }

    fn computed_crc(&self) -> u32 {
        crc32fast::hash(&self.bytes[MAGIC..])
    }

    /// The messages: this one, or those in the wrapper, unpacked to at most `max_decompressed` bytes.
    /// Offsets are real ones. In a wrapper of LogAppendTime all messages have its timestamp.
    ///
    /// # Errors
    /// The value does not decompress, is null or empty, or uses zstd, which these formats never had.
    pub fn records(&self, max_decompressed: usize) -> Result<LegacyIter, BatchError> {
        let compression = self.compression()?;
        if compression == Compression::None {
            return Ok(LegacyIter {
                kind: Kind::Single(Some(self.clone())),
            });
        }
        let Some(value) = &self.value else {
            return Err(BatchError::RecordsMissing {
                declared: 1,
                found: 0,
            });
        };
        if compression == Compression::Zstd {
            return Err(BatchError::UnknownCompression {
                id: compression.id(),
            });
        }
        let checksum = if self.magic == 0 {
            Lz4Checksum::Magic0
        } else {
            Lz4Checksum::Right
        };
        let mut unpacked = Vec::new();
        decompress_into(
            compression,
            value,
            max_decompressed,
            checksum,
            &mut unpacked,
        )?;
        let inner = Bytes::from(unpacked);
        let base_offset = self.inner_base_offset(&inner)?;
        let timestamp = match self.timestamp_type() {
            TimestampType::LogAppendTime => Some(self.timestamp),
            TimestampType::CreateTime => None,
        };
        Ok(LegacyIter {
            kind: Kind::Wrapped {
                inner,
                at: 0,
                index: 0,
                magic: self.magic,
                base_offset,
                timestamp,
            },
        })
    }

    /// What the offsets of the inner messages count from.
    fn inner_base_offset(&self, inner: &[u8]) -> Result<i64, BatchError> {
        let mut at = 0;
        let mut last_offset = None;
        while let Some(entry) = next_inner(inner, at)? {
            last_offset = Some(entry.offset);
            at += entry.size;
        }
        let missing = BatchError::RecordsMissing {
            declared: 1,
            found: 0,
        };
        let last_offset = last_offset.ok_or(missing)?;
        // Some librdkafka versions leave the wrapper's offset at 0 when they produce.
        if self.magic == 0 || self.offset == 0 {
            return Ok(0);
        }
        Ok(self.offset.wrapping_sub(last_offset))
    }
}

/// Walks the messages of an entry; after the first error it yields nothing more. The checksums of
/// messages in a wrapper are checked.
#[derive(Debug, Clone)]
pub struct LegacyIter {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Single(Option<LegacyView>),
    Wrapped {
        inner: Bytes,
        at: usize,
        index: u32,
        magic: i8,
        base_offset: i64,
        timestamp: Option<i64>,
    },
    Done,
}

impl LegacyIter {
    /// The next message, with the checksum that stands in it.
    pub fn next_with_crc(&mut self) -> Option<Result<(Record, u32), BatchError>> {
        let item = match &mut self.kind {
            Kind::Single(message) => message.take().map(|message| {
                let crc = message.crc;
                Ok((to_record(message), crc))
            }),
            Kind::Wrapped {
                inner,
                at,
                index,
                magic,
                base_offset,
                timestamp,
            } => {
                let message = read_inner(inner, at, *index, *magic).transpose();
                *index += 1;
                message.map(|message| {
                    let message = message?;
                    let crc = message.crc;
                    let mut record = to_record(message);
                    record.offset = record.offset.wrapping_add(*base_offset);
                    record.timestamp = timestamp.unwrap_or(record.timestamp);
                    Ok((record, crc))
                })
            }
            Kind::Done => None,
        };
        if matches!(item, None | Some(Err(_))) {
            self.kind = Kind::Done;
        }
        item
    }
}

impl Iterator for LegacyIter {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_with_crc()?;
        Some(item.map(|(record, _)| record))
    }
}

fn to_record(message: LegacyView) -> Record {
    Record {
        offset: message.offset,
        timestamp: message.timestamp,
        key: message.key,
        value: message.value,
        headers: Vec::new(),
    }
}

/// A cut entry at the end is where a client's buffer was full: the end, as in Kafka.
fn next_inner(inner: &[u8], at: usize) -> Result<Option<Peek>, BatchError> {
    let rest = &inner[at..];
    match Peek::parse(rest) {
        Ok(peek) => Ok((peek.size <= rest.len()).then_some(peek)),
        Err(BatchError::Truncated { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_inner(
    inner: &Bytes,
    at: &mut usize,
    index: u32,
    magic: i8,
) -> Result<Option<LegacyView>, BatchError> {
    let Some(peek) = next_inner(inner, *at)? else {
        return Ok(None);
    };
    if peek.magic != magic {
        return Err(RecordProblem::Magic {
            found: peek.magic,
            outer: magic,
        }
        .at(index));
    }
    let message = LegacyView::parse(&inner.slice(*at..)).map_err(|error| match error {
        BatchError::Record { problem, .. } => problem.at(index),
        error => error,
    })?;
    *at += peek.size;
    if let Err(BatchError::Crc { stored, computed }) = message.check_crc() {
        return Err(RecordProblem::Crc { stored, computed }.at(index));
    }
    if message.attributes & 0x07 != 0 {
        return Err(RecordProblem::NestedCompression.at(index));
    }
    Ok(Some(message))
}

fn nullable(bytes: &Bytes, at: &mut usize) -> Result<Option<Bytes>, RecordProblem> {
    if bytes.len() - *at < 4 {
        return Err(RecordProblem::Truncated);
    }
    let length = get_i32(bytes, *at);
    *at += 4;
    let Ok(length) = usize::try_from(length) else {
        return Ok(None);
    };
    if length > bytes.len() - *at {
        return Err(RecordProblem::Truncated);
    }
    let slice = bytes.slice(*at..*at + length);
    *at += length;
    Ok(Some(slice))
}

/// An entry of a log, in the format it was written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Batch(BatchView),
    Legacy(LegacyView),
}

impl Entry {
    /// # Errors
    /// Those of [`BatchView::parse`] and [`LegacyView::parse`].
    pub fn parse(bytes: &Bytes) -> Result<Entry, BatchError> {
        match Peek::parse(bytes)?.magic {
            2 => BatchView::parse(bytes).map(Entry::Batch),
            _ => LegacyView::parse(bytes).map(Entry::Legacy),
        }
    }

    pub fn magic(&self) -> i8 {
        match self {
            Entry::Batch(_) => 2,
            Entry::Legacy(message) => message.magic,
        }
    }

    pub fn bytes(&self) -> &Bytes {
        match self {
            Entry::Batch(batch) => batch.bytes(),
            Entry::Legacy(message) => message.bytes(),
        }
    }

    pub fn last_offset(&self) -> i64 {
        match self {
            Entry::Batch(batch) => batch.last_offset(),
            Entry::Legacy(message) => message.offset,
        }
    }

    pub fn max_timestamp(&self) -> i64 {
        match self {
            Entry::Batch(batch) => batch.max_timestamp,
            Entry::Legacy(message) => message.timestamp,
        }
    }

    pub fn timestamp_type(&self) -> TimestampType {
        match self {
            Entry::Batch(batch) => batch.timestamp_type(),
            Entry::Legacy(message) => message.timestamp_type(),
        }
    }

    /// # Errors
    /// Compression ids 5 to 7 are not assigned.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        match self {
            Entry::Batch(batch) => batch.compression(),
            Entry::Legacy(message) => message.compression(),
        }
    }

    /// # Errors
    /// `Crc` with both checksums.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        match self {
            Entry::Batch(batch) => batch.check_crc(),
            Entry::Legacy(message) => message.check_crc(),
        }
    }

    /// # Errors
    /// Those of [`BatchView::records`] and [`LegacyView::records`].
    pub fn records(
        &self,
        max_decompressed: usize,
    ) -> Result<impl Iterator<Item = Result<Record, BatchError>> + use<>, BatchError> {
        let (batch, message) = match self {
            Entry::Batch(batch) => (Some(batch.records(max_decompressed)?), None),
            Entry::Legacy(message) => (None, Some(message.records(max_decompressed)?)),
        };
        Ok(batch
            .into_iter()
            .flatten()
            .chain(message.into_iter().flatten()))
    }
}

/// Cuts `bytes` into entries of any format; after the first error it yields nothing more.
pub fn split_entries(bytes: Bytes) -> SplitEntries {
    SplitEntries {
        rest: bytes,
        position: 0,
        failed: false,
    }
}

/// See [`split_entries`].
#[derive(Debug, Clone)]
pub struct SplitEntries {
    rest: Bytes,
    position: usize,
    failed: bool,
}

impl SplitEntries {
    /// Where the next entry starts, or where the bad one does.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl Iterator for SplitEntries {
    type Item = Result<Entry, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        match Entry::parse(&self.rest) {
            Ok(entry) => {
                let size = entry.bytes().len();
                self.rest = self.rest.slice(size..);
                self.position += size;
                Some(Ok(entry))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(SplitError {
                    position: self.position,
                    error,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
