//! Leader epochs of deleted topics, so that a name that is created again goes on above them.
//!
//! Apache starts a re-created topic at leader epoch 0, and clients that know topics by name (before
//! Metadata v10) then take its metadata for stale. No record of the metadata log holds the epoch of
//! a topic that is gone, so this is remembered while the removal can still be replayed. What a
//! snapshot has swallowed is covered by the quorum epoch: a controller raises the epoch of a
//! partition at most [`RAISES_PER_QUORUM_EPOCH`] times in its term, and every start has a new term.

use imbl::OrdMap;
use protocol::Str;

/// Names remembered one by one; beyond it the highest epoch of all of them counts for every name.
const NAMES_MAX: usize = 4096;

/// Shutdown, fencing and election after a restart raise an epoch twice; twice that as a margin.
const RAISES_PER_QUORUM_EPOCH: i32 = 4;

/// Highest leader epoch of each deleted topic. Never part of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct RetiredEpochs {
    by_name: OrdMap<Str, i32>,
    /// For names that are no longer in `by_name`: the highest epoch of any of them.
    overflow: Option<i32>,
    /// The image began with a snapshot, so removals before it are not known.
    from_snapshot: bool,
}

/// What was retired is knowledge about the past, not a part of the state that images compare.
impl PartialEq for RetiredEpochs {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl RetiredEpochs {
    pub(super) fn retire(&mut self, name: &Str, highest_epoch: i32) {
        if self.by_name.len() >= NAMES_MAX && !self.by_name.contains_key(name) {
            let highest = self.by_name.values().copied().max();
            self.overflow = self.overflow.max(highest);
            self.by_name.clear();
        }
        let epoch = self
            .by_name
            .get(name)
            .copied()
            .unwrap_or(-1)
            .max(highest_epoch);
        self.by_name.insert(name.clone(), epoch);
    }

    pub(super) fn mark_from_snapshot(&mut self) {
        self.from_snapshot = true;
    }

    pub(super) fn first_epoch(&self, name: &str, quorum_epoch: i32) -> i32 {
        let mut first = self
            .by_name
            .get(name)
            .map_or(0, |epoch| epoch.saturating_add(1));
        if let Some(epoch) = self.overflow {
            first = first.max(epoch.saturating_add(1));
        }
        if self.from_snapshot {
            let terms = quorum_epoch.saturating_sub(1).max(0);
            first = first.max(terms.saturating_mul(RAISES_PER_QUORUM_EPOCH));
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_starts_at_zero_and_a_known_one_above_its_past() {
        let mut retired = RetiredEpochs::default();
        retired.retire(&Str::from("orders"), 7);
        assert_eq!(retired.first_epoch("fresh", 9), 0);
        assert_eq!(retired.first_epoch("orders", 1), 8);
        retired.retire(&Str::from("orders"), 3);
        assert_eq!(retired.first_epoch("orders", 1), 8);
    }

    #[test]
    fn forgotten_names_start_above_the_highest_of_all() {
        let mut retired = RetiredEpochs::default();
        retired.retire(&Str::from("first"), 41);
        for number in 0..NAMES_MAX {
            retired.retire(&Str::from(format!("topic-{number}")), 1);
        }
        assert!(retired.by_name.len() <= NAMES_MAX);
        assert_eq!(retired.first_epoch("first", 1), 42);
    }

    #[test]
    fn behind_a_snapshot_the_term_of_the_controller_decides() {
        let mut retired = RetiredEpochs::default();
        retired.mark_from_snapshot();
        assert_eq!(retired.first_epoch("orders", 1), 0);
        assert_eq!(
            retired.first_epoch("orders", 3),
            2 * RAISES_PER_QUORUM_EPOCH
        );
    }
}
