//! What the log says: the durable half of a coordinator, changed by [`Durable::apply`] alone.
//!
//! `apply` is fed every record of the partition once it is written, in order, in the same way
//! live and when the log is replayed. So two coordinators that read the same log agree.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::stored::{GroupMetadataValue, OffsetCommitValue};
use protocol::{Str, Uuid};

use super::event::detached;
use super::record::{LogRecord, Stored};

/// A member as the group's record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableMember {
    pub member_id: Str,
    pub instance_id: Option<Str>,
    pub client_id: Str,
    pub client_host: Str,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: Bytes,
    pub assignment: Bytes,
}

/// A group as its last record has it; a simple group (offsets only) has no record and is default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurableGroup {
    pub generation: i32,
    /// None for a group whose members never used a protocol.
    pub protocol_type: Option<Str>,
    pub protocol: Option<Str>,
    pub leader: Option<Str>,
    /// Unix milliseconds when the group entered its state; None in records before version 2.
    pub state_timestamp: Option<i64>,
    pub members: Vec<DurableMember>,
}

/// One committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetAndMetadata {
    /// Where the commit stands in the log: the later of two commits of a partition wins, even if
    /// the earlier one belongs to a transaction that ends after it.
    pub record_offset: i64,
    pub offset: i64,
    /// -1 if the client gave none.
    pub leader_epoch: i32,
    pub metadata: Str,
    pub commit_timestamp: i64,
    /// Set by requests with a retention time of their own only.
    pub expire_timestamp: Option<i64>,
    /// Zero in commits of old brokers.
    pub topic_id: Uuid,
}

/// Offsets by topic and partition.
pub type TopicOffsets = BTreeMap<Str, BTreeMap<i32, OffsetAndMetadata>>;

/// Group types that this broker does not serve yet, but whose records it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignType {
    Consumer,
    Share,
    Streams,
}

/// The state that the log of one `__consumer_offsets` partition describes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durable {
    groups: BTreeMap<Str, DurableGroup>,
    offsets: BTreeMap<Str, TopicOffsets>,
    /// Commits of open transactions: producer id, group, topic, partition.
    transactional: BTreeMap<i64, BTreeMap<Str, TopicOffsets>>,
    foreign: BTreeMap<Str, ForeignType>,
}

impl Durable {
    pub fn group(&self, group_id: &Str) -> Option<&DurableGroup> {
        self.groups.get(group_id)
    }

    pub fn groups(&self) -> impl Iterator<Item = (&Str, &DurableGroup)> {
        self.groups.iter()
    }

    pub fn offsets(&self, group_id: &Str) -> Option<&TopicOffsets> {
        self.offsets.get(group_id)
    }

    pub fn all_offsets(&self) -> impl Iterator<Item = (&Str, &TopicOffsets)> {
        self.offsets.iter()
    }

    pub fn offset(&self, group: &Str, topic: &Str, partition: i32) -> Option<&OffsetAndMetadata> {
        self.offsets.get(group)?.get(topic)?.get(&partition)
    }

    /// Does an open transaction hold an offset of this partition?
    pub fn is_unstable(&self, group: &Str, topic: &Str, partition: i32) -> bool {
        self.pending(group).any(|topics| {
            topics
                .get(topic)
                .is_some_and(|offsets| offsets.contains_key(&partition))
        })
    }

    /// The offsets of a group that open transactions hold, one map a transaction.
    pub fn pending(&self, group: &Str) -> impl Iterator<Item = &TopicOffsets> {
        let group = group.clone();
        self.transactional
            .values()
            .filter_map(move |groups| groups.get(&group))
    }

    /// All offsets that open transactions hold, by group.
    pub fn all_pending(&self) -> impl Iterator<Item = (&Str, &TopicOffsets)> {
        self.transactional.values().flat_map(BTreeMap::iter)
    }

    /// Is the id taken by a group of a type that is not served here?
    pub fn foreign(&self, group_id: &Str) -> Option<ForeignType> {
        self.foreign.get(group_id).copied()
    }

    pub fn foreign_groups(&self) -> impl Iterator<Item = (&Str, ForeignType)> {
        self.foreign.iter().map(|(id, kind)| (id, *kind))
    }

