//! Counters of one log directory, as one core uses it.

use std::cell::Cell;
use std::path::PathBuf;

use shards::metrics::{Family, Histogram, HistogramSnapshot, MetricKind};

/// Counts live; shared by the logs of a core that lie in one directory.
#[derive(Default)]
pub(crate) struct DiskCounters {
    pub writes: Cell<u64>,
    pub written_bytes: Cell<u64>,
    pub syncs: Cell<u64>,
    pub failures: Cell<u64>,
    pub write_time: Histogram,
}

/// What a core did with a log directory.
#[derive(Clone, Debug)]
pub struct DiskSnapshot {
    /// The log directory.
    pub directory: PathBuf,
    /// Writes to segments.
    pub writes: u64,
    /// Bytes written by them.
    pub written_bytes: u64,
    /// Writes that were forced to disk.
    pub syncs: u64,
    /// Writes that failed, want of space included.
    pub failures: u64,
    /// How long writes took, forcing included.
    pub write_time: HistogramSnapshot,
}

impl DiskCounters {
    pub fn snapshot(&self, directory: PathBuf) -> DiskSnapshot {
        DiskSnapshot {
            directory,
            writes: self.writes.get(),
            written_bytes: self.written_bytes.get(),
            syncs: self.syncs.get(),
            failures: self.failures.get(),
            write_time: self.write_time.snapshot(),
        }
    }

    /// A write of a log has ended well.
    pub fn written(&self, bytes: u64, synced: bool, nanos: u64) {
        self.writes.set(self.writes.get() + 1);
        self.written_bytes.set(self.written_bytes.get() + bytes);
        self.syncs.set(self.syncs.get() + u64::from(synced));
        self.write_time.add_nanos(nanos);
    }

    /// A write has failed.
    pub fn failed(&self) {
        self.failures.set(self.failures.get() + 1);
    }
}

const LABELS: &[&str] = &["core", "disk"];

/// One number of a disk and its name.
pub type DiskMetric = (Family, fn(&DiskSnapshot) -> u64);

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&DiskSnapshot) -> u64,
) -> DiskMetric {
    let family = Family {
        name,
        help,
        kind: MetricKind::Counter,
        labels: LABELS,
    };
    (family, value)
}

/// The names of a [`DiskSnapshot`], but for its durations.
pub const DISK_METRICS: &[DiskMetric] = &[
    counter("disk_writes", "Writes to segments.", |disk| disk.writes),
    counter(
        "disk_written_bytes",
        "Bytes written to segments, padding and repeated blocks included.",
        |disk| disk.written_bytes,
    ),
    counter("disk_syncs", "Writes that were forced to disk.", |disk| {
        disk.syncs
    }),
    counter(
        "disk_failures",
        "Writes that failed, want of space included.",
        |disk| disk.failures,
    ),
];

/// How long writes of a disk took.
pub const DISK_WRITE_SECONDS: Family = Family {
    name: "disk_write_seconds",
    help: "How long writes to segments took, forcing included.",
    kind: MetricKind::Histogram,
    labels: LABELS,
};
