//! AlterConfigs and IncrementalAlterConfigs, decided by the controller.

use protocol::Str;
use protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
};

use super::api::{Call, Handler};
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
            responses,
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
    let resources: Vec<(ResourceType, Str)> = changes
        .iter()
        .map(|change| (change.kind, change.name.clone()))
        .collect();
    let alteration = Alteration {
        changes,
        replace,
        validate_only,
    };
    let asked = ask_controller(&call.shard, move |controller| async move {
        controller.alter_configs(alteration).await
    });
    let outcomes = asked.await.unwrap_or_else(|error| {
        tracing::warn!(api = ?call.header.api, %error, "the controller could not do a request");
        let code = error.code();
        let outcome: ConfigOutcome = (code, Some(code.message().into()));
        vec![outcome; resources.len()]
    });
    let paired = resources.into_iter().zip(outcomes);
    paired
        .map(|((kind, resource_name), (error, error_message))| {
            AlterConfigsResponseAlterConfigsResourceResponse {
                error_code: error.code(),
                error_message,
                resource_type: kind.0,
                resource_name,
            }
        })
        .collect()
}
