//! The executor of one core: its tasks, who runs next, and wake-ups from this and other threads.

mod class;
mod join;
mod pending;
mod ready;
mod tasks;

pub(crate) use class::CLASSES;
pub use class::TaskClass;
pub(crate) use join::JoinGuard;
pub use join::{Aborted, JoinHandle};
pub(crate) use pending::{Pending, PendingValue};
pub(crate) use ready::{CoreShared, TaskHeader};
pub(crate) use tasks::{Executor, Ran};
