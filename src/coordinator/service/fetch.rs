//! OffsetFetch: one group (to version 7) or several, topics by name or (from version 10) by id.

use protocol::{Array, ErrorCode, Str};

use super::super::event::{Request, Response};
use super::super::runtime::Caller;
use super::super::wire::{
    OffsetFetchGroup, OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic,
    OffsetFetchedGroup, OffsetFetchedPartition, OffsetFetchedPartitionBeforeV8, OffsetFetchedTopic,
    OffsetFetchedTopicBeforeV8,
};
use super::{Router, Topics};
use crate::outgoing::AnswerRoom;

/// The first version with groups instead of a group.
const SEVERAL_GROUPS: i16 = 8;
/// The first version with an error of the whole group, and with null for "all topics".
const GROUP_ERROR: i16 = 2;
/// The first version with topic ids.
const TOPIC_IDS: i16 = 10;

pub async fn offset_fetch(
    router: &impl Router,
    topics: &impl Topics,
    caller: &Caller,
    request: OffsetFetchRequest,
    mut room: AnswerRoom,
) -> OffsetFetchResponse {
    let version = caller.api_version;
    let require_stable = request.require_stable;
    let mut answers = Array::new();
    for group in groups_of(request, version) {
        if !room.is_left() {
            answers.push(OffsetFetchedGroup {
                group_id: group.group_id,
                error_code: ErrorCode::InvalidRequest.code(),
                ..Default::default()
            });
            continue;
        }
        let fetched = fetch_group(router, topics, caller, group, require_stable).await;
        room.take(size_of_group(&fetched));
        answers.push(fetched);
    }
    response_of(answers, version)
}

/// Bytes that the offsets of a group take in memory, roughly.
fn size_of_group(group: &OffsetFetchedGroup) -> usize {
    let offset = |partition: &OffsetFetchedPartition| {
        let metadata = partition
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.len());
        size_of_val(partition) + metadata
    };
    let topics = group.topics.iter().map(|topic| {
        let offsets: usize = topic.partitions.iter().map(offset).sum();
        size_of_val(topic) + topic.name.len() + offsets
    });
    size_of_val(group) + topics.sum::<usize>()
}

fn groups_of(request: OffsetFetchRequest, version: i16) -> Array<OffsetFetchGroup> {
    if version >= SEVERAL_GROUPS {
        return request.groups;
    }
    let topics = request.topics.map(|topics| {
        let topic_of = |topic: protocol::messages::OffsetFetchRequestOffsetFetchRequestTopic| {
            OffsetFetchTopic {
                name: topic.name,
                partition_indexes: topic.partition_indexes,
                ..Default::default()
            }
        };
        topics.into_iter().map(topic_of).collect()
    });
    [OffsetFetchGroup {
        group_id: request.group_id,
        topics,
        ..Default::default()
    }]
    .into()
}

async fn fetch_group(
    router: &impl Router,
    topics: &impl Topics,
    caller: &Caller,
    mut group: OffsetFetchGroup,
    require_stable: bool,
) -> OffsetFetchedGroup {
    let version = caller.api_version;
    let all_topics = group.topics.is_none();
    let mut unknown = Array::new();
    if let Some(asked) = group.topics.take() {
        let mut known = Array::new();
        for mut topic in asked {
            if version < TOPIC_IDS {
                // Kafka goes by the name alone here, and so may answer with an offset of a topic
                // that was deleted and created again.
                topic.topic_id = topics.topic_id(&topic.name).unwrap_or_default();
                known.push(topic);
            } else if let Some(name) = topics.topic_name(topic.topic_id) {
                topic.name = name;
                known.push(topic);
            } else {
                unknown.push(refused_topic(&topic, ErrorCode::UnknownTopicId));
            }
        }
        group.topics = Some(known);
    }
    let asked = group.clone();
    let request = Request::OffsetFetch {
        group,
        require_stable,
    };
    let group_id = asked.group_id.clone();
    let mut fetched = match router.ask(&group_id, caller, request).await {
        Response::OffsetFetch(fetched) => fetched,
        _ => OffsetFetchedGroup {
            group_id,
            error_code: ErrorCode::UnknownServerError.code(),
            ..Default::default()
        },
    };
    match ErrorCode::from_i16(fetched.error_code).unwrap_or(ErrorCode::UnknownServerError) {
        ErrorCode::None => {}
        error if version < GROUP_ERROR => {
            fetched.topics = asked
                .topics
                .iter()
                .flatten()
                .map(|topic| refused_topic(topic, error))
                .collect();
        }
        _ => return fetched,
    }
    if all_topics && version >= TOPIC_IDS {
        // Offsets of topics that are gone have no id to go by.
        fetched
            .topics
            .retain_mut(|topic| match topics.topic_id(&topic.name) {
                Some(id) => {
                    topic.topic_id = id;
                    true
                }
                None => false,
            });
    }
    fetched.topics.extend(unknown);
    fetched
}

fn refused_topic(topic: &OffsetFetchTopic, error: ErrorCode) -> OffsetFetchedTopic {
    let partitions = topic
        .partition_indexes
        .iter()
        .map(|&index| OffsetFetchedPartition {
            partition_index: index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some(Str::default()),
            error_code: error.code(),
        });
    OffsetFetchedTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

fn response_of(answers: Array<OffsetFetchedGroup>, version: i16) -> OffsetFetchResponse {
    if version >= SEVERAL_GROUPS {
        return OffsetFetchResponse {
            groups: answers,
            ..Default::default()
        };
    }
    let Some(only) = answers.into_iter().next() else {
        return OffsetFetchResponse::default();
    };
    let partition_of = |partition: OffsetFetchedPartition| OffsetFetchedPartitionBeforeV8 {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
    };
    let topic_of = |topic: OffsetFetchedTopic| OffsetFetchedTopicBeforeV8 {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(partition_of).collect(),
    };
    OffsetFetchResponse {
        topics: only.topics.into_iter().map(topic_of).collect(),
        error_code: only.error_code,
        ..Default::default()
    }
}
