//! From a change of membership to the next generation.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::{ErrorCode, Str};

use super::super::super::event::TimerKey;
use super::super::super::machine::Turn;
use super::super::super::outbox::{Continuation, Outbox};
use super::super::super::record::Record;
use super::super::super::settings::Settings;
use super::super::super::wire::{JoinGroupResponse, JoinedMember, SyncGroupResponse};
use super::members::{ClassicGroup, InitialDelay, State};

/// The clock and settings that the rules of a group depend on.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) now_ms: i64,
}

impl ClassicGroup {
    fn join_timer(&self) -> TimerKey {
        TimerKey::Join {
            group: self.id.clone(),
        }
    }

    fn sync_timer(&self) -> TimerKey {
        TimerKey::Sync {
            group: self.id.clone(),
        }
    }

    pub(crate) fn heartbeat_timer(&self, member: &Str) -> TimerKey {
        TimerKey::Heartbeat {
            group: self.id.clone(),
            member: member.clone(),
        }
    }

    /// Starts the member's session anew.
    pub(crate) fn keep_alive(&self, member_id: &Str, out: &mut Outbox) {
        if let Some(member) = self.member(member_id) {
            out.set_timer(self.heartbeat_timer(member_id), member.session_timeout_ms);
        }
    }

    /// After a change of membership: a rebalance if none runs, else perhaps the end of its join
    /// phase.
    pub(crate) fn rebalance_or_complete(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        if self.state == State::PreparingRebalance {
            self.maybe_complete_join(rules, out);
        } else {
            self.prepare_rebalance(rules, out);
        }
    }

    pub(crate) fn prepare_rebalance(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        if self.state == State::CompletingRebalance {
            self.reset_assignments(ErrorCode::RebalanceInProgress, out);
        }
        self.pending_sync.clear();
        out.cancel_timer(self.sync_timer());
        if self.state == State::Empty {
            // A new group gives its members time to come, so that it rebalances once and not
            // with each of them.
            let delay_ms = rules.settings.initial_rebalance_delay_ms;
            let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
            self.initial_delay = Some(InitialDelay {
                delay_ms,
                remaining_ms,
            });
            out.set_timer(self.join_timer(), delay_ms);
            self.transition(State::PreparingRebalance, rules.now_ms);
            return;
        }
        self.transition(State::PreparingRebalance, rules.now_ms);
        if self.has_all_members_joined() {
            self.complete_join(rules, out);
        } else {
            out.set_timer(self.join_timer(), self.rebalance_timeout_ms());
        }
    }

    /// Ends the join phase if all have joined. The initial delay of a new group runs to its end.
    pub(crate) fn maybe_complete_join(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        if self.state == State::PreparingRebalance
            && self.previous_state != State::Empty
            && self.has_all_members_joined()
        {
            self.complete_join(rules, out);
        }
    }

    /// The join timer ran out.
    pub(crate) fn join_timer_expired(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        if self.state != State::PreparingRebalance {
            return;
        }
        let Some(InitialDelay {
            delay_ms,
            remaining_ms,
        }) = self.initial_delay.take()
        else {
            return self.complete_join(rules, out);
        };
        if !self.new_member_added || remaining_ms == 0 {
            return self.complete_join(rules, out);
        }
        // Somebody came meanwhile: wait for more, at most for the rebalance timeout in all.
        self.new_member_added = false;
        let next = InitialDelay {
            delay_ms: rules.settings.initial_rebalance_delay_ms.min(remaining_ms),
            remaining_ms: remaining_ms.saturating_sub(delay_ms).max(0),
        };
        self.initial_delay = Some(next);
        out.set_timer(self.join_timer(), next.delay_ms);
    }

    /// Ends the join phase: members that did not come are gone, the others get their generation.
    pub(crate) fn complete_join(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        out.cancel_timer(self.join_timer());
        self.initial_delay = None;
        self.remove_absent_dynamic_members(out);
        if !self.elect_joined_leader() && self.size() > 0 {
            // Only static members are left and none of them came. Their sessions decide.
            out.set_timer(self.join_timer(), self.rebalance_timeout_ms());
            return;
        }
        self.new_member_added = false;
        self.start_generation(rules.now_ms);
        if self.state == State::Empty {
            let record = Record::group(&self.id, &self.to_record(&BTreeMap::new()));
            out.append(vec![record], Continuation::Nothing);
            return;
        }
        for id in self.member_ids() {
            let response = self.join_response(&id, self.is_leader(&id));
            if let Some(waiter) = self.take_join(&id) {
                out.join(waiter, response);
            }
            self.keep_alive(&id, out);
            if let Some(member) = self.member_mut(&id) {
                member.is_new = false;
            }
            self.pending_sync.insert(id);
        }
        out.set_timer(self.sync_timer(), self.rebalance_timeout_ms());
    }

