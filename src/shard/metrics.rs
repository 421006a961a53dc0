//! Counters of one core, and their names for whoever publishes them.

use std::cell::{Cell, RefCell};

use protocol::ApiKey;
use shards::metrics::Metric;

use super::Shard;

/// Counters of one core; plain numbers, added up when somebody looks.
#[derive(Default)]
pub struct ShardMetrics {
    /// Frames that were no request we answer; their connections were closed.
    pub bad_requests: Counter,
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
    requests: RefCell<Vec<u64>>,
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
    /// Counts a request of this API.
    pub fn count_request(&self, api: ApiKey) {
        let index = usize::try_from(api.code()).unwrap_or_default();
        let mut requests = self.requests.borrow_mut();
        if requests.len() <= index {
            requests.resize(index + 1, 0);
        }
        requests[index] += 1;
    }

    /// Requests begun, of every API that was asked for.
    pub fn requests(&self) -> Vec<(ApiKey, u64)> {
        let counts = self.requests.borrow();
        let asked = (0..).zip(counts.iter()).filter(|(_, count)| **count > 0);
        asked
            .filter_map(|(code, count)| Some((ApiKey::from_i16(code)?, *count)))
            .collect()
    }
}

/// What a core tells of itself at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardSnapshot {
    bad_requests: u64,
    connections_accepted: u64,
    connections_refused: u64,
    connections_idle_closed: u64,
    connections: u64,
    partitions: u64,
    partitions_offline: u64,
    fetches_without_budget: u64,
    fetched_from_memory_bytes: u64,
    fetched_from_files_bytes: u64,
    parked_fetches: u64,
    request_memory_bytes: u64,
    request_memory_limit_bytes: u64,
    response_memory_bytes: u64,
    response_memory_limit_bytes: u64,
}

/// The names of a [`ShardSnapshot`].
pub const SHARD_METRICS: &[Metric<ShardSnapshot>] = shards::metrics! { ShardSnapshot, "":
    counter bad_requests "Frames that were no request we answer; their connections were closed.";
    counter connections_accepted "Connections accepted.";
    counter connections_refused "Connections closed at once, because their address had as many as it may have.";
    counter connections_idle_closed "Connections closed because they were silent for too long.";
    gauge connections "Open connections of clients.";
    gauge partitions "Partitions that are served.";
    gauge partitions_offline "Partitions that could not be opened.";
    counter fetches_without_budget "Fetches that got a small answer because others held the whole budget.";
    counter fetched_from_memory_bytes "Record bytes that left from memory.";
    counter fetched_from_files_bytes "Record bytes that left from segment files, without passing through this process.";
    gauge parked_fetches "Fetches that wait for records.";
    gauge request_memory_bytes "Memory of requests that were read and not answered.";
    gauge request_memory_limit_bytes "Most of that there may be.";
    gauge response_memory_bytes "Record bytes of answers that have not left.";
    gauge response_memory_limit_bytes "Most of those there may be.";
};

impl Shard {
    /// Its numbers now.
    pub fn snapshot(&self) -> ShardSnapshot {
        let counts = &self.metrics;
        ShardSnapshot {
            bad_requests: counts.bad_requests.get(),
            connections_accepted: counts.connections_accepted.get(),
            connections_refused: counts.connections_refused.get(),
            connections_idle_closed: counts.connections_idle_closed.get(),
            connections: self.connections.len() as u64,
            partitions: self.replicas.len() as u64,
            partitions_offline: self.replicas.offline().len() as u64,
            fetches_without_budget: counts.fetches_without_budget.get(),
            fetched_from_memory_bytes: counts.fetched_from_memory.get(),
            fetched_from_files_bytes: counts.fetched_from_files.get(),
            parked_fetches: self.parked_fetches.get() as u64,
            request_memory_bytes: self.memory.requests.in_use(),
            request_memory_limit_bytes: self.memory.requests.capacity(),
            response_memory_bytes: self.memory.responses.in_use(),
            response_memory_limit_bytes: self.memory.responses.capacity(),
        }
    }
}
