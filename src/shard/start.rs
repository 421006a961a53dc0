//! How far the start of the broker has come, for those who ask before it serves.

use std::cell::Cell;

/// Kept on the core that directs the start.
#[derive(Default)]
pub struct Start {
    partitions: Cell<usize>,
    ready: Cell<bool>,
}

impl Start {
    /// So many partitions are to be opened.
    pub fn expect(&self, partitions: usize) {
        self.partitions.set(partitions);
    }

    /// How many are to be opened, 0 before that is known.
    pub fn partitions(&self) -> usize {
        self.partitions.get()
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
