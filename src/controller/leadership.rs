//! Who leads after this broker came or a directory went.

use protocol::stored::{MetadataRecord, PartitionChangeRecord};
use protocol::{Array, Uuid};

use crate::metadata::{BrokerRegistration, Image, NO_LEADER, Partition, Topic};

/// Changes that follow when a new incarnation of `broker` is up: it leads what it led before, and
/// what has no leader and counts it as in sync, each under a higher leader epoch.
///
/// Apache writes two changes a partition after an unclean stop (no leader, then the leader again)
/// and one after a clean one. Here it is always one: naming the same leader raises the epoch too.
pub(super) fn take_over(image: &Image, broker: &BrokerRegistration) -> Array<MetadataRecord> {
    each_partition(image, |topic, index, partition| {
        let directory = partition.directory_of(broker.id)?;
        if !broker.has_online(directory) {
            let leads = partition.leader == broker.id;
            return leads.then(|| change(topic, index, NO_LEADER));
        }
        let vacant = partition.leader == NO_LEADER && may_lead(partition, broker.id);
        if partition.leader != broker.id && !vacant {
            return None;
        }
        let mut record = change(topic, index, broker.id);
        if !partition.isr.contains(&broker.id) {
            // Elected as an eligible or as the last known leader (KIP-966).
            record.isr = Some([broker.id].into());
            let elr: Vec<i32> = partition
                .elr
                .iter()
                .copied()
                .filter(|&id| id != broker.id)
                .collect();
            record.eligible_leader_replicas = (elr != *partition.elr).then_some(elr.into());
        }
        if !partition.last_known_elr.is_empty() {
            record.last_known_elr = Some([].into());
        }
        Some(record)
    })
}

/// Changes that follow when directories of `node` failed: it leads nothing in them.
pub(super) fn give_up_directories(
    image: &Image,
    node: i32,
    failed: &[Uuid],
) -> Array<MetadataRecord> {
    each_partition(image, |topic, index, partition| {
        let directory = partition.directory_of(node)?;
        let leads = partition.leader == node && failed.contains(&directory);
        leads.then(|| change(topic, index, NO_LEADER))
    })
}

/// Changes that follow when `broker` is gone for good: it leads nothing, and is in sync only where nobody else is, so
/// that it may lead again if it comes back after all.
pub(super) fn give_up(image: &Image, broker: i32) -> Array<MetadataRecord> {
    each_partition(image, |topic, index, partition| {
        let others: Vec<i32> = partition
            .isr
            .iter()
            .copied()
            .filter(|&id| id != broker)
            .collect();
        let leads = partition.leader == broker;
        let leaves = others.len() < partition.isr.len() && !others.is_empty();
        if !leads && !leaves {
            return None;
        }
        let next = others.iter().copied().find(|&id| image.is_active(id));
        let mut record = change(topic, index, next.unwrap_or(NO_LEADER));
        if !leads {
            record.leader = NO_LEADER_CHANGE;
        }
        record.isr = leaves.then_some(others.into());
        Some(record)
    })
}

/// The broker, where nobody leads and it is in sync.
pub(super) fn vacancy(partition: &Partition, broker: i32) -> Option<i32> {
    let vacant = partition.leader == NO_LEADER && partition.isr.contains(&broker);
    vacant.then_some(broker)
}

/// In sync; or eligible while nobody is in sync; or the last known leader while nobody is either.
fn may_lead(partition: &Partition, broker: i32) -> bool {
    if !partition.isr.is_empty() {
        return partition.isr.contains(&broker);
    }
    if !partition.elr.is_empty() {
        return partition.elr.contains(&broker);
    }
    *partition.last_known_elr == [broker]
}

/// Leader of a change that leaves the leader alone.
const NO_LEADER_CHANGE: i32 = -2;

fn change(topic: Uuid, index: i32, leader: i32) -> PartitionChangeRecord {
    PartitionChangeRecord {
        partition_id: index,
        topic_id: topic,
        leader,
        ..Default::default()
    }
}

fn each_partition(
    image: &Image,
    mut decide: impl FnMut(Uuid, i32, &Partition) -> Option<PartitionChangeRecord>,
) -> Array<MetadataRecord> {
    let mut records = Array::new();
    for topic in image.topics() {
        let topic: &Topic = topic;
        for (index, partition) in topic.partitions.iter() {
            records.extend(decide(topic.id, index, partition).map(MetadataRecord::from));
        }
    }
    records
}
