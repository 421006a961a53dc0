//! Record batches: the bytes that producers send, logs keep and consumers read, unchanged.
//!
//! [`BatchView`] looks into a v2 batch, [`split_batches`] cuts a run of bytes into them,
//! [`BatchBuilder`] writes one, [`rewrite`] does what a leader changes in place. Nothing here trusts
//! a length: hostile bytes give a typed error, and allocate no more than the caller's limit.

mod batch;
mod builder;
pub mod compress;
mod error;
mod header;
pub mod legacy;
pub mod recompress;
mod record;
pub mod rewrite;
mod search;
pub mod validate;
mod varint;
mod walk;

pub use batch::{BatchView, SplitBatches, split_batches};
pub use builder::{BatchBuilder, BuildError};
pub use compress::{Codec, Compression, Scratch};
pub use error::{BatchError, RecordProblem, SplitError};
pub use header::{
    Attributes, BATCH_OVERHEAD, BatchHeader, HEADER_UP_TO_MAGIC, LOG_OVERHEAD,
    NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, Peek,
    TimestampType, increment_sequence,
};
pub use recompress::TopicCompression;
pub use record::{Header, Record, RecordIter};
pub use search::TimestampAndOffset;
pub use validate::{validate, validate_old};
