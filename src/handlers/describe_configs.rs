//! DescribeConfigs: every key of topics and of this broker, with where its value comes from.

use protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsRequestDescribeConfigsResource, DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult, DescribeConfigsResponseDescribeConfigsSynonym,
};
use protocol::{Array, ErrorCode, Str};

use super::api::{Call, Handler};
use super::loggers;
use crate::config::Overrides;
use crate::config::describe::{
    ConfigSource, DescribedConfig, describe_broker, describe_cluster_defaults, describe_topic,
};
use crate::config::describe_group::{describe_client_metrics, describe_group};
use crate::metadata::configs::{ResourceConfig, ResourceType};
use crate::metadata::topic_name_problem;
use crate::outgoing::AnswerRoom;

/// The handler.
pub struct DescribeConfigs;

/// Other tasks have their turn after so many.
const RESOURCES_AT_A_TIME: usize = 8;

/// Why a resource is not described, in Kafka's words.
type Refusal = (ErrorCode, String);

impl Handler for DescribeConfigs {
    type Request = DescribeConfigsRequest;

    async fn handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
        // A type that nobody knows is a mistake of the whole request.
        let known = request
            .resources
            .iter()
            .all(|resource| KNOWN.contains(&ResourceType(resource.resource_type)));
        let mut room = AnswerRoom::new(call.shard.limits.request_bytes);
        let mut results = Array::new();
        for (index, resource) in request.resources.iter().enumerate() {
            if index % RESOURCES_AT_A_TIME == RESOURCES_AT_A_TIME - 1 {
                call.shard.core.yield_now().await;
            }
            let described = match room.is_left() {
                true if known => describe(&call, resource),
                true => Err(invalid(ErrorCode::InvalidRequest.message().to_owned())),
                false => Err((ErrorCode::InvalidRequest, AnswerRoom::FULL.to_owned())),
            };
            let result = answer(&call, &request, resource, described);
            room.take(size_of_result(&result));
            results.push(result);
        }
        DescribeConfigsResponse {
            results,
            ..Default::default()
        }
    }
}

/// Bytes of memory that a result takes, at least as many as on the wire.
fn size_of_result(result: &DescribeConfigsResponseDescribeConfigsResult) -> usize {
    let text = |text: &Option<Str>| text.as_ref().map_or(0, |text| text.len());
    let synonym = |synonym: &DescribeConfigsResponseDescribeConfigsSynonym| {
        size_of_val(synonym) + synonym.name.len() + text(&synonym.value)
    };
    let configs = result.configs.iter().map(|config| {
        let synonyms: usize = config.synonyms.iter().map(synonym).sum();
        let texts = config.name.len() + text(&config.value) + text(&config.documentation);
        size_of_val(config) + texts + synonyms
    });
    size_of_val(result) + configs.sum::<usize>()
}

/// Every type of resource that has settings.
pub(super) const KNOWN: [ResourceType; 5] = [
    ResourceType::TOPIC,
    ResourceType::BROKER,
    ResourceType::BROKER_LOGGER,
    ResourceType::CLIENT_METRICS,
    ResourceType::GROUP,
];

fn describe(
    call: &Call,
    resource: &DescribeConfigsRequestDescribeConfigsResource,
) -> Result<Vec<DescribedConfig>, Refusal> {
    let name = &*resource.resource_name;
    let kind = ResourceType(resource.resource_type);
    match kind {
        ResourceType::TOPIC => topic(call, name),
        ResourceType::BROKER => broker(call, name),
        ResourceType::BROKER_LOGGER => broker_loggers(call, name),
        ResourceType::CLIENT_METRICS if name.is_empty() => Err(invalid(
            "Client metrics subscription name must not be empty".to_owned(),
        )),
        ResourceType::GROUP if name.is_empty() => {
            Err(invalid("Group name must not be empty".to_owned()))
        }
        _ => {
            let image = call.shard.image();
            let overrides = overrides(image.configs.resource(kind, name));
            Ok(match kind {
                ResourceType::GROUP => {
                    describe_group(&call.shard.view().config.settings, &overrides)
                }
                _ => describe_client_metrics(&overrides),
            })
        }
    }
}

