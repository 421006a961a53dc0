//! InitProducerId: a number for an idempotent producer.

use protocol::ErrorCode;
use protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::api::{Call, Handler};
use crate::shard::next_producer_id;

const NO_ID: i64 = -1;
const NO_EPOCH: i16 = -1;

/// The handler.
pub struct InitProducerId;

impl Handler for InitProducerId {
    type Request = InitProducerIdRequest;

    async fn handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse {
        // A producer that has an id already says that and its epoch, or neither.
        if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH) {
            return refused(ErrorCode::InvalidRequest);
        }
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
        producer_id: NO_ID,
        producer_epoch: NO_EPOCH,
        ..Default::default()
    }
}
