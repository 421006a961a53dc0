//! Leader epochs of a log: which leader wrote from which offset on (KIP-101, KIP-279).

/// Epoch and the offset of the first record it wrote, or would have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    pub epoch: i32,
    pub start_offset: i64,
}

/// The answer for epochs nobody knows (OffsetForLeaderEpoch).
pub const UNDEFINED: (i32, i64) = (-1, -1);

/// The table, ascending in both columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// Builds the table by assigning in file order, so that entries out of order cannot survive.
    pub fn from_entries(entries: impl IntoIterator<Item = EpochEntry>) -> LeaderEpochs {
        let mut table = LeaderEpochs::default();
        for entry in entries {
            table.assign(entry.epoch, entry.start_offset);
        }
        table
    }

    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    pub fn earliest(&self) -> Option<EpochEntry> {
        self.entries.first().copied()
    }

    /// Notes that `epoch` starts at `start_offset`. Entries it contradicts (a higher epoch, or a later start) go.
    /// True if the table changed. Negative values are ignored: batches older than v2 carry no epoch.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> bool {
        if epoch < 0 || start_offset < 0 {
            return false;
        }
        if let Some(latest) = self.latest()
            && latest.epoch == epoch
            && start_offset >= latest.start_offset
        {
            return false;
        }
        while let Some(last) = self.entries.last() {
            if last.epoch < epoch && last.start_offset < start_offset {
                break;
            }
            self.entries.pop();
        }
        self.entries.push(EpochEntry {
            epoch,
            start_offset,
        });
        true
    }

    /// `(epoch, end offset)` for a requested epoch: the largest epoch not above it and where the next one starts;
    /// the log end for the latest; [`UNDEFINED`] where the request is above all, or is -1.
    pub fn end_offset_for(&self, requested: i32, log_end_offset: i64) -> (i32, i64) {
        if requested == UNDEFINED.0 {
            return UNDEFINED;
        }
        let Some(latest) = self.latest() else {
            return UNDEFINED;
        };
        if latest.epoch == requested {
            return (requested, log_end_offset);
        }
        let higher = self
            .entries
            .partition_point(|entry| entry.epoch <= requested);
        match (higher.checked_sub(1), self.entries.get(higher)) {
            (_, None) => UNDEFINED,
            (None, Some(next)) => (requested, next.start_offset),
            (Some(floor), Some(next)) => (self.entries[floor].epoch, next.start_offset),
        }
    }

    /// The epoch that wrote `offset`.
    pub fn epoch_for(&self, offset: i64) -> Option<i32> {
        let after = self
            .entries
            .partition_point(|entry| entry.start_offset <= offset);
        after.checked_sub(1).map(|index| self.entries[index].epoch)
    }

    /// Forgets epochs that start at or after `end_offset`. True if the table changed.
    pub fn truncate_from_end(&mut self, end_offset: i64) -> bool {
        let keep = self
            .entries
            .partition_point(|entry| entry.start_offset < end_offset);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        changed
    }

    /// Forgets epochs that ended before `start_offset`; the one that covers it starts there now. True if changed.
    pub fn truncate_from_start(&mut self, start_offset: i64) -> bool {
        let covered = self
            .entries
            .partition_point(|entry| entry.start_offset <= start_offset);
        let Some(last_covered) = covered.checked_sub(1) else {
            return false;
        };
        if last_covered == 0 && self.entries[0].start_offset == start_offset {
            return false;
        }
        self.entries[last_covered].start_offset = start_offset;
        self.entries.drain(..last_covered);
        true
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs::from_entries(entries.iter().map(|&(epoch, start_offset)| EpochEntry {
            epoch,
            start_offset,
        }))
    }

    #[test]
    fn end_offsets_follow_the_rules_of_offset_for_leader_epoch() {
        let epochs = table(&[(2, 5), (4, 10), (7, 30)]);
        assert_eq!(epochs.end_offset_for(7, 42), (7, 42), "latest: the log end");
        assert_eq!(
            epochs.end_offset_for(8, 42),
            UNDEFINED,
            "unknown, above all"
        );
        assert_eq!(epochs.end_offset_for(-1, 42), UNDEFINED);
        assert_eq!(epochs.end_offset_for(4, 42), (4, 30));
        assert_eq!(
            epochs.end_offset_for(5, 42),
            (4, 30),
            "between two: the lower one"
        );
        assert_eq!(
            epochs.end_offset_for(1, 42),
            (1, 5),
            "below all: where the first known starts"
        );
        assert_eq!(epochs.end_offset_for(-2, 42), (-2, 5), "likewise");
        assert_eq!(LeaderEpochs::default().end_offset_for(0, 42), UNDEFINED);
    }

    #[test]
    fn a_new_epoch_removes_what_it_contradicts() {
        let mut epochs = table(&[(2, 5), (4, 10), (7, 30)]);
        assert!(!epochs.assign(7, 35), "the same epoch goes on");
        assert!(
            epochs.assign(8, 30),
            "an epoch that never wrote is replaced"
        );
        assert_eq!(epochs, table(&[(2, 5), (4, 10), (8, 30)]));
        assert!(epochs.assign(9, 7));
        assert_eq!(epochs, table(&[(2, 5), (9, 7)]));
        assert!(epochs.assign(3, 9));
        assert_eq!(epochs, table(&[(2, 5), (3, 9)]));
        assert!(!epochs.assign(-1, 100));
    }

    #[test]
    fn truncation_keeps_the_table_true() {
        let mut epochs = table(&[(2, 5), (4, 10), (7, 30)]);
        assert!(!epochs.truncate_from_end(31));
        assert!(epochs.truncate_from_end(30));
        assert_eq!(epochs, table(&[(2, 5), (4, 10)]));
        assert!(!epochs.truncate_from_start(4));
        assert!(
            !epochs.truncate_from_start(5),
            "nothing changes at the exact start"
        );
        assert!(epochs.truncate_from_start(20));
        assert_eq!(epochs, table(&[(4, 20)]));
    }

    #[test]
    fn epochs_by_offset() {
        let epochs = table(&[(2, 5), (4, 10)]);
        assert_eq!(epochs.epoch_for(4), None);
        assert_eq!(epochs.epoch_for(5), Some(2));
        assert_eq!(epochs.epoch_for(9), Some(2));
        assert_eq!(epochs.epoch_for(10), Some(4));
        assert_eq!(epochs.epoch_for(1_000), Some(4));
    }
}
