//! The shell around [`Coordinator`]: it loads it from the log, feeds it requests, timers and the
//! ends of appends, and does what it asks for. It runs on the core that owns the partition.
//!
//! - [`GroupPartition`] is the shell of one partition, [`GroupCoordinators`] all of one core.
//! - [`CoordinatorLog`] is what it needs from storage and replication.
//!
//! One append of a partition is under way at a time; what is decided meanwhile goes out together
//! in the next batch. A request is parked as a one-shot channel until the coordinator answers it.
//!
//! [`Coordinator`]: super::Coordinator

mod log;
mod partition;
mod set;
#[cfg(test)]
mod tests;
mod timers;

pub use log::{CoordinatorLog, LoadError, LocalFuture};
pub use partition::{Caller, GroupPartition, PartitionOptions, Status};
pub use set::GroupCoordinators;
