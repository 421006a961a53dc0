//! OffsetForLeaderEpoch: where an epoch ends, so that a client sees whether its log was truncated.

use std::rc::Rc;

use protocol::messages::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochResponse, OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
};
use protocol::{Array, ErrorCode};
use shards::TaskClass;

use super::api::{Call, Handler};
use crate::replication::{EpochEnd, PartitionKey};
use crate::shard::Shard;

/// The handler.
pub struct OffsetForLeaderEpoch;

impl Handler for OffsetForLeaderEpoch {
    type Request = OffsetForLeaderEpochRequest;

    async fn handle(
        call: Call,
        request: OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        let mut topics = Array::new();
        for topic in request.topics {
            let mut partitions = Array::new();
            for asked in &topic.partitions {
                let found = look_up(&call, &topic.topic, asked).await;
                partitions.push(answer(asked.partition, found));
            }
            topics.push(OffsetForLeaderEpochResponseOffsetForLeaderTopicResult {
                topic: topic.topic,
                partitions,
            });
        }
        OffsetForLeaderEpochResponse {
            topics,
            ..Default::default()
        }
    }
}

fn answer(
    partition: i32,
    found: Result<EpochEnd, ErrorCode>,
) -> OffsetForLeaderEpochResponseEpochEndOffset {
    let (error, end) = match found {
        Ok(end) => (ErrorCode::None, end),
        Err(error) => (
            error,
            EpochEnd {
                epoch: -1,
                end_offset: -1,
            },
        ),
    };
    OffsetForLeaderEpochResponseEpochEndOffset {
        error_code: error.code(),
        partition,
        leader_epoch: end.epoch,
        end_offset: end.end_offset,
    }
}

async fn look_up(
    call: &Call,
    topic: &str,
    asked: &OffsetForLeaderEpochRequestOffsetForLeaderPartition,
) -> Result<EpochEnd, ErrorCode> {
    let view = call.shard.view();
    let topic_id = view
        .image
        .topic_id(topic)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let key = PartitionKey {
        topic_id,
        partition: asked.partition,
    };
    let owner = view
        .owner(topic_id, key.partition)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let (known, epoch) = (asked.current_leader_epoch, asked.leader_epoch);
    let found = call
        .shard
        .mesh()
        .call(owner, TaskClass::Fetch, move |shard: &Rc<Shard>| {
            std::future::ready(shard.replicas.epoch_end(&key, known, epoch))
        });
    found.await.map_err(|failure| failure.code())
}