    fn remove_absent_dynamic_members(&mut self, out: &mut Outbox) {
        let absent: Vec<Str> = self
            .members()
            .filter(|member| !member.is_awaiting_join() && member.instance_id.is_none())
            .map(|member| member.id.clone())
            .collect();
        for id in absent {
            self.remove(&id);
            out.cancel_timer(self.heartbeat_timer(&id));
        }
    }

    /// The current generation, as JoinGroup tells it; the leader learns of all members.
    pub(crate) fn join_response(&self, member_id: &Str, with_members: bool) -> JoinGroupResponse {
        JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member_id: member_id.clone(),
            members: if with_members {
                self.joined_members().into()
            } else {
                [].into()
            },
            ..Default::default()
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let metadata = |member: &super::Member| {
            let protocol = self.protocol_name.as_ref()?;
            member.metadata(protocol).cloned()
        };
        self.members()
            .map(|member| JoinedMember {
                member_id: member.id.clone(),
                group_instance_id: member.instance_id.clone(),
                metadata: metadata(member).unwrap_or_default(),
            })
            .collect()
    }

    /// The leader's assignment failed, or came too late: everybody has to join again.
    pub(crate) fn reset_assignments(&mut self, error: ErrorCode, out: &mut Outbox) {
        for id in self.member_ids() {
            if let Some(member) = self.member_mut(&id) {
                member.assignment = Bytes::new();
            }
        }
        self.propagate(error, out);
    }

    /// The leader's assignment is in the log: everybody who waits gets its own.
    pub(crate) fn assign(
        &mut self,
        assignment: &BTreeMap<Str, Bytes>,
        rules: Rules<'_>,
        out: &mut Outbox,
    ) {
        for id in self.member_ids() {
            if let Some(member) = self.member_mut(&id) {
                member.assignment = assignment.get(&id).cloned().unwrap_or_default();
            }
        }
        self.propagate(ErrorCode::None, out);
        self.transition(State::Stable, rules.now_ms);
    }

    fn propagate(&mut self, error: ErrorCode, out: &mut Outbox) {
        for id in self.member_ids() {
            let response = self.sync_response(&id, error);
            let waiter = self
                .member_mut(&id)
                .and_then(|member| member.awaiting_sync.take());
            if let Some(waiter) = waiter {
                out.sync(waiter, response);
                // Its session did not count while it waited here.
                self.keep_alive(&id, out);
            }
        }
    }

    pub(crate) fn sync_response(&self, member_id: &Str, error: ErrorCode) -> SyncGroupResponse {
        let mut response = SyncGroupResponse {
            error_code: error.code(),
            ..Default::default()
        };
        if error == ErrorCode::None {
            response.protocol_type = self.protocol_type.clone();
            response.protocol_name = self.protocol_name.clone();
        }
        if let Some(member) = self.member(member_id) {
            response.assignment = member.assignment.clone();
        }
        response
    }

    /// Takes a member out that failed; the rest rebalance, or end the join phase without it.
    pub(crate) fn remove_failed(&mut self, id: &Str, rules: Rules<'_>, out: &mut Outbox) {
        self.expel(id, out);
        match self.state {
            State::Stable | State::CompletingRebalance => self.rebalance_or_complete(rules, out),
            State::PreparingRebalance if self.has_all_members_joined() => {
                self.complete_join(rules, out);
            }
            State::PreparingRebalance | State::Empty => {}
        }
    }

    /// Answers what the member has parked, and removes it. A client that still lives joins anew.
    pub(crate) fn expel(&mut self, id: &Str, out: &mut Outbox) {
        if let Some(waiter) = self.take_join(id) {
            out.join_refused(waiter, Str::default(), ErrorCode::UnknownMemberId);
        }
        let sync = self
            .member_mut(id)
            .and_then(|member| member.awaiting_sync.take());
        if let Some(waiter) = sync {
            out.sync_refused(waiter, ErrorCode::UnknownMemberId);
        }
        self.remove(id);
    }

    /// The sync timer ran out: members that did not send SyncGroup are gone.
    pub(crate) fn sync_timer_expired(&mut self, rules: Rules<'_>, out: &mut Outbox) {
        let syncing = matches!(self.state, State::CompletingRebalance | State::Stable);
        if !syncing || self.pending_sync.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.pending_sync) {
            self.expel(&id, out);
            out.cancel_timer(self.heartbeat_timer(&id));
        }
        self.prepare_rebalance(rules, out);
    }

    /// The session of a member ran out, or the time of a pending one to come back.
    pub(crate) fn session_expired(&mut self, id: &Str, rules: Rules<'_>, out: &mut Outbox) {
        if self.pending_join.remove(id) {
            if self.state == State::PreparingRebalance && self.has_all_members_joined() {
                self.complete_join(rules, out);
            }
        } else if self
            .member(id)
            .is_some_and(|member| !member.has_satisfied_heartbeat())
        {
            self.remove_failed(id, rules, out);
        }
    }
}

impl<'a> Turn<'a> {
    pub(crate) fn rules(&self) -> Rules<'a> {
        Rules {
            settings: self.settings,
            now_ms: self.now_ms,
        }
    }
}
