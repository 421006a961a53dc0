//! ElectLeaders: with one replica a partition there is nothing to choose.

use protocol::messages::{
    ElectLeadersRequest, ElectLeadersResponse, ElectLeadersResponsePartitionResult,
    ElectLeadersResponseReplicaElectionResult,
};
use protocol::{ErrorCode, Str};

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
        if ![PREFERRED, UNCLEAN].contains(&election) {
            return ElectLeadersResponse {
                error_code: ErrorCode::InvalidRequest.code(),
                ..Default::default()
            };
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

fn told(partition_id: i32, (error, text): Outcome) -> ElectLeadersResponsePartitionResult {
    ElectLeadersResponsePartitionResult {
        partition_id,
        error_code: error.code(),
        error_message: Some(text.map_or_else(|| error.message().into(), Str::from)),
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
