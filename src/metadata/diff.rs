//! What differs between two images: the work list of everything that follows the metadata log.

use std::sync::Arc;

use imbl::ordmap::DiffItem;
use protocol::{Str, Uuid};

use super::image::{Image, Topic};
use super::partition::Partition;
use super::partitions::Partitions;

/// One partition that appeared, changed or went away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionChange<'a> {
    pub topic: Uuid,
    pub name: &'a Str,
    pub index: i32,
    /// `None` when the partition is new.
    pub old: Option<&'a Arc<Partition>>,
    /// `None` when the partition is gone.
    pub new: Option<&'a Arc<Partition>>,
}

/// Partitions that differ, by topic id and index. A topic that was deleted and created again under
/// its name has another id: it shows up as partitions that went and partitions that came.
///
/// Costs about what changed: subtrees and rows that both images share are compared by address.
#[must_use]
pub fn changed_partitions<'a>(old: &'a Image, new: &'a Image) -> Vec<PartitionChange<'a>> {
    let mut changes = Vec::new();
    let empty = &EMPTY;
    for item in old.topics.diff(&new.topics) {
        let (topic, before, after): (&'a Topic, _, _) = match item {
            DiffItem::Add(_, topic) => (topic, empty, &topic.partitions),
            DiffItem::Remove(_, topic) => (topic, &topic.partitions, empty),
            DiffItem::Update {
                old: (_, before),
                new: (_, after),
            } => (after, &before.partitions, &after.partitions),
        };
        let (id, name) = (topic.id, &topic.name);
        Partitions::diff(before, after, |index, old, new| {
            changes.push(PartitionChange {
                topic: id,
                name,
                index,
                old,
                new,
            });
        });
    }
    changes
}

static EMPTY: Partitions = Partitions::EMPTY;
