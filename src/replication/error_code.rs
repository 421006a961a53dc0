//! The one place where failures of partitions become Kafka's error codes. No catch-all arms: a new
//! failure does not compile without an answer.

use protocol::ErrorCode;
use protocol::records::validate::Rejection;
use storage::{AppendError, ProducerError, StorageError};

use super::{AppendFailure, DeletionFailure, OffsetsFailure, ReadFailure};

/// Failures of the disk.
pub fn storage_code(error: &StorageError) -> ErrorCode {
    match error {
        // One batch is damaged; the partition goes on.
        StorageError::Corrupt { .. } => ErrorCode::CorruptMessage,
        StorageError::Full { .. } | StorageError::Io { .. } | StorageError::Offline { .. } => {
            ErrorCode::KafkaStorageError
        }
        StorageError::Busy { .. } => ErrorCode::NotLeaderOrFollower,
    }
}

impl ReadFailure {
    /// What the client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            ReadFailure::NotLeader => ErrorCode::NotLeaderOrFollower,
            ReadFailure::FencedEpoch => ErrorCode::FencedLeaderEpoch,
            ReadFailure::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            ReadFailure::OutOfRange => ErrorCode::OffsetOutOfRange,
            ReadFailure::CompressionUnknown => ErrorCode::UnsupportedCompressionType,
            ReadFailure::Storage(error) => storage_code(error),
        }
    }
}

impl OffsetsFailure {
    /// What the client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            OffsetsFailure::NotLeader => ErrorCode::NotLeaderOrFollower,
            OffsetsFailure::FencedEpoch => ErrorCode::FencedLeaderEpoch,
            OffsetsFailure::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            OffsetsFailure::Storage(error) => storage_code(error),
        }
    }
}

impl DeletionFailure {
    /// What the client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            DeletionFailure::NotLeader => ErrorCode::NotLeaderOrFollower,
            DeletionFailure::Policy => ErrorCode::PolicyViolation,
            DeletionFailure::OutOfRange => ErrorCode::OffsetOutOfRange,
            DeletionFailure::Storage(error) => storage_code(error),
        }
    }
}

impl AppendFailure {
    /// Whether the batch got as far as the log: then the answer says where that starts, as in Kafka.
    pub(super) fn reached_log(&self) -> bool {
        let code = match self {
            AppendFailure::NotLeader
            | AppendFailure::ZstdTooEarly
            | AppendFailure::Transactional
            | AppendFailure::Rejected(
                Rejection::NoBatch | Rejection::Magic { .. } | Rejection::SeveralBatches,
            ) => return false,
            _ => self.code(),
        };
        ![
            ErrorCode::CorruptMessage,
            ErrorCode::MessageTooLarge,
            ErrorCode::RecordListTooLarge,
            ErrorCode::KafkaStorageError,
        ]
        .contains(&code)
    }

    /// What the client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            AppendFailure::NotLeader => ErrorCode::NotLeaderOrFollower,
            AppendFailure::Rejected(rejection) => rejection.error_code(),
            AppendFailure::ZstdTooEarly => ErrorCode::UnsupportedCompressionType,
            AppendFailure::Transactional => ErrorCode::TransactionalIdAuthorizationFailed,
            AppendFailure::NotEnoughReplicas => ErrorCode::NotEnoughReplicas,
            AppendFailure::Log(error) => match error {
                AppendError::Producer(ProducerError::OutOfOrderSequence { .. }) => {
                    ErrorCode::OutOfOrderSequenceNumber
                }
                AppendError::Producer(ProducerError::InvalidProducerEpoch { .. }) => {
                    ErrorCode::InvalidProducerEpoch
                }
                AppendError::LargerThanSegment { .. } => ErrorCode::RecordListTooLarge,
                AppendError::NotContiguous { .. } => ErrorCode::UnknownServerError,
                AppendError::Malformed { .. } => ErrorCode::CorruptMessage,
                AppendError::Storage(error) => storage_code(error),
            },
        }
    }
}
