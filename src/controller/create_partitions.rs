//! CreatePartitions: a topic grows, and never shrinks.

use protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse, CreatePartitionsResponseCreatePartitionsTopicResult,
};
use protocol::stored::MetadataRecord;
use protocol::{Array, ErrorCode, Str};

use super::create_topics::repeated_names;
use super::directories::DirectoryChooser;
use super::machine::{Decided, Machine, Reply, Surroundings};
use super::placement::PARTITIONS_PER_REQUEST_MAX;
use super::refusal::Refusal;

type TopicResult = CreatePartitionsResponseCreatePartitionsTopicResult;

pub(super) fn decide(
    machine: &Machine,
    request: &CreatePartitionsRequest,
    around: &mut Surroundings<'_>,
) -> Decided {
    let repeated = repeated_names(request.topics.iter().map(|topic| &topic.name));
    let asked: Vec<_> = request
        .topics
        .iter()
        .filter(|topic| !repeated.contains(&topic.name))
        .collect();
    if partitions_asked(machine, &asked) > PARTITIONS_PER_REQUEST_MAX {
        let refusal = Refusal::new(
            ErrorCode::PolicyViolation,
            Str::from_static("Excessively large number of additional partitions per request."),
        );
        let all = request.topics.iter();
        return answer(
            Array::new(),
            all.map(|it| result(&it.name, Err(refusal.clone())))
                .collect(),
        );
    }
    let mut results: Vec<TopicResult> = repeated
        .iter()
        .map(|name| result(name, Err(Refusal::duplicate_name())))
        .collect();
    let mut directories =
        DirectoryChooser::new(machine.latest(), machine.node_id(), around.free_bytes);
    let mut records = Array::new();
    for topic in asked {
        let grown = grow(machine, topic, &mut directories);
        let outcome = grown.map(|more| records.extend(more));
        results.push(result(&topic.name, outcome));
    }
    if request.validate_only {
        records.clear();
    }
    answer(records, results)
}

fn grow(
    machine: &Machine,
    asked: &CreatePartitionsRequestCreatePartitionsTopic,
    directories: &mut DirectoryChooser<'_>,
) -> Result<Array<MetadataRecord>, Refusal> {
    let image = machine.latest();
    let unknown = || Refusal::bare(ErrorCode::UnknownTopicOrPartition);
    let topic = image.topic_by_name(&asked.name).ok_or_else(unknown)?;
    let before = topic.partitions.len();
    let wanted = usize::try_from(asked.count).unwrap_or(0);
    let invalid = |text: String| Err(Refusal::new(ErrorCode::InvalidPartitions, text));
    if wanted == before {
        return invalid(format!("Topic already has {before} partition(s)."));
    }
    if wanted < before {
        return invalid(format!(
            "The topic {} currently has {before} partition(s); {} would not be an increase.",
            asked.name, asked.count
        ));
    }
    let more = wanted - before;
    let (_, first) = topic.partitions.iter().next().ok_or_else(unknown)?;
    let replication = first.replicas.len();
    let by_hand = |text: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
    let replicas = match &asked.assignments {
        Some(assignments) if assignments.len() != more => {
            return Err(by_hand(format!(
                "Attempted to add {more} additional partition(s), but only {} assignment(s) were \
                 specified.",
                assignments.len()
            )));
        }
        Some(assignments) => {
            let mut layout = Vec::with_capacity(more);
            for (assignment, index) in assignments.iter().zip(before..) {
                let replicas = assignment.broker_ids.to_vec();
                machine.check_assignment(&replicas, Some(replication))?;
                if machine.active_of(&replicas).is_empty() {
                    return Err(by_hand(format!(
                        "All brokers specified in the manual partition assignment for partition \
                         {index} are fenced or in controlled shutdown."
                    )));
                }
                layout.push(replicas);
            }
            layout
        }
        None => machine.place(before, more, i16::try_from(replication).unwrap_or(i16::MAX))?,
    };
    let leader_epoch = image.first_leader_epoch(&asked.name, machine.quorum_epoch);
    let mut records = Array::new();
    for (replicas, index) in replicas.iter().zip(before..) {
        let isr = machine.active_of(replicas);
        if isr.is_empty() {
            let text = format!(
                "Unable to replicate the partition {replication} time(s): All brokers are \
                 currently fenced or in controlled shutdown."
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
        }
        let partition =
            Machine::new_partition(topic.id, index, replicas, isr, leader_epoch, directories);
        records.push(partition);
    }
    Ok(records)
}

/// Partitions to be added, over all topics that exist.
fn partitions_asked(
    machine: &Machine,
    topics: &[&CreatePartitionsRequestCreatePartitionsTopic],
) -> i64 {
    let image = machine.latest();
    let of = |asked: &&CreatePartitionsRequestCreatePartitionsTopic| {
        let before = image
            .topic_by_name(&asked.name)
            .map(|topic| topic.partitions.len())?;
        let before = i64::try_from(before).ok()?;
        Some((i64::from(asked.count) - before).max(0))
    };
    topics.iter().filter_map(of).fold(0, i64::saturating_add)
}

fn answer(records: Array<MetadataRecord>, results: Vec<TopicResult>) -> Decided {
    let response = CreatePartitionsResponse {
        results: results.into(),
        ..Default::default()
    };
    Decided::with(records, Reply::CreatePartitions(response))
}

fn result(name: &Str, outcome: Result<(), Refusal>) -> TopicResult {
    let (code, error_message) = match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err(refusal) => (refusal.code, refusal.message),
    };
    TopicResult {
        name: name.clone(),
        error_code: code.code(),
        error_message,
    }
}
