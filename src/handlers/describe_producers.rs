//! DescribeProducers (KIP-664): the producers that a partition remembers.

use std::rc::Rc;

use protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse,
    DescribeProducersResponsePartitionResponse as PartitionResponse,
    DescribeProducersResponseProducerState as ProducerState,
    DescribeProducersResponseTopicResponse as TopicResponse,
};
use protocol::{Array, ErrorCode, Str};
use shards::TaskClass;

use super::api::{Call, Handler};
use super::many::some_at_a_time;
use crate::metadata::topic_name_problem;
use crate::replication::{OffsetsFailure, PartitionKey};
use crate::shard::Shard;

/// The handler.
pub struct DescribeProducers;

impl Handler for DescribeProducers {
    type Request = DescribeProducersRequest;

    async fn handle(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse {
        let mut topics = Array::new();
        for topic in &request.topics {
            let asked = topic.partition_indexes.iter();
            let asked = asked.map(|index| one(&call, &topic.name, *index));
            topics.push(TopicResponse {
                name: topic.name.clone(),
                partitions: some_at_a_time(asked).await,
            });
        }
        DescribeProducersResponse {
            topics,
            ..Default::default()
        }
    }
}

async fn one(call: &Call, topic: &Str, partition_index: i32) -> PartitionResponse {
    let mut answer = PartitionResponse {
        partition_index,
        ..Default::default()
    };
    match producers(call, topic, partition_index).await {
        Ok(producers) => answer.active_producers = producers,
        Err((error, text)) => {
            answer.error_code = error.code();
            answer.error_message = text;
        }
    }
    answer
}

async fn producers(
    call: &Call,
    topic: &Str,
    partition: i32,
) -> Result<Array<ProducerState>, (ErrorCode, Option<Str>)> {
    if let Some(problem) = topic_name_problem(topic) {
        let text = Str::from(problem.message(topic)).shortened();
        return Err((ErrorCode::InvalidTopicException, Some(text)));
    }
    let unknown = ErrorCode::UnknownTopicOrPartition;
    let view = call.shard.view();
    let topic_id = view.image.topic_id(topic).ok_or_else(|| {
        let text = Str::from_static(unknown.message());
        (unknown, Some(text))
    })?;
    let owner = view.owner(topic_id, partition).ok_or((unknown, None))?;
    let key = PartitionKey {
        topic_id,
        partition,
    };
    let there = move |shard: &Rc<Shard>| std::future::ready(remembered(shard, key));
    let found = call.shard.mesh().call(owner, TaskClass::Fetch, there);
    found.await.map_err(|failure| (failure.code(), None))
}

fn remembered(shard: &Shard, key: PartitionKey) -> Result<Array<ProducerState>, OffsetsFailure> {
    let partition = shard.replicas.find(&key)?;
    let known = partition.log.producers().into_iter();
    let states = known.map(|(producer_id, entry)| ProducerState {
        producer_id,
        producer_epoch: i32::from(entry.epoch),
        last_sequence: entry.last_batch().map_or(-1, |batch| batch.last_sequence),
        last_timestamp: entry.last_timestamp,
        coordinator_epoch: entry.coordinator_epoch,
        current_txn_start_offset: entry.transaction_first_offset.unwrap_or(-1),
    });
    Ok(states.collect())
}
