//! ListOffsets: offsets by timestamp and by place in the log.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_util::future::join_all;
use protocol::messages::{
    ListOffsetsRequest, ListOffsetsRequestListOffsetsPartition, ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse, ListOffsetsResponseListOffsetsTopicResponse,
};
use protocol::{ErrorCode, Str};
use shards::TaskClass;
use storage::TimestampOffset;

use super::api::{Call, Handler};
use crate::replication::{Isolation, OffsetSpec, PartitionKey};
use crate::shard::Shard;

/// First version whose answers name the leader epoch.
const LEADER_EPOCH_SINCE: i16 = 4;

/// The handler.
pub struct ListOffsets;

impl Handler for ListOffsets {
    type Request = ListOffsetsRequest;

    async fn handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let isolation = match request.isolation_level {
            1 => Isolation::ReadCommitted,
            _ => Isolation::ReadUncommitted,
        };
        let twice = named_twice(&request);
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let asked = topic.partitions.iter().map(|partition| {
                let duplicate = twice.contains(&(topic.name.clone(), partition.partition_index));
                one(&call, &topic.name, partition, isolation, duplicate)
            });
            topics.push(ListOffsetsResponseListOffsetsTopicResponse {
                name: topic.name.clone(),
                partitions: join_all(asked).await,
            });
        }
        ListOffsetsResponse {
            topics,
            ..Default::default()
        }
    }
}

/// Kafka refuses a partition that a request names more than once.
fn named_twice(request: &ListOffsetsRequest) -> BTreeSet<(Str, i32)> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let key = (topic.name.clone(), partition.partition_index);
            if !seen.insert(key.clone()) {
                twice.insert(key);
            }
        }
    }
    twice
}

async fn one(
    call: &Call,
    topic: &Str,
    asked: &ListOffsetsRequestListOffsetsPartition,
    isolation: Isolation,
    duplicate: bool,
) -> ListOffsetsResponseListOffsetsPartitionResponse {
    let mut answer = ListOffsetsResponseListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        timestamp: -1,
        offset: -1,
        leader_epoch: -1,
        ..Default::default()
    };
    let found = match duplicate {
        true => Err(ErrorCode::InvalidRequest),
        false => look_up(call, topic, asked, isolation).await,
    };
    match found {
        Ok(Some(found)) => {
            answer.timestamp = found.timestamp;
            answer.offset = found.offset;
            if call.version() >= LEADER_EPOCH_SINCE {
                answer.leader_epoch = found.leader_epoch.unwrap_or(-1);
            }
        }
        Ok(None) => {}
        Err(error) => answer.error_code = error.code(),
    }
    answer
}

async fn look_up(
    call: &Call,
    topic: &Str,
    asked: &ListOffsetsRequestListOffsetsPartition,
    isolation: Isolation,
) -> Result<Option<TimestampOffset>, ErrorCode> {
    let spec = OffsetSpec::from_wire(asked.timestamp, call.version())
        .ok_or(ErrorCode::UnsupportedVersion)?;
    let view = call.shard.view();
    let topic_id = view
        .image
        .topic_id(topic)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let key = PartitionKey {
        topic_id,
        partition: asked.partition_index,
    };
    let owner = view
        .owner(topic_id, key.partition)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let epoch = asked.current_leader_epoch;
    let found = call
        .shard
        .mesh()
        .call(owner, TaskClass::Fetch, move |shard: &Rc<Shard>| {
            shard
                .replicas
                .clone()
                .list_offset(key, epoch, spec, isolation)
        });
    found.await.map_err(|failure| failure.code())
}
