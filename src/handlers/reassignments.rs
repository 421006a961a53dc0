//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455), as far as one node can move replicas: not.

use protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::shard::ask_controller;

/// The handler of AlterPartitionReassignments.
pub struct AlterPartitionReassignments;
/// The handler of ListPartitionReassignments.
pub struct ListPartitionReassignments;

impl Handler for AlterPartitionReassignments {
    type Request = AlterPartitionReassignmentsRequest;

    async fn handle(
        call: Call,
        request: AlterPartitionReassignmentsRequest,
    ) -> AlterPartitionReassignmentsResponse {
        let named = request.topics.iter().map(|topic| {
            let indexes = topic.partitions.iter().map(|it| it.partition_index);
            (topic.name.clone(), indexes.collect())
        });
        let named: Vec<(Str, Vec<i32>)> = named.collect();
        if request.timeout_ms <= 0 && !named.is_empty() {
            return refused(ErrorCode::RequestTimedOut, named);
        }
        let asked = ask_controller(&call.shard, move |controller| async move {
            controller.alter_reassignments(request).await
        });
        asked.await.unwrap_or_else(|error| {
            tracing::warn!(api = ?call.header.api, %error, "the controller could not do a request");
            refused(error.code(), named)
        })
    }
}

/// The same for the request and every partition of it, without words, as in Kafka.
fn refused(error: ErrorCode, named: Vec<(Str, Vec<i32>)>) -> AlterPartitionReassignmentsResponse {
    let error_code = error.code();
    let responses = named.into_iter().map(|(name, indexes)| {
        let partitions = indexes.into_iter().map(|partition_index| {
            AlterPartitionReassignmentsResponseReassignablePartitionResponse {
                partition_index,
                error_code,
                error_message: None,
            }
        });
        AlterPartitionReassignmentsResponseReassignableTopicResponse {
            partitions: partitions.collect(),
            name,
        }
    });
    AlterPartitionReassignmentsResponse {
        error_code,
        error_message: None,
        responses: responses.collect(),
        ..Default::default()
    }
}

impl Handler for ListPartitionReassignments {
    type Request = ListPartitionReassignmentsRequest;

    /// None is ever under way.
    async fn handle(
        _: Call,
        _: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        ListPartitionReassignmentsResponse {
            error_message: None,
            ..Default::default()
        }
    }
}
