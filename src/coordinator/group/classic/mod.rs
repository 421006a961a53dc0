//! Classic groups: members join, the leader assigns, members sync (JoinGroup, SyncGroup,
//! Heartbeat, LeaveGroup), as Kafka's `ClassicGroup` and the classic part of its
//! `GroupMetadataManager` do it.
//!
//! A group here is soft state: it runs ahead of its record (the generation rises when the join
//! phase ends, the record is written when the leader has assigned), and it is rebuilt from the
//! record when a partition is loaded. Functions of this folder change groups and fill an
//! [`Outbox`]; none of them can reach the durable state mutably.
//!
//! - [`members`]: the group's data and the bookkeeping of its members
//! - [`join`], [`static_members`]: JoinGroup
//! - [`rebalance`]: from the first join to the next generation, and its timers
//! - [`sync`], [`heartbeat`], [`leave`]: the other requests
//!
//! [`Outbox`]: super::super::outbox::Outbox

pub(crate) mod heartbeat;
pub(crate) mod join;
pub(crate) mod leave;
pub(crate) mod members;
pub(crate) mod rebalance;
pub(crate) mod static_members;
pub(crate) mod sync;

pub(crate) use members::{ClassicGroup, Member, State, Waiter};
