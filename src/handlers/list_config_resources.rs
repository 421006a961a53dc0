//! ListConfigResources (KIP-1142): what has a configuration, or could have one. Version 0 is
//! ListClientMetricsResources (KIP-1000), which knows one type only.

use protocol::messages::{
    ListConfigResourcesRequest, ListConfigResourcesResponse,
    ListConfigResourcesResponseConfigResource,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::metadata::Image;
use crate::metadata::configs::ResourceType;

/// Every type that there is, in the order of Kafka's answer.
const TYPES: [ResourceType; 5] = [
    ResourceType::GROUP,
    ResourceType::CLIENT_METRICS,
    ResourceType::BROKER_LOGGER,
    ResourceType::BROKER,
    ResourceType::TOPIC,
];

/// The handler.
pub struct ListConfigResources;

impl Handler for ListConfigResources {
    type Request = ListConfigResourcesRequest;

    async fn handle(
        call: Call,
        request: ListConfigResourcesRequest,
    ) -> ListConfigResourcesResponse {
        let asked: Vec<ResourceType> = request
            .resource_types
            .into_iter()
            .map(ResourceType)
            .collect();
        if asked.iter().any(|kind| !TYPES.contains(kind)) {
            return ListConfigResourcesResponse {
                error_code: ErrorCode::UnsupportedVersion.code(),
                ..Default::default()
            };
        }
        let wanted = |kind: &ResourceType| match call.version() {
            0 => *kind == ResourceType::CLIENT_METRICS,
            _ => asked.is_empty() || asked.contains(kind),
        };
        let image = call.shard.image();
        let kinds = TYPES.into_iter().filter(wanted);
        let config_resources = kinds
            .flat_map(|kind| {
                let names = names(&call, &image, kind).into_iter();
                names.map(
                    move |resource_name| ListConfigResourcesResponseConfigResource {
                        resource_name,
                        resource_type: kind.0,
                    },
                )
            })
            .collect();
        ListConfigResourcesResponse {
            config_resources,
            ..Default::default()
        }
    }
}

fn names(call: &Call, image: &Image, kind: ResourceType) -> Vec<Str> {
    match kind {
        ResourceType::TOPIC => image.topics().map(|topic| topic.name.clone()).collect(),
        ResourceType::BROKER | ResourceType::BROKER_LOGGER => {
            let listener = call.shard.listener_name(call.caller.listener);
            image
                .brokers()
                .filter(|broker| image.is_active(broker.id) && broker.endpoint(listener).is_some())
                .map(|broker| Str::from(broker.id.to_string()))
                .collect()
        }
        _ => {
            let configured = image.configs.iter().filter(|(of, _, _)| *of == kind);
            configured.map(|(_, name, _)| name.clone()).collect()
        }
    }
}