    /// Applies one written record. `offset` is its place in the log.
    pub fn apply(&mut self, offset: i64, record: &LogRecord) {
        match &record.stored {
            Stored::Group {
                group,
                value: Some(value),
            } => self.put_group(group, value),
            Stored::Group { group, value: None } => {
                self.groups.remove(group);
            }
            Stored::Offset {
                group,
                topic,
                partition,
                value: Some(value),
            } => {
                self.put_offset(
                    offset,
                    record.producer_id,
                    (group, topic, *partition),
                    value,
                );
            }
            Stored::Offset {
                group,
                topic,
                partition,
                value: None,
            } => {
                self.remove_offset(group, topic, *partition);
            }
            Stored::Foreign {
                group: Some(group),
                kind: Some(kind),
                present,
            } => {
                if *present {
                    self.foreign.insert(group.detached(), *kind);
                } else {
                    self.foreign.remove(group);
                }
            }
            Stored::Foreign { .. } | Stored::Unknown => {}
            Stored::EndTransaction { commit } => self.end_transaction(record.producer_id, *commit),
        }
    }

    fn put_group(&mut self, group: &Str, value: &GroupMetadataValue) {
        let members = value
            .members
            .iter()
            .map(|member| DurableMember {
                member_id: member.member_id.detached(),
                instance_id: member.group_instance_id.as_ref().map(Str::detached),
                client_id: member.client_id.detached(),
                client_host: member.client_host.detached(),
                // Records before version 1 have no rebalance timeout.
                rebalance_timeout_ms: match member.rebalance_timeout {
                    -1 => member.session_timeout,
                    timeout => timeout,
                },
                session_timeout_ms: member.session_timeout,
                subscription: detached(&member.subscription),
                assignment: detached(&member.assignment),
            })
            .collect();
        let stored = DurableGroup {
            generation: value.generation,
            protocol_type: (!value.protocol_type.is_empty())
                .then(|| value.protocol_type.detached()),
            protocol: value.protocol.as_ref().map(Str::detached),
            leader: value.leader.as_ref().map(Str::detached),
            state_timestamp: (value.current_state_timestamp != -1)
                .then_some(value.current_state_timestamp),
            members,
        };
        self.groups.insert(group.detached(), stored);
    }

    fn put_offset(
        &mut self,
        record_offset: i64,
        producer_id: i64,
        (group, topic, partition): (&Str, &Str, i32),
        value: &OffsetCommitValue,
    ) {
        if !self.groups.contains_key(group) && !self.foreign.contains_key(group) {
            self.groups
                .insert(group.detached(), DurableGroup::default());
        }
        let committed = OffsetAndMetadata {
            record_offset,
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.detached(),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: (value.expire_timestamp != -1).then_some(value.expire_timestamp),
            topic_id: value.topic_id,
        };
        let groups = if producer_id < 0 {
            &mut self.offsets
        } else {
            self.transactional.entry(producer_id).or_default()
        };
        put(groups, group, topic, partition, committed);
    }

    fn remove_offset(&mut self, group: &Str, topic: &Str, partition: i32) {
        remove(&mut self.offsets, group, topic, partition);
        self.transactional.retain(|_, groups| {
            remove(groups, group, topic, partition);
            !groups.is_empty()
        });
    }

    fn end_transaction(&mut self, producer_id: i64, commit: bool) {
        let Some(groups) = self.transactional.remove(&producer_id) else {
            return;
        };
        if !commit {
            return;
        }
        for (group, topics) in groups {
            for (topic, offsets) in topics {
                for (partition, pending) in offsets {
                    let newer = self
                        .offset(&group, &topic, partition)
                        .is_none_or(|present| pending.record_offset > present.record_offset);
                    if newer {
                        put(&mut self.offsets, &group, &topic, partition, pending);
                    }
                }
            }
        }
    }

    /// Every partition of the group with an offset, committed or pending.
    pub fn partitions_with_offsets(&self, group: &Str) -> BTreeSet<(Str, i32)> {
        let mut found = BTreeSet::new();
        for topics in self
            .offsets
            .get(group)
            .into_iter()
            .chain(self.pending(group))
        {
            for (topic, offsets) in topics {
                found.extend(offsets.keys().map(|partition| (topic.clone(), *partition)));
            }
        }
        found
    }
}

fn put(
    groups: &mut BTreeMap<Str, TopicOffsets>,
    group: &Str,
    topic: &Str,
    partition: i32,
    committed: OffsetAndMetadata,
) {
    let topics = match groups.get_mut(group) {
        Some(topics) => topics,
        None => groups.entry(group.detached()).or_default(),
    };
    let offsets = match topics.get_mut(topic) {
        Some(offsets) => offsets,
        None => topics.entry(topic.detached()).or_default(),
    };
    offsets.insert(partition, committed);
}

fn remove(groups: &mut BTreeMap<Str, TopicOffsets>, group: &Str, topic: &Str, partition: i32) {
    let Some(topics) = groups.get_mut(group) else {
        return;
    };
    if let Some(offsets) = topics.get_mut(topic) {
        offsets.remove(&partition);
        if offsets.is_empty() {
            topics.remove(topic);
        }
    }
    if topics.is_empty() {
        groups.remove(group);
    }
}
