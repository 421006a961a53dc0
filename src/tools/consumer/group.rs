//! Membership in a consumer group with the classic protocol: join, sync, heartbeat, commit, leave.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupRequestJoinGroupRequestProtocol,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupRequestMemberIdentity, MetadataResponse,
    OffsetCommitRequest, OffsetCommitRequestOffsetCommitRequestPartition,
    OffsetCommitRequestOffsetCommitRequestTopic, SyncGroupRequest,
    SyncGroupRequestSyncGroupRequestAssignment,
};
use protocol::{ErrorCode, Request, Str};

use super::assignor::{self, Member};
use super::settings::{ConsumerSettings, millis};
use crate::tools::Failure;
use crate::tools::client::{Client, ClientError, Connection, Node, Partition, Ticket};

const PROTOCOL_TYPE: &str = "consumer";
const PROTOCOL: &str = "range";
/// The last version of OffsetCommit that names topics.
const COMMIT_MAX: i16 = 9;
/// From here on LeaveGroup has a list of members.
const LEAVE_LIST_FROM: i16 = 3;

/// An offset to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
}

enum Phase {
    Unjoined,
    Joining(Ticket<JoinGroupRequest>),
    Syncing(Ticket<SyncGroupRequest>),
    Stable,
}

/// What changed for the consumer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// The group is balanced anew: nothing is ours until `Assigned`.
    Revoked,
    Assigned(Vec<Partition>),
}

/// This member.
pub(super) struct Membership {
    group: Str,
    settings: ConsumerSettings,
    connection: Option<Connection>,
    phase: Phase,
    member_id: Str,
    generation: i32,
    next_heartbeat: Instant,
    /// The last time that the coordinator knew us.
    heard: Instant,
    /// No try before: the last one failed.
    not_before: Instant,
}

impl Membership {
    pub(super) fn new(group: Str, settings: ConsumerSettings) -> Membership {
        let now = Instant::now();
        Membership {
            group,
            settings,
            connection: None,
            phase: Phase::Unjoined,
            member_id: Str::default(),
            generation: -1,
            next_heartbeat: now,
            heard: now,
            not_before: now,
        }
    }

    pub(super) fn is_stable(&self) -> bool {
        matches!(self.phase, Phase::Stable)
    }

