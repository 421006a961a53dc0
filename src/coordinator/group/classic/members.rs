//! The data of a classic group, and the bookkeeping of its members.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::stored::{GroupMetadataValue, GroupMetadataValueMemberMetadata as GroupMember};
use protocol::{ErrorCode, Str};

use super::super::super::event::{RequestToken, Response};
use super::super::super::outbox::Outbox;
use super::super::super::state::DurableGroup;
use super::super::super::wire::{JoinGroupResponse, JoinProtocol, SyncGroupResponse};
use super::super::subscription::subscribed_topics;

/// Where a group stands. Kafka's state `Dead` is the absence of the group here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No members; offsets may remain.
    Empty,
    /// Members are to send JoinGroup.
    PreparingRebalance,
    /// All have joined; the leader is to send the assignment.
    CompletingRebalance,
    /// Every member has, or can get, its assignment.
    Stable,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
        }
    }
}

/// A parked request, and the version whose rules its answer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) token: RequestToken,
    pub(crate) version: i16,
}

/// A member of a classic group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: Str,
    pub(crate) instance_id: Option<Str>,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    /// In the member's order of preference.
    pub(crate) protocols: Vec<JoinProtocol>,
    pub(crate) assignment: Bytes,
    /// The parked JoinGroup. Set through [`ClassicGroup`], which counts them.
    awaiting_join: Option<Waiter>,
    pub(crate) awaiting_sync: Option<Waiter>,
    /// Has not been in a generation yet, so its client cannot send heartbeats.
    pub(crate) is_new: bool,
}

impl Member {
    pub(crate) fn is_awaiting_join(&self) -> bool {
        self.awaiting_join.is_some()
    }

    /// A member that waits for an answer of ours needs no heartbeat, unless it is new.
    pub(crate) fn has_satisfied_heartbeat(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    pub(crate) fn metadata(&self, protocol: &Str) -> Option<&Bytes> {
        self.protocols
            .iter()
            .find(|own| own.name == *protocol)
            .map(|own| &own.metadata)
    }
}

/// The initial delay of a new group, and what is left to extend it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialDelay {
    pub(crate) delay_ms: i32,
    pub(crate) remaining_ms: i32,
}

/// A classic group as it lives in memory.
#[derive(Clone, Debug)]
pub(crate) struct ClassicGroup {
    pub(crate) id: Str,
    pub(crate) state: State,
    pub(crate) previous_state: State,
    /// Unix milliseconds of the last change of state.
    pub(crate) state_timestamp: Option<i64>,
    pub(crate) protocol_type: Option<Str>,
    pub(crate) protocol_name: Option<Str>,
    pub(crate) generation: i32,
    pub(crate) leader: Option<Str>,
    members: BTreeMap<Str, Member>,
    /// Instance id to member id.
    static_members: BTreeMap<Str, Str>,
    /// Ids given out with MEMBER_ID_REQUIRED that have not come back yet.
    pub(crate) pending_join: BTreeSet<Str>,
    /// Members of this generation that have not sent SyncGroup yet.
    pub(crate) pending_sync: BTreeSet<Str>,
    awaiting_join: usize,
    /// How many members list each protocol.
    supported: BTreeMap<Str, usize>,
    /// None if unknown: not a group of consumers, or metadata that does not parse.
    pub(crate) subscribed_topics: Option<BTreeSet<Str>>,
    /// A member came while the initial delay ran, so it may be extended.
    pub(crate) new_member_added: bool,
    /// Set while the join timer runs for the initial delay.
    pub(crate) initial_delay: Option<InitialDelay>,
}

impl ClassicGroup {
    pub(crate) fn new(id: Str, now_ms: i64) -> Self {
        ClassicGroup {
            id,
            state: State::Empty,
            previous_state: State::Empty,
            state_timestamp: Some(now_ms),
            protocol_type: None,
            protocol_name: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            awaiting_join: 0,
            supported: BTreeMap::new(),
            subscribed_topics: None,
            new_member_added: false,
            initial_delay: None,
        }
    }

