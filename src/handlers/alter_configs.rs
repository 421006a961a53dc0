//! AlterConfigs and IncrementalAlterConfigs, decided by the controller.

use protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
};
use protocol::{ErrorCode, Str};

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
        let changes = request.resources.into_iter().map(|resource| ConfigChange {
            kind: ResourceType(resource.resource_type),
            name: resource.resource_name,
            edits: resource
                .configs
                .into_iter()
                .map(|config| ConfigEdit {
                    key: config.name,
                    operation: SET,
                    value: config.value,
                })
                .collect(),
        });
        let alteration = Alteration {
            changes: changes.collect(),
            replace: true,
            validate_only: request.validate_only,
        };
        let answers = alter(&call, alteration).await.into_iter();
        let responses = answers.map(|(kind, resource_name, (error, error_message))| {
            AlterConfigsResponseAlterConfigsResourceResponse {
                error_code: error.code(),
                error_message,
                resource_type: kind.0,
                resource_name,
            }
        });
        AlterConfigsResponse {
            responses: responses.collect(),
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
        let changes = request.resources.into_iter().map(|resource| ConfigChange {
            kind: ResourceType(resource.resource_type),
            name: resource.resource_name,
            edits: resource
                .configs
                .into_iter()
                .map(|config| ConfigEdit {
                    key: config.name,
                    operation: config.config_operation,
                    value: config.value,
                })
                .collect(),
        });
        let alteration = Alteration {
            changes: changes.collect(),
            replace: false,
            validate_only: request.validate_only,
        };
        let answers = alter(&call, alteration).await.into_iter();
        let responses = answers.map(|(kind, resource_name, (error, error_message))| {
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse {
                error_code: error.code(),
                error_message,
                resource_type: kind.0,
                resource_name,
            }
        });
        IncrementalAlterConfigsResponse {
            responses: responses.collect(),
            ..Default::default()
        }
    }
}

/// What became of every resource. When this returns, every core goes by what changed.
async fn alter(call: &Call, alteration: Alteration) -> Vec<(ResourceType, Str, ConfigOutcome)> {
    let resources: Vec<(ResourceType, Str)> = alteration
        .changes
        .iter()
        .map(|change| (change.kind, change.name.clone()))
        .collect();
    let asked = ask_controller(&call.shard, move |controller| async move {
        controller.alter_configs(alteration).await
    });
    let outcomes = asked.await.unwrap_or_else(|error| {
        tracing::warn!(api = ?call.header.api, %error, "the controller could not do a request");
        let code: ErrorCode = error.code();
        vec![(code, Some(code.message().into())); resources.len()]
    });
    let paired = resources.into_iter().zip(outcomes);
    paired
        .map(|((kind, name), outcome)| (kind, name, outcome))
        .collect()
}