    /// The connection on which an answer is waited for.
    pub(super) fn awaited(&self) -> Option<BorrowedFd<'_>> {
        match self.phase {
            Phase::Joining(_) | Phase::Syncing(_) => self.connection.as_ref().map(AsFd::as_fd),
            _ => None,
        }
    }

    /// When `step` has something to do, answers aside.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self.phase {
            Phase::Unjoined => Some(self.not_before),
            Phase::Stable => Some(self.next_heartbeat.max(self.not_before)),
            _ => None,
        }
    }

    /// Does what is due. `readable`: the answer that was waited for has come.
    pub(super) fn step(
        &mut self,
        client: &mut Client,
        topics: &[Str],
        readable: bool,
    ) -> Result<Change, Failure> {
        let now = Instant::now();
        if now < self.not_before {
            return Ok(Change::Nothing);
        }
        let done = match std::mem::replace(&mut self.phase, Phase::Unjoined) {
            Phase::Unjoined => self.join(client, topics),
            Phase::Joining(ticket) if readable => self.joined(client, ticket),
            Phase::Syncing(ticket) if readable => self.synced(ticket),
            Phase::Stable => {
                self.phase = Phase::Stable;
                self.beat(client, now)
            }
            waiting => {
                self.phase = waiting;
                return Ok(Change::Nothing);
            }
        };
        match done {
            Ok(change) => Ok(change),
            Err(error) => self.failed(error, now),
        }
    }

    /// What passes is tried again after a pause; the phase says from where.
    fn failed(&mut self, error: ClientError, now: Instant) -> Result<Change, Failure> {
        self.not_before = now + self.settings.retry_backoff;
        let lost = matches!(
            error.code(),
            Some(
                ErrorCode::NotCoordinator
                    | ErrorCode::CoordinatorNotAvailable
                    | ErrorCode::CoordinatorLoadInProgress
            )
        );
        match error.code() {
            Some(ErrorCode::MemberIdRequired | ErrorCode::RebalanceInProgress) => {
                self.not_before = now;
                Ok(Change::Revoked)
            }
            Some(ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration) => {
                if error.code() == Some(ErrorCode::UnknownMemberId) {
                    self.member_id = Str::default();
                }
                self.generation = -1;
                self.phase = Phase::Unjoined;
                Ok(Change::Revoked)
            }
            _ if lost
                || error.is_passing()
                || matches!(error, ClientError::NobodyAnswers { .. }) =>
            {
                self.connection = None;
                // Beyond the session the coordinator has given our partitions away.
                let silent = now.saturating_duration_since(self.heard);
                if self.is_stable() && silent < self.settings.session_timeout {
                    return Ok(Change::Nothing);
                }
                self.phase = Phase::Unjoined;
                Ok(Change::Revoked)
            }
            _ => Err(Failure::from(error)),
        }
    }

    fn connect(&mut self, client: &mut Client) -> Result<&mut Connection, ClientError> {
        if self.connection.is_none() {
            // A connection of its own: joining may take minutes, and fetches wait long too.
            let Node::Id(id) = client.group_coordinator(&self.group)? else {
                return Err(ClientError::NoController);
            };
            let node = client.cluster().nodes.get(&id);
            let address = node.ok_or(ClientError::UnknownNode(id))?.address.clone();
            self.connection = Some(Connection::open(&address, client.settings())?);
        }
        self.connection.as_mut().ok_or(ClientError::NoController)
    }

    fn join(&mut self, client: &mut Client, topics: &[Str]) -> Result<Change, ClientError> {
        let request = JoinGroupRequest {
            group_id: self.group.clone(),
            session_timeout_ms: millis(self.settings.session_timeout),
            rebalance_timeout_ms: millis(self.settings.rebalance_timeout),
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance.clone(),
            protocol_type: Str::from_static(PROTOCOL_TYPE),
            protocols: [JoinGroupRequestJoinGroupRequestProtocol {
                name: Str::from_static(PROTOCOL),
                metadata: assignor::subscription(topics),
            }]
            .into(),
            ..JoinGroupRequest::default()
        };
        let ticket = self.connect(client)?.start(&request)?;
        self.phase = Phase::Joining(ticket);
        Ok(Change::Nothing)
    }

    fn finish<R: Request>(&mut self, ticket: Ticket<R>) -> Result<R::Response, ClientError> {
        let connection = self.connection.as_mut().ok_or(ClientError::NoController)?;
        connection.finish(ticket)
    }

    fn joined(
        &mut self,
        client: &mut Client,
        ticket: Ticket<JoinGroupRequest>,
    ) -> Result<Change, ClientError> {
        let response = self.finish(ticket)?;
        if response.error_code == ErrorCode::MemberIdRequired.code() {
            self.member_id = response.member_id.clone();
        }
        ClientError::check(response.error_code, None)?;
        self.member_id = response.member_id.clone();
        self.generation = response.generation_id;
        let request = SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance.clone(),
            protocol_type: Some(Str::from_static(PROTOCOL_TYPE)),
            protocol_name: Some(Str::from_static(PROTOCOL)),
            assignments: assignments(client, &response)?.into(),
        };
        let connection = self.connection.as_mut().ok_or(ClientError::NoController)?;
        self.phase = Phase::Syncing(connection.start(&request)?);
        Ok(Change::Nothing)
    }

    fn synced(&mut self, ticket: Ticket<SyncGroupRequest>) -> Result<Change, ClientError> {
        let response = self.finish(ticket)?;
        ClientError::check(response.error_code, None)?;
        let partitions = assignor::partitions_of(response.assignment).map_err(|why| {
            ClientError::Settings(format!(
                "the leader of the group sent an assignment that cannot be read ({why})"
            ))
        })?;
        let now = Instant::now();
        self.heard = now;
        self.next_heartbeat = now + self.settings.heartbeat_interval;
        self.phase = Phase::Stable;
        Ok(Change::Assigned(partitions))
    }

    fn beat(&mut self, client: &mut Client, now: Instant) -> Result<Change, ClientError> {
        if now < self.next_heartbeat {
            return Ok(Change::Nothing);
        }
        let request = HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance.clone(),
        };
        let response = self.connect(client)?.send(&request)?;
        if response.error_code == ErrorCode::RebalanceInProgress.code() {
            // The coordinator still takes a commit of this generation: the caller does that first.
            self.phase = Phase::Unjoined;
        }
        ClientError::check(response.error_code, None)?;
        self.heard = now;
        self.next_heartbeat = now + self.settings.heartbeat_interval;
        Ok(Change::Nothing)
    }

    /// Joins anew at the next step, with other topics.
    pub(super) fn rejoin(&mut self) {
        if self.is_stable() {
            self.phase = Phase::Unjoined;
        }
    }

    /// Commits positions as this member. Errors are told by the caller.
    pub(super) fn commit(
        &mut self,
        client: &mut Client,
        positions: &BTreeMap<Partition, Position>,
    ) -> Result<(), ClientError> {
        if positions.is_empty() {
            return Ok(());
        }
        let mut topics: Vec<OffsetCommitRequestOffsetCommitRequestTopic> = Vec::new();
        for (partition, position) in positions {
            let entry = OffsetCommitRequestOffsetCommitRequestPartition {
                partition_index: partition.number,
                committed_offset: position.offset,
                committed_leader_epoch: position.leader_epoch,
                committed_metadata: Some(Str::default()),
            };
            match topics
                .last_mut()
                .filter(|last| last.name == partition.topic)
            {
                Some(topic) => topic.partitions.push(entry),
                None => topics.push(OffsetCommitRequestOffsetCommitRequestTopic {
                    name: partition.topic.clone(),
                    partitions: [entry].into(),
                    ..OffsetCommitRequestOffsetCommitRequestTopic::default()
                }),
            }
        }
        let request = OffsetCommitRequest {
            group_id: self.group.clone(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance.clone(),
            topics: topics.into(),
            ..OffsetCommitRequest::default()
        };
        let connection = self.connect(client)?;
        let version = connection.version_within::<OffsetCommitRequest>(2, COMMIT_MAX)?;
        let ticket = connection.start_as(&request, version)?;
        let response = connection.finish(ticket)?;
        for topic in response.topics {
            for partition in topic.partitions {
                ClientError::check(partition.error_code, None)?;
            }
        }
        Ok(())
    }

    /// Tells the coordinator, so that the others need not wait for the session to end. A static member stays.
    pub(super) fn leave(&mut self, client: &mut Client) {
        if self.member_id.is_empty() || self.settings.instance.is_some() {
            return;
        }
        let member_id = self.member_id.clone();
        let group_id = self.group.clone();
        // While an answer is awaited, the coordinator reads nothing more on that connection.
        if !self.is_stable() {
            self.connection = None;
        }
        let leave = |connection: &mut Connection| -> Result<(), ClientError> {
            let version = connection.version::<LeaveGroupRequest>()?;
            let mut request = LeaveGroupRequest {
                group_id,
                ..LeaveGroupRequest::default()
            };
            if version >= LEAVE_LIST_FROM {
                request.members = [LeaveGroupRequestMemberIdentity {
                    member_id,
                    reason: Some(Str::from_static("the consumer is being closed")),
                    ..LeaveGroupRequestMemberIdentity::default()
                }]
                .into();
            } else {
                request.member_id = member_id;
            }
            let ticket = connection.start_as(&request, version)?;
            connection.finish(ticket).map(drop)
        };
        // It leaves in any case: the session ends by itself.
        let _ = self.connect(client).and_then(leave);
        self.member_id = Str::default();
        self.phase = Phase::Unjoined;
    }
}

