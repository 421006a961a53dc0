//! The log: record batches in segments on disk, in Apache Kafka's formats. It knows files and time, not sockets or
//! requests.
//!
//! A [`Storage`] holds what the logs of one core share; a [`Log`] is one partition replica. See `README.md` for the
//! map and the invariants.
#![forbid(unsafe_code)]

mod batch;
mod cache;
pub mod checkpoint;
mod config;
pub mod disk;
mod disk_metrics;
mod epochs;
mod error;
pub mod journal;
mod log;
mod metrics;
mod names;
pub mod producer;
mod segment;
mod storage;

pub use batch::{BatchHeader, HeaderFault};
pub use config::{LogConfig, TimestampType};
pub use disk_metrics::{DISK_METRICS, DISK_WRITE_SECONDS, DiskMetric, DiskSnapshot};
pub use epochs::{EpochEntry, LeaderEpochs};
pub use error::{AppendError, ProducerError, ReadError, StorageError};
pub use log::{
    AppendTicket, Damage, Log, OpenOptions, Piece, ReadLimits, ReadResult, RecoveryReport,
    Shutdown, TimestampOffset, Truncation, WriteOutcome,
};
pub use metrics::{Counters, STORAGE_METRICS};
pub use names::{DirectoryKind, TopicPartition};
pub use producer::AppendOrigin;
pub use segment::index;
pub use storage::{LogFailure, Storage, StorageOptions};
