//! Which offsets and groups have records on their way into the log.
//!
//! Decisions have to see them: an offset whose tombstone is being written must not be deleted
//! again, a group that is just being committed to must not expire. Reads do not.

use std::collections::BTreeMap;

use protocol::{Str, Uuid};

use super::event::Sequence;
use super::record::{LogRecord, Stored};

#[derive(Clone, Copy, Debug)]
struct Change {
    /// The last append that touches the key.
    sequence: Sequence,
    /// The topic's id if it is a commit, None if it is a tombstone.
    committed: Option<Uuid>,
}

/// The keys of all appends that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    offsets: BTreeMap<Str, BTreeMap<(Str, i32), Change>>,
    groups: BTreeMap<Str, Sequence>,
}

impl Uncommitted {
    pub(crate) fn add(&mut self, sequence: Sequence, records: &[LogRecord]) {
        for record in records {
            match &record.stored {
                Stored::Offset {
                    group,
                    topic,
                    partition,
                    value,
                } => {
                    let committed = value.as_ref().map(|value| value.topic_id);
                    self.offsets.entry(group.clone()).or_default().insert(
                        (topic.clone(), *partition),
                        Change {
                            sequence,
                            committed,
                        },
                    );
                }
                Stored::Group { group, .. } => {
                    self.groups.insert(group.clone(), sequence);
                }
                Stored::Foreign { .. } | Stored::EndTransaction { .. } | Stored::Unknown => {}
            }
        }
    }

    /// An append has ended, well or not.
    pub(crate) fn settle(&mut self, sequence: Sequence, records: &[LogRecord]) {
        for record in records {
            match &record.stored {
                Stored::Offset {
                    group,
                    topic,
                    partition,
                    ..
                } => {
                    let Some(changes) = self.offsets.get_mut(group) else {
                        continue;
                    };
                    let key = (topic.clone(), *partition);
                    if changes
                        .get(&key)
                        .is_some_and(|change| change.sequence == sequence)
                    {
                        changes.remove(&key);
                    }
                    if changes.is_empty() {
                        self.offsets.remove(group);
                    }
                }
                Stored::Group { group, .. } => {
                    if self.groups.get(group) == Some(&sequence) {
                        self.groups.remove(group);
                    }
                }
                Stored::Foreign { .. } | Stored::EndTransaction { .. } | Stored::Unknown => {}
            }
        }
    }

    /// Topic, partition, and whether there will be an offset.
    pub(crate) fn of_group(&self, group: &Str) -> impl Iterator<Item = (&Str, i32, bool)> {
        self.offsets
            .get(group)
            .into_iter()
            .flatten()
            .map(|((topic, partition), change)| (topic, *partition, change.committed.is_some()))
    }

    /// Commits to this topic: group, topic, partition. Ids that are zero match any.
    pub(crate) fn of_topic(&self, name: &Str, id: Uuid) -> impl Iterator<Item = (Str, Str, i32)> {
        self.offsets.iter().flat_map(move |(group, changes)| {
            changes
                .iter()
                .filter_map(move |((topic, partition), change)| {
                    let committed = change.committed?;
                    let same = topic == name && (committed.is_zero() || committed == id);
                    same.then(|| (group.clone(), topic.clone(), *partition))
                })
        })
    }

    pub(crate) fn touches(&self, group: &Str) -> bool {
        self.offsets.contains_key(group) || self.groups.contains_key(group)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty() && self.groups.is_empty()
    }
}
