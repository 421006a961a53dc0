//! A static member that comes back without its member id (KIP-345, KIP-814).

use protocol::{ErrorCode, Str};

use super::super::super::machine::Turn;
use super::super::super::outbox::{
    Continuation, Outbox, Rollback, StaticMemberReplaced, append_error,
};
use super::super::super::record::Record;
use super::super::super::wire::{JoinGroupResponse, SyncGroupResponse};
use super::join::Joining;
use super::members::{ClassicGroup, State};
use super::rebalance::Rules;

/// Who comes in whose place.
pub(crate) struct Replacement<'a> {
    pub(crate) old_id: Str,
    pub(crate) new_id: Str,
    pub(crate) joining: &'a Joining,
}

impl ClassicGroup {
    /// Gives the instance a new member id. A stable group that would choose the same protocol
    /// goes on without a rebalance.
    pub(crate) fn replace_static_member(
        &mut self,
        replacement: Replacement<'_>,
        rules: Rules<'_>,
        out: &mut Outbox,
    ) {
        let Replacement {
            old_id,
            new_id,
            joining,
        } = replacement;
        let leader = self.leader.clone();
        self.fence(&old_id, out);
        let Some(old) = self.member(&old_id).cloned() else {
            return;
        };
        out.cancel_timer(self.heartbeat_timer(&old_id));
        self.rename(&old_id, &new_id);
        self.keep_alive(&new_id, out);
        self.update_and_park(&new_id, joining, out);
        match self.state {
            State::Stable if self.protocol_name == self.select_protocol() => {
                let assignment = self
                    .members()
                    .map(|member| (member.id.clone(), member.assignment.clone()))
                    .collect();
                let record = Record::group(&self.id, &self.to_record(&assignment));
                let replaced = StaticMemberReplaced {
                    group: self.id.clone(),
                    old,
                    new_id,
                    waiter: joining.waiter,
                    leader,
                };
                let then = Continuation::StaticMemberReplaced(Box::new(replaced));
                out.append_or_roll_back(vec![record], then, Rollback::default());
            }
            State::Stable => self.rebalance_or_complete(rules, out),
            // The leader may be assigning to the old id just now.
            State::CompletingRebalance => self.prepare_rebalance(rules, out),
            State::PreparingRebalance | State::Empty => self.maybe_complete_join(rules, out),
        }
    }

    /// Two clients use the same instance id: the one that came first must not go on.
    fn fence(&mut self, id: &Str, out: &mut Outbox) {
        if let Some(waiter) = self.take_join(id) {
            let response = JoinGroupResponse {
                member_id: id.clone(),
                protocol_type: None,
                protocol_name: None,
                error_code: ErrorCode::FencedInstanceId.code(),
                ..Default::default()
            };
            out.join(waiter, response);
        }
        let sync = self
            .member_mut(id)
            .and_then(|member| member.awaiting_sync.take());
        if let Some(waiter) = sync {
            let error_code = ErrorCode::FencedInstanceId.code();
            out.sync(
                waiter,
                SyncGroupResponse {
                    error_code,
                    ..Default::default()
                },
            );
        }
    }
}

impl Turn<'_> {
    /// The record with the new id is written.
    pub(crate) fn static_member_replaced(&mut self, done: &StaticMemberReplaced) {
        let Some(group) = self.soft.groups.get_mut(&done.group) else {
            return;
        };
        if group.member(&done.new_id).is_none() || group.state != State::Stable {
            // A rebalance began meanwhile; it answers, or has answered.
            return;
        }
        let mut response = group.join_response(&done.new_id, false);
        if done.waiter.version >= 9 {
            // KIP-814: a leader that comes back learns of the members, but must not assign.
            response = group.join_response(&done.new_id, group.is_leader(&done.new_id));
            response.skip_assignment = group.is_leader(&done.new_id);
        } else {
            // Without the flag it must not believe that it leads.
            response.leader = done.leader.clone().unwrap_or_default();
        }
        if let Some(waiter) = group.take_join(&done.new_id) {
            self.out.join(waiter, response);
        }
    }

    /// The record could not be written: the old id stays.
    pub(crate) fn static_member_not_replaced(
        &mut self,
        failed: &StaticMemberReplaced,
        error: ErrorCode,
    ) {
        let Some(group) = self.soft.groups.get_mut(&failed.group) else {
            return;
        };
        let Some(waiter) = group.take_join(&failed.new_id) else {
            return;
        };
        let old = &failed.old;
        group.update(
            &failed.new_id,
            old.protocols.clone(),
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
        );
        group.rename(&failed.new_id, &old.id);
        self.out.cancel_timer(group.heartbeat_timer(&failed.new_id));
        group.keep_alive(&old.id, &mut self.out);
        let mut response = group.join_response(&Str::default(), false);
        response.leader = failed.leader.clone().unwrap_or_default();
        response.error_code = append_error(error).code();
        self.out.join(waiter, response);
    }
}
