//! Answers that refuse: requests that never reach a group, and answers whose records failed.

use protocol::{ErrorCode, Str};

use super::event::{Request, Response};
use super::wire::{
    CommittedPartition, CommittedTopic, DescribedGroup, HeartbeatResponse, JoinGroupResponse,
    LeaveGroupResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteResponse,
    OffsetFetchedGroup, SyncGroupResponse,
};

/// The answer to a request that this coordinator cannot serve: it is loading, or no coordinator.
///
/// A heartbeat is accepted while the group loads, so that no member rejoins because of it.
pub fn refuse(request: &Request, error: ErrorCode) -> Response {
    let error_code = error.code();
    match request {
        Request::JoinGroup(_) => Response::JoinGroup(JoinGroupResponse {
            error_code,
            ..Default::default()
        }),
        Request::SyncGroup(_) => Response::SyncGroup(SyncGroupResponse {
            error_code,
            ..Default::default()
        }),
        Request::Heartbeat(_) if error == ErrorCode::CoordinatorLoadInProgress => {
            Response::Heartbeat(HeartbeatResponse::default())
        }
        Request::Heartbeat(_) => Response::Heartbeat(HeartbeatResponse {
            error_code,
            ..Default::default()
        }),
        Request::LeaveGroup(_) => Response::LeaveGroup(LeaveGroupResponse {
            error_code,
            ..Default::default()
        }),
        Request::OffsetCommit(request) => Response::OffsetCommit(refuse_commit(request, error)),
        Request::OffsetFetch { group, .. } => {
            Response::OffsetFetch(refuse_fetch(group.group_id.clone(), error))
        }
        Request::OffsetDelete(_) => Response::OffsetDelete(OffsetDeleteResponse {
            error_code,
            ..Default::default()
        }),
        Request::ListGroups(_) => Response::ListGroups(Err(error)),
        Request::DescribeGroup(id) => Response::DescribeGroup(DescribedGroup {
            group_id: id.clone(),
            error_code,
            ..Default::default()
        }),
        Request::DeleteGroup(id) => Response::DeleteGroup(id.clone(), error),
    }
}

/// What becomes of a good answer when its records could not be written, or when the coordinator
/// goes away before they are.
pub(crate) fn refuse_prepared(response: Response, error: ErrorCode) -> Response {
    let error_code = error.code();
    match response {
        Response::JoinGroup(good) => Response::JoinGroup(JoinGroupResponse {
            member_id: good.member_id,
            error_code,
            ..Default::default()
        }),
        Response::SyncGroup(_) => Response::SyncGroup(SyncGroupResponse {
            error_code,
            ..Default::default()
        }),
        Response::Heartbeat(_) => Response::Heartbeat(HeartbeatResponse {
            error_code,
            ..Default::default()
        }),
        Response::LeaveGroup(_) => Response::LeaveGroup(LeaveGroupResponse {
            error_code,
            ..Default::default()
        }),
        Response::OffsetCommit(mut good) => {
            for topic in &mut good.topics {
                for partition in &mut topic.partitions {
                    partition.error_code = error_code;
                }
            }
            Response::OffsetCommit(good)
        }
        Response::OffsetFetch(good) => Response::OffsetFetch(refuse_fetch(good.group_id, error)),
        Response::OffsetDelete(_) => Response::OffsetDelete(OffsetDeleteResponse {
            error_code,
            ..Default::default()
        }),
        Response::ListGroups(_) => Response::ListGroups(Err(error)),
        Response::DescribeGroup(good) => Response::DescribeGroup(DescribedGroup {
            group_id: good.group_id,
            error_code,
            ..Default::default()
        }),
        Response::DeleteGroup(id, _) => Response::DeleteGroup(id, error),
    }
}

/// The same error for every partition of the request.
pub(crate) fn refuse_commit(
    request: &OffsetCommitRequest,
    error: ErrorCode,
) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| CommittedTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| CommittedPartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
            })
            .collect(),
    });
    OffsetCommitResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn refuse_fetch(group_id: Str, error: ErrorCode) -> OffsetFetchedGroup {
    OffsetFetchedGroup {
        group_id,
        error_code: error.code(),
        ..Default::default()
    }
}
