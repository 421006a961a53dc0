//! ListGroups, DescribeGroups and DeleteGroups: several groups, one answer.

use indexmap::IndexSet;
use protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsResponse,
};
use protocol::{Array, ErrorCode, Str};

use super::super::event::{Request, Response};
use super::super::runtime::Caller;
use super::super::wire::{DescribedGroup, ListGroupsRequest};
use super::Router;
use crate::outgoing::AnswerRoom;

/// All groups of this broker; clients ask every broker. A partition that moved away meanwhile is
/// another broker's; one that still loads would hide groups, so the client has to come again.
pub async fn list_groups(
    router: &impl Router,
    caller: &Caller,
    request: ListGroupsRequest,
) -> ListGroupsResponse {
    let mut response = ListGroupsResponse::default();
    for answer in router.ask_all(caller, Request::ListGroups(request)).await {
        match answer {
            Response::ListGroups(Ok(groups)) => response.groups.extend(groups),
            Response::ListGroups(Err(ErrorCode::NotCoordinator)) => {}
            Response::ListGroups(Err(error)) => {
                let error_code = error.code();
                return ListGroupsResponse {
                    error_code,
                    ..Default::default()
                };
            }
            _ => {}
        }
    }
    response
}

/// First version of DescribeGroups whose errors have a text.
const MESSAGES_SINCE: i16 = 6;

/// The caller adds `authorized_operations`.
pub async fn describe_groups(
    router: &impl Router,
    caller: &Caller,
    request: DescribeGroupsRequest,
    mut room: AnswerRoom,
) -> DescribeGroupsResponse {
    let told = caller.api_version >= MESSAGES_SINCE;
    let mut groups = Array::new();
    for id in request.groups {
        if !room.is_left() {
            groups.push(DescribedGroup {
                group_id: id,
                error_code: ErrorCode::InvalidRequest.code(),
                error_message: told.then(|| AnswerRoom::FULL.into()),
                ..Default::default()
            });
            continue;
        }
        let answer = router
            .ask(&id, caller, Request::DescribeGroup(id.clone()))
            .await;
        let described = match answer {
            Response::DescribeGroup(described) => described,
            _ => DescribedGroup {
                group_id: id,
                error_code: ErrorCode::UnknownServerError.code(),
                ..Default::default()
            },
        };
        room.take(size_of_group(&described));
        groups.push(described);
    }
    DescribeGroupsResponse {
        groups,
        ..Default::default()
    }
}

/// Bytes that a group takes on the wire, roughly.
fn size_of_group(group: &DescribedGroup) -> usize {
    let members = group.members.iter().map(|member| {
        let data = member.member_metadata.len() + member.member_assignment.len();
        size_of_val(member) + member.member_id.len() + member.client_id.len() + data
    });
    size_of_val(group) + members.sum::<usize>()
}

pub async fn delete_groups(
    router: &impl Router,
    caller: &Caller,
    request: DeleteGroupsRequest,
) -> DeleteGroupsResponse {
    // A group that is named twice is deleted, and answered, once.
    let names: IndexSet<Str> = request.groups_names.into_iter().collect();
    let mut results = Array::new();
    for id in names {
        let answer = router
            .ask(&id, caller, Request::DeleteGroup(id.clone()))
            .await;
        let error = match answer {
            Response::DeleteGroup(_, error) => error,
            _ => ErrorCode::UnknownServerError,
        };
        results.push(DeleteGroupsResponseDeletableGroupResult {
            group_id: id,
            error_code: error.code(),
            ..Default::default()
        });
    }
    DeleteGroupsResponse {
        results,
        ..Default::default()
    }
}
