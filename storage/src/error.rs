//! What can go wrong in a log, as values: where, what, and which of the caller's choices it leaves.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failure of the disk or of what stands on it. Cheap to clone, may cross cores.
#[derive(Debug, Clone)]
pub enum StorageError {
    /// Bytes on disk that cannot be what was written there.
    Corrupt { file: PathBuf, at: u64, why: String },
    /// The filesystem (or the quota) is full. Nothing of the refused append remains; later appends go on at the
    /// same offset once there is space.
    Full { path: PathBuf },
    /// Any other I/O error. The log it happened in is offline afterwards.
    Io {
        operation: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
    /// The log went offline after an earlier I/O error, or was closed or deleted.
    Offline { path: PathBuf, reason: String },
    /// The log is being truncated or closed: an operation that must have it alone.
    Busy { path: PathBuf },
}

impl StorageError {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> StorageError {
        if is_full(&source) {
            StorageError::Full {
                path: path.to_path_buf(),
            }
        } else {
            StorageError::Io {
                operation,
                path: path.to_path_buf(),
                source: Arc::new(source),
            }
        }
    }

    pub(crate) fn corrupt(file: &Path, at: u64, why: impl Into<String>) -> StorageError {
        StorageError::Corrupt {
            file: file.to_path_buf(),
            at,
            why: why.into(),
        }
    }

    /// The file or directory that it is about.
    pub fn path(&self) -> &Path {
        match self {
            StorageError::Corrupt { file: path, .. }
            | StorageError::Full { path }
            | StorageError::Io { path, .. }
            | StorageError::Offline { path, .. }
            | StorageError::Busy { path } => path,
        }
    }

    /// True where the file or directory asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// ENOSPC and EDQUOT: space may return without anybody touching the broker.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Corrupt { file, at, why } => {
                write!(f, "{} is corrupt at byte {at}: {why}", file.display())
            }
            StorageError::Full { path } => {
                write!(
                    f,
                    "no space left for {}: free space on its filesystem",
                    path.display()
                )
            }
            StorageError::Io {
                operation,
                path,
                source,
            } => {
                write!(f, "cannot {operation} {}: {source}", path.display())
            }
            StorageError::Offline { path, reason } => {
                write!(f, "{} is offline: {reason}", path.display())
            }
            StorageError::Busy { path } => {
                write!(f, "{} is being truncated or closed", path.display())
            }
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StorageError::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// Why an append was refused or failed. Refusals leave the log as it was.
#[derive(Debug, Clone)]
pub enum AppendError {
    /// Idempotence refused the batch (KIP-98).
    Producer(ProducerError),
    /// A batch larger than a segment may be: it could never be stored (RECORD_LIST_TOO_LARGE).
    LargerThanSegment {
        bytes: usize,
        segment_bytes: u32,
    },
    /// A follower was handed batches that do not continue its log.
    NotContiguous {
        expected: i64,
        got: i64,
    },
    /// Bytes that are not one whole v2 batch: the caller forgot to validate.
    Malformed {
        why: &'static str,
    },
    Storage(StorageError),
}

/// Refusals of idempotence, named as Kafka's error codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProducerError {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER.
    OutOfOrderSequence {
        producer_id: i64,
        first_sequence: i32,
        last_sequence: i32,
        epoch: i16,
    },
    /// INVALID_PRODUCER_EPOCH.
    InvalidProducerEpoch {
        producer_id: i64,
        epoch: i16,
        current_epoch: i16,
    },
}

impl fmt::Display for ProducerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProducerError::OutOfOrderSequence {
                producer_id,
                first_sequence,
                last_sequence,
                ..
            } => {
                write!(
                    f,
                    "producer {producer_id} sent sequence {first_sequence} after {last_sequence}"
                )
            }
            ProducerError::InvalidProducerEpoch {
                producer_id,
                epoch,
                current_epoch,
            } => write!(
                f,
                "producer {producer_id} sent epoch {epoch}, the partition has seen {current_epoch}"
            ),
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Producer(error) => error.fmt(f),
            AppendError::LargerThanSegment {
                bytes,
                segment_bytes,
            } => {
                write!(
                    f,
                    "a batch of {bytes} bytes does not fit segment.bytes={segment_bytes}"
                )
            }
            AppendError::NotContiguous { expected, got } => {
                write!(
                    f,
                    "batch at offset {got} does not continue the log at {expected}"
                )
            }
            AppendError::Malformed { why } => write!(f, "not a record batch: {why}"),
            AppendError::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AppendError {}

impl From<StorageError> for AppendError {
    fn from(error: StorageError) -> AppendError {
        AppendError::Storage(error)
    }
}

impl From<ProducerError> for AppendError {
    fn from(error: ProducerError) -> AppendError {
        AppendError::Producer(error)
    }
}

/// Why a read could not be served.
#[derive(Debug, Clone)]
pub enum ReadError {
    /// The offset lies outside `start ..= end` (OFFSET_OUT_OF_RANGE).
    OutOfRange {
        requested: i64,
        start: i64,
        end: i64,
    },
    Storage(StorageError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::OutOfRange {
                requested,
                start,
                end,
            } => {
                write!(
                    f,
                    "offset {requested} lies outside the log, {start} to {end}"
                )
            }
            ReadError::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> ReadError {
        ReadError::Storage(error)
    }
}
