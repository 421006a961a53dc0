//! What goes into the coordinator of one `__consumer_offsets` partition, and what comes out of it.

use std::time::Duration;

use bytes::Bytes;
use protocol::{ErrorCode, Str, Uuid};

use super::record::Record;
use super::wire::{
    DescribedGroup, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest, ListedGroup, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchGroup,
    OffsetFetchedGroup, SyncGroupRequest, SyncGroupResponse,
};

/// Names one parked request. Given out by the shell, which keeps the way back to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestToken(pub u64);

/// Names one append. Sequences grow by one with each [`Effect::Append`] of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// Who asks, and how.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub token: RequestToken,
    /// Version of the API, since many rules depend on it.
    pub api_version: i16,
    pub client_id: Str,
    /// Address as Java prints it in group descriptions: a slash, then the address (`/127.0.0.1`).
    pub client_host: Str,
    /// Randomness for the id of a new member; fresh for each request.
    pub random: [u8; 16],
}

/// One request to one group (or, for `ListGroups`, to all groups of the partition).
#[derive(Clone, Debug)]
pub enum Request {
    JoinGroup(JoinGroupRequest),
    SyncGroup(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    /// Topics must exist, with name and id filled in: see [`super::service::commit`].
    OffsetCommit(OffsetCommitRequest),
    /// One group of the request; topic names filled in: see [`super::service::fetch`].
    OffsetFetch {
        group: OffsetFetchGroup,
        require_stable: bool,
    },
    OffsetDelete(OffsetDeleteRequest),
    ListGroups(ListGroupsRequest),
    DescribeGroup(Str),
    DeleteGroup(Str),
}

/// The answer to the [`Request`] of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchedGroup),
    OffsetDelete(OffsetDeleteResponse),
    ListGroups(Result<Vec<ListedGroup>, ErrorCode>),
    DescribeGroup(DescribedGroup),
    /// The group and `ErrorCode::None` or the reason why it stays.
    DeleteGroup(Str, ErrorCode),
}

/// Something that happened. The clocks come beside it, in [`super::Coordinator::handle`].
#[derive(Clone, Debug)]
pub enum Event {
    Request(RequestContext, Box<Request>),
    /// A timer that [`Effect::SetTimer`] asked for has run out.
    Timer(TimerKey),
    /// The records of this append are written (for acks=all: by the whole in-sync set).
    /// Appends end in the order of their sequences.
    Written {
        sequence: Sequence,
        /// Offset of the append's first record; the others follow without a gap.
        base_offset: i64,
    },
    /// The records of this append will never be in the log. `error` is what the log said.
    Failed {
        sequence: Sequence,
        error: ErrorCode,
    },
    /// These topics are gone from the metadata; their offsets go with them.
    TopicsDeleted(Vec<(Uuid, Str)>),
}

/// Something to do. Effects are carried out in the order given.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append these records as one atomic batch, then report `Written` or `Failed`.
    Append {
        sequence: Sequence,
        records: Vec<Record>,
    },
    Reply {
        token: RequestToken,
        response: Box<Response>,
    },
    /// Replaces a running timer of the same key.
    SetTimer {
        key: TimerKey,
        after: Duration,
    },
    CancelTimer(TimerKey),
}

/// What a timer is for. One timer a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKey {
    /// The member's session, or, for a pending member, the time to come back with its id.
    Heartbeat { group: Str, member: Str },
    /// The end of the join phase.
    Join { group: Str },
    /// The time until every member must have sent SyncGroup.
    Sync { group: Str },
    /// The next look for expired offsets and empty groups.
    Expiry,
}

/// A copy that does not keep the frame (or the log chunk) alive which it was cut from.
pub(super) fn detached(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
