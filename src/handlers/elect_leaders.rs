//! ElectLeaders: with one replica a partition there is nothing to choose.

use protocol::messages::{
    ElectLeadersRequest, ElectLeadersRequestTopicPartitions, ElectLeadersResponse,
    ElectLeadersResponsePartitionResult, ElectLeadersResponseReplicaElectionResult,
};
use protocol::{Array, ErrorCode, Str};

use super::api::{Call, Handler};
use crate::metadata::{Image, NO_LEADER};

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

/// The handler.
pub struct ElectLeaders;

/// Why a leader was not elected; a text only where Kafka has one of its own.
type Outcome = (ErrorCode, Option<String>);

impl Handler for ElectLeaders {
    type Request = ElectLeadersRequest;

    async fn handle(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse {
        let election = match call.version() {
            0 => PREFERRED,
            _ => request.election_type,
        };
        let named = request.topic_partitions.as_ref();
        if named.is_some_and(Array::is_empty) {
            return ElectLeadersResponse::default();
        }
        if request.timeout_ms <= 0 {
            return refused(&call, ErrorCode::RequestTimedOut, None, named);
        }
        if ![PREFERRED, UNCLEAN].contains(&election) {
            let text = format!("Unknown election type {election}");
            return refused(&call, ErrorCode::InvalidRequest, Some(text.into()), named);
        }
        let image = call.shard.image();
        let result = |topic: &Str, results| ElectLeadersResponseReplicaElectionResult {
            topic: topic.clone(),
            partition_result: results,
        };
        let results = match &request.topic_partitions {
            Some(topics) => topics
                .iter()
                .map(|asked| {
                    let partitions = asked.partitions.iter();
                    let outcomes = partitions.map(|index| {
                        let outcome = elect(&image, &asked.topic, *index, election);
                        told(*index, outcome)
                    });
                    result(&asked.topic, outcomes.collect())
                })
                .collect(),
            // Everything: partitions that need no election are left out.
            None => image
                .topics()
                .map(|topic| {
                    let outcomes = topic.partitions.iter().filter_map(|(index, _)| {
                        let outcome = elect(&image, &topic.name, index, election);
                        let needed = outcome.0 != ErrorCode::ElectionNotNeeded;
                        needed.then(|| told(index, outcome))
                    });
                    result(&topic.name, outcomes.collect())
                })
                .collect(),
        };
        ElectLeadersResponse {
            replica_election_results: results,
            ..Default::default()
        }
    }
}

/// The same for the request and every partition that was named.
fn refused(
    call: &Call,
    error: ErrorCode,
    text: Option<Str>,
    named: Option<&Array<ElectLeadersRequestTopicPartitions>>,
) -> ElectLeadersResponse {
    let results = named.into_iter().flatten().map(|asked| {
        let partitions = asked.partitions.iter();
        let results = partitions.map(|index| ElectLeadersResponsePartitionResult {
            partition_id: *index,
            error_code: error.code(),
            error_message: text.clone(),
        });
        ElectLeadersResponseReplicaElectionResult {
            topic: asked.topic.clone(),
            partition_result: results.collect(),
        }
    });
    ElectLeadersResponse {
        // Version 0 has no place for it.
        error_code: if call.version() > 0 { error.code() } else { 0 },
        replica_election_results: results.collect(),
        ..Default::default()
    }
}

fn told(partition_id: i32, (error, text): Outcome) -> ElectLeadersResponsePartitionResult {
    ElectLeadersResponsePartitionResult {
        partition_id,
        error_code: error.code(),
        error_message: Some(text.map_or_else(
            || error.message().into(),
            |text| Str::from(text).shortened(),
        )),
    }
}

fn elect(image: &Image, topic: &Str, index: i32, election: i8) -> Outcome {
    let unknown = |text| (ErrorCode::UnknownTopicOrPartition, Some(text));
    let Some(id) = image.topic_id(topic) else {
        return unknown(format!("No such topic as {topic}"));
    };
    let Some(partition) = image.partition(id, index) else {
        return unknown(format!("No such partition as {topic}-{index}"));
    };
    let preferred = partition.replicas.first().copied();
    let needed = match election {
        UNCLEAN => partition.leader == NO_LEADER,
        _ => Some(partition.leader) != preferred,
    };
    match (needed, election) {
        (false, _) => (ErrorCode::ElectionNotNeeded, None),
        (true, UNCLEAN) => (ErrorCode::EligibleLeadersNotAvailable, None),
        (true, _) => (ErrorCode::PreferredLeaderNotAvailable, None),
    }
}
