//! Plain counters of one core, merged only when somebody asks.

use std::cell::Cell;

pub use crate::histogram::{Histogram, HistogramSnapshot};

/// A copy of one core's counters, from [`Core::metrics`](crate::Core::metrics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreMetrics {
    /// Passes of the core's main loop.
    pub turns: u64,
    /// Passes that found nothing to do and slept.
    pub sleeps: u64,
    /// Polls of tasks.
    pub tasks_run: u64,
    /// Tasks that exist now.
    pub tasks_alive: u64,
    /// Polls that held the core longer than the stall threshold.
    pub stalls: u64,
    /// Longest poll so far, in microseconds.
    pub longest_poll_us: u64,
    /// Core time spent in tasks by class, in nanoseconds, in the order of `TaskClass`.
    pub busy_nanos: [u64; 5],
    /// Operations given to the kernel or to the pool.
    pub submissions: u64,
    /// Operations that the ring has not completed yet, or whose results nobody has taken.
    pub operations_in_flight: u64,
    /// Completions taken.
    pub completions: u64,
    /// System calls that handed over operations or waited (io_uring_enter, epoll_wait).
    pub enters: u64,
    /// Timers that fired.
    pub timers_fired: u64,
    /// Calls and posts received from other cores.
    pub mesh_received: u64,
    /// Calls, posts and replies sent to other cores.
    pub mesh_sent: u64,
    /// Most messages found waiting in this core's lanes at one time.
    pub mailbox_depth_max: u64,
    /// Messages in this core's lanes that it has not taken.
    pub mailbox_depth: u64,
    /// Messages that wait at this core for room in a lane.
    pub lane_overflow_waiting: u64,
    /// Messages that found their lane full and waited at the sender.
    pub lane_overflow: u64,
    /// Sleeping cores that this core woke.
    pub wakeups_sent: u64,
    /// Times this core was woken by others.
    pub wakeups_received: u64,
    /// Bytes of the receive pool now held by connections.
    pub recv_pool_in_use: u64,
    /// Times a connection had to wait for receive pool memory.
    pub recv_pool_limit_hits: u64,
    /// Bytes received and sent on sockets.
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// Bytes sent from files by sendfile (part of `bytes_sent`).
    pub bytes_sent_from_files: u64,
    /// File ranges that were not in the page cache and were read ahead off the core.
    pub cold_prefetches: u64,
    /// Pieces of files that were read from the disk past the page cache to be sent.
    pub cold_reads: u64,
    /// Times such a piece went through the page cache because all memory for cold reads was in use.
    pub cold_reads_without_memory: u64,
    /// Cold reads that wait for their turn at a disk.
    pub cold_reads_waiting: u64,
    /// Bytes of memory for cold reads held now.
    pub cold_read_memory: u64,
    /// Bytes of large blocks that are free and kept to be used again.
    pub large_block_memory: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The live counters; cells, because only their core touches them.
        #[derive(Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)* }

        impl Counters {
            pub(crate) fn fill(&self, metrics: &mut CoreMetrics) {
                $(metrics.$name = self.$name.get();)*
            }
        }
    };
}

counters!(
    turns,
    sleeps,
    tasks_run,
    stalls,
    longest_poll_us,
    submissions,
    completions,
    enters,
    timers_fired,
    mesh_received,
    mesh_sent,
    mailbox_depth_max,
    lane_overflow,
    wakeups_sent,
    recv_pool_in_use,
    recv_pool_limit_hits,
    bytes_received,
    bytes_sent,
    bytes_sent_from_files,
    cold_prefetches,
    cold_reads,
    cold_reads_without_memory,
);

#[derive(Default)]
pub(crate) struct Counter(Cell<u64>);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn sub(&self, n: u64) {
        self.0.set(self.0.get().saturating_sub(n));
    }

    pub(crate) fn raise_to(&self, n: u64) {
        self.0.set(self.0.get().max(n));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start.
    Counter,
    /// A value now, or the largest so far.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

/// Numbers that are told apart by labels: their name and what they are, in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// In the style of Prometheus, without prefix and without the suffix of totals.
    pub name: &'static str,
    /// What it counts, for people.
    pub help: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Names of the labels, in order.
    pub labels: &'static [&'static str],
}

/// Core time by task class: see [`CoreMetrics::busy_nanos`].
pub const BUSY_SECONDS: Family = Family {
    name: "core_busy_seconds",
    help: "Time that tasks held the core, by class of task.",
    kind: MetricKind::Counter,
    labels: &["core", "class"],
};

/// One number of a set of counters `T`, for whoever publishes it: its name and what it is, in one place.
#[derive(Clone, Copy, Debug)]
pub struct Metric<T> {
    /// In the style of Prometheus, without prefix and without the suffix of totals.
    pub name: &'static str,
    /// What it counts, for people.
    pub help: &'static str,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// Takes it out of the set.
    pub value: fn(&T) -> u64,
}

/// A table of [`Metric`]s, a line each: `counter field "help";`, where the name is the field's.
#[macro_export]
macro_rules! metrics {
    ($set:ty, $prefix:literal: $($kind:ident $name:ident $help:literal;)*) => {
        &[$($crate::metrics::Metric::<$set> {
            name: concat!($prefix, stringify!($name)),
            help: $help,
            kind: $crate::metrics!(@ $kind),
            value: |set| u64::from(set.$name),
        },)*]
    };
    (@ counter) => { $crate::metrics::MetricKind::Counter };
    (@ gauge) => { $crate::metrics::MetricKind::Gauge };
}

/// What a core tells of itself.
pub const CORE_METRICS: &[Metric<CoreMetrics>] = crate::metrics! { CoreMetrics, "core_":
    counter turns "Passes of the main loop.";
    counter sleeps "Passes that found nothing to do and slept.";
    counter tasks_run "Polls of tasks.";
    gauge tasks_alive "Tasks that exist now.";
    counter stalls "Polls that held the core for too long.";
    gauge longest_poll_us "Longest poll so far, in microseconds.";
    counter submissions "Operations given to the kernel or to the thread pool.";
    gauge operations_in_flight "Operations that are not completed.";
    counter completions "Completions taken.";
    counter enters "System calls that handed over operations or waited.";
    counter timers_fired "Timers that fired.";
    counter mesh_received "Calls and posts from other cores.";
    counter mesh_sent "Calls, posts and replies to other cores.";
    gauge mailbox_depth_max "Most messages found waiting from other cores at one time.";
    gauge mailbox_depth "Messages from other cores that have not been taken.";
    gauge lane_overflow_waiting "Messages to other cores that wait for room in their lane.";
    counter lane_overflow "Messages to other cores that found their lane full and waited.";
    counter wakeups_sent "Sleeping cores that this core woke.";
    counter wakeups_received "Times this core was woken by others.";
    gauge recv_pool_in_use "Bytes of the receive pool held by connections.";
    counter recv_pool_limit_hits "Times a connection waited for memory of the receive pool.";
    counter bytes_received "Bytes received on sockets.";
    counter bytes_sent "Bytes sent on sockets.";
    counter bytes_sent_from_files "Bytes sent from files, part of those sent on sockets.";
    counter cold_prefetches "File ranges that were not in the page cache and were read ahead off the core.";
    counter cold_reads "Pieces of files read from the disk past the page cache to be sent.";
    counter cold_reads_without_memory "Pieces that went through the page cache because all memory for cold reads was in use.";
    gauge cold_reads_waiting "Cold reads that wait for their turn at a disk.";
    gauge cold_read_memory "Bytes of memory held for cold reads.";
    gauge large_block_memory "Bytes of large blocks of memory that are free and kept to be used again.";
};