/// What the leader decides; nothing from the others.
fn assignments(
    client: &mut Client,
    response: &JoinGroupResponse,
) -> Result<Vec<SyncGroupRequestSyncGroupRequestAssignment>, ClientError> {
    if response.leader != response.member_id || response.skip_assignment {
        return Ok(Vec::new());
    }
    let members: Vec<Member> = response
        .members
        .iter()
        .map(|member| Member {
            id: member.member_id.clone(),
            instance: member.group_instance_id.clone(),
            topics: assignor::topics_of(&member.metadata),
        })
        .collect();
    let topics: BTreeSet<Str> = members
        .iter()
        .flat_map(|member| member.topics.iter().cloned())
        .collect();
    let topics: Vec<Str> = topics.into_iter().collect();
    let counts = partition_counts(&client.metadata(Some(&topics))?);
    let assigned = assignor::range(&members, &counts).into_iter();
    Ok(assigned
        .map(
            |(member_id, partitions)| SyncGroupRequestSyncGroupRequestAssignment {
                member_id,
                assignment: assignor::assignment(&partitions),
            },
        )
        .collect())
}

/// Of the topics that are there.
pub(super) fn partition_counts(metadata: &MetadataResponse) -> BTreeMap<Str, i32> {
    let there = metadata.topics.iter().filter(|topic| topic.error_code == 0);
    there
        .map(|topic| {
            let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
            (topic.name.clone().unwrap_or_default(), count)
        })
        .collect()
}
