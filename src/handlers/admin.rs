//! CreateTopics, DeleteTopics and CreatePartitions: what the controller on core 0 decides.

use std::future::Future;
use std::rc::Rc;

use protocol::ErrorCode;
use protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult, CreateTopicsRequest, CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
};

use super::api::{Call, Handler};
use crate::controller::{Controller, ControllerError};
use crate::shard::ask_controller;

/// The handler of CreateTopics.
pub struct CreateTopics;
/// The handler of DeleteTopics.
pub struct DeleteTopics;
/// The handler of CreatePartitions.
pub struct CreatePartitions;

/// Asks the controller; a failure of the whole request becomes one code for each of its topics. No time left is one: then
/// nothing is done.
async fn ask<R, F, Fut>(call: &Call, timeout_ms: i32, ask: F) -> Result<R, ErrorCode>
where
    R: Send + 'static,
    F: FnOnce(Rc<Controller>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<R, ControllerError>> + 'static,
{
    if timeout_ms <= 0 {
        return Err(ErrorCode::RequestTimedOut);
    }
    ask_controller(&call.shard, ask).await.map_err(|error| {
        tracing::warn!(api = ?call.header.api, %error, "the controller could not do a request");
        error.code()
    })
}

impl Handler for CreateTopics {
    type Request = CreateTopicsRequest;

    async fn handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse {
        let names: Vec<_> = request
            .topics
            .iter()
            .map(|topic| topic.name.clone())
            .collect();
        let asked = ask(&call, request.timeout_ms, move |controller| async move {
            controller.create_topics(request).await
        });
        asked.await.unwrap_or_else(|error| CreateTopicsResponse {
            topics: names
                .into_iter()
                .map(|name| CreateTopicsResponseCreatableTopicResult {
                    name,
                    error_code: error.code(),
                    error_message: None,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        })
    }
}

impl Handler for DeleteTopics {
    type Request = DeleteTopicsRequest;

    async fn handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
        let version = call.version();
        let named: Vec<_> = match version {
            6.. => request
                .topics
                .iter()
                .map(|it| (it.name.clone(), it.topic_id))
                .collect(),
            _ => request
                .topic_names
                .iter()
                .map(|it| (Some(it.clone()), Default::default()))
                .collect(),
        };
        let asked = ask(&call, request.timeout_ms, move |controller| async move {
            controller.delete_topics(request, version).await
        });
        asked.await.unwrap_or_else(|error| DeleteTopicsResponse {
            responses: named
                .into_iter()
                .map(
                    |(name, topic_id)| DeleteTopicsResponseDeletableTopicResult {
                        name,
                        topic_id,
                        error_code: error.code(),
                        error_message: None,
                    },
                )
                .collect(),
            ..Default::default()
        })
    }
}

impl Handler for CreatePartitions {
    type Request = CreatePartitionsRequest;

    async fn handle(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
        let names: Vec<_> = request
            .topics
            .iter()
            .map(|topic| topic.name.clone())
            .collect();
        let asked = ask(&call, request.timeout_ms, move |controller| async move {
            controller.create_partitions(request).await
        });
        asked
            .await
            .unwrap_or_else(|error| CreatePartitionsResponse {
                results: names
                    .into_iter()
                    .map(|name| CreatePartitionsResponseCreatePartitionsTopicResult {
                        name,
                        error_code: error.code(),
                        error_message: None,
                    })
                    .collect(),
                ..Default::default()
            })
    }
}
