//! The records inside a v2 batch.
//!
//! ```text
//! size varint | attributes i8 | timestamp delta varlong | offset delta varint
//! key: length varint (-1 null), bytes | value: the same
//! header count varint | headers: key length varint, key, value length varint (-1 null), value
//! ```

use bytes::Bytes;

use super::batch::BatchView;
use super::compress::{Compression, decompress};
use super::error::{BatchError, RecordProblem};
use super::header::TimestampType;
use super::varint::{read_varint, read_varlong};

/// One record. Duplicate header keys and their order are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub offset: i64,
    /// Unix milliseconds; the batch's maximum where the topic uses LogAppendTime.
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<Header>,
}

/// A record header. Keys are UTF-8 by agreement, and not checked, as in Kafka's broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// Walks the records of a batch; after the first error it yields nothing more.
///
/// After the last declared record it reports bytes that are left over, once, as an error.
#[derive(Debug, Clone)]
pub struct RecordIter {
    bytes: Bytes,
    position: usize,
    declared: i32,
    index: u32,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    done: bool,
}

impl RecordIter {
    pub(crate) fn new(batch: &BatchView, max_decompressed: usize) -> Result<Self, BatchError> {
        if batch.records_count < 0 {
            return Err(BatchError::NegativeCount {
                count: batch.records_count,
            });
        }
        let payload = batch.records_payload();
        let bytes = match batch.compression()? {
            Compression::None => payload,
            compression => Bytes::from(decompress(compression, &payload, max_decompressed)?),
        };
        let log_append_time = match batch.timestamp_type() {
            TimestampType::LogAppendTime => Some(batch.max_timestamp),
            TimestampType::CreateTime => None,
        };
        Ok(RecordIter {
            bytes,
            position: 0,
            declared: batch.records_count,
            index: 0,
            base_offset: batch.base_offset,
            base_timestamp: batch.base_timestamp,
            log_append_time,
            done: false,
        })
    }

    fn read(&mut self) -> Result<Record, RecordProblem> {
        let size = read_varint(&self.bytes, &mut self.position)?;
        let length = usize::try_from(size).map_err(|_| RecordProblem::NegativeSize { size })?;
        if length > self.bytes.len() - self.position {
            return Err(RecordProblem::Truncated);
        }
        let mut body = Body {
            bytes: self.bytes.slice(..self.position + length),
            at: self.position,
        };
        let start = body.at;
        self.position += length;

        body.skip_attributes()?;
        let timestamp_delta = read_varlong(&body.bytes, &mut body.at)?;
        let offset_delta = read_varint(&body.bytes, &mut body.at)?;
        let key = body.nullable()?;
        let value = body.nullable()?;
        let headers = body.headers()?;
        if body.at != self.position {
            let read = (body.at - start) as u64;
            return Err(RecordProblem::SizeMismatch {
                declared: size,
                read,
            });
        }
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: self
                .log_append_time
                .unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta)),
            key,
            value,
            headers,
        })
    }
}

impl Iterator for RecordIter {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let at_end = self.position == self.bytes.len();
        if self.index as i32 == self.declared {
            self.done = true;
            return (!at_end).then_some(Err(BatchError::RecordsRemain {
                declared: self.declared,
            }));
        }
        if at_end {
            self.done = true;
            return Some(Err(BatchError::RecordsMissing {
                declared: self.declared,
                found: self.index,
            }));
        }
        let index = self.index;
        self.index += 1;
        let record = self.read().map_err(|problem| problem.at(index));
        self.done = record.is_err();
        Some(record)
    }
}

/// The bytes up to the end of one record.
struct Body {
    bytes: Bytes,
    at: usize,
}

impl Body {
    fn skip_attributes(&mut self) -> Result<(), RecordProblem> {
        if self.at == self.bytes.len() {
            return Err(RecordProblem::Truncated);
        }
        self.at += 1;
        Ok(())
    }

    /// Any negative length is null, as in Kafka.
    fn nullable(&mut self) -> Result<Option<Bytes>, RecordProblem> {
        let length = read_varint(&self.bytes, &mut self.at)?;
        match usize::try_from(length) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn take(&mut self, length: usize) -> Result<Bytes, RecordProblem> {
        if length > self.bytes.len() - self.at {
            return Err(RecordProblem::Truncated);
        }
        let slice = self.bytes.slice(self.at..self.at + length);
        self.at += length;
        Ok(slice)
    }

    fn headers(&mut self) -> Result<Vec<Header>, RecordProblem> {
        let count = read_varint(&self.bytes, &mut self.at)?;
        // A header takes two bytes at least.
        let most = (self.bytes.len() - self.at) / 2;
        let expected = match usize::try_from(count) {
            Ok(expected) if expected <= most => expected,
            _ => return Err(RecordProblem::HeaderCount { count }),
        };
        // Each entry in memory is some 30 times its smallest form: reserve modestly.
        let mut headers = Vec::with_capacity(expected.min(16));
        for _ in 0..expected {
            let length = read_varint(&self.bytes, &mut self.at)?;
            let key_length =
                usize::try_from(length).map_err(|_| RecordProblem::HeaderKey { length })?;
            let key = self.take(key_length)?;
            headers.push(Header {
                key,
                value: self.nullable()?,
            });
        }
        Ok(headers)
    }
}
