//! Produce: record batches into partitions.
//!
//! The frame is walked on the connection's core and split by owner; each owner core gets one
//! message with its partitions. Messages between two cores keep their order, so batches that a
//! client pipelines reach a partition in the order in which it sent them.

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use protocol::hot::produce::{ProducePartition, ProduceRequest};
use protocol::hot::{TopicEntry, TopicKey};
use protocol::messages::{
    ProduceResponse, ProduceResponseBatchIndexAndErrorMessage, ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint, ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
};
use protocol::wire::Reader;
use protocol::{ErrorCode, Str, Uuid};
use shards::{CoreId, TaskClass};

use super::api::{Begun, Call, encode, undecodable};
use crate::metadata::{Image, is_internal};
use crate::outgoing::Answer;
use crate::replication::{Acks, AppendFailure, Appended, NotAppended, PartitionKey, ProduceRules};
use crate::shard::{Shard, Stage};

/// The client id with which Kafka lets internal topics be written.
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// What became of one partition's batch.
type Outcome = Result<Appended, NotAppended>;

/// One partition's share of a request, and its place in the answer.
struct Share {
    place: usize,
    key: PartitionKey,
    records: Bytes,
}

/// The answer for one partition.
struct PartitionAnswer {
    topic_index: usize,
    topic: TopicKey,
    wire: ProduceResponsePartitionProduceResponse,
}

/// Hands every batch to its owner; returns when their order is fixed.
pub fn begin(call: Call, mut body: Reader) -> Begun {
    let begun = call.shard.core.now();
    let request = match ProduceRequest::parse(&mut body, call.version()) {
        Ok(request) => request,
        Err(error) => return Begun::Done(undecodable(&call, &error)),
    };
    let acks = Acks::from_wire(request.acks);
    let (mut answers, shares) = route(&call, &request, acks);
    call.took(Stage::Decode, begun);
    let sent = call.shard.core.now();
    let mut owners = Vec::with_capacity(shares.len());
    for (owner, shares) in shares {
        owners.push(hand_over(
            &call,
            owner,
            shares,
            acks.unwrap_or(Acks::Leader),
        ));
    }
    Begun::Overlapping(Box::pin(async move {
        let mut appended = Duration::ZERO;
        for (outcomes, took) in join_all(owners).await {
            appended = appended.max(took);
            for (place, outcome) in outcomes {
                fill(&call, &mut answers[place], outcome);
            }
        }
        let away = call.shard.core.now() - sent;
        call.header.took(Stage::Append, appended);
        call.header.took(Stage::Hop, away.saturating_sub(appended));
        finish(&call, request.acks, answers)
    }))
}

/// Sorts the partitions by the core that owns them; refuses those that nobody can append to.
fn route(
    call: &Call,
    request: &ProduceRequest,
    acks: Option<Acks>,
) -> (Vec<PartitionAnswer>, BTreeMap<CoreId, Vec<Share>>) {
    let view = call.shard.view();
    let mut answers = Vec::with_capacity(request.partitions().len());
    let mut owners: BTreeMap<CoreId, Vec<Share>> = BTreeMap::new();
    for TopicEntry {
        topic_index,
        topic,
        entry,
    } in request.partitions()
    {
        let ProducePartition { partition, records } = entry;
        let mut wire = ProduceResponsePartitionProduceResponse {
            index: partition,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            ..Default::default()
        };
        let routed = resolve(call, &view.image, &topic).and_then(|topic_id| {
            let owner = view
                .owner(topic_id, partition)
                .ok_or(ErrorCode::UnknownTopicOrPartition)?;
            acks.ok_or(ErrorCode::InvalidRequiredAcks)?;
            let records = records.ok_or(ErrorCode::InvalidRecord)?;
            Ok((
                owner,
                PartitionKey {
                    topic_id,
                    partition,
                },
                records,
            ))
        });
        match routed {
            Ok((owner, key, records)) => {
                let share = Share {
                    place: answers.len(),
                    key,
                    records,
                };
                owners.entry(owner).or_default().push(share);
            }
            Err(error) => wire.error_code = error.code(),
        }
        answers.push(PartitionAnswer {
            topic_index,
            topic,
            wire,
        });
    }
    (answers, owners)
}

fn unknown(topic: &TopicKey) -> ErrorCode {
    match topic {
        TopicKey::Name(_) => ErrorCode::UnknownTopicOrPartition,
        TopicKey::Id(_) => ErrorCode::UnknownTopicId,
    }
}

/// The topic that the client means.
fn resolve(call: &Call, image: &Image, topic: &TopicKey) -> Result<Uuid, ErrorCode> {
    let found = match topic {
        TopicKey::Name(name) => image.topic_by_name(name),
        TopicKey::Id(id) => image.topic(*id),
    };
    let found = found.ok_or_else(|| unknown(topic))?;
    if is_internal(&found.name) && call.client_id() != ADMIN_CLIENT_ID {
        return Err(ErrorCode::InvalidTopicException);
    }
    Ok(found.id)
}

