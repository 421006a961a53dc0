//! DescribeTopicPartitions (KIP-966): topics page by page, a cursor says where the next begins.

use std::collections::BTreeSet;

use protocol::messages::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition as PagePartition,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic as PageTopic,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use super::metadata::describe_partition;
use super::operations;
use crate::metadata::{Image, Topic, is_internal, topic_name_problem};

/// The handler.
pub struct DescribeTopicPartitions;

impl Handler for DescribeTopicPartitions {
    type Request = DescribeTopicPartitionsRequest;

    async fn handle(
        call: Call,
        request: DescribeTopicPartitionsRequest,
    ) -> DescribeTopicPartitionsResponse {
        let named: BTreeSet<Str> = request.topics.iter().map(|it| it.name.clone()).collect();
        if !cursor_is_valid(request.cursor.as_ref(), &named) {
            return refused(&request);
        }
        let image = call.shard.image();
        let most =
            i32::try_from(call.shard.config.network.describe_partitions_max).unwrap_or(i32::MAX);
        let room = request.response_partition_limit.min(most).max(1);
        let mut page = Page {
            call: &call,
            image: &image,
            room: usize::try_from(room).unwrap_or(1),
            response: DescribeTopicPartitionsResponse::default(),
        };
        let start = request.cursor.as_ref();
        let behind = |name: &Str| start.is_none_or(|cursor| *name >= cursor.topic_name);
        let first_partition = |name: &Str| match start {
            Some(cursor) if cursor.topic_name == *name => cursor.partition_index,
            _ => 0,
        };
        if named.is_empty() {
            let topics = image.topics().filter(|topic| behind(&topic.name));
            for topic in topics {
                if !page.add(topic, first_partition(&topic.name)) {
                    break;
                }
            }
        } else {
            for name in named.iter().filter(|name| behind(name)) {
                let more = match image.topic_by_name(name) {
                    Some(topic) => page.add(topic, first_partition(name)),
                    None => page.add_missing(name),
                };
                if !more {
                    break;
                }
            }
        }
        page.response
    }
}

/// A cursor names one of the topics asked for, and a partition that can be.
fn cursor_is_valid(
    cursor: Option<&DescribeTopicPartitionsRequestCursor>,
    named: &BTreeSet<Str>,
) -> bool {
    cursor.is_none_or(|cursor| {
        cursor.partition_index >= 0 && (named.is_empty() || named.contains(&cursor.topic_name))
    })
}

fn refused(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| PageTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some(topic.name.clone()),
        ..Default::default()
    });
    DescribeTopicPartitionsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

/// The answer while it grows.
struct Page<'a> {
    call: &'a Call,
    image: &'a Image,
    /// Partitions that still fit.
    room: usize,
    response: DescribeTopicPartitionsResponse,
}

impl Page<'_> {
    /// Adds what fits of a topic; false where the next topic does not fit any more.
    fn add(&mut self, topic: &Topic, first: i32) -> bool {
        if self.room == 0 {
            self.go_on_at(&topic.name, first);
            return false;
        }
        let mut behind = topic.partitions.iter().filter(|(index, _)| *index >= first);
        let fitting = behind.by_ref().take(self.room);
        let partitions: Vec<PagePartition> = fitting
            .map(|(index, partition)| {
                let seen = describe_partition(self.call, self.image, index, partition);
                PagePartition {
                    error_code: seen.error_code,
                    partition_index: index,
                    leader_id: seen.leader_id,
                    leader_epoch: seen.leader_epoch,
                    replica_nodes: seen.replica_nodes,
                    isr_nodes: seen.isr_nodes,
                    eligible_leader_replicas: Some(partition.elr[..].into()),
                    last_known_elr: Some(partition.last_known_elr[..].into()),
                    offline_replicas: seen.offline_replicas,
                }
            })
            .collect();
        self.room -= partitions.len();
        let next = behind.next().map(|(index, _)| index);
        self.response.topics.push(PageTopic {
            error_code: ErrorCode::None.code(),
            name: Some(topic.name.clone()),
            topic_id: topic.id,
            is_internal: is_internal(&topic.name),
            partitions: partitions.into(),
            topic_authorized_operations: operations::TOPIC,
        });
        if let Some(next) = next {
            self.go_on_at(&topic.name, next);
        }
        next.is_none()
    }

    fn add_missing(&mut self, name: &Str) -> bool {
        if self.room == 0 {
            self.go_on_at(name, 0);
            return false;
        }
        let error = match topic_name_problem(name) {
            Some(_) => ErrorCode::InvalidTopicException,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        self.response.topics.push(PageTopic {
            error_code: error.code(),
            name: Some(name.clone()),
            is_internal: is_internal(name),
            // As if it was there, since nobody may not see it.
            topic_authorized_operations: operations::TOPIC,
            ..Default::default()
        });
        true
    }

    fn go_on_at(&mut self, name: &Str, partition_index: i32) {
        self.response.next_cursor = Some(DescribeTopicPartitionsResponseCursor {
            topic_name: name.clone(),
            partition_index,
        });
    }
}