fn overrides(values: Option<&ResourceConfig>) -> Overrides<'_> {
    let values = values.into_iter().flat_map(|values| values.iter());
    values
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn invalid(message: String) -> Refusal {
    (ErrorCode::InvalidRequest, message)
}

fn topic(call: &Call, name: &str) -> Result<Vec<DescribedConfig>, Refusal> {
    if let Some(problem) = topic_name_problem(name) {
        return Err((ErrorCode::InvalidTopicException, problem.message(name)));
    }
    let image = call.shard.image();
    if image.topic_by_name(name).is_none() {
        // Kafka has no words for it.
        return Err((ErrorCode::UnknownTopicOrPartition, String::new()));
    }
    let overrides = overrides(image.configs.topic(name));
    Ok(describe_topic(
        &call.shard.view().config.settings,
        &overrides,
    ))
}

fn broker(call: &Call, name: &str) -> Result<Vec<DescribedConfig>, Refusal> {
    let config = &call.shard.view().config;
    if name.is_empty() {
        return Ok(describe_cluster_defaults(&config.settings));
    }
    let here = config.node_id;
    match broker_id(name)? {
        id if id == here => Ok(describe_broker(&config.settings)),
        _ => Err(invalid(format!(
            "Unexpected broker id, expected {here} or empty string, but received {name}"
        ))),
    }
}

fn broker_loggers(call: &Call, name: &str) -> Result<Vec<DescribedConfig>, Refusal> {
    if name.is_empty() {
        return Err(invalid("Broker id must not be empty".to_owned()));
    }
    let here = call.shard.config.node_id;
    match broker_id(name)? {
        id if id == here => Ok(loggers::describe(&call.shard.log_levels)),
        _ => Err(invalid(format!(
            "Unexpected broker id, expected {here} but received {name}"
        ))),
    }
}

fn broker_id(name: &str) -> Result<i32, Refusal> {
    name.parse()
        .map_err(|_| invalid(format!("Broker id must be an integer, but it is: {name}")))
}

fn answer(
    call: &Call,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsRequestDescribeConfigsResource,
    described: Result<Vec<DescribedConfig>, Refusal>,
) -> DescribeConfigsResponseDescribeConfigsResult {
    let mut result = DescribeConfigsResponseDescribeConfigsResult {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    };
    match described {
        Ok(configs) => {
            result.error_message = Some(Str::default());
            let wanted = |config: &DescribedConfig| match &resource.configuration_keys {
                Some(keys) if !keys.is_empty() => keys.iter().any(|key| **key == *config.name),
                _ => true,
            };
            result.configs = configs
                .into_iter()
                .filter(wanted)
                .map(|config| entry(call, request, config))
                .collect();
        }
        Err((error, message)) => {
            result.error_code = error.code();
            result.error_message = Some(Str::from(message).shortened());
        }
    }
    result
}

/// First version whose answers tell the type of a value, and its documentation on request.
const TYPES_SINCE: i16 = 3;

fn entry(
    call: &Call,
    request: &DescribeConfigsRequest,
    config: DescribedConfig,
) -> DescribeConfigsResponseDescribeConfigsResourceResult {
    let synonyms = config
        .synonyms
        .into_iter()
        .filter(|_| request.include_synonyms);
    let typed = call.version() >= TYPES_SINCE;
    DescribeConfigsResponseDescribeConfigsResourceResult {
        name: Str::from(config.name),
        value: config.value.map(Str::from),
        read_only: config.read_only,
        config_source: config.source.wire_id(),
        is_sensitive: config.sensitive,
        synonyms: synonyms
            .map(|synonym| DescribeConfigsResponseDescribeConfigsSynonym {
                name: Str::from(synonym.name),
                value: synonym.value.map(Str::from),
                source: synonym.source.wire_id(),
            })
            .collect(),
        config_type: config
            .kind
            .filter(|_| typed)
            .map_or(0, |kind| kind.wire_id()),
        documentation: match config.source {
            // Kafka has none for loggers, and says so whether it is asked or not.
            ConfigSource::BrokerLogger => typed.then(Str::default),
            _ => config
                .documentation
                .filter(|_| typed && request.include_documentation)
                .map(Str::from),
        },
    }
}
