//! CreateTopics, and topics that are created because somebody asked for them.

use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::{
    CreateTopicsRequest, CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig, CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicConfigs, CreateTopicsResponseCreatableTopicResult,
};
use protocol::stored::{ConfigRecord, MetadataRecord, TopicRecord};
use protocol::{Array, ErrorCode, Str, Uuid};

use super::alter_configs::{VALUE_BYTES_MAX, too_long};
use super::directories::DirectoryChooser;
use super::machine::{AutoTopic, Decided, Machine, Reply, Surroundings};
use super::placement::PARTITIONS_PER_REQUEST_MAX;
use super::refusal::Refusal;
use crate::config::describe::created_topic_configs;
use crate::config::{Overrides, Settings, validate_overrides};
use crate::metadata::configs::ResourceType;
use crate::metadata::topic_name_problem;

/// The topic of the metadata log itself.
const METADATA_TOPIC: &str = "__cluster_metadata";

type TopicResult = CreateTopicsResponseCreatableTopicResult;

/// A topic that passed all checks.
struct NewTopic {
    records: Array<MetadataRecord>,
    result: TopicResult,
}

/// Replicas and in-sync replicas of each partition, by index.
type Layout = Vec<(Vec<i32>, Vec<i32>)>;

pub(super) fn decide(
    machine: &Machine,
    request: &CreateTopicsRequest,
    around: &mut Surroundings<'_>,
) -> Decided {
    let repeated = repeated_names(request.topics.iter().map(|topic| &topic.name));
    let plain = |topic: &&CreateTopicsRequestCreatableTopic| {
        !repeated.contains(&topic.name) && topic.name != METADATA_TOPIC
    };
    let asked: Vec<_> = request.topics.iter().filter(plain).collect();
    if partitions_asked(machine, &asked) > PARTITIONS_PER_REQUEST_MAX {
        let refusal = Refusal::new(
            ErrorCode::PolicyViolation,
            Str::from_static("Excessively large number of partitions per request."),
        );
        let all = request.topics.iter();
        return answer(
            Array::new(),
            all.map(|it| refused(&it.name, refusal.clone())).collect(),
        );
    }
    let mut directories =
        DirectoryChooser::new(machine.latest(), machine.node_id(), around.free_bytes);
    let settings = machine.node_settings();
    let mut records = Array::new();
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in asked {
        match create(machine, &settings, topic, around.random, &mut directories) {
            Ok(created) => {
                records.extend(created.records);
                results.push(created.result);
            }
            Err(refusal) => results.push(refused(&topic.name, refusal)),
        }
    }
    results.extend(
        repeated
            .iter()
            .map(|name| refused(name, Refusal::duplicate_name())),
    );
    if request
        .topics
        .iter()
        .filter(|topic| topic.name == METADATA_TOPIC)
        .count()
        == 1
    {
        let text = format!("Creation of internal topic {METADATA_TOPIC} is prohibited.");
        let refusal = Refusal::new(ErrorCode::InvalidRequest, text);
        results.push(refused(&Str::from_static(METADATA_TOPIC), refusal));
    }
    if request.validate_only {
        records.clear();
    }
    answer(records, results)
}

pub(super) fn decide_automatic(
    machine: &Machine,
    topics: &[AutoTopic],
    around: &mut Surroundings<'_>,
) -> Decided {
    let mut directories =
        DirectoryChooser::new(machine.latest(), machine.node_id(), around.free_bytes);
    let settings = machine.node_settings();
    let mut records = Array::new();
    let mut results: Vec<(Str, ErrorCode)> = Vec::with_capacity(topics.len());
    for topic in topics {
        if results.iter().any(|(name, _)| *name == topic.name) {
            continue;
        }
        let code = if machine.latest().topic_id(&topic.name).is_some() {
            ErrorCode::None
        } else {
            match create(
                machine,
                &settings,
                &request_for(topic),
                around.random,
                &mut directories,
            ) {
                Ok(created) => {
                    records.extend(created.records);
                    ErrorCode::None
                }
                Err(refusal) => refusal.code,
            }
        };
        results.push((topic.name.clone(), code));
    }
    Decided::with(records, Reply::AutoCreateTopics(results))
}

fn request_for(topic: &AutoTopic) -> CreateTopicsRequestCreatableTopic {
    CreateTopicsRequestCreatableTopic {
        name: topic.name.clone(),
        num_partitions: topic.partitions.unwrap_or(-1),
        replication_factor: topic.replication.unwrap_or(-1),
        configs: topic
            .configs
            .iter()
            .map(|(name, value)| CreateTopicsRequestCreatableTopicConfig {
                name: name.clone(),
                value: Some(value.clone()),
            })
            .collect(),
        ..Default::default()
    }
}

