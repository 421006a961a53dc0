//! The group APIs: each request is taken apart and checked in `coordinator::service`; here is the
//! way to the core that holds a group.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, SyncGroupRequest, SyncGroupResponse,
};
use protocol::{ErrorCode, Str, Uuid};
use shards::{CoreId, TaskClass};

use super::api::{Call, Handler};
use super::operations;
use crate::coordinator::runtime::Caller as GroupCaller;
use crate::coordinator::service::{self, Router, Topics};
use crate::coordinator::{Request, Response, partition_for, refuse};
use crate::metadata::{NO_LEADER, OFFSETS_TOPIC};
use crate::outgoing::AnswerRoom;
use crate::shard::{ClusterView, Park, Shard, Stage};

impl Router for Call {
    async fn ask(&self, group_id: &Str, caller: &GroupCaller, request: Request) -> Response {
        let Some((partition, owner)) = coordinator_of(&self.shard.view(), group_id) else {
            return refuse(&request, ErrorCode::NotCoordinator);
        };
        let caller = caller.clone();
        let asked = move |shard: &Rc<Shard>| shard.groups.request(partition, caller, request);
        self.shard
            .mesh()
            .call(owner, TaskClass::Network, asked)
            .await
    }

    async fn ask_all(&self, caller: &GroupCaller, request: Request) -> Vec<Response> {
        let asked = self.shard.cores().map(|core| {
            let (caller, request) = (caller.clone(), request.clone());
            let asked = move |shard: &Rc<Shard>| shard.groups.request_all(&caller, &request);
            self.shard.mesh().call(core, TaskClass::Network, asked)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

/// The partition of the offsets topic that holds a group, and the core that owns it.
pub(super) fn coordinator_of(view: &ClusterView, group_id: &str) -> Option<(i32, CoreId)> {
    let topic = view.image.topic_by_name(OFFSETS_TOPIC)?;
    let partitions = i32::try_from(topic.partitions.len()).ok()?;
    let partition = partition_for(group_id, partitions);
    // Without a leader, its disk has failed.
    let led = view.image.partition(topic.id, partition)?.leader != NO_LEADER;
    led.then_some((partition, view.owner(topic.id, partition)?))
}

/// The topics of one snapshot.
struct KnownTopics(Arc<ClusterView>);

impl Topics for KnownTopics {
    fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.0.image.topic_id(name)
    }

    fn topic_name(&self, id: Uuid) -> Option<Str> {
        self.0.image.topic(id).map(|topic| topic.name.clone())
    }

    fn has_partition(&self, name: &str, partition: i32) -> bool {
        let topic = self.0.image.topic_id(name);
        topic.is_some_and(|topic| self.0.image.partition(topic, partition).is_some())
    }
}

fn group_caller(call: &Call) -> GroupCaller {
    GroupCaller {
        api_version: call.version(),
        client_id: call
            .header
            .client_id
            .as_ref()
            .map(Str::detached)
            .unwrap_or_default(),
        client_host: Str::from(format!("/{}", call.caller.peer.ip().to_canonical())),
    }
}

/// A handler that only needs the way to groups.
macro_rules! group_handlers {
    ($($name:ident: $request:ty => $response:ty, $serve:path;)*) => {
        $(
            /// The handler.
            pub struct $name;

            impl Handler for $name {
                type Request = $request;

                async fn handle(call: Call, request: $request) -> $response {
                    $serve(&call, &group_caller(&call), request).await
                }
            }
        )*
    };
}

group_handlers! {
    JoinGroup: JoinGroupRequest => JoinGroupResponse, join_group;
    SyncGroup: SyncGroupRequest => SyncGroupResponse, sync_group;
    Heartbeat: HeartbeatRequest => HeartbeatResponse, service::heartbeat;
    LeaveGroup: LeaveGroupRequest => LeaveGroupResponse, service::leave_group;
    OffsetCommit: OffsetCommitRequest => OffsetCommitResponse, offset_commit;
    OffsetFetch: OffsetFetchRequest => OffsetFetchResponse, offset_fetch;
    OffsetDelete: OffsetDeleteRequest => OffsetDeleteResponse, offset_delete;
    ListGroups: ListGroupsRequest => ListGroupsResponse, service::list_groups;
    DescribeGroups: DescribeGroupsRequest => DescribeGroupsResponse, describe_groups;
    DeleteGroups: DeleteGroupsRequest => DeleteGroupsResponse, service::delete_groups;
}

/// First version in which no protocol is null; before, it is empty.
const NULL_PROTOCOL_SINCE: i16 = 7;

async fn join_group(
    call: &Call,
    caller: &GroupCaller,
    request: JoinGroupRequest,
) -> JoinGroupResponse {
    let mut response = parked(call, service::join_group(call, caller, request)).await;
    if response.error_code != 0 {
        response.protocol_name = (call.version() < NULL_PROTOCOL_SINCE).then(Str::default);
    }
    response
}

async fn sync_group(
    call: &Call,
    caller: &GroupCaller,
    request: SyncGroupRequest,
) -> SyncGroupResponse {
    parked(call, service::sync_group(call, caller, request)).await
}

/// Most of such a request is waiting for other members.
async fn parked<T>(call: &Call, waiting: impl Future<Output = T>) -> T {
    let _parked = call.shard.metrics.parks.enter(Park::Group);
    let begun = call.shard.core.now();
    let response = waiting.await;
    call.took(Stage::Park, begun);
    response
}

fn offset_commit<'a>(
    call: &'a Call,
    caller: &'a GroupCaller,
    request: OffsetCommitRequest,
) -> impl Future<Output = OffsetCommitResponse> + 'a {
    let topics = KnownTopics(call.shard.view());
    async move { service::commit::offset_commit(call, &topics, caller, request).await }
}

fn offset_fetch<'a>(
    call: &'a Call,
    caller: &'a GroupCaller,
    request: OffsetFetchRequest,
) -> impl Future<Output = OffsetFetchResponse> + 'a {
    let topics = KnownTopics(call.shard.view());
    async move { service::fetch::offset_fetch(call, &topics, caller, request, room(call)).await }
}

fn room(call: &Call) -> AnswerRoom {
    AnswerRoom::new(call.shard.limits.request_bytes)
}

fn offset_delete<'a>(
    call: &'a Call,
    caller: &'a GroupCaller,
    request: OffsetDeleteRequest,
) -> impl Future<Output = OffsetDeleteResponse> + 'a {
    let topics = KnownTopics(call.shard.view());
    async move { service::delete::offset_delete(call, &topics, caller, request).await }
}

async fn describe_groups(
    call: &Call,
    caller: &GroupCaller,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let with_operations = request.include_authorized_operations;
    let mut response = service::describe_groups(call, caller, request, room(call)).await;
    if with_operations {
        for group in response
            .groups
            .iter_mut()
            .filter(|group| group.error_code == 0)
        {
            group.authorized_operations = operations::GROUP;
        }
    }
    response
}
