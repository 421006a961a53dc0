//! The group coordinator: members of consumer groups, and their offsets.
//!
//! One [`Coordinator`] for each partition of `__consumer_offsets` that this broker leads, on the
//! core that owns the partition. See README.md beside this file.

mod event;
mod group;
mod machine;
mod outbox;
mod overview;
mod partition;
pub mod record;
mod refusal;
pub mod runtime;
pub mod service;
mod settings;
pub mod state;
mod uncommitted;
pub mod wire;

#[cfg(test)]
mod tests;

pub use event::{
    Effect, Event, Request, RequestContext, RequestToken, Response, Sequence, TimerKey,
};
pub use group::subscription::subscribed_topics;
pub use machine::Coordinator;
pub use overview::{AwaitedMember, GroupsOverview, Rebalance};
pub use partition::partition_for;
pub use refusal::refuse;
pub use settings::{NEW_MEMBER_JOIN_TIMEOUT, Settings};
