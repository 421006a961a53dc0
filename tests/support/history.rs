//! What was sent, acknowledged and seen while a broker crashed again and again, and the faults that this shows
//! against what the log holds in the end.
use std::collections::{BTreeMap, BTreeSet};

/// A record is known by its number in the order of sending.
pub type Id = u64;

#[derive(Clone, Debug, Default)]
pub struct History {
    /// Whether the producer promised that nothing is written twice.
    pub idempotent: bool,
    pub sent: u64,
    /// Where the broker said that a record stands.
    pub acknowledged: BTreeMap<Id, (i32, i64)>,
    /// What a reader got while all this went on, in that order.
    pub seen: Vec<Place>,
    /// What a reader got in the end, from the start of each partition.
    pub log: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub partition: i32,
    pub offset: i64,
    pub id: Id,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Acknowledged there, but something else stands there, or nothing.
    Lost {
        id: Id,
        partition: i32,
        offset: i64,
        found: Option<Id>,
    },
    /// An idempotent producer's record that stands twice.
    Duplicate { id: Id, partition: i32, offset: i64 },
    /// A record behind one that was sent after it.
    OutOfOrder {
        id: Id,
        partition: i32,
        offset: i64,
        behind: Id,
    },
    /// A reader saw another record at that offset than what stands there in the end.
    Changed { seen: Place, found: Option<Id> },
    /// A reader did not get the offset that follows the one before.
    Skipped {
        partition: i32,
        wanted: i64,
        got: i64,
    },
    /// A reader stopped before the end.
    Unseen { partition: i32, from: i64, end: i64 },
    /// A record that nobody sent.
    Invented(Place),
}

impl History {
    /// Everything that is wrong, in no particular order.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let log = by_partition(&self.log, &mut faults);
        let seen = by_partition(&self.seen, &mut faults);
        faults.extend(
            self.log
                .iter()
                .filter(|place| place.id >= self.sent)
                .map(|place| Fault::Invented(*place)),
        );
        self.find_lost(&log, &mut faults);
        for (partition, ids) in &log {
            self.find_disorder(*partition, ids, &mut faults);
            let reached = seen.get(partition).map_or(0, Vec::len);
            if reached < ids.len() {
                faults.push(Fault::Unseen {
                    partition: *partition,
                    from: offset(reached),
                    end: offset(ids.len()),
                });
            }
        }
        for place in &self.seen {
            let found = look_up(&log, place.partition, place.offset);
            if found != Some(place.id) {
                faults.push(Fault::Changed {
                    seen: *place,
                    found,
                });
            }
        }
        faults
    }

    fn find_lost(&self, log: &BTreeMap<i32, Vec<Id>>, faults: &mut Vec<Fault>) {
        for (&id, &(partition, offset)) in &self.acknowledged {
            let found = look_up(log, partition, offset);
            if found != Some(id) {
                faults.push(Fault::Lost {
                    id,
                    partition,
                    offset,
                    found,
                });
            }
        }
    }

    /// A record may stand twice unless the producer is idempotent, but for the first time only in its turn.
    fn find_disorder(&self, partition: i32, ids: &[Id], faults: &mut Vec<Fault>) {
        let mut before = BTreeSet::new();
        for (at, &id) in ids.iter().enumerate() {
            let highest = before.last().copied();
            if !before.insert(id) {
                if self.idempotent {
                    faults.push(Fault::Duplicate {
                        id,
                        partition,
                        offset: offset(at),
                    });
                }
            } else if let Some(behind) = highest.filter(|highest| *highest > id) {
                faults.push(Fault::OutOfOrder {
                    id,
                    partition,
                    offset: offset(at),
                    behind,
                });
            }
        }
    }
}

/// The ids of each partition in offset order; an offset that does not follow the one before is a fault.
fn by_partition(places: &[Place], faults: &mut Vec<Fault>) -> BTreeMap<i32, Vec<Id>> {
    let mut found: BTreeMap<i32, Vec<Id>> = BTreeMap::new();
    for place in places {
        let ids = found.entry(place.partition).or_default();
        let wanted = offset(ids.len());
        if place.offset == wanted {
            ids.push(place.id);
        } else {
            faults.push(Fault::Skipped {
                partition: place.partition,
                wanted,
                got: place.offset,
            });
        }
    }
    found
}

fn look_up(log: &BTreeMap<i32, Vec<Id>>, partition: i32, offset: i64) -> Option<Id> {
    let at = usize::try_from(offset).ok()?;
    log.get(&partition)?.get(at).copied()
}

fn offset(at: usize) -> i64 {
    i64::try_from(at).expect("fewer than 2^63")
}

