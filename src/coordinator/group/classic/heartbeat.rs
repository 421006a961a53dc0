//! Heartbeat, and the timers of a group.

use planted::Bug;
use protocol::ErrorCode;

use super::super::super::event::{RequestContext, Response, TimerKey};
use super::super::super::machine::Turn;
use super::super::super::wire::{HeartbeatRequest, HeartbeatResponse};
use super::members::State;

impl Turn<'_> {
    pub(crate) fn heartbeat(&mut self, context: &RequestContext, request: &HeartbeatRequest) {
        let outcome = self.check_heartbeat(request);
        let error_code = outcome.err().unwrap_or(ErrorCode::None).code();
        let response = HeartbeatResponse {
            error_code,
            ..Default::default()
        };
        self.out.reply(context.token, Response::Heartbeat(response));
    }

    fn check_heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = self
            .soft
            .groups
            .get(&request.group_id)
            .ok_or(ErrorCode::UnknownMemberId)?;
        group.validate_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != group.generation && !planted::here(Bug::GenerationNotChecked) {
            return Err(ErrorCode::IllegalGeneration);
        }
        match group.state {
            State::Empty => Err(ErrorCode::UnknownMemberId),
            State::PreparingRebalance => {
                group.keep_alive(&request.member_id, &mut self.out);
                Err(ErrorCode::RebalanceInProgress)
            }
            State::CompletingRebalance | State::Stable => {
                group.keep_alive(&request.member_id, &mut self.out);
                Ok(())
            }
        }
    }

    pub(crate) fn group_timer(&mut self, key: &TimerKey) {
        let rules = self.rules();
        let (TimerKey::Heartbeat { group, .. }
        | TimerKey::Join { group }
        | TimerKey::Sync { group }) = key
        else {
            return;
        };
        let Some(group) = self.soft.groups.get_mut(group) else {
            return;
        };
        match key {
            TimerKey::Heartbeat { member, .. } => {
                group.session_expired(member, rules, &mut self.out);
            }
            TimerKey::Join { .. } => group.join_timer_expired(rules, &mut self.out),
            TimerKey::Sync { .. } => group.sync_timer_expired(rules, &mut self.out),
            TimerKey::Expiry => {}
        }
    }
}
