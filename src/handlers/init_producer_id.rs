//! InitProducerId: a number for an idempotent producer.

use protocol::ErrorCode;
use protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::api::{Call, Handler};
use crate::shard::next_producer_id;

/// The handler.
pub struct InitProducerId;

impl Handler for InitProducerId {
    type Request = InitProducerIdRequest;

    async fn handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse {
        match request.transactional_id.as_deref() {
            None => {}
            Some("") => return refused(ErrorCode::InvalidRequest),
            // Final for every client; see FindCoordinator.
            Some(_) => return refused(ErrorCode::TransactionalIdAuthorizationFailed),
        }
        match next_producer_id(&call.shard).await {
            Ok(producer_id) => InitProducerIdResponse {
                producer_id,
                producer_epoch: 0,
                ..Default::default()
            },
            Err(error) => refused(error),
        }
    }
}

fn refused(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: error.code(),
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    }
}
