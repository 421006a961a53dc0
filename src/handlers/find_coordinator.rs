//! FindCoordinator: the broker that holds a group.

use protocol::messages::{
    FindCoordinatorRequest, FindCoordinatorResponse, FindCoordinatorResponseCoordinator,
};
use protocol::{Array, ErrorCode, Str};

use super::api::{Call, Handler};
use super::groups::coordinator_of;
use crate::metadata::OFFSETS_TOPIC;
use crate::shard::auto_create;

/// The handler.
pub struct FindCoordinator;

/// First version that asks for several keys at once.
const SEVERAL_KEYS: i16 = 4;
/// `key_type` of a group.
const GROUP: i8 = 0;
/// `key_type` of a transactional id.
const TRANSACTION: i8 = 1;
/// `key_type` of a partition of a share group.
const SHARE: i8 = 2;

impl Handler for FindCoordinator {
    type Request = FindCoordinatorRequest;

    async fn handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        if call.version() >= SEVERAL_KEYS {
            let mut coordinators = Array::new();
            for key in request.coordinator_keys {
                coordinators.push(find(&call, request.key_type, key).await);
            }
            return FindCoordinatorResponse {
                coordinators,
                ..Default::default()
            };
        }
        let found = find(&call, request.key_type, request.key).await;
        FindCoordinatorResponse {
            error_code: found.error_code,
            // Kafka's message for no error, which later versions leave out.
            error_message: match found.error_code {
                0 => Some(Str::from_static("NONE")),
                _ => found.error_message,
            },
            node_id: found.node_id,
            host: found.host,
            port: found.port,
            ..Default::default()
        }
    }
}

async fn find(call: &Call, key_type: i8, key: Str) -> FindCoordinatorResponseCoordinator {
    let none =
        |key, error: ErrorCode, message: Option<&'static str>| FindCoordinatorResponseCoordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: error.code(),
            error_message: Some(Str::from(message.unwrap_or_else(|| error.message()))),
            ..Default::default()
        };
    match key_type {
        GROUP => {}
        TRANSACTION => {
            // A code that every client takes for final: anything else makes some of them ask again
            // for as long as their timeouts allow.
            let message = "This broker does not serve transactions yet";
            return none(
                key,
                ErrorCode::TransactionalIdAuthorizationFailed,
                Some(message),
            );
        }
        SHARE if call.version() >= SEVERAL_KEYS => {
            return none(key, ErrorCode::InvalidRequest, Some(""));
        }
        _ => return none(key, ErrorCode::InvalidRequest, None),
    }
    if coordinator_of(&call.shard.view(), &key).is_none() {
        let failures = auto_create(&call.shard, vec![Str::from(OFFSETS_TOPIC)]).await;
        if let Some((_, error)) = failures.first() {
            tracing::warn!(
                ?error,
                "the topic for committed offsets could not be created"
            );
        }
    }
    let image = call.shard.image();
    let here = call.shard.config.node_id;
    let address = call.shard.node_address(&image, here, call.caller.listener);
    match (coordinator_of(&call.shard.view(), &key), address) {
        (Some(_), Some(address)) => FindCoordinatorResponseCoordinator {
            key,
            node_id: here,
            host: address.host,
            port: address.port,
            error_code: ErrorCode::None.code(),
            error_message: Some(Str::default()),
        },
        _ => none(key, ErrorCode::CoordinatorNotAvailable, None),
    }
}
