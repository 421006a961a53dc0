//! OffsetDelete: topics are checked before the group sees them.

use protocol::{Array, ErrorCode};

use super::super::event::{Request, Response};
use super::super::runtime::Caller;
use super::super::wire::{
    DeletedPartition, DeletedTopic, OffsetDeleteRequest, OffsetDeleteResponse,
};
use super::{Router, Topics};

/// Deletes the offsets of partitions that exist. The others are answered here, unless the group
/// itself refuses.
pub async fn offset_delete(
    router: &impl Router,
    topics: &impl Topics,
    caller: &Caller,
    request: OffsetDeleteRequest,
) -> OffsetDeleteResponse {
    let mut answers = Array::new();
    let mut known = Array::new();
    let mut known_at = Array::new();
    // As in Kafka, a topic of which nothing is asked is not answered.
    let asked = request.topics.into_iter();
    for mut topic in asked.filter(|topic| !topic.partitions.is_empty()) {
        let mut partitions = Array::new();
        topic.partitions.retain(|partition| {
            let partition_index = partition.partition_index;
            let exists = topics.has_partition(&topic.name, partition_index);
            if !exists {
                let error_code = ErrorCode::UnknownTopicOrPartition.code();
                partitions.push(DeletedPartition {
                    partition_index,
                    error_code,
                });
            }
            exists
        });
        let name = topic.name.clone();
        if !topic.partitions.is_empty() {
            known_at.push(answers.len());
            known.push(topic);
        }
        answers.push(DeletedTopic { name, partitions });
    }
    let group_id = request.group_id.clone();
    let asked = OffsetDeleteRequest {
        group_id: group_id.clone(),
        topics: known,
    };
    let answer = router
        .ask(&group_id, caller, Request::OffsetDelete(asked))
        .await;
    let Response::OffsetDelete(mut response) = answer else {
        let error_code = ErrorCode::UnknownServerError.code();
        return OffsetDeleteResponse {
            error_code,
            ..Default::default()
        };
    };
    if response.error_code != ErrorCode::None.code() {
        return response;
    }
    for (at, topic) in known_at.into_iter().zip(response.topics) {
        answers[at].partitions.extend(topic.partitions);
    }
    response.topics = answers;
    response
}
