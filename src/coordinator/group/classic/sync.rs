//! SyncGroup: the leader hands in the assignment, everybody gets its own part.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::{ErrorCode, Str};

use super::super::super::event::{RequestContext, TimerKey, detached};
use super::super::super::machine::Turn;
use super::super::super::outbox::{Continuation, Outbox, append_error};
use super::super::super::record::Record;
use super::super::super::wire::SyncGroupRequest;
use super::members::{ClassicGroup, State, Waiter};

impl Turn<'_> {
    pub(crate) fn sync_group(&mut self, context: &RequestContext, request: &SyncGroupRequest) {
        let waiter = Waiter {
            token: context.token,
            version: context.api_version,
        };
        if request.group_id.is_empty() {
            return self.out.sync_refused(waiter, ErrorCode::InvalidGroupId);
        }
        // KIP-559: from version 5 the client says which protocol it believes in.
        let named = request.protocol_type.is_some() && request.protocol_name.is_some();
        if context.api_version >= 5 && !named {
            return self
                .out
                .sync_refused(waiter, ErrorCode::InconsistentGroupProtocol);
        }
        match self.soft.groups.get_mut(&request.group_id) {
            Some(group) if group.state != State::Empty => {
                group.sync(waiter, request, &mut self.out);
            }
            _ => self.out.sync_refused(waiter, ErrorCode::UnknownMemberId),
        }
    }

    /// The assignment is written, or (`Err`) could not be.
    pub(crate) fn sync_completed(
        &mut self,
        group_id: &Str,
        generation: i32,
        assignment: &BTreeMap<Str, Bytes>,
        outcome: Result<(), ErrorCode>,
    ) {
        let rules = self.rules();
        let Some(group) = self.soft.groups.get_mut(group_id) else {
            return;
        };
        // A member may have joined meanwhile; then this assignment means nothing any more.
        if group.state != State::CompletingRebalance || group.generation != generation {
            return;
        }
        match outcome {
            Ok(()) => group.assign(assignment, rules, &mut self.out),
            Err(error) => {
                group.reset_assignments(append_error(error), &mut self.out);
                group.rebalance_or_complete(rules, &mut self.out);
            }
        }
    }
}

impl ClassicGroup {
    fn sync(&mut self, waiter: Waiter, request: &SyncGroupRequest, out: &mut Outbox) {
        if let Err(error) = self.validate_sync(request) {
            return out.sync_refused(waiter, error);
        }
        let id = &request.member_id;
        match self.state {
            State::PreparingRebalance | State::Empty => {
                out.sync_refused(waiter, ErrorCode::RebalanceInProgress);
            }
            State::CompletingRebalance => {
                if let Some(displaced) = self
                    .member_mut(id)
                    .and_then(|member| member.awaiting_sync.replace(waiter))
                {
                    out.sync_refused(displaced, ErrorCode::RebalanceInProgress);
                }
                self.sync_received(id, out);
                if self.is_leader(id) {
                    self.store_assignment(request, out);
                }
            }
            State::Stable => {
                self.sync_received(id, out);
                let response = self.sync_response(id, ErrorCode::None);
                out.sync(waiter, response);
            }
        }
    }

    fn validate_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.validate_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs = |asked: &Option<Str>, own: &Option<Str>| {
            asked.is_some() && own.is_some() && asked != own
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn sync_received(&mut self, id: &Str, out: &mut Outbox) {
        if self.pending_sync.remove(id) && self.pending_sync.is_empty() {
            out.cancel_timer(TimerKey::Sync {
                group: self.id.clone(),
            });
        }
    }

    fn store_assignment(&self, request: &SyncGroupRequest, out: &mut Outbox) {
        let assignment: BTreeMap<Str, Bytes> = request
            .assignments
            .iter()
            .filter(|part| self.has_member(&part.member_id))
            .map(|part| (part.member_id.detached(), detached(&part.assignment)))
            .collect();
        let record = Record::group(&self.id, &self.to_record(&assignment));
        let group = self.id.clone();
        let then = Continuation::SyncCompleted {
            group,
            generation: self.generation,
            assignment,
        };
        out.append(vec![record], then);
    }
}
