//! Why a batch is not appended, and what the client is told.

use std::fmt::Display;

use crate::error_code::ErrorCode;

use super::super::builder::BuildError;
use super::super::error::BatchError;

/// Why the records of one partition are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("there is no complete record batch")]
    NoBatch,
    #[error("the batch has magic {magic}, this version of Produce takes only 2")]
    Magic { magic: i8 },
    #[error("there is more than one record batch")]
    SeveralBatches,
    /// Length, magic or checksum of the batch are wrong: it was damaged on its way.
    #[error(transparent)]
    Corrupt(BatchError),
    /// Of the batch as it came, or after recompression.
    #[error("the batch is {size} bytes, the topic takes {max} (max.message.bytes)")]
    TooLarge { size: usize, max: usize },
    #[error("unknown compression type id: {id}")]
    UnknownCompression { id: u8 },
    #[error(transparent)]
    Batch(#[from] Violation),
    /// The records do not keep their format, though the checksum is right: the client wrote them so.
    #[error(transparent)]
    Malformed(BatchError),
    #[error("{} records are not acceptable", .0.total)]
    Records(Box<RecordRejections>),
    /// The batch had to be written anew, and cannot be.
    #[error(transparent)]
    Unwritable(BuildError),
}

impl Rejection {
    /// What Kafka answers, where that says anything (it answers UNKNOWN_SERVER_ERROR for compressed
    /// data that does not unpack, and for unknown compression ids).
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Rejection::NoBatch
            | Rejection::Magic { .. }
            | Rejection::SeveralBatches
            | Rejection::Batch(_)
            | Rejection::Malformed(_) => ErrorCode::InvalidRecord,
            Rejection::Corrupt(_) => ErrorCode::CorruptMessage,
            Rejection::TooLarge { .. } | Rejection::Unwritable(_) => ErrorCode::MessageTooLarge,
            Rejection::UnknownCompression { .. } => ErrorCode::UnsupportedCompressionType,
            Rejection::Records(records) if records.invalid_timestamp => ErrorCode::InvalidTimestamp,
            Rejection::Records(_) => ErrorCode::InvalidRecord,
        }
    }

    /// The `error_message` of the partition in the produce response: Kafka sends one only where it
    /// lists single records, or cannot find the batch.
    pub fn error_message(&self, topic_partition: impl Display) -> Option<String> {
        match self {
            Rejection::Records(records) => Some(records.summary(topic_partition)),
            // 14 bytes is the least message of the oldest format, by which Kafka judges the length.
            Rejection::Corrupt(BatchError::TooSmall { size, .. }) if *size < 12 + 14 => {
                Some(format!(
                    "Record size {} is less than the minimum record overhead (14)",
                    size - 12
                ))
            }
            Rejection::Corrupt(BatchError::Magic { magic }) => {
                Some(format!("Invalid magic found in record: {magic}"))
            }
            _ => None,
        }
    }

    /// The `record_errors` of the partition: `batch_index` and `batch_index_error_message`.
    pub fn record_errors(
        &self,
        topic_partition: impl Display,
    ) -> impl Iterator<Item = (i32, String)> {
        let errors = match self {
            Rejection::Records(records) => &records.errors[..],
            _ => &[],
        };
        errors
            .iter()
            .map(move |(index, rejection)| (*index as i32, rejection.message(&topic_partition)))
    }

    pub(super) fn from_records(error: BatchError) -> Rejection {
        match error {
            BatchError::UnknownCompression { id } => Rejection::UnknownCompression { id },
            error => Rejection::Malformed(error),
        }
    }
}

impl From<BatchError> for Rejection {
    fn from(error: BatchError) -> Rejection {
        Rejection::from_records(error)
    }
}

/// What no client may write, seen from the header alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("the base offset of the batch should be 0, but it is {0}")]
    BaseOffset(i64),
    #[error("the batch has an invalid offset range: last offset delta {last_offset_delta}")]
    OffsetRange { last_offset_delta: i32 },
    #[error("the batch reports {0} records")]
    Count(i32),
    #[error("the batch has last offset delta {last_offset_delta} and {count} records")]
    CountAndRange { last_offset_delta: i32, count: i32 },
    #[error("clients are not allowed to write control records")]
    Control,
    #[error("invalid sequence number {sequence} in a batch with producer id {producer_id}")]
    Sequence { sequence: i32, producer_id: i64 },
}

/// Why one record is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordRejection {
    /// In a compacted topic.
    NoKey,
    /// Outside the topic's bounds; all Unix milliseconds.
    Timestamp {
        timestamp: i64,
        offset: i64,
        least: i64,
        most: i64,
    },
    /// Only brokers mark batches as LogAppendTime.
    TimestampType {
        compressed: bool,
        offset: i64,
        timestamp: i64,
        key_size: i32,
        value_size: i32,
    },
}

impl RecordRejection {
    /// Word for word what Kafka 4.4 says, since clients show it and tools look for it.
    pub fn message(&self, topic_partition: impl Display) -> String {
        match self {
            RecordRejection::NoKey => format!(
                "Compacted topic cannot accept message without key in topic partition \
                 {topic_partition}"
            ),
            RecordRejection::Timestamp {
                timestamp,
                offset,
                least,
                most,
            } => format!(
                "Timestamp {timestamp} of message with offset {offset} is out of range. The \
                 timestamp should be within [{least}, {most}]"
            ),
            RecordRejection::TimestampType {
                compressed,
                offset,
                timestamp,
                key_size,
                value_size,
            } => {
                // Kafka names its class for records; those that it only skims say -1 for null.
                let (class, least) = if *compressed {
                    ("PartialDefaultRecord", -1)
                } else {
                    ("DefaultRecord", 0)
                };
                let (key, value) = (*key_size.max(&least), *value_size.max(&least));
                format!(
                    "Invalid timestamp type in message {class}(offset={offset}, \
                     timestamp={timestamp}, key={key} bytes, value={value} bytes). Producer \
                     should not set timestamp type to LogAppendTime."
                )
            }
        }
    }
}

/// The refused records of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordRejections {
    errors: Vec<(u32, RecordRejection)>,
    total: usize,
    invalid_timestamp: bool,
}

impl RecordRejections {
    /// The first ones are listed, so that an answer does not grow beyond its request.
    pub const LISTED: usize = 1000;

    pub(super) fn push(&mut self, index: u32, rejection: RecordRejection) {
        self.invalid_timestamp |= !matches!(rejection, RecordRejection::NoKey);
        self.total += 1;
        if self.errors.len() < Self::LISTED {
            self.errors.push((index, rejection));
        }
    }

    /// How many records were refused, listed or not.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Index in the batch and reason.
    pub fn listed(&self) -> &[(u32, RecordRejection)] {
        &self.errors
    }

    fn summary(&self, topic_partition: impl Display) -> String {
        if self.invalid_timestamp {
            return "One or more records have been rejected due to invalid timestamp".to_owned();
        }
        let first: Vec<String> = self
            .errors
            .iter()
            .take(3)
            .map(|(index, rejection)| {
                let message = rejection.message(&topic_partition);
                format!("RecordError(batchIndex={index}, message='{message}')")
            })
            .collect();
        format!(
            "One or more records have been rejected due to {} record errors in total, and only \
             showing the first three errors at most: [{}]",
            self.total,
            first.join(", ")
        )
    }
}
