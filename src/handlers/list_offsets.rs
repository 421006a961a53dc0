//! ListOffsets: offsets by timestamp and by place in the log.

use std::rc::Rc;

use protocol::messages::{
    ListOffsetsRequest, ListOffsetsRequestListOffsetsPartition, ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse, ListOffsetsResponseListOffsetsTopicResponse,
};
use protocol::{Array, ErrorCode, Str};
use shards::TaskClass;
use storage::TimestampOffset;

use super::api::{Call, Handler};
use super::many::{InOrder, some_at_a_time};
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
            0 => Ok(Isolation::ReadUncommitted),
            1 => Ok(Isolation::ReadCommitted),
            // Kafka's way to say that there is no such level.
            _ => Err(ErrorCode::UnknownServerError),
        };
        let mut topics = Array::new();
        for (name, partitions) in by_topic(&request) {
            let asked = partitions.into_iter().map(|(_, (partition, twice))| {
                // A partition that a request names more than once is refused, and answered once.
                let refused = twice.then_some(ErrorCode::InvalidRequest);
                let isolation = isolation.and_then(|level| refused.map_or(Ok(level), Err));
                one(&call, &name, partition, isolation)
            });
            let partitions = some_at_a_time(asked).await;
            topics.push(ListOffsetsResponseListOffsetsTopicResponse { name, partitions });
        }
        ListOffsetsResponse {
            topics,
            ..Default::default()
        }
    }
}

type Asked<'a> = &'a ListOffsetsRequestListOffsetsPartition;

/// Each topic once, with each of its partitions once and whether that was named again.
fn by_topic(request: &ListOffsetsRequest) -> InOrder<Str, InOrder<i32, (Asked<'_>, bool)>> {
    let mut topics: InOrder<Str, InOrder<i32, (Asked<'_>, bool)>> = InOrder::default();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let (partitions, _) = topics.entry(topic.name.clone(), InOrder::default);
            let index = partition.partition_index;
            let ((_, twice), before) = partitions.entry(index, || (partition, false));
            *twice |= before;
        }
    }
    topics
}

async fn one(
    call: &Call,
    topic: &Str,
    asked: Asked<'_>,
    isolation: Result<Isolation, ErrorCode>,
) -> ListOffsetsResponseListOffsetsPartitionResponse {
    let mut answer = ListOffsetsResponseListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        timestamp: -1,
        offset: -1,
        leader_epoch: -1,
        ..Default::default()
    };
    let found = match isolation {
        Ok(isolation) => look_up(call, topic, asked, isolation).await,
        Err(error) => Err(error),
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
