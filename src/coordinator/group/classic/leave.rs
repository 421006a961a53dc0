//! LeaveGroup: one member up to version 2, several (static ones by instance id) from version 3.

use protocol::{Array, ErrorCode, Str};

use super::super::super::event::{RequestContext, Response};
use super::super::super::machine::Turn;
use super::super::super::outbox::Outbox;
use super::super::super::wire::{LeaveGroupRequest, LeaveGroupResponse, LeavingMember, LeftMember};
use super::members::{ClassicGroup, State};

impl Turn<'_> {
    pub(crate) fn leave_group(&mut self, context: &RequestContext, request: &LeaveGroupRequest) {
        let response = self.leave(context.api_version, request);
        self.out
            .reply(context.token, Response::LeaveGroup(response));
    }

    fn leave(&mut self, version: i16, request: &LeaveGroupRequest) -> LeaveGroupResponse {
        if request.group_id.is_empty() {
            return refused(ErrorCode::InvalidGroupId);
        }
        let rules = self.rules();
        let leaving = leaving_members(version, request);
        let left: Vec<LeftMember> = match self.soft.groups.get_mut(&request.group_id) {
            None => leaving
                .iter()
                .map(|who| left(who, ErrorCode::UnknownMemberId))
                .collect(),
            Some(group) => {
                let mut all = Vec::with_capacity(leaving.len());
                for who in &leaving {
                    let outcome = group.leave_one(who, &mut self.out);
                    all.push(left(who, outcome.err().unwrap_or(ErrorCode::None)));
                }
                if all
                    .iter()
                    .any(|who| who.error_code == ErrorCode::None.code())
                {
                    match group.state {
                        State::Empty => {}
                        State::PreparingRebalance => {
                            group.maybe_complete_join(rules, &mut self.out);
                        }
                        State::CompletingRebalance | State::Stable => {
                            group.rebalance_or_complete(rules, &mut self.out);
                        }
                    }
                }
                all
            }
        };
        if version >= 3 {
            return LeaveGroupResponse {
                members: left.into(),
                ..Default::default()
            };
        }
        let error_code = left
            .first()
            .map_or(ErrorCode::None.code(), |only| only.error_code);
        LeaveGroupResponse {
            error_code,
            ..Default::default()
        }
    }
}

fn leaving_members(version: i16, request: &LeaveGroupRequest) -> Array<LeavingMember> {
    if version >= 3 {
        return request.members.clone();
    }
    [LeavingMember {
        member_id: request.member_id.clone(),
        ..Default::default()
    }]
    .into()
}

fn left(who: &LeavingMember, error: ErrorCode) -> LeftMember {
    LeftMember {
        member_id: who.member_id.clone(),
        group_instance_id: who.group_instance_id.clone(),
        error_code: error.code(),
    }
}

fn refused(error: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse {
        error_code: error.code(),
        ..Default::default()
    }
}

impl ClassicGroup {
    fn leave_one(&mut self, who: &LeavingMember, out: &mut Outbox) -> Result<(), ErrorCode> {
        let id = self.leaving_id(who)?;
        out.cancel_timer(self.heartbeat_timer(&id));
        self.expel(&id, out);
        Ok(())
    }

    /// Administrators remove a static member by its instance id alone.
    fn leaving_id(&self, who: &LeavingMember) -> Result<Str, ErrorCode> {
        if who.member_id.is_empty() {
            let instance_id = who.group_instance_id.as_ref();
            let id = instance_id.and_then(|instance| self.static_member(instance));
            return id.cloned().ok_or(ErrorCode::UnknownMemberId);
        }
        if !self.pending_join.contains(&who.member_id) {
            self.validate_member(&who.member_id, who.group_instance_id.as_ref())?;
        }
        Ok(who.member_id.clone())
    }
}
