//! AlterConfigs and IncrementalAlterConfigs (KIP-339): settings of topics and brokers.
//!
//! A resource changes as a whole or not at all. Kafka's broker checks a request before it hands it to
//! the controller; here both checks stand in one place, in the same order.

use std::collections::{BTreeMap, BTreeSet};

use protocol::stored::{ConfigRecord, MetadataRecord};
use protocol::{Array, ErrorCode, Str};

use super::machine::{Decided, Machine, Reply};
use super::refusal::Refusal;
use crate::config::dynamic::{DynamicScope, check_dynamic};
use crate::config::{Overrides, Settings, keys, validate_overrides};
use crate::metadata::configs::ResourceType;
use crate::metadata::topic_name_problem;

/// Bytes that a value may have: what a string of the protocol can say.
pub(super) const VALUE_BYTES_MAX: usize = i16::MAX as usize;

/// What to do with the value of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOperation {
    Set,
    /// Back to the default.
    Delete,
    /// Adds elements to a list.
    Append,
    /// Takes elements out of a list.
    Subtract,
}

impl ConfigOperation {
    /// The meaning of the wire's number.
    #[must_use]
    pub fn from_wire(operation: i8) -> Option<Self> {
        match operation {
            0 => Some(Self::Set),
            1 => Some(Self::Delete),
            2 => Some(Self::Append),
            3 => Some(Self::Subtract),
            _ => None,
        }
    }
}

/// One key of a [`ConfigChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEdit {
    pub key: Str,
    /// The wire's number; see [`ConfigOperation`].
    pub operation: i8,
    pub value: Option<Str>,
}

/// What changes for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub kind: ResourceType,
    pub name: Str,
    pub edits: Vec<ConfigEdit>,
}

/// Settings to change, resource by resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterConfigs {
    pub changes: Vec<ConfigChange>,
    /// Keys that are not named go back to their defaults (AlterConfigs).
    pub replace: bool,
    /// Only checks.
    pub validate_only: bool,
}

/// What became of one resource: Kafka's code and text.
pub type ConfigOutcome = (ErrorCode, Option<Str>);

pub(super) fn decide(machine: &Machine, request: &AlterConfigs) -> Decided {
    let resource = |change: &ConfigChange| (change.kind, change.name.clone());
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<_> = request
        .changes
        .iter()
        .map(resource)
        .filter(|resource| !seen.insert(resource.clone()))
        .collect();
    let settings = machine.node_settings();
    let mut records = Array::new();
    let mut outcomes = Vec::with_capacity(request.changes.len());
    for change in &request.changes {
        let decided = match repeated.contains(&resource(change)) {
            true => Err(invalid_request("Each resource must appear at most once.")),
            false => one(machine, &settings, change, request.replace),
        };
        outcomes.push(match decided {
            Ok(changed) => {
                if !request.validate_only {
                    records.extend(changed);
                }
                (ErrorCode::None, None)
            }
            Err(refusal) => (refusal.code, refusal.message),
        });
    }
    Decided::with(records, Reply::AlterConfigs(outcomes))
}

fn invalid_request(text: impl Into<Str>) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, text)
}

fn invalid_config(text: impl Into<Str>) -> Refusal {
    Refusal::new(ErrorCode::InvalidConfig, text)
}

/// The records of one resource's change.
fn one(
    machine: &Machine,
    settings: &Settings,
    change: &ConfigChange,
    replace: bool,
) -> Result<Array<MetadataRecord>, Refusal> {
    check_form(change)?;
    // Kafka looks at the name of a topic after the operations.
    let of_a_topic = change.kind == ResourceType::TOPIC;
    if !of_a_topic {
        check_resource(machine, change)?;
    }
    let current: BTreeMap<String, String> = machine
        .latest()
        .configs
        .resource(change.kind, &change.name)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let mut after = match replace {
        true => BTreeMap::new(),
        false => current.clone(),
    };
    for edit in &change.edits {
        let key = edit.key.to_string();
        match edited(change.kind, edit, after.get(&key))? {
            Some(value) => drop(after.insert(key, value)),
            None => drop(after.remove(&key)),
        }
    }
    if of_a_topic {
        check_resource(machine, change)?;
    }
    check_values(machine, settings, change, &after)?;
    Ok(records(change, &current, &after))
}

