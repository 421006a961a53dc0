//! Counters of one core, and their names for whoever publishes them.

mod clients;
mod families;
mod reasons;
mod requests;

use std::cell::Cell;

use shards::metrics::Metric;

use super::Shard;
use crate::telemetry::Rarely;

pub use clients::{OldClient, OldClients, OldVersions, Software, SoftwareCounts, UNNAMED};
pub use families::*;
pub use reasons::{BadRequest, ByReason, Drop, Park, Parked, Parks};
pub use requests::{ApiSnapshot, Asked, RequestMetrics, Stage, Took};

/// Counters of one core; plain numbers, added up when somebody looks.
#[derive(Default)]
pub struct ShardMetrics {
    /// What requests of each API cost.
    pub requests: RequestMetrics,
    /// Who waits for what.
    pub parks: Parks,
    drops: ByReason<{ Drop::ALL.len() }>,
    bad_requests: ByReason<{ BadRequest::ALL.len() }>,
    /// Requests in versions that are going away.
    pub old_versions: OldVersions,
    /// Lines about requests that were slow.
    pub slow_lines: Rarely,
    /// Lines about connections that are closed, and about refused ones.
    pub closing_lines: Rarely,
    /// Connections accepted.
    pub connections_accepted: Counter,
    /// Connections closed at once, because their address had as many as it may have.
    pub connections_refused: Counter,
    /// Connections closed because they were silent for `connections.max.idle.ms`.
    pub connections_idle_closed: Counter,
    /// Fetches that got a small answer because others held the whole budget.
    pub fetches_without_budget: Counter,
    /// Record bytes that left from memory.
    pub fetched_from_memory: Counter,
    /// Record bytes that left from segment files, without passing through this process.
    pub fetched_from_files: Counter,
}

/// A number that only grows.
#[derive(Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.set(self.0.get() + count);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

impl ShardMetrics {
    /// Something was given up.
    pub fn drop(&self, what: Drop, count: u64) {
        self.drops.add(what as usize, count);
    }

    /// A frame was no request that the broker answers.
    pub fn bad_request(&self, why: BadRequest) {
        self.bad_requests.add(why as usize, 1);
    }

    /// The numbers that are told apart by a reason.
    pub fn by_reason(&self) -> ReasonSnapshot {
        let mut drops = self.drops.all();
        drops[Drop::LogLine as usize] +=
            self.slow_lines.kept_back() + self.closing_lines.kept_back();
        ReasonSnapshot {
            parked: self.parks.now(),
            parks: self.parks.total(),
            drops,
            bad_requests: self.bad_requests.all(),
        }
    }
}

/// Numbers by reason, each in the order of its kind's `ALL`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReasonSnapshot {
    /// Who waits now.
    pub parked: [u64; Park::ALL.len()],
    /// How often somebody did.
    pub parks: [u64; Park::ALL.len()],
    /// What was given up.
    pub drops: [u64; Drop::ALL.len()],
    /// Frames that were no requests.
    pub bad_requests: [u64; BadRequest::ALL.len()],
}

/// What a core tells of itself at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardSnapshot {
    connections_accepted: u64,
    connections_refused: u64,
    connections_idle_closed: u64,
    connections: u64,
    partitions: u64,
    partitions_offline: u64,
    fetches_without_budget: u64,
    fetched_from_memory_bytes: u64,
    fetched_from_files_bytes: u64,
    request_memory_bytes: u64,
    request_memory_limit_bytes: u64,
    response_memory_bytes: u64,
    response_memory_limit_bytes: u64,
    request_memory_waiting: u64,
    request_memory_waits: u64,
    response_memory_waiting: u64,
    response_memory_waits: u64,
    unanswered_requests: u64,
    fetch_sessions: u64,
    groups: u64,
    group_members: u64,
    groups_rebalancing: u64,
}

/// The names of a [`ShardSnapshot`].
pub const SHARD_METRICS: &[Metric<ShardSnapshot>] = shards::metrics! { ShardSnapshot, "":
    counter connections_accepted "Connections accepted.";
    counter connections_refused "Connections closed at once, because their address had as many as it may have.";
    counter connections_idle_closed "Connections closed because they were silent for too long.";
    gauge connections "Open connections of clients.";
    gauge partitions "Partitions that are served.";
    gauge partitions_offline "Partitions that could not be opened, or whose disk has failed.";
    counter fetches_without_budget "Fetches that got a small answer because others held the whole budget.";
    counter fetched_from_memory_bytes "Record bytes that left from memory.";
    counter fetched_from_files_bytes "Record bytes that left from segment files, without passing through this process.";
    gauge request_memory_bytes "Memory of requests that were read and not answered.";
    gauge request_memory_limit_bytes "Most of that there may be.";
    gauge response_memory_bytes "Record bytes of answers that have not left.";
    gauge response_memory_limit_bytes "Most of those there may be.";
    gauge request_memory_waiting "Requests that wait for memory before they are read.";
    counter request_memory_waits "How often a request had to wait for memory.";
    gauge response_memory_waiting "Fetches that wait for memory before they read.";
    counter response_memory_waits "How often a fetch had to wait for memory.";
    gauge unanswered_requests "Requests that were read and whose answers have not left.";
    gauge fetch_sessions "Fetch sessions that are kept.";
    gauge groups "Consumer groups, those without members too.";
    gauge group_members "Members of consumer groups.";
    gauge groups_rebalancing "Consumer groups in the middle of a rebalance.";
};

impl Shard {
    /// Its numbers now.
    pub fn snapshot(&self) -> ShardSnapshot {
        let counts = &self.metrics;
        let groups = self.groups.overview();
        ShardSnapshot {
            connections_accepted: counts.connections_accepted.get(),
            connections_refused: counts.connections_refused.get(),
            connections_idle_closed: counts.connections_idle_closed.get(),
            connections: self.connections.len() as u64,
            partitions: self.replicas.len() as u64,
            partitions_offline: self.replicas.out_of_service().len() as u64,
            fetches_without_budget: counts.fetches_without_budget.get(),
            fetched_from_memory_bytes: counts.fetched_from_memory.get(),
            fetched_from_files_bytes: counts.fetched_from_files.get(),
            request_memory_bytes: self.memory.requests.in_use(),
            request_memory_limit_bytes: self.memory.requests.capacity(),
            response_memory_bytes: self.memory.responses.in_use(),
            response_memory_limit_bytes: self.memory.responses.capacity(),
            request_memory_waiting: self.memory.requests.waiting() as u64,
            request_memory_waits: self.memory.requests.waits(),
            response_memory_waiting: self.memory.responses.waiting() as u64,
            response_memory_waits: self.memory.responses.waits(),
            unanswered_requests: self.connections.unanswered() as u64,
            fetch_sessions: self.sessions.borrow().len() as u64,
            groups: groups.groups as u64,
            group_members: groups.members as u64,
            groups_rebalancing: groups.rebalancing.len() as u64,
        }
    }
}