/// The checks in Kafka's order: name, collision, existence, configuration, partitions.
fn create(
    machine: &Machine,
    settings: &Settings,
    topic: &CreateTopicsRequestCreatableTopic,
    random: &mut dyn FnMut() -> u64,
    directories: &mut DirectoryChooser<'_>,
) -> Result<NewTopic, Refusal> {
    let image = machine.latest();
    check_name(machine, &topic.name)?;
    let configs = checked_configs(settings, topic)?;
    let layout = if topic.assignments.is_empty() {
        placed(machine, topic)?
    } else {
        assigned(machine, topic)?
    };
    let topic_id = unused_id(machine, random);
    let leader_epoch = image.first_leader_epoch(&topic.name, machine.quorum_epoch);
    let name = topic.name.detached();
    let mut records = Array::new();
    records.push(
        TopicRecord {
            name: name.clone(),
            topic_id,
        }
        .into(),
    );
    records.extend(configs.iter().map(|(key, value)| {
        MetadataRecord::from(ConfigRecord {
            resource_type: ResourceType::TOPIC.0,
            resource_name: name.clone(),
            name: Str::from(*key),
            value: Some(Str::from(*value)),
        })
    }));
    for (index, (replicas, isr)) in layout.iter().enumerate() {
        records.push(Machine::new_partition(
            topic_id,
            index,
            replicas,
            isr.clone(),
            leader_epoch,
            directories,
        ));
    }
    let result = TopicResult {
        name,
        topic_id,
        num_partitions: i32::try_from(layout.len()).unwrap_or(i32::MAX),
        replication_factor: layout
            .first()
            .and_then(|(replicas, _)| i16::try_from(replicas.len()).ok())
            .unwrap_or(-1),
        configs: Some(described_configs(settings, &configs).into()),
        error_message: None,
        ..Default::default()
    };
    Ok(NewTopic { records, result })
}

fn check_name(machine: &Machine, name: &Str) -> Result<(), Refusal> {
    let image = machine.latest();
    // A name that exists is told last, and so counts, though it collides with itself as well.
    if image.topic_id(name).is_some() {
        let text = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, text));
    }
    if let Some(problem) = topic_name_problem(name) {
        return Err(Refusal::new(
            ErrorCode::InvalidTopicException,
            problem.message(name),
        ));
    }
    if let Some(other) = image.colliding_topic(name) {
        let text = format!("Topic '{name}' collides with existing topic: {other}");
        return Err(Refusal::new(ErrorCode::InvalidTopicException, text));
    }
    Ok(())
}

fn checked_configs<'a>(
    settings: &Settings,
    topic: &'a CreateTopicsRequestCreatableTopic,
) -> Result<Overrides<'a>, Refusal> {
    let invalid = |text: String| Refusal::new(ErrorCode::InvalidConfig, text);
    let nulls: Vec<&str> = topic
        .configs
        .iter()
        .filter(|config| config.value.is_none())
        .map(|config| config.name.as_str())
        .collect();
    if !nulls.is_empty() {
        let names = nulls.join(",");
        return Err(invalid(format!(
            "Null value not supported for topic configs: {names}"
        )));
    }
    let overrides: Overrides<'a> = topic
        .configs
        .iter()
        .filter_map(|config| Some((config.name.as_str(), config.value.as_deref()?)))
        .collect();
    if overrides
        .values()
        .any(|value| value.len() > VALUE_BYTES_MAX)
    {
        return Err(too_long());
    }
    validate_overrides(settings, &overrides).map_err(|error| invalid(error.to_string()))?;
    Ok(overrides)
}