/// Keys once, and values where there must be one: of every resource, before it is looked at.
///
/// # Errors
/// Kafka's code and text.
pub fn check_edits(change: &ConfigChange) -> Result<(), (ErrorCode, Str)> {
    let mut seen = BTreeSet::new();
    if !change.edits.iter().all(|edit| seen.insert(&edit.key)) {
        return Err((
            ErrorCode::InvalidRequest,
            "Error due to duplicate config keys".into(),
        ));
    }
    let operation = |edit: &ConfigEdit| ConfigOperation::from_wire(edit.operation);
    let nulls: Vec<&str> = change
        .edits
        .iter()
        .filter(|edit| edit.value.is_none() && operation(edit) != Some(ConfigOperation::Delete))
        .map(|edit| &*edit.key)
        .collect();
    if !nulls.is_empty() {
        let text = format!("Null value not supported for : {}", nulls.join(", "));
        return Err((ErrorCode::InvalidRequest, Str::from(text).shortened()));
    }
    Ok(())
}

/// As [`check_edits`], and every operation is one that Kafka knows.
fn check_form(change: &ConfigChange) -> Result<(), Refusal> {
    check_edits(change).map_err(|(code, text)| Refusal::new(code, text))?;
    let operation = |edit: &ConfigEdit| ConfigOperation::from_wire(edit.operation);
    match change.edits.iter().find(|edit| operation(edit).is_none()) {
        Some(edit) => Err(invalid_request(format!(
            "Unknown operations type {}",
            edit.operation
        ))),
        None => Ok(()),
    }
}

/// The resource is of a type that can be changed, and a broker is this one.
fn check_resource(machine: &Machine, change: &ConfigChange) -> Result<(), Refusal> {
    let name = &*change.name;
    match change.kind {
        ResourceType::TOPIC => {
            if name.is_empty() {
                return Err(invalid_request("Default topic resources are not allowed."));
            }
            match topic_name_problem(name) {
                Some(problem) => {
                    let text = problem.message(name);
                    Err(Refusal::new(ErrorCode::InvalidTopicException, text))
                }
                None => Ok(()),
            }
        }
        ResourceType::BROKER if name.is_empty() => Ok(()),
        ResourceType::BROKER => match name.parse::<i32>() {
            Ok(id) if id == machine.node_id() => Ok(()),
            Ok(_) => Err(invalid_request(format!(
                "Unexpected broker id, expected {}, but received {name}",
                machine.node_id()
            ))),
            Err(_) => Err(invalid_request(format!(
                "Node id must be an integer, but it is: {name}"
            ))),
        },
        ResourceType(kind) => Err(invalid_request(format!("Unknown resource type {kind}"))),
    }
}

/// The value of a key after an operation on what it was.
fn edited(
    kind: ResourceType,
    edit: &ConfigEdit,
    before: Option<&String>,
) -> Result<Option<String>, Refusal> {
    let value = edit.value.as_deref().unwrap_or_default();
    let operation = ConfigOperation::from_wire(edit.operation);
    let append = match operation {
        None | Some(ConfigOperation::Set) => return Ok(Some(value.to_string())),
        Some(ConfigOperation::Delete) => return Ok(None),
        Some(ConfigOperation::Append) => true,
        Some(ConfigOperation::Subtract) => false,
    };
    let row = match kind {
        ResourceType::TOPIC => keys::topic_key(&edit.key).map(|row| &row.key),
        _ => keys::broker_key(&edit.key),
    };
    let Some(row) = row.filter(|row| row.kind == keys::ValueKind::List) else {
        return Err(no_list(kind, &edit.key, append, row.is_some()));
    };
    let text = before.cloned().or_else(|| row.default_text());
    let mut elements: Vec<&str> = text
        .iter()
        .flat_map(|text| text.split(','))
        .filter(|element| !element.is_empty())
        .collect();
    for element in value.split(',') {
        match elements.iter().position(|have| *have == element) {
            None if append => elements.push(element),
            Some(at) if !append => drop(elements.remove(at)),
            _ => {}
        }
    }
    Ok(Some(elements.join(",")))
}