    /// The group that a loaded record describes.
    pub(crate) fn from_durable(id: &Str, durable: &DurableGroup) -> Self {
        let mut group = ClassicGroup::new(id.clone(), 0);
        group.generation = durable.generation;
        group.protocol_type = durable.protocol_type.clone();
        group.protocol_name = durable.protocol.clone();
        group.state_timestamp = durable.state_timestamp;
        for member in &durable.members {
            let protocols = durable.protocol.iter().map(|name| JoinProtocol {
                name: name.clone(),
                metadata: member.subscription.clone(),
            });
            group.insert(Member {
                id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                session_timeout_ms: member.session_timeout_ms,
                protocols: protocols.collect(),
                assignment: member.assignment.clone(),
                awaiting_join: None,
                awaiting_sync: None,
                is_new: false,
            });
        }
        if durable.leader.is_some() {
            group.leader = durable.leader.clone();
        }
        if !group.members.is_empty() {
            group.state = State::Stable;
        }
        group.subscribed_topics = group.compute_subscribed_topics();
        group
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    pub(crate) fn member_ids(&self) -> Vec<Str> {
        self.members.keys().cloned().collect()
    }

    pub(crate) fn member(&self, id: &Str) -> Option<&Member> {
        self.members.get(id)
    }

    pub(crate) fn member_mut(&mut self, id: &Str) -> Option<&mut Member> {
        self.members.get_mut(id)
    }

    pub(crate) fn has_member(&self, id: &Str) -> bool {
        self.members.contains_key(id)
    }

    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn awaiting_join(&self) -> usize {
        self.awaiting_join
    }

    pub(crate) fn is_leader(&self, id: &Str) -> bool {
        self.leader.as_ref() == Some(id)
    }

    pub(crate) fn static_member(&self, instance_id: &Str) -> Option<&Str> {
        self.static_members.get(instance_id)
    }

    /// Nobody is in the group or on the way into it.
    pub(crate) fn is_unused(&self) -> bool {
        self.members.is_empty() && self.pending_join.is_empty() && self.state == State::Empty
    }

    pub(crate) fn has_all_members_joined(&self) -> bool {
        self.awaiting_join == self.members.len() && self.pending_join.is_empty()
    }

    pub(crate) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
    }

    pub(crate) fn rebalance_timeout_ms(&self) -> i32 {
        self.members
            .values()
            .map(|member| member.rebalance_timeout_ms)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn transition(&mut self, to: State, now_ms: i64) {
        self.previous_state = self.state;
        self.state = to;
        self.state_timestamp = Some(now_ms);
    }

    /// Refuses a request that does not come from a current member (KIP-345 for static ones).
    pub(crate) fn validate_member(
        &self,
        member_id: &Str,
        instance_id: Option<&Str>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if current != member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.has_member(member_id) {
            Ok(())
        } else {
            Err(ErrorCode::UnknownMemberId)
        }
    }

    /// Can somebody with these protocols join? At least one must be common to all members.
    pub(crate) fn supports(&self, protocol_type: &Str, protocols: &[JoinProtocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(protocol_type)
            && protocols.iter().any(|protocol| {
                self.supported.get(&protocol.name).copied().unwrap_or(0) == self.members.len()
            })
    }

    /// Adds a member whose JoinGroup is parked. It must be new to the group, and supported.
    pub(crate) fn add(&mut self, member: Member, protocol_type: &Str, waiter: Waiter) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        let id = member.id.clone();
        self.insert(member);
        self.park_join(&id, waiter);
    }

    fn insert(&mut self, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members
                .insert(instance_id.clone(), member.id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        self.pending_join.remove(&member.id);
        self.count_protocols(&member, 1);
        self.members.insert(member.id.clone(), member);
    }

    fn count_protocols(&mut self, member: &Member, change: isize) {
        for protocol in &member.protocols {
            let count = self.supported.entry(protocol.name.clone()).or_insert(0);
            *count = count.saturating_add_signed(change);
        }
        self.supported.retain(|_, count| *count > 0);
    }

    /// Takes a member, or a pending one, out of the group; the next in line leads if it led.
    /// Its parked requests must have been answered.
    pub(crate) fn remove(&mut self, id: &Str) -> Option<Member> {
        let removed = self.members.remove(id);
        if let Some(member) = &removed {
            self.count_protocols(member, -1);
            self.awaiting_join -= usize::from(member.is_awaiting_join());
            if let Some(instance_id) = &member.instance_id {
                self.static_members.remove(instance_id);
            }
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending_join.remove(id);
        self.pending_sync.remove(id);
        removed
    }

    /// Gives a member what its new JoinGroup says.
    pub(crate) fn update(
        &mut self,
        id: &Str,
        protocols: Vec<JoinProtocol>,
        rebalance_timeout_ms: i32,
        session_timeout_ms: i32,
    ) {
        let Some(mut member) = self.members.remove(id) else {
            return;
        };
        self.count_protocols(&member, -1);
        member.protocols = protocols;
        member.rebalance_timeout_ms = rebalance_timeout_ms;
        member.session_timeout_ms = session_timeout_ms;
        self.count_protocols(&member, 1);
        self.members.insert(id.clone(), member);
    }

    /// Puts `new_id` in the place of `old_id`, with everything but parked requests.
    /// None if there is no such member.
    pub(crate) fn rename(&mut self, old_id: &Str, new_id: &Str) -> Option<()> {
        let mut member = self.members.remove(old_id)?;
        self.awaiting_join -= usize::from(member.is_awaiting_join());
        member.id = new_id.clone();
        member.awaiting_join = None;
        member.awaiting_sync = None;
        member.is_new = false;
        if let Some(instance_id) = &member.instance_id {
            self.static_members
                .insert(instance_id.clone(), new_id.clone());
        }
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
        if self.pending_sync.remove(old_id) {
            self.pending_sync.insert(new_id.clone());
        }
        self.members.insert(new_id.clone(), member);
        Some(())
    }

    /// Parks a JoinGroup; returns the one it displaces.
    pub(crate) fn park_join(&mut self, id: &Str, waiter: Waiter) -> Option<Waiter> {
        let member = self.members.get_mut(id)?;
        let displaced = member.awaiting_join.replace(waiter);
        self.awaiting_join += usize::from(displaced.is_none());
        displaced
    }

    /// Takes the parked JoinGroup of a member, to answer it.
    pub(crate) fn take_join(&mut self, id: &Str) -> Option<Waiter> {
        let waiter = self.members.get_mut(id)?.awaiting_join.take()?;
        self.awaiting_join -= 1;
        Some(waiter)
    }

    /// The current leader if it has joined, else the first member that has. False if none has.
    pub(crate) fn elect_joined_leader(&mut self) -> bool {
        let Some(leader) = &self.leader else {
            return false;
        };
        if self.member(leader).is_some_and(Member::is_awaiting_join) {
            return true;
        }
        let joined = self
            .members
            .values()
            .find(|member| member.is_awaiting_join());
        let elected = joined.map(|member| member.id.clone());
        let found = elected.is_some();
        if found {
            self.leader = elected;
        }
        found
    }

    /// The protocol with the most votes among those that all members list. Each member votes for
    /// the first of its own; of equal ones the first by name wins, so that the choice is stable.
    pub(crate) fn select_protocol(&self) -> Option<Str> {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let vote = member
                .protocols
                .iter()
                .find(|own| self.supported.get(&own.name) == Some(&self.members.len()))?;
            *votes.entry(&vote.name).or_insert(0) += 1;
        }
        let most = votes.values().copied().max()?;
        votes
            .into_iter()
            .find(|(_, count)| *count == most)
            .map(|(name, _)| name.clone())
    }

    /// The next generation: with a protocol if there are members, else of an empty group.
    pub(crate) fn start_generation(&mut self, now_ms: i64) {
        self.generation = self.generation.wrapping_add(1);
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.compute_subscribed_topics();
        self.pending_sync.clear();
        let next = if self.members.is_empty() {
            State::Empty
        } else {
            State::CompletingRebalance
        };
        self.transition(next, now_ms);
    }

    fn compute_subscribed_topics(&self) -> Option<BTreeSet<Str>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_ref()?;
        let mut all = BTreeSet::new();
        for member in self.members.values() {
            all.append(&mut subscribed_topics(member.metadata(protocol)?)?);
        }
        Some(all)
    }

    /// Unknown subscriptions of consumers count as "all topics".
    pub(crate) fn is_subscribed_to(&self, topic: &Str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    /// The group's record. Members without an assignment here get an empty one.
    pub(crate) fn to_record(&self, assignment: &BTreeMap<Str, Bytes>) -> GroupMetadataValue {
        let subscription = |member: &Member| {
            let protocol = self.protocol_name.as_ref()?;
            member.metadata(protocol).cloned()
        };
        let members = self.members.values().map(|member| GroupMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: subscription(member).unwrap_or_default(),
            assignment: assignment.get(&member.id).cloned().unwrap_or_default(),
        });
        GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.state_timestamp.unwrap_or(-1),
            members: members.collect(),
        }
    }

