//! DeleteRecords: everything below an offset goes.

use std::collections::BTreeMap;
use std::rc::Rc;

use protocol::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
};
use protocol::{Array, ErrorCode, Str};
use shards::TaskClass;

use super::api::{Call, Handler};
use super::many::some_at_a_time;
use crate::metadata::is_internal;
use crate::replication::PartitionKey;
use crate::shard::Shard;

/// The low watermark of a partition where nothing was deleted for an error.
const NO_LOW_WATERMARK: i64 = -1;

/// The handler.
pub struct DeleteRecords;

impl Handler for DeleteRecords {
    type Request = DeleteRecordsRequest;

    async fn handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
        // The last word about a partition counts.
        let mut wanted: BTreeMap<Str, BTreeMap<i32, i64>> = BTreeMap::new();
        let asked = request.topics.iter();
        for topic in asked.filter(|topic| !topic.partitions.is_empty()) {
            let partitions = wanted.entry(topic.name.clone()).or_default();
            let named = topic.partitions.iter();
            partitions.extend(named.map(|it| (it.partition_index, it.offset)));
        }
        let mut topics = Array::new();
        for (name, partitions) in wanted {
            let deleted = partitions
                .into_iter()
                .map(|(partition, before)| one(&call, &name, partition, before));
            topics.push(DeleteRecordsResponseDeleteRecordsTopicResult {
                partitions: some_at_a_time(deleted).await,
                name,
            });
        }
        DeleteRecordsResponse {
            topics,
            ..Default::default()
        }
    }
}

async fn one(
    call: &Call,
    topic: &Str,
    partition_index: i32,
    before: i64,
) -> DeleteRecordsResponseDeleteRecordsPartitionResult {
    let (low_watermark, error) = match delete(call, topic, partition_index, before).await {
        Ok(low_watermark) => (low_watermark, ErrorCode::None),
        Err(error) => (NO_LOW_WATERMARK, error),
    };
    DeleteRecordsResponseDeleteRecordsPartitionResult {
        partition_index,
        low_watermark,
        error_code: error.code(),
    }
}

async fn delete(call: &Call, topic: &Str, partition: i32, before: i64) -> Result<i64, ErrorCode> {
    let view = call.shard.view();
    let topic_id = view
        .image
        .topic_id(topic)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let owner = view
        .owner(topic_id, partition)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let key = PartitionKey {
        topic_id,
        partition,
    };
    let there = move |shard: &Rc<Shard>| shard.replicas.clone().delete_records(key, before);
    let deleted = call.shard.mesh().call(owner, TaskClass::Background, there);
    deleted.await.map_err(|failure| failure.code())
}
