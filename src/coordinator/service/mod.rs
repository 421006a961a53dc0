//! From requests of clients to requests to groups, and back: what handlers call.
//!
//! A request may concern several groups, which live in several partitions of
//! `__consumer_offsets`, and it names topics that may not exist. Here it is taken apart, checked
//! against the metadata, and the answers are put together. The way to a group's coordinator, on
//! whichever core, is a [`Router`].
//!
//! Kafka does this in `KafkaApis` and `GroupCoordinatorService`.

pub mod commit;
pub mod delete;
pub mod fetch;
mod groups;
#[cfg(test)]
mod tests;

use std::future::Future;

use protocol::{ErrorCode, Str, Uuid};

use super::event::{Request, Response};
use super::runtime::Caller;
use super::wire::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};

pub use groups::{delete_groups, describe_groups, list_groups};

/// The way to the coordinator of a group.
pub trait Router {
    /// Asks the coordinator of the partition that holds the group
    /// ([`partition_for`](super::partition_for)); where there is none, the answer is that of
    /// [`refuse`](super::refuse).
    fn ask(
        &self,
        group_id: &Str,
        caller: &Caller,
        request: Request,
    ) -> impl Future<Output = Response>;

    /// Asks every coordinator of this broker, on all cores.
    fn ask_all(&self, caller: &Caller, request: Request) -> impl Future<Output = Vec<Response>>;
}

/// The topics that exist.
pub trait Topics {
    fn topic_id(&self, name: &str) -> Option<Uuid>;
    fn topic_name(&self, id: Uuid) -> Option<Str>;
    fn has_partition(&self, name: &str, partition: i32) -> bool;
}

/// Asks one group, and takes the answer of the right kind out. The other kinds cannot come, since
/// a coordinator answers with the kind that it was asked for.
macro_rules! ask_one {
    ($name:ident, $kind:ident, $request:ty, $response:ty) => {
        pub async fn $name(router: &impl Router, caller: &Caller, request: $request) -> $response {
            let group_id = request.group_id.clone();
            match router.ask(&group_id, caller, Request::$kind(request)).await {
                Response::$kind(response) => response,
                _ => <$response>::default_with(ErrorCode::UnknownServerError),
            }
        }
    };
}

/// An answer that says nothing but an error.
trait DefaultWith {
    fn default_with(error: ErrorCode) -> Self;
}

macro_rules! default_with {
    ($($response:ty),*) => {
        $(impl DefaultWith for $response {
            fn default_with(error: ErrorCode) -> Self {
                Self { error_code: error.code(), ..Default::default() }
            }
        })*
    };
}

default_with!(
    JoinGroupResponse,
    SyncGroupResponse,
    HeartbeatResponse,
    LeaveGroupResponse
);
ask_one!(join_group, JoinGroup, JoinGroupRequest, JoinGroupResponse);
ask_one!(sync_group, SyncGroup, SyncGroupRequest, SyncGroupResponse);
ask_one!(heartbeat, Heartbeat, HeartbeatRequest, HeartbeatResponse);
ask_one!(
    leave_group,
    LeaveGroup,
    LeaveGroupRequest,
    LeaveGroupResponse
);
