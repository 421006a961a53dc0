//! AlterPartitionReassignments where every replica lies on this node: what would change nothing
//! succeeds, as in Kafka; what would move a replica is refused.

use protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
};
use protocol::{ErrorCode, Str};

use super::machine::{Decided, Machine, Reply};
use super::refusal::Refusal;

pub(super) fn decide(machine: &Machine, request: &AlterPartitionReassignmentsRequest) -> Decided {
    if request.topics.is_empty() {
        // Kafka does not look at such a request at all.
        let response = AlterPartitionReassignmentsResponse::default();
        return Decided::reply(Reply::AlterReassignments(response));
    }
    let responses = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|target| {
            let fixed = !request.allow_replication_factor_change;
            let (code, error_message) = match check(machine, &topic.name, target, fixed) {
                Ok(()) => (ErrorCode::None, None),
                Err(refusal) => (refusal.code, refusal.message),
            };
            AlterPartitionReassignmentsResponseReassignablePartitionResponse {
                partition_index: target.partition_index,
                error_code: code.code(),
                error_message,
            }
        });
        AlterPartitionReassignmentsResponseReassignableTopicResponse {
            partitions: partitions.collect(),
            name: topic.name.clone(),
        }
    });
    let response = AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        responses: responses.collect(),
        error_message: None,
        ..Default::default()
    };
    Decided::reply(Reply::AlterReassignments(response))
}

fn check(
    machine: &Machine,
    topic: &Str,
    target: &AlterPartitionReassignmentsRequestReassignablePartition,
    fixed_replication: bool,
) -> Result<(), Refusal> {
    let image = machine.latest();
    let unknown = |text: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, text);
    let index = target.partition_index;
    let id = image
        .topic_id(topic)
        .ok_or_else(|| unknown(format!("Unable to find a topic named {topic}.")))?;
    let partition = image
        .partition(id, index)
        .ok_or_else(|| unknown(format!("Unable to find partition {topic}:{index}.")))?;
    let Some(replicas) = &target.replicas else {
        return Err(Refusal::bare(ErrorCode::NoReassignmentInProgress));
    };
    let replicas = replicas.to_vec();
    machine.check_assignment(&replicas, None)?;
    if fixed_replication && replicas.len() != partition.replicas.len() {
        let text = format!(
            "The replication factor is changed from {} to {}",
            partition.replicas.len(),
            replicas.len()
        );
        return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
    }
    if *replicas != *partition.replicas {
        let text = "Replicas cannot be moved to another broker yet.";
        return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
    }
    Ok(())
}
