//! OffsetFetch of one group.

use protocol::{Array, ErrorCode, Str, Uuid};

use super::super::super::machine::Turn;
use super::super::super::state::OffsetAndMetadata;
use super::super::super::wire::{
    OffsetFetchGroup, OffsetFetchTopic, OffsetFetchedGroup, OffsetFetchedPartition,
    OffsetFetchedTopic,
};

impl Turn<'_> {
    /// What the log says of the group. No offset, no topic and no group are no errors: the answer
    /// is -1. With `require_stable`, partitions that an open transaction touches have an error.
    pub(crate) fn fetch_offsets(
        &self,
        request: &OffsetFetchGroup,
        require_stable: bool,
    ) -> OffsetFetchedGroup {
        let id = &request.group_id;
        let known = self.durable.group(id).is_some() || self.durable.foreign(id).is_some();
        let topics = match &request.topics {
            None if !known => Array::new(),
            None => self.fetch_all(id, require_stable),
            Some(topics) => topics
                .iter()
                .map(|topic| self.fetch_topic(id, topic, known, require_stable))
                .collect(),
        };
        OffsetFetchedGroup {
            group_id: id.clone(),
            topics,
            ..Default::default()
        }
    }

    fn fetch_topic(
        &self,
        group: &Str,
        topic: &OffsetFetchTopic,
        known: bool,
        require_stable: bool,
    ) -> OffsetFetchedTopic {
        let partitions = topic.partition_indexes.iter().map(|&partition| {
            let committed = self
                .durable
                .offset(group, &topic.name, partition)
                .filter(|committed| known && is_same_topic(committed.topic_id, topic.topic_id));
            self.fetched(group, &topic.name, partition, committed, require_stable)
        });
        OffsetFetchedTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: partitions.collect(),
        }
    }

    fn fetch_all(&self, group: &Str, require_stable: bool) -> Array<OffsetFetchedTopic> {
        let Some(topics) = self.durable.offsets(group) else {
            return Array::new();
        };
        topics
            .iter()
            .map(|(topic, offsets)| OffsetFetchedTopic {
                name: topic.clone(),
                topic_id: Uuid::ZERO,
                partitions: offsets
                    .iter()
                    .map(|(&partition, committed)| {
                        self.fetched(group, topic, partition, Some(committed), require_stable)
                    })
                    .collect(),
            })
            .collect()
    }

    fn fetched(
        &self,
        group: &Str,
        topic: &Str,
        partition: i32,
        committed: Option<&OffsetAndMetadata>,
        require_stable: bool,
    ) -> OffsetFetchedPartition {
        if require_stable && self.durable.is_unstable(group, topic, partition) {
            return no_offset(partition, ErrorCode::UnstableOffsetCommit);
        }
        let Some(committed) = committed else {
            return no_offset(partition, ErrorCode::None);
        };
        OffsetFetchedPartition {
            partition_index: partition,
            committed_offset: committed.offset,
            committed_leader_epoch: committed.leader_epoch,
            metadata: Some(committed.metadata.clone()),
            error_code: ErrorCode::None.code(),
        }
    }
}

/// An offset of a topic that was deleted, and perhaps created again, is none of the new topic.
fn is_same_topic(committed: Uuid, asked: Uuid) -> bool {
    committed.is_zero() || asked.is_zero() || committed == asked
}

/// A partition without an offset, with or without a reason.
pub(crate) fn no_offset(partition: i32, error: ErrorCode) -> OffsetFetchedPartition {
    OffsetFetchedPartition {
        partition_index: partition,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::default()),
        error_code: error.code(),
    }
}