/// One message to the owner core; its future ends when all its partitions have answered, and says how
/// long they took there.
fn hand_over(
    call: &Call,
    owner: CoreId,
    shares: Vec<Share>,
    acks: Acks,
) -> impl Future<Output = (Vec<(usize, Outcome)>, Duration)> + use<> {
    let rules = ProduceRules {
        acks,
        version: call.version(),
    };
    call.shard
        .mesh()
        .call(owner, TaskClass::Produce, move |shard: &Rc<Shard>| {
            let core = shard.core.clone();
            let begun = core.now();
            let appends: Vec<_> = shares
                .into_iter()
                .map(|share| {
                    let appended = shard.replicas.produce(&share.key, share.records, rules);
                    async move { (share.place, appended.await) }
                })
                .collect();
            async move {
                let outcomes = join_all(appends).await;
                (outcomes, core.now() - begun)
            }
        })
}

fn fill(call: &Call, answer: &mut PartitionAnswer, outcome: Outcome) {
    let wire = &mut answer.wire;
    let NotAppended {
        failure,
        log_start_offset,
    } = match outcome {
        Ok(appended) => {
            wire.base_offset = appended.base_offset;
            wire.log_append_time_ms = appended.log_append_time_ms.unwrap_or(-1);
            wire.log_start_offset = appended.log_start_offset;
            return;
        }
        Err(refused) => refused,
    };
    wire.log_start_offset = log_start_offset.unwrap_or(-1);
    wire.error_code = failure.code().code();
    let AppendFailure::Rejected(rejection) = failure else {
        return;
    };
    let name = match &answer.topic {
        TopicKey::Name(name) => name.clone(),
        TopicKey::Id(id) => call
            .shard
            .image()
            .topic(*id)
            .map(|topic| topic.name.clone())
            .unwrap_or_default(),
    };
    let partition = format!("{name}-{}", wire.index);
    wire.error_message = rejection.error_message(&partition).map(Str::from);
    wire.record_errors = rejection
        .record_errors(&partition)
        .map(
            |(batch_index, message)| ProduceResponseBatchIndexAndErrorMessage {
                batch_index,
                batch_index_error_message: Some(Str::from(message)),
            },
        )
        .collect();
}

/// With acks=0 nothing is answered; a failure closes the connection, so that the client asks for
/// metadata again.
fn finish(call: &Call, acks: i16, mut answers: Vec<PartitionAnswer>) -> Answer {
    let failed = answers.iter().any(|answer| answer.wire.error_code != 0);
    if acks == 0 {
        return if failed {
            Answer::Close
        } else {
            Answer::Nothing
        };
    }
    let node_endpoints = match failed && call.version() >= 10 {
        true => name_leaders(call, &mut answers),
        false => Vec::new(),
    };
    let responses = answers
        .chunk_by(|one, next| one.topic_index == next.topic_index)
        .map(|topic| {
            let mut response = ProduceResponseTopicProduceResponse {
                partition_responses: topic.iter().map(|answer| answer.wire.clone()).collect(),
                ..Default::default()
            };
            match &topic[0].topic {
                TopicKey::Name(name) => response.name = name.clone(),
                TopicKey::Id(id) => response.topic_id = *id,
            }
            response
        })
        .collect();
    encode(
        call,
        &ProduceResponse {
            responses,
            node_endpoints: node_endpoints.into(),
            ..Default::default()
        },
    )
}

/// KIP-951: who is told "not the leader" is told at once who is.
fn name_leaders(call: &Call, answers: &mut [PartitionAnswer]) -> Vec<ProduceResponseNodeEndpoint> {
    let image = call.shard.image();
    let mut nodes = BTreeMap::new();
    for answer in answers {
        if answer.wire.error_code != ErrorCode::NotLeaderOrFollower.code() {
            continue;
        }
        let topic = match &answer.topic {
            TopicKey::Name(name) => image.topic_by_name(name),
            TopicKey::Id(id) => image.topic(*id),
        };
        let partition = topic.and_then(|topic| image.partition(topic.id, answer.wire.index));
        let Some(partition) = partition else { continue };
        answer.wire.current_leader = ProduceResponseLeaderIdAndEpoch {
            leader_id: partition.leader,
            leader_epoch: partition.leader_epoch,
        };
        if let Some(node) = call
            .shard
            .node_address(&image, partition.leader, call.caller.listener)
        {
            nodes.insert(partition.leader, node);
        }
    }
    nodes
        .into_iter()
        .map(|(node_id, node)| ProduceResponseNodeEndpoint {
            node_id,
            host: node.host,
            port: node.port,
            rack: node.rack,
        })
        .collect()
}
