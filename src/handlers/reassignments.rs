//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455), as far as one node can move replicas: not.

use protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

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
        let allow_replication_factor_change = request.allow_replication_factor_change;
        let asked = ask_controller(&call.shard, move |controller| async move {
            controller.alter_reassignments(request).await
        });
        asked.await.unwrap_or_else(|error| {
            let code = error.code();
            AlterPartitionReassignmentsResponse {
                allow_replication_factor_change,
                error_code: code.code(),
                error_message: Some(code.message().into()),
                ..Default::default()
            }
        })
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
