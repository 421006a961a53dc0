//! AlterConfigs and IncrementalAlterConfigs, decided by the controller.

use std::collections::BTreeMap;

use protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
};
use protocol::{ErrorCode, ListenerKind, Str};

use super::api::{Call, Handler};
use super::describe_configs::KNOWN;
use super::loggers;
use crate::controller::{AlterConfigs as Alteration, ConfigChange, ConfigEdit, ConfigOutcome};
use crate::metadata::configs::ResourceType;
use crate::shard::ask_controller;

/// The operation of every entry of an AlterConfigs request.
const SET: i8 = 0;

/// The handler of AlterConfigs.
pub struct AlterConfigs;
/// The handler of IncrementalAlterConfigs.
pub struct IncrementalAlterConfigs;

impl Handler for AlterConfigs {
    type Request = AlterConfigsRequest;

    async fn handle(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse {
        let changes = request.resources.into_iter().map(|resource| {
            let configs = resource.configs.into_iter();
            let edits = configs.map(|config| ConfigEdit {
                key: config.name,
                operation: SET,
                value: config.value,
            });
            change(resource.resource_type, resource.resource_name, edits)
        });
        let responses = alter(&call, changes.collect(), true, request.validate_only).await;
        AlterConfigsResponse {
            responses: responses.into(),
            ..Default::default()
        }
    }
}

impl Handler for IncrementalAlterConfigs {
    type Request = IncrementalAlterConfigsRequest;

    async fn handle(
        call: Call,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let changes = request.resources.into_iter().map(|resource| {
            let configs = resource.configs.into_iter();
            let edits = configs.map(|config| ConfigEdit {
                key: config.name,
                operation: config.config_operation,
                value: config.value,
            });
            change(resource.resource_type, resource.resource_name, edits)
        });
        let altered = alter(&call, changes.collect(), false, request.validate_only).await;
        let responses = altered.into_iter().map(|it| {
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse {
                error_code: it.error_code,
                error_message: it.error_message,
                resource_type: it.resource_type,
                resource_name: it.resource_name,
            }
        });
        IncrementalAlterConfigsResponse {
            responses: responses.collect(),
            ..Default::default()
        }
    }
}

fn change(kind: i8, name: Str, edits: impl Iterator<Item = ConfigEdit>) -> ConfigChange {
    ConfigChange {
        kind: ResourceType(kind),
        name,
        edits: edits.collect(),
    }
}

/// What became of every resource. When this returns, every core goes by what changed.
async fn alter(
    call: &Call,
    changes: Vec<ConfigChange>,
    replace: bool,
    validate_only: bool,
) -> Vec<AlterConfigsResponseAlterConfigsResourceResponse> {
    let resources: Vec<Resource> = changes.iter().map(resource).collect();
    let mut named: BTreeMap<&Resource, usize> = BTreeMap::new();
    for resource in &resources {
        *named.entry(resource).or_default() += 1;
    }
    let mut decided_here: BTreeMap<Resource, ConfigOutcome> = BTreeMap::new();
    let mut stored = Vec::new();
    for change in changes {
        let resource = resource(&change);
        // What is named twice is refused as any other resource is.
        let once = named.get(&resource) == Some(&1);
        if let Some(refusal) = refused_by_controller(call, &change, once) {
            decided_here.insert(resource, refusal);
        } else if change.kind == ResourceType::BROKER_LOGGER && once && !replace {
            decided_here.insert(resource, alter_loggers(call, &change, validate_only));
        } else {
            stored.push(change);
        }
    }
    let mut of_stored = alter_stored(call, stored, replace, validate_only)
        .await
        .into_iter();
    let outcomes = resources.into_iter().map(|resource| {
        let here = decided_here.get(&resource).cloned();
        let outcome = here.or_else(|| of_stored.next());
        let (error, error_message) = outcome.unwrap_or((ErrorCode::UnknownServerError, None));
        AlterConfigsResponseAlterConfigsResourceResponse {
            error_code: error.code(),
            error_message,
            resource_type: resource.0.0,
            resource_name: resource.1,
        }
    });
    outcomes.collect()
}

/// Type and name.
type Resource = (ResourceType, Str);

fn resource(change: &ConfigChange) -> Resource {
    (change.kind, change.name.clone())
}

/// What is refused in other words where the controller itself is asked.
fn refused_by_controller(call: &Call, change: &ConfigChange, once: bool) -> Option<ConfigOutcome> {
    if call.caller.kind == ListenerKind::Broker {
        return None;
    }
    let kind = change.kind;
    if !KNOWN.contains(&kind) {
        let text = format!("Unknown resource type {}.", kind.0);
        return Some((ErrorCode::UnsupportedVersion, Some(text.into())));
    }
    let text = Str::from_static("Duplicate resource.");
    (!once).then_some((ErrorCode::InvalidRequest, Some(text)))
}

/// Levels of this process, which the metadata does not know.
fn alter_loggers(call: &Call, change: &ConfigChange, validate_only: bool) -> ConfigOutcome {
    let (levels, node) = (&call.shard.log_levels, call.shard.config.node_id);
    match loggers::alter(levels, node, change, validate_only) {
        Ok(()) => (ErrorCode::None, None),
        Err((error, message)) => (error, Some(message)),
    }
}

/// What stands in the metadata, which the controller changes.
async fn alter_stored(
    call: &Call,
    changes: Vec<ConfigChange>,
    replace: bool,
    validate_only: bool,
) -> Vec<ConfigOutcome> {
    let count = changes.len();
    if count == 0 {
        return Vec::new();
    }
    let alteration = Alteration {
        changes,
        replace,
        validate_only,
    };
    let asked = ask_controller(&call.shard, move |controller| async move {
        controller.alter_configs(alteration).await
    });
    asked.await.unwrap_or_else(|error| {
        tracing::warn!(api = ?call.header.api, %error, "the controller could not do a request");
        let code = error.code();
        vec![(code, Some(code.message().into())); count]
    })
}