/// Kafka's broker and controller have different words for it.
fn no_list(kind: ResourceType, key: &str, append: bool, known: bool) -> Refusal {
    let word = if append { "append" } else { "subtract" };
    invalid_config(match (kind, known) {
        (ResourceType::BROKER, true) => {
            format!("Config value {word} is not allowed for config key: {key}")
        }
        (ResourceType::BROKER, false) => format!("Unknown config name: {key}"),
        _ => format!(
            "Can't {} to key {key} because its type is not LIST.",
            word.to_uppercase()
        ),
    })
}

/// With eligible leader replicas (KIP-966) `min.insync.replicas` is a matter of the whole cluster.
fn check_min_in_sync(machine: &Machine, change: &ConfigChange) -> Result<(), Refusal> {
    const KEY: &str = "min.insync.replicas";
    const FEATURE: &str = "eligible.leader.replicas.version";
    let edit = change.edits.iter().find(|edit| &*edit.key == KEY);
    let Some(edit) = edit.filter(|_| machine.latest().features.level(FEATURE) > 0) else {
        return Ok(());
    };
    match change.name.is_empty() {
        true if edit.value.is_some() => Ok(()),
        true => Err(invalid_config(
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )),
        false => Err(invalid_config(
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )),
    }
}

/// Everything that the resource would have then.
fn check_values(
    machine: &Machine,
    settings: &Settings,
    change: &ConfigChange,
    after: &BTreeMap<String, String>,
) -> Result<(), Refusal> {
    if after.values().any(|value| value.len() > VALUE_BYTES_MAX) {
        return Err(too_long());
    }
    if change.kind == ResourceType::TOPIC {
        let overrides: Overrides<'_> = after
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        validate_overrides(settings, &overrides)
            .map_err(|error| invalid_config(error.to_string()))?;
        if machine.latest().topic_id(&change.name).is_none() {
            let text = format!("The topic '{}' does not exist.", change.name);
            return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, text));
        }
        return Ok(());
    }
    check_min_in_sync(machine, change)?;
    let scope = match change.name.is_empty() {
        true => DynamicScope::Cluster,
        false => DynamicScope::Broker,
    };
    check_dynamic(settings, scope, after).map_err(|error| invalid_request(error.to_string()))
}

pub(super) fn too_long() -> Refusal {
    invalid_config(format!(
        "The configuration value cannot be added because it exceeds the maximum value size of \
         {VALUE_BYTES_MAX} bytes."
    ))
}

/// What changed; of a broker also what was set to what it was, as Kafka's controller does.
fn records(
    change: &ConfigChange,
    current: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Array<MetadataRecord> {
    let named: BTreeSet<&str> = change.edits.iter().map(|edit| &*edit.key).collect();
    let record = |key: &str, value: Option<&String>| {
        MetadataRecord::from(ConfigRecord {
            resource_type: change.kind.0,
            resource_name: change.name.detached(),
            name: Str::from(key.to_string()),
            value: value.map(|value| Str::from(value.clone())),
        })
    };
    let mut records = Array::new();
    for key in &named {
        let (old, new) = (current.get(*key), after.get(*key));
        if old != new || change.kind == ResourceType::BROKER {
            records.push(record(key, new));
        }
    }
    for key in current.keys().filter(|key| !named.contains(key.as_str())) {
        if !after.contains_key(key) {
            records.push(record(key, None));
        }
    }
    records
}
