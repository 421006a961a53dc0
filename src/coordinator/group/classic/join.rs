//! JoinGroup.

use protocol::wire::STRING_BYTES_MAX;
use protocol::{ErrorCode, Str};

use super::super::super::event::{RequestContext, detached};
use super::super::super::machine::Turn;
use super::super::super::outbox::{Continuation, Outbox, Rollback};
use super::super::super::record::Record;
use super::super::super::settings::NEW_MEMBER_JOIN_TIMEOUT;
use super::super::super::wire::{JoinGroupRequest, JoinGroupResponse, JoinProtocol};
use super::members::{ClassicGroup, Member, NewMember, State, Waiter};
use super::rebalance::Rules;
use super::static_members::Replacement;

/// A JoinGroup, in the form in which the group keeps it.
pub(crate) struct Joining {
    pub(crate) waiter: Waiter,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
    pub(crate) random: [u8; 16],
    pub(crate) member_id: Str,
    pub(crate) instance_id: Option<Str>,
    pub(crate) protocol_type: Str,
    pub(crate) protocols: Vec<JoinProtocol>,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
}

impl Joining {
    fn new(context: &RequestContext, request: &JoinGroupRequest) -> Self {
        let protocols = request.protocols.iter().map(|protocol| JoinProtocol {
            name: protocol.name.detached(),
            metadata: detached(&protocol.metadata),
        });
        // Version 0 has no rebalance timeout: the session timeout stands for it.
        let rebalance_timeout_ms = match context.api_version {
            0 => request.session_timeout_ms,
            _ => request.rebalance_timeout_ms,
        };
        Joining {
            waiter: Waiter {
                token: context.token,
                version: context.api_version,
            },
            client_id: context.client_id.detached(),
            client_host: context.client_host.detached(),
            random: context.random,
            member_id: request.member_id.detached(),
            instance_id: request.group_instance_id.as_ref().map(Str::detached),
            protocol_type: request.protocol_type.detached(),
            protocols: protocols.collect(),
            rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
        }
    }

    /// An id that nobody has: the instance or client id, as much of it as fits, and a random UUID (version 4).
    fn new_member_id(&self) -> Str {
        const UUID_LETTERS: usize = 36;
        let prefix = self.instance_id.as_ref().unwrap_or(&self.client_id);
        let room = STRING_BYTES_MAX - "-".len() - UUID_LETTERS;
        let prefix = &prefix[..prefix.floor_char_boundary(room)];
        let mut random = self.random;
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let mut id = format!("{prefix}-");
        for (index, byte) in random.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            id.push_str(&format!("{byte:02x}"));
        }
        Str::from(id)
    }

    fn new_member(&self, id: Str) -> Member {
        Member::from(NewMember {
            id,
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            protocols: self.protocols.clone(),
        })
    }
}

impl Turn<'_> {
    pub(crate) fn join_group(&mut self, context: &RequestContext, request: &JoinGroupRequest) {
        let waiter = Waiter {
            token: context.token,
            version: context.api_version,
        };
        if let Err(error) = self.validate_join(request) {
            return self
                .out
                .join_refused(waiter, request.member_id.clone(), error);
        }
        if self.durable.foreign(&request.group_id).is_some() {
            let error = ErrorCode::InconsistentGroupProtocol;
            return self.out.join_refused(waiter, Str::default(), error);
        }
        let rules = self.rules();
        let id = request.group_id.detached();
        let is_new_group = !self.soft.groups.contains_key(&id);
        if is_new_group && !request.member_id.is_empty() {
            let error = ErrorCode::UnknownMemberId;
            return self
                .out
                .join_refused(waiter, request.member_id.clone(), error);
        }
        let group = self
            .soft
            .groups
            .entry(id.clone())
            .or_insert_with(|| ClassicGroup::new(id.clone(), rules.now_ms));
        group.join(&Joining::new(context, request), rules, &mut self.out);
        if is_new_group && !self.out.has_append() {
            // The group must be in the log before anybody can see it.
            let record = Record::empty_group(&id, rules.now_ms);
            let rollback = Rollback {
                created: vec![id.clone()],
                removed: Vec::new(),
            };
            let then = Continuation::GroupCreated { group: id };
            self.out.append_or_roll_back(vec![record], then, rollback);
        }
    }

    fn validate_join(&self, request: &JoinGroupRequest) -> Result<(), ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let allowed = self.settings.min_session_timeout_ms..=self.settings.max_session_timeout_ms;
        if !allowed.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        Ok(())
    }

    /// The first record of a group could not be written: whoever waits there has to try again.
    pub(crate) fn group_not_created(&mut self, group_id: &Str, error: ErrorCode) {
        if let Some(group) = self.soft.groups.get_mut(group_id) {
            group.refuse_all(error, &mut self.out);
            for id in group.member_ids() {
                self.out.cancel_timer(group.heartbeat_timer(&id));
            }
        }
        self.soft.groups.remove(group_id);
    }
}

