//! OffsetDelete, and the offsets of deleted topics.

use std::collections::BTreeSet;

use protocol::{Array, ErrorCode, Str, Uuid};

use super::super::super::event::{RequestContext, Response};
use super::super::super::machine::{RECORDS_PER_APPEND_MAX, Turn};
use super::super::super::outbox::Continuation;
use super::super::super::record::Record;
use super::super::super::state::TopicOffsets;
use super::super::super::wire::{
    DeletedPartition, DeletedTopic, OffsetDeleteRequest, OffsetDeleteResponse,
};
use super::super::classic::State;

impl Turn<'_> {
    pub(crate) fn offset_delete(
        &mut self,
        context: &RequestContext,
        request: &OffsetDeleteRequest,
    ) {
        if let Err(error) = self.check_offset_delete(&request.group_id) {
            let response = OffsetDeleteResponse {
                error_code: error.code(),
                ..Default::default()
            };
            return self
                .out
                .reply(context.token, Response::OffsetDelete(response));
        }
        let id = &request.group_id;
        let present = self.partitions_with_offsets(id);
        let mut records = Vec::new();
        let mut topics = Array::new();
        for topic in &request.topics {
            let group = self.soft.groups.get(id);
            let subscribed = group.is_some_and(|group| group.is_subscribed_to(&topic.name));
            let error = if subscribed {
                ErrorCode::GroupSubscribedToTopic
            } else {
                ErrorCode::None
            };
            let mut partitions = Array::new();
            for partition in &topic.partitions {
                let index = partition.partition_index;
                if !subscribed && present.contains(&(topic.name.clone(), index)) {
                    records.push(Record::offset_tombstone(id, &topic.name, index));
                }
                partitions.push(DeletedPartition {
                    partition_index: index,
                    error_code: error.code(),
                });
            }
            topics.push(DeletedTopic {
                name: topic.name.clone(),
                partitions,
            });
        }
        let response = OffsetDeleteResponse {
            topics,
            ..Default::default()
        };
        self.answer_after(context.token, Response::OffsetDelete(response), records);
    }

    fn check_offset_delete(&self, id: &Str) -> Result<(), ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if self.durable.foreign(id).is_some() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        let group = self.soft.groups.get(id).ok_or(ErrorCode::GroupIdNotFound)?;
        // Of consumers the subscription is known; what other groups use is not.
        if group.state != State::Empty && !group.uses_consumer_protocol() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        Ok(())
    }

    /// Partitions of the group with an offset, also if it is on its way into the log only.
    pub(crate) fn partitions_with_offsets(&self, group: &Str) -> BTreeSet<(Str, i32)> {
        let mut found = self.durable.partitions_with_offsets(group);
        for (topic, partition, present) in self.soft.uncommitted.of_group(group) {
            let key = (topic.clone(), partition);
            if present {
                found.insert(key);
            } else {
                found.remove(&key);
            }
        }
        found
    }

    /// Topics are gone: their offsets go, but not those of a new topic of the same name.
    pub(crate) fn topics_deleted(&mut self, deleted: &[(Uuid, Str)]) {
        let mut gone: BTreeSet<(Str, Str, i32)> = BTreeSet::new();
        for (id, name) in deleted {
            let mut collect = |group: &Str, topics: &TopicOffsets| {
                for (&partition, committed) in topics.get(name).into_iter().flatten() {
                    if committed.topic_id.is_zero() || committed.topic_id == *id {
                        gone.insert((group.clone(), name.clone(), partition));
                    }
                }
            };
            self.durable
                .all_offsets()
                .for_each(|(group, topics)| collect(group, topics));
            self.durable
                .all_pending()
                .for_each(|(group, topics)| collect(group, topics));
            gone.extend(self.soft.uncommitted.of_topic(name, *id));
        }
        let records = gone
            .iter()
            .map(|(group, topic, partition)| Record::offset_tombstone(group, topic, *partition))
            .collect();
        self.append_in_parts(records);
    }

    /// Appends records that nobody waits for, in parts that fit a batch.
    pub(crate) fn append_in_parts(&mut self, records: Vec<Record>) {
        for part in records.chunks(RECORDS_PER_APPEND_MAX) {
            self.out.append(part.to_vec(), Continuation::Nothing);
        }
    }
}
