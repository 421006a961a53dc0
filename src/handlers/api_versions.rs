//! ApiVersions: what this listener speaks, and which features the cluster has.

use protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, ApiVersionsResponseApiVersion,
    ApiVersionsResponseFinalizedFeatureKey, ApiVersionsResponseSupportedFeatureKey,
};
use protocol::{ApiKey, ErrorCode, ListenerKind, Str};

use super::api::{Call, Handler, SUPPORTED, encode_as, is_for};
use crate::features::{KRAFT_VERSION, SUPPORTED_FEATURES};
use crate::outgoing::Answer;

/// The handler.
pub struct ApiVersions;

impl Handler for ApiVersions {
    type Request = ApiVersionsRequest;

    async fn handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse {
        let refused = refusal(&call, &request);
        if call.version() >= 3 && refused.is_none() {
            call.caller.named(
                &request.client_software_name,
                &request.client_software_version,
            );
        }
        match refused {
            Some(error) => ApiVersionsResponse {
                error_code: error.code(),
                ..Default::default()
            },
            None => answer(&call),
        }
    }
}

/// KIP-511: a version that is too new is answered in the layout of version 0, which every client
/// reads, with the range of ApiVersions itself, so that the client knows what to ask next.
pub(super) fn unknown_version(call: &Call) -> Answer {
    let api_keys = range(ApiKey::ApiVersions, call.caller.kind)
        .into_iter()
        .collect();
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys,
        ..Default::default()
    };
    encode_as(call, 0, &response)
}

/// Why the request itself is refused.
fn refusal(call: &Call, request: &ApiVersionsRequest) -> Option<ErrorCode> {
    if call.version() >= 3
        && !(is_software_name(&request.client_software_name)
            && is_software_name(&request.client_software_version))
    {
        return Some(ErrorCode::InvalidRequest);
    }
    // KIP-1242: a client may name the node it believes to talk to.
    match (&request.cluster_id, request.node_id) {
        (None, -1) => None,
        (Some(_), -1) | (None, _) => Some(ErrorCode::InvalidRequest),
        (Some(cluster), node) => {
            let here = cluster.as_str() == call.shard.cluster_id.as_str()
                && node == call.shard.config.node_id;
            (!here).then_some(ErrorCode::RebootstrapRequired)
        }
    }
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?` (KIP-511).
fn is_software_name(name: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes
            .iter()
            .all(|byte| edge(byte) || *byte == b'-' || *byte == b'.')
}

fn range(api: ApiKey, kind: ListenerKind) -> Option<ApiVersionsResponseApiVersion> {
    api.advertised_on(kind)
        .map(|versions| ApiVersionsResponseApiVersion {
            api_key: api.code(),
            min_version: versions.min,
            max_version: versions.max,
        })
}

fn answer(call: &Call) -> ApiVersionsResponse {
    let image = call.shard.image();
    let mut api_keys: Vec<_> = SUPPORTED
        .iter()
        .filter(|api| is_for(**api, call.caller.kind))
        .filter_map(|api| range(*api, call.caller.kind))
        .collect();
    api_keys.sort_by_key(|range| range.api_key);
    // Clients before v4 fail on a feature that starts at 0.
    let shows = |min: i16| call.version() >= 4 || min > 0;
    let supported_features = SUPPORTED_FEATURES
        .iter()
        .filter(|feature| shows(feature.min))
        .map(|feature| ApiVersionsResponseSupportedFeatureKey {
            name: feature.name.into(),
            min_version: feature.min,
            max_version: feature.max,
        })
        .collect();
    // Its level is a matter of the quorum, which no feature record says.
    let kraft_version = Str::from_static(KRAFT_VERSION);
    let finalized_features = image
        .features
        .iter()
        .filter(|(name, _)| **name != kraft_version)
        .chain([(&kraft_version, image.kraft_version)])
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| ApiVersionsResponseFinalizedFeatureKey {
            name: name.clone(),
            max_version_level: level,
            min_version_level: level,
        })
        .collect();
    ApiVersionsResponse {
        api_keys: api_keys.into(),
        supported_features,
        finalized_features,
        finalized_features_epoch: image.provenance.offset,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::is_software_name;

    #[test]
    fn software_names_are_kafkas() {
        for good in ["a", "apache-kafka-java", "4.4.0", "A.b-c9"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".", "a b", "a_b", "ä"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
