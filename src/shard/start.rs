//! How far the start of the broker has come, for those who ask before it serves.

use std::cell::Cell;

use shards::time::Instant;

/// Kept on the core that directs the start.
#[derive(Default)]
pub struct Start {
    began: Cell<Option<Instant>>,
    partitions: Cell<usize>,
    ready: Cell<bool>,
}

impl Start {
    /// So many partitions are to be opened, from now on.
    pub fn expect(&self, partitions: usize, now: Instant) {
        self.began.set(Some(now));
        self.partitions.set(partitions);
    }

    /// How many are to be opened, 0 before that is known.
    pub fn partitions(&self) -> usize {
        self.partitions.get()
    }

    /// When opening them began; none before.
    pub fn began(&self) -> Option<Instant> {
        self.began.get()
    }

    /// Clients are accepted.
    pub fn done(&self) {
        self.ready.set(true);
    }

    /// Whether clients are accepted.
    pub fn is_ready(&self) -> bool {
        self.ready.get()
    }
}