/// The checker is worth something only if it finds what is planted.
#[cfg(test)]
mod tests {
    use super::{Fault, History, Place};

    /// Two partitions of 50 records each, all acknowledged and seen.
    fn sound(idempotent: bool) -> History {
        let place = |id: u64| Place {
            partition: i32::try_from(id % 2).unwrap(),
            offset: i64::try_from(id / 2).unwrap(),
            id,
        };
        let log: Vec<Place> = (0..100).map(place).collect();
        let acknowledged = log
            .iter()
            .map(|place| (place.id, (place.partition, place.offset)))
            .collect();
        History {
            idempotent,
            sent: 100,
            acknowledged,
            seen: log.clone(),
            log,
        }
    }

    /// Puts the ids into one partition, in that order.
    fn hold(ids: &[u64]) -> Vec<Place> {
        let place = |(at, &id): (usize, &u64)| Place {
            partition: 0,
            offset: i64::try_from(at).unwrap(),
            id,
        };
        ids.iter().enumerate().map(place).collect()
    }

    fn unacknowledged(idempotent: bool, ids: &[u64]) -> History {
        let log = hold(ids);
        History {
            idempotent,
            sent: 100,
            acknowledged: std::collections::BTreeMap::new(),
            seen: log.clone(),
            log,
        }
    }

    #[test]
    fn a_sound_history_has_no_fault() {
        assert_eq!(sound(true).faults(), []);
        assert_eq!(sound(false).faults(), []);
    }

    #[test]
    fn a_missing_end_is_lost() {
        let mut history = sound(true);
        history.log.retain(|place| place.id < 97);
        history.seen = history.log.clone();
        let lost = |id, partition, offset| Fault::Lost {
            id,
            partition,
            offset,
            found: None,
        };
        assert_eq!(
            history.faults(),
            [lost(97, 1, 48), lost(98, 0, 49), lost(99, 1, 49)]
        );
    }

    #[test]
    fn a_record_replaced_after_the_answer_is_lost() {
        let mut history = unacknowledged(false, &[0, 1, 3]);
        history.acknowledged.insert(2, (0, 2));
        assert_eq!(
            history.faults(),
            [Fault::Lost {
                id: 2,
                partition: 0,
                offset: 2,
                found: Some(3)
            }]
        );
    }

    #[test]
    fn a_duplicate_counts_only_for_an_idempotent_producer() {
        let ids = [0, 1, 2, 1, 2, 3];
        let twice = |id, offset| Fault::Duplicate {
            id,
            partition: 0,
            offset,
        };
        assert_eq!(
            unacknowledged(true, &ids).faults(),
            [twice(1, 3), twice(2, 4)]
        );
        assert_eq!(unacknowledged(false, &ids).faults(), []);
    }

    #[test]
    fn a_moved_record_is_out_of_order() {
        let wanted = [Fault::OutOfOrder {
            id: 1,
            partition: 0,
            offset: 3,
            behind: 3,
        }];
        assert_eq!(unacknowledged(true, &[0, 2, 3, 1, 4]).faults(), wanted);
        assert_eq!(unacknowledged(false, &[0, 2, 3, 1, 4]).faults(), wanted);
    }

    #[test]
    fn a_record_that_was_seen_and_taken_back_is_found() {
        let mut history = unacknowledged(true, &[0, 1, 2]);
        history.log = hold(&[0, 1, 3]);
        let seen = history.seen[2];
        assert_eq!(
            history.faults(),
            [Fault::Changed {
                seen,
                found: Some(3)
            }]
        );
        history.log = hold(&[0, 1]);
        assert_eq!(history.faults(), [Fault::Changed { seen, found: None }]);
    }

    #[test]
    fn a_hole_and_a_repetition_are_found() {
        let mut history = unacknowledged(true, &[0, 1, 2]);
        history.seen.remove(1);
        assert!(history.faults().contains(&Fault::Skipped {
            partition: 0,
            wanted: 1,
            got: 2
        }));
        let mut history = unacknowledged(true, &[0, 1, 2]);
        history.seen.push(history.seen[1]);
        assert_eq!(
            history.faults(),
            [Fault::Skipped {
                partition: 0,
                wanted: 3,
                got: 1
            }]
        );
    }

    #[test]
    fn a_reader_that_stops_early_is_found() {
        let mut history = unacknowledged(true, &[0, 1, 2]);
        history.seen.pop();
        assert_eq!(
            history.faults(),
            [Fault::Unseen {
                partition: 0,
                from: 2,
                end: 3
            }]
        );
    }

    #[test]
    fn an_invented_record_is_found() {
        let history = unacknowledged(true, &[0, 1, 100]);
        assert_eq!(history.faults(), [Fault::Invented(history.log[2])]);
    }
}
