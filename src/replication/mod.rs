//! The partitions that this core owns: appends, reads, long polls, offsets by time and by epoch.
//!
//! One replica a partition for now, so the in-sync set is this broker and the high watermark is the
//! contiguous written prefix of the log.

mod append;
mod deletion;
mod error_code;
pub mod fetch_session;
mod offsets;
mod partition;
mod read;
mod replicas;
mod settings;
mod waiters;

pub use append::{AppendFailure, Appended, NotAppended, ProduceRules};
pub use deletion::DeletionFailure;
pub use fetch_session::FetchSessionCache;
pub use offsets::{EpochEnd, OffsetSpec, OffsetsFailure};
pub use partition::{LeaderCheck, Partition, PartitionKey};
pub use read::{Fetched, FetchedRecords, Isolation, ReadFailure, ReadRequest};
pub use replicas::{Missing, Replicas};
pub use settings::{BrokerLimits, PartitionSettings};
pub use waiters::{WaitId, Waiter};

/// When a producer is answered (`acks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// 0: never.
    None,
    /// 1: when the leader has written.
    Leader,
    /// -1: when every in-sync replica has written.
    All,
}

impl Acks {
    /// The meaning of the wire's number; `None` where it has none (INVALID_REQUIRED_ACKS).
    pub fn from_wire(acks: i16) -> Option<Acks> {
        match acks {
            0 => Some(Acks::None),
            1 => Some(Acks::Leader),
            -1 => Some(Acks::All),
            _ => None,
        }
    }
}
