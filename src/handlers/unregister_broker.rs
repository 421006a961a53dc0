//! UnregisterBroker: the cluster forgets a broker that will not come back.

use protocol::Str;
use protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

use super::api::{Call, Handler};
use crate::shard::ask_controller;

/// The handler.
pub struct UnregisterBroker;

impl Handler for UnregisterBroker {
    type Request = UnregisterBrokerRequest;

    async fn handle(call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse {
        let id = request.broker_id;
        let asked = ask_controller(&call.shard, move |controller| async move {
            controller.unregister_broker(id).await
        });
        let (error, message) = match asked.await {
            Ok(Ok(())) => {
                return UnregisterBrokerResponse {
                    error_message: Some(Str::default()),
                    ..Default::default()
                };
            }
            Ok(Err(refused)) => refused,
            Err(error) => {
                tracing::warn!(%error, "the controller could not unregister a broker");
                (error.code(), error.code().message().into())
            }
        };
        UnregisterBrokerResponse {
            error_code: error.code(),
            error_message: Some(message),
            ..Default::default()
        }
    }
}
