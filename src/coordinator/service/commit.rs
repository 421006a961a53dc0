//! OffsetCommit: topics by name (to version 9) or id (from version 10), checked before the group
//! sees them.

use protocol::{Array, ErrorCode, Uuid};

use super::super::event::{Request, Response};
use super::super::runtime::Caller;
use super::super::wire::{
    CommitTopic, CommittedPartition, CommittedTopic, OffsetCommitRequest, OffsetCommitResponse,
};
use super::{Router, Topics};

/// Commits what can be: partitions that exist. The others are answered here.
pub async fn offset_commit(
    router: &impl Router,
    topics: &impl Topics,
    caller: &Caller,
    mut request: OffsetCommitRequest,
) -> OffsetCommitResponse {
    let mut response = OffsetCommitResponse::default();
    let mut known = Array::new();
    let mut known_at = Array::new();
    // A topic without partitions is not answered, as in Kafka.
    let asked = std::mem::take(&mut request.topics).into_iter();
    for mut topic in asked.filter(|topic| !topic.partitions.is_empty()) {
        let error = resolve(topics, caller.api_version, &mut topic).err();
        let mut answer = CommittedTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: Array::new(),
        };
        topic.partitions.retain(|partition| {
            let index = partition.partition_index;
            let exists = || topics.has_partition(&topic.name, index);
            let refused = match error {
                Some(error) => Some(error),
                None if exists() => None,
                None => Some(ErrorCode::UnknownTopicOrPartition),
            };
            if let Some(error) = refused {
                let error_code = error.code();
                answer.partitions.push(CommittedPartition {
                    partition_index: index,
                    error_code,
                });
            }
            refused.is_none()
        });
        if !topic.partitions.is_empty() {
            known_at.push(response.topics.len());
            known.push(topic);
        }
        response.topics.push(answer);
    }
    if known.is_empty() {
        return response;
    }
    let group_id = request.group_id.clone();
    let asked = OffsetCommitRequest {
        topics: known,
        ..request
    };
    let answer = router
        .ask(&group_id, caller, Request::OffsetCommit(asked))
        .await;
    if let Response::OffsetCommit(committed) = answer {
        for (at, topic) in known_at.into_iter().zip(committed.topics) {
            response.topics[at].partitions.extend(topic.partitions);
        }
    }
    response
}

/// Fills in the half of name and id that the request does not have.
fn resolve(topics: &impl Topics, version: i16, topic: &mut CommitTopic) -> Result<(), ErrorCode> {
    if version >= 10 {
        topic.name = topics
            .topic_name(topic.topic_id)
            .ok_or(ErrorCode::UnknownTopicId)?;
        return Ok(());
    }
    let id = topics.topic_id(&topic.name).filter(|id| *id != Uuid::ZERO);
    topic.topic_id = id.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok(())
}
