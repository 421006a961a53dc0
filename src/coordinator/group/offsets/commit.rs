//! OffsetCommit.

use planted::Bug;
use protocol::stored::OffsetCommitValue;
use protocol::{ErrorCode, Str};

use super::super::super::event::{RequestContext, Response};
use super::super::super::machine::Turn;
use super::super::super::outbox::{Continuation, Rollback};
use super::super::super::record::Record;
use super::super::super::refusal::refuse_commit;
use super::super::super::wire::{
    CommitPartition, CommitTopic, CommittedPartition, CommittedTopic, OffsetCommitRequest,
    OffsetCommitResponse,
};
use super::super::classic::{ClassicGroup, State};

impl Turn<'_> {
    pub(crate) fn offset_commit(
        &mut self,
        context: &RequestContext,
        request: &OffsetCommitRequest,
    ) {
        let is_new_group = match self.check_commit(context.api_version, request) {
            Ok(is_new_group) => is_new_group,
            Err(error) => {
                let response = refuse_commit(request, error);
                return self
                    .out
                    .reply(context.token, Response::OffsetCommit(response));
            }
        };
        let mut records = Vec::new();
        let topics = request.topics.iter().map(|topic| CommittedTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .iter()
                .map(|partition| self.commit_partition(request, topic, partition, &mut records))
                .collect(),
        });
        let response = OffsetCommitResponse {
            topics: topics.collect(),
            ..Default::default()
        };
        if records.is_empty() {
            return self
                .out
                .reply(context.token, Response::OffsetCommit(response));
        }
        let mut rollback = Rollback::default();
        if is_new_group {
            let id = request.group_id.detached();
            let group = ClassicGroup::new(id.clone(), self.now_ms);
            self.soft.groups.insert(id.clone(), group);
            rollback.created.push(id);
        }
        let then = Continuation::Reply {
            token: context.token,
            response: Box::new(Response::OffsetCommit(response)),
        };
        self.out.append_or_roll_back(records, then, rollback);
    }

    /// May this client commit? `Ok(true)` if the group has to be created for it.
    fn check_commit(
        &mut self,
        version: i16,
        request: &OffsetCommitRequest,
    ) -> Result<bool, ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        if self.durable.foreign(&request.group_id).is_some() {
            return Err(ErrorCode::UnknownMemberId);
        }
        let Some(group) = self.soft.groups.get(&request.group_id) else {
            return match generation {
                // A consumer that manages its partitions itself, or an administrator.
                ..0 => Ok(true),
                // KIP-848: version 9 knows this error.
                _ if version >= 9 => Err(ErrorCode::GroupIdNotFound),
                _ => Err(ErrorCode::IllegalGeneration),
            };
        };
        group.check_commit(
            &request.member_id,
            request.group_instance_id.as_ref(),
            generation,
        )?;
        if matches!(group.state, State::Stable | State::PreparingRebalance) {
            group.keep_alive(&request.member_id, &mut self.out);
        }
        Ok(false)
    }

    fn commit_partition(
        &self,
        request: &OffsetCommitRequest,
        topic: &CommitTopic,
        partition: &CommitPartition,
        records: &mut Vec<Record>,
    ) -> CommittedPartition {
        let index = partition.partition_index;
        let metadata = partition.committed_metadata.clone().unwrap_or_default();
        if metadata.encode_utf16().count() > self.settings.offset_metadata_max {
            let error_code = ErrorCode::OffsetMetadataTooLarge.code();
            return CommittedPartition {
                partition_index: index,
                error_code,
            };
        }
        // Versions 2 to 4 can ask for a retention of their own (pitfall: only these).
        let expire_timestamp = match request.retention_time_ms {
            -1 => -1,
            retention => self.now_ms.saturating_add(retention),
        };
        let value = OffsetCommitValue {
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata,
            commit_timestamp: self.now_ms,
            expire_timestamp,
            topic_id: topic.topic_id,
        };
        records.push(Record::offset(&request.group_id, &topic.name, index, value));
        CommittedPartition {
            partition_index: index,
            error_code: ErrorCode::None.code(),
        }
    }
}

impl ClassicGroup {
    fn check_commit(
        &self,
        member_id: &Str,
        instance_id: Option<&Str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation < 0 && member_id.is_empty() && instance_id.is_none() {
            // From outside of the group: only while nobody is in it.
            return Err(ErrorCode::UnknownMemberId);
        }
        self.validate_member(member_id, instance_id)?;
        if generation != self.generation && !planted::here(Bug::GenerationNotChecked) {
            return Err(ErrorCode::IllegalGeneration);
        }
        if self.state == State::CompletingRebalance {
            // The member is of this generation, but has no partitions in it yet.
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }
}
