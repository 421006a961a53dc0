//! DescribeConfigs: every key of topics and of this broker, with where its value comes from.

use protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsRequestDescribeConfigsResource, DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult, DescribeConfigsResponseDescribeConfigsSynonym,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::config::describe::{
    DescribedConfig, describe_broker, describe_cluster_defaults, describe_topic,
};
use crate::metadata::configs::ResourceType;
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
        let mut room = AnswerRoom::new(call.shard.limits.request_bytes);
        let mut results = Vec::with_capacity(request.resources.len());
        for (index, resource) in request.resources.iter().enumerate() {
            if index % RESOURCES_AT_A_TIME == RESOURCES_AT_A_TIME - 1 {
                call.shard.core.yield_now().await;
            }
            let described = match room.is_left() {
                true => describe(&call, resource),
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

fn describe(
    call: &Call,
    resource: &DescribeConfigsRequestDescribeConfigsResource,
) -> Result<Vec<DescribedConfig>, Refusal> {
    let name = &*resource.resource_name;
    match ResourceType(resource.resource_type) {
        ResourceType::TOPIC => topic(call, name),
        ResourceType::BROKER => broker(call, name),
        ResourceType(other) => Err((
            ErrorCode::InvalidRequest,
            format!("Unsupported resource type: {other}"),
        )),
    }
}

fn topic(call: &Call, name: &str) -> Result<Vec<DescribedConfig>, Refusal> {
    if let Some(problem) = topic_name_problem(name) {
        return Err((ErrorCode::InvalidTopicException, problem.message(name)));
    }
    let image = call.shard.image();
    if image.topic_by_name(name).is_none() {
        let error = ErrorCode::UnknownTopicOrPartition;
        return Err((error, error.message().to_owned()));
    }
    let overrides = image.configs.topic(name);
    let overrides = overrides
        .into_iter()
        .flat_map(|values| values.iter())
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
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
    match name.parse::<i32>() {
        Ok(id) if id == here => Ok(describe_broker(&config.settings)),
        Ok(_) => Err((
            ErrorCode::InvalidRequest,
            format!("Unexpected broker id, expected {here} or empty string, but received {name}"),
        )),
        Err(_) => Err((
            ErrorCode::InvalidRequest,
            format!("Broker id must be an integer, but it is: {name}"),
        )),
    }
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
                Some(keys) => keys.iter().any(|key| **key == *config.name),
                None => true,
            };
            result.configs = configs
                .into_iter()
                .filter(wanted)
                .map(|config| entry(call, request, config))
                .collect();
        }
        Err((error, message)) => {
            result.error_code = error.code();
            result.error_message = Some(Str::from(message));
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
        documentation: config
            .documentation
            .filter(|_| typed && request.include_documentation)
            .map(Str::from),
    }
}