    /// Ends every parked request of the group with this error.
    pub(crate) fn refuse_all(&mut self, error: ErrorCode, out: &mut Outbox) {
        for id in self.member_ids() {
            if let Some(waiter) = self.take_join(&id) {
                out.join_refused(waiter, id.clone(), error);
            }
            let sync = self
                .members
                .get_mut(&id)
                .and_then(|member| member.awaiting_sync.take());
            if let Some(waiter) = sync {
                out.sync_refused(waiter, error);
            }
        }
    }
}

/// What a new member brings.
pub(crate) struct NewMember {
    pub(crate) id: Str,
    pub(crate) instance_id: Option<Str>,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    pub(crate) protocols: Vec<JoinProtocol>,
}

impl From<NewMember> for Member {
    fn from(new: NewMember) -> Self {
        Member {
            id: new.id,
            instance_id: new.instance_id,
            client_id: new.client_id,
            client_host: new.client_host,
            rebalance_timeout_ms: new.rebalance_timeout_ms,
            session_timeout_ms: new.session_timeout_ms,
            protocols: new.protocols,
            assignment: Bytes::new(),
            awaiting_join: None,
            awaiting_sync: None,
            is_new: true,
        }
    }
}

impl Outbox {
    pub(crate) fn join(&mut self, waiter: Waiter, mut response: JoinGroupResponse) {
        if waiter.version < 7 && response.protocol_name.is_none() {
            response.protocol_name = Some(Str::default());
        }
        self.reply(waiter.token, Response::JoinGroup(response));
    }

    pub(crate) fn join_refused(&mut self, waiter: Waiter, member_id: Str, error: ErrorCode) {
        let response = JoinGroupResponse {
            member_id,
            error_code: error.code(),
            ..Default::default()
        };
        self.join(waiter, response);
    }

    pub(crate) fn sync(&mut self, waiter: Waiter, response: SyncGroupResponse) {
        self.reply(waiter.token, Response::SyncGroup(response));
    }

    pub(crate) fn sync_refused(&mut self, waiter: Waiter, error: ErrorCode) {
        let response = SyncGroupResponse {
            error_code: error.code(),
            ..Default::default()
        };
        self.sync(waiter, response);
    }
}