/// Partitions of a topic without assignments by hand.
fn placed(machine: &Machine, topic: &CreateTopicsRequestCreatableTopic) -> Result<Layout, Refusal> {
    let replication = match topic.replication_factor {
        -1 => machine.settings.default_replication,
        factor if factor < 1 => {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicationFactor,
                Str::from_static(
                    "Replication factor must be larger than 0, or -1 to use the default value.",
                ),
            ));
        }
        factor => factor,
    };
    let partitions = match topic.num_partitions {
        -1 => machine.settings.default_partitions,
        count => count,
    };
    let Some(count) = usize::try_from(partitions).ok().filter(|&count| count > 0) else {
        return Err(Refusal::new(
            ErrorCode::InvalidPartitions,
            Str::from_static("Number of partitions was set to an invalid non-positive value."),
        ));
    };
    let placed = machine.place(0, count, replication).map_err(|refusal| {
        let why = refusal.message.unwrap_or_default();
        let text = format!("Unable to replicate the partition {replication} time(s): {why}");
        Refusal::new(ErrorCode::InvalidReplicationFactor, text)
    })?;
    let with_isr = |replicas: Vec<i32>| {
        let isr = machine.active_of(&replicas);
        if isr.is_empty() {
            let text = format!(
                "Unable to replicate the partition {replication} time(s): All brokers are \
                 currently fenced or in controlled shutdown."
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
        }
        Ok((replicas, isr))
    };
    placed.into_iter().map(with_isr).collect()
}

/// Partitions of a topic whose replicas were assigned by hand.
fn assigned(
    machine: &Machine,
    topic: &CreateTopicsRequestCreatableTopic,
) -> Result<Layout, Refusal> {
    let unset = |what: &str| {
        let text =
            format!("A manual partition assignment was specified, but {what} was not set to -1.");
        Err(Refusal::new(ErrorCode::InvalidRequest, text))
    };
    if topic.replication_factor != -1 {
        return unset("replication factor");
    }
    if topic.num_partitions != -1 {
        return unset("numPartitions");
    }
    let invalid = |text: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
    let mut by_index = BTreeMap::new();
    let mut replication = None;
    for assignment in &topic.assignments {
        let index = assignment.partition_index;
        if by_index.contains_key(&index) {
            let text = format!("Found multiple manual partition assignments for partition {index}");
            return Err(invalid(text));
        }
        let replicas = assignment.broker_ids.to_vec();
        machine.check_assignment(&replicas, replication)?;
        replication = Some(replicas.len());
        let isr = machine.active_of(&replicas);
        if isr.is_empty() {
            return Err(invalid(format!(
                "All brokers specified in the manual partition assignment for partition {index} \
                 are fenced or in controlled shutdown."
            )));
        }
        by_index.insert(index, (replicas, isr));
    }
    if (0..)
        .zip(by_index.keys())
        .any(|(expected, &index)| expected != index)
    {
        let text = "partitions should be a consecutive 0-based integer sequence".to_owned();
        return Err(invalid(text));
    }
    Ok(by_index.into_values().collect())
}

/// Over all topics, as far as their counts mean anything.
fn partitions_asked(machine: &Machine, topics: &[&CreateTopicsRequestCreatableTopic]) -> i64 {
    let of = |topic: &&CreateTopicsRequestCreatableTopic| match topic.num_partitions {
        _ if !topic.assignments.is_empty() => {
            i64::try_from(topic.assignments.len()).unwrap_or(i64::MAX)
        }
        -1 => i64::from(machine.settings.default_partitions),
        count => i64::from(count.max(0)),
    };
    topics.iter().map(of).fold(0, i64::saturating_add)
}

fn unused_id(machine: &Machine, random: &mut dyn FnMut() -> u64) -> Uuid {
    loop {
        let id = Uuid::random(&mut *random);
        if machine.latest().topic(id).is_none() {
            return id;
        }
    }
}

fn described_configs(
    settings: &Settings,
    overrides: &Overrides<'_>,
) -> Vec<CreateTopicsResponseCreatableTopicConfigs> {
    created_topic_configs(settings, overrides)
        .into_iter()
        .map(|config| CreateTopicsResponseCreatableTopicConfigs {
            name: Str::from_static(config.name),
            value: config.value.map(Str::from),
            config_source: config.source.wire_id(),
            ..Default::default()
        })
        .collect()
}

fn answer(records: Array<MetadataRecord>, topics: Vec<TopicResult>) -> Decided {
    let response = CreateTopicsResponse {
        topics: topics.into(),
        ..Default::default()
    };
    Decided::with(records, Reply::CreateTopics(response))
}

fn refused(name: &Str, refusal: Refusal) -> TopicResult {
    TopicResult {
        name: name.clone(),
        error_code: refusal.code.code(),
        error_message: refusal.message,
        configs: Some([].into()),
        ..Default::default()
    }
}

/// Names that occur more than once.
pub(super) fn repeated_names<'a>(names: impl Iterator<Item = &'a Str>) -> BTreeSet<Str> {
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            repeated.insert(name.clone());
        }
    }
    repeated
}