impl ClassicGroup {
    fn join(&mut self, joining: &Joining, rules: Rules<'_>, out: &mut Outbox) {
        if !self.accepts(&joining.member_id, rules) {
            let id = joining.member_id.clone();
            self.expel(&id, out);
            out.join_refused(
                joining.waiter,
                Str::default(),
                ErrorCode::GroupMaxSizeReached,
            );
            // It may have been the last one that the others waited for.
            self.maybe_complete_join(rules, out);
        } else if !self.supports(&joining.protocol_type, &joining.protocols) {
            let error = ErrorCode::InconsistentGroupProtocol;
            out.join_refused(joining.waiter, joining.member_id.clone(), error);
        } else if joining.member_id.is_empty() {
            self.join_new_member(joining, rules, out);
        } else {
            self.join_known_member(joining, rules, out);
        }
    }

    /// While members join, those that wait count, so that the last ones to rejoin an oversized
    /// group are turned away; later all members count.
    fn accepts(&self, member_id: &Str, rules: Rules<'_>) -> bool {
        let member = self.member(member_id);
        match self.state {
            State::Empty => true,
            State::PreparingRebalance => {
                member.is_some_and(Member::is_awaiting_join)
                    || self.awaiting_join() < rules.settings.max_group_size
            }
            State::CompletingRebalance | State::Stable => {
                member.is_some() || self.size() < rules.settings.max_group_size
            }
        }
    }

    fn join_new_member(&mut self, joining: &Joining, rules: Rules<'_>, out: &mut Outbox) {
        let new_id = joining.new_member_id();
        if let Some(instance_id) = &joining.instance_id {
            match self.static_member(instance_id).cloned() {
                Some(old_id) => {
                    let replacement = Replacement {
                        old_id,
                        new_id,
                        joining,
                    };
                    self.replace_static_member(replacement, rules, out);
                }
                None => self.add_and_rebalance(joining, new_id, rules, out),
            }
        } else if joining.waiter.version >= 4 {
            // KIP-394: the member comes back with the id, or is forgotten. A client that gives up
            // and tries again leaves no phantom members behind.
            self.pending_join.insert(new_id.clone());
            out.set_timer(self.heartbeat_timer(&new_id), joining.session_timeout_ms);
            out.join_refused(joining.waiter, new_id, ErrorCode::MemberIdRequired);
        } else {
            self.add_and_rebalance(joining, new_id, rules, out);
        }
    }

    fn add_and_rebalance(
        &mut self,
        joining: &Joining,
        id: Str,
        rules: Rules<'_>,
        out: &mut Outbox,
    ) {
        if self.state == State::PreparingRebalance && self.previous_state == State::Empty {
            self.new_member_added = true;
        }
        self.add(
            joining.new_member(id.clone()),
            &joining.protocol_type,
            joining.waiter,
        );
        out.set_timer_after(self.heartbeat_timer(&id), NEW_MEMBER_JOIN_TIMEOUT);
        self.rebalance_or_complete(rules, out);
    }

    fn join_known_member(&mut self, joining: &Joining, rules: Rules<'_>, out: &mut Outbox) {
        let id = &joining.member_id;
        if self.pending_join.contains(id) {
            if joining.instance_id.is_some() {
                // Ids are handed out for later use to members without an instance id only.
                let error = ErrorCode::UnknownServerError;
                return out.join_refused(joining.waiter, id.clone(), error);
            }
            return self.add_and_rebalance(joining, id.clone(), rules, out);
        }
        if let Err(error) = self.validate_member(id, joining.instance_id.as_ref()) {
            let response = JoinGroupResponse {
                member_id: id.clone(),
                error_code: error.code(),
                protocol_type: None,
                protocol_name: None,
                ..Default::default()
            };
            return out.join(joining.waiter, response);
        }
        let unchanged = self
            .member(id)
            .is_some_and(|member| member.protocols == joining.protocols);
        match self.state {
            State::PreparingRebalance => self.update_and_rebalance(joining, rules, out),
            // The answer to its first JoinGroup may have been lost.
            State::CompletingRebalance if unchanged => {
                let response = self.join_response(id, self.is_leader(id));
                out.join(joining.waiter, response);
            }
            // The leader rejoins to assign anew: topics may have changed.
            State::Stable if unchanged && !self.is_leader(id) => {
                let response = self.join_response(id, false);
                out.join(joining.waiter, response);
            }
            State::CompletingRebalance | State::Stable => {
                self.update_and_rebalance(joining, rules, out);
            }
            State::Empty => {
                out.join_refused(joining.waiter, id.clone(), ErrorCode::UnknownMemberId);
            }
        }
    }

    fn update_and_rebalance(&mut self, joining: &Joining, rules: Rules<'_>, out: &mut Outbox) {
        self.update_and_park(&joining.member_id, joining, out);
        self.rebalance_or_complete(rules, out);
    }

    /// Takes over what the request says and parks it. A client that asks twice is answered once
    /// with the result; the request before ends here.
    pub(crate) fn update_and_park(&mut self, id: &Str, joining: &Joining, out: &mut Outbox) {
        self.update(
            id,
            joining.protocols.clone(),
            joining.rebalance_timeout_ms,
            joining.session_timeout_ms,
        );
        if let Some(displaced) = self.park_join(id, joining.waiter) {
            out.join_refused(displaced, id.clone(), ErrorCode::RebalanceInProgress);
        }
    }
}
