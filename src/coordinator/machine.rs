//! The coordinator of one partition of `__consumer_offsets`: events in, effects out.
//!
//! It does no I/O, has no clock and no randomness; the shell ([`super::runtime`]) brings them.
//!
//! - [`Durable`] is what the log says. It changes in [`Durable::apply`] alone, which gets every
//!   record once it is written, live as on replay. Reads are answered from it.
//! - Soft state is the rest: classic groups as they live between their records, and what is being
//!   appended. It is rebuilt when a partition is loaded, and dropped when it is unloaded.
//! - A [`Turn`] decides about one event. It borrows the durable state shared, so that no decision
//!   can change it, and may change soft state: strict "decide, then apply" for the join phase
//!   would have to describe each step of it as data, only to apply it at once. What has to
//!   survive (a generation's assignment, offsets, the end of a group) goes through a record.
//! - An answer that depends on a record leaves when the record is written. When it cannot be
//!   written, the client gets Kafka's error, and the groups in memory go back.

use std::collections::{BTreeMap, VecDeque};

use protocol::{ErrorCode, Str};

use super::event::{
    Effect, Event, Request, RequestContext, RequestToken, Response, Sequence, TimerKey,
};
use super::group::classic::ClassicGroup;
use super::outbox::{Action, Continuation, Outbox, Rollback, append_error};
use super::record::{LogRecord, Record};
use super::refusal::refuse_prepared;
use super::settings::Settings;
use super::state::Durable;
use super::uncommitted::Uncommitted;
use super::wire::OffsetFetchGroup;

/// Records that nobody waits for are appended in parts of this size at most, so that each fits a
/// batch (a tombstone takes under 600 bytes with the longest topic name).
pub(crate) const RECORDS_PER_APPEND_MAX: usize = 500;

/// The coordinator of one partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct Coordinator {
    settings: Settings,
    durable: Durable,
    soft: Soft,
    next_sequence: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Soft {
    pub(crate) groups: BTreeMap<Str, ClassicGroup>,
    pub(crate) uncommitted: Uncommitted,
    pub(crate) in_flight: VecDeque<InFlight>,
}

/// An append that has not ended.
#[derive(Debug)]
pub(crate) struct InFlight {
    sequence: Sequence,
    records: Vec<LogRecord>,
    then: Continuation,
    rollback: Rollback,
    /// Requests that may be answered when everything before them is written.
    parked: Vec<Parked>,
}

#[derive(Debug)]
pub(crate) enum Parked {
    Answer(RequestToken, Box<Response>),
    FetchStable(RequestToken, OffsetFetchGroup),
}

/// One event being decided.
pub(crate) struct Turn<'a> {
    pub(crate) settings: &'a Settings,
    /// Unix milliseconds.
    pub(crate) now_ms: i64,
    pub(crate) durable: &'a Durable,
    pub(crate) soft: &'a mut Soft,
    pub(crate) out: Outbox,
}

impl Coordinator {
    /// An empty one, to be filled by [`Coordinator::replay`].
    pub fn new(settings: Settings) -> Self {
        Coordinator {
            settings,
            durable: Durable::default(),
            soft: Soft::default(),
            next_sequence: 0,
        }
    }

    /// New settings hold from the next event on; running timers are left alone.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes in one record of the log, while loading. `offset` is its place in the log.
    pub fn replay(&mut self, offset: i64, record: &LogRecord) {
        self.durable.apply(offset, record);
    }

    /// Its groups as they live between their records.
    pub(super) fn groups(&self) -> impl Iterator<Item = &ClassicGroup> {
        self.soft.groups.values()
    }

    /// What the log says. For tests, tools and metrics.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Nothing is left of appends that have ended.
    #[cfg(test)]
    pub(crate) fn assert_settled(&self) {
        assert!(self.soft.in_flight.is_empty());
        assert!(self.soft.uncommitted.is_empty());
    }

    /// Appends that have not ended.
    pub fn appends_in_flight(&self) -> usize {
        self.soft.in_flight.len()
    }

    /// The whole log has been replayed: groups come to life, and their members' sessions start.
    pub fn loaded(&mut self, now_ms: i64) -> Vec<Effect> {
        self.soft.groups = self
            .durable
            .groups()
            .map(|(id, durable)| (id.clone(), ClassicGroup::from_durable(id, durable)))
            .collect();
        self.turn(now_ms, |turn| {
            let rules = turn.rules();
            for group in turn.soft.groups.values_mut() {
                for member in group.member_ids() {
                    group.keep_alive(&member, &mut turn.out);
                }
                if group.size() > rules.settings.max_group_size {
                    group.prepare_rebalance(rules, &mut turn.out);
                }
            }
            let interval = turn.settings.offsets_retention_check_interval;
            turn.out.set_timer_after(TimerKey::Expiry, interval);
        })
    }

    /// This broker does not lead the partition any more: everybody who waits is sent away.
    pub fn unload(mut self, now_ms: i64) -> Vec<Effect> {
        let error = ErrorCode::NotCoordinator;
        let in_flight = std::mem::take(&mut self.soft.in_flight);
        self.turn(now_ms, |turn| {
            for append in in_flight {
                if let Continuation::Reply { token, response } = append.then {
                    turn.out.reply(token, refuse_prepared(*response, error));
                }
                for parked in append.parked {
                    turn.refuse_parked(parked, error);
                }
            }
            for group in turn.soft.groups.values_mut() {
                group.refuse_all(error, &mut turn.out);
            }
        })
    }

    /// Decides about an event. `now_ms` is the wall clock, in Unix milliseconds.
    pub fn handle(&mut self, now_ms: i64, event: Event) -> Vec<Effect> {
        match event {
            Event::Request(context, request) => {
                self.turn(now_ms, |turn| turn.request(&context, &request))
            }
            Event::Timer(TimerKey::Expiry) => self.turn(now_ms, |turn| turn.expire()),
            Event::Timer(key) => self.turn(now_ms, |turn| turn.group_timer(&key)),
            Event::TopicsDeleted(topics) => self.turn(now_ms, |turn| turn.topics_deleted(&topics)),
            Event::Written {
                sequence,
                base_offset,
            } => self.written(now_ms, sequence, base_offset),
            Event::Failed { sequence, error } => self.failed(now_ms, sequence, error),
        }
    }

    fn written(&mut self, now_ms: i64, sequence: Sequence, base_offset: i64) -> Vec<Effect> {
        let Some(append) = self.take_in_flight(sequence) else {
            return Vec::new();
        };
        for (offset, record) in (base_offset..).zip(&append.records) {
            self.durable.apply(offset, record);
        }
        self.turn(now_ms, |turn| {
            turn.continue_after(append.then);
            for parked in append.parked {
                turn.answer_parked(parked);
            }
        })
    }

    fn failed(&mut self, now_ms: i64, sequence: Sequence, error: ErrorCode) -> Vec<Effect> {
        let Some(append) = self.take_in_flight(sequence) else {
            return Vec::new();
        };
        self.turn(now_ms, |turn| {
            turn.abandon_after(append.then, error);
            turn.roll_back(append.rollback);
            for parked in append.parked {
                turn.refuse_parked(parked, append_error(error));
            }
        })
    }

    /// The append of this sequence, which must be the oldest.
    fn take_in_flight(&mut self, sequence: Sequence) -> Option<InFlight> {
        let oldest = self.soft.in_flight.front()?.sequence;
        debug_assert_eq!(oldest, sequence, "appends end in order");
        if oldest != sequence {
            return None;
        }
        let append = self.soft.in_flight.pop_front()?;
        self.soft.uncommitted.settle(sequence, &append.records);
        Some(append)
    }

    fn turn(&mut self, now_ms: i64, decide: impl FnOnce(&mut Turn<'_>)) -> Vec<Effect> {
        let mut turn = Turn {
            settings: &self.settings,
            now_ms,
            durable: &self.durable,
            soft: &mut self.soft,
            out: Outbox::default(),
        };
        decide(&mut turn);
        let actions = turn.out.actions;
        actions
            .into_iter()
            .map(|action| self.start(action))
            .collect()
    }

    fn start(&mut self, action: Action) -> Effect {
        match action {
            Action::Reply(token, response) => Effect::Reply { token, response },
            Action::SetTimer(key, after) => Effect::SetTimer { key, after },
            Action::CancelTimer(key) => Effect::CancelTimer(key),
            Action::Append {
                records,
                then,
                rollback,
            } => {
                let sequence = Sequence(self.next_sequence);
                self.next_sequence += 1;
                let understood: Vec<LogRecord> = records.iter().map(LogRecord::decode).collect();
                self.soft.uncommitted.add(sequence, &understood);
                self.soft.in_flight.push_back(InFlight {
                    sequence,
                    records: understood,
                    then,
                    rollback,
                    parked: Vec::new(),
                });
                Effect::Append { sequence, records }
            }
        }
    }
}

impl Turn<'_> {
    fn request(&mut self, context: &RequestContext, request: &Request) {
        let token = context.token;
        match request {
            Request::JoinGroup(request) => self.join_group(context, request),
            Request::SyncGroup(request) => self.sync_group(context, request),
            Request::Heartbeat(request) => self.heartbeat(context, request),
            Request::LeaveGroup(request) => self.leave_group(context, request),
            Request::OffsetCommit(request) => self.offset_commit(context, request),
            Request::OffsetDelete(request) => self.offset_delete(context, request),
            Request::OffsetFetch {
                group,
                require_stable: true,
            } => {
                self.park_or_answer(Parked::FetchStable(token, group.clone()));
            }
            Request::OffsetFetch {
                group,
                require_stable: false,
            } => {
                let response = self.fetch_offsets(group, false);
                self.out.reply(token, Response::OffsetFetch(response));
            }
            Request::ListGroups(request) => {
                let groups = self.list_groups(request);
                self.out.reply(token, Response::ListGroups(Ok(groups)));
            }
            Request::DescribeGroup(id) => {
                let response = self.describe_group(context.api_version, id);
                self.out.reply(token, Response::DescribeGroup(response));
            }
            Request::DeleteGroup(id) => self.delete_group(context, id),
        }
    }

    /// Answers when the records are written; without records, when everything that was decided
    /// before is, since the answer may rest on it.
    pub(crate) fn answer_after(
        &mut self,
        token: RequestToken,
        response: Response,
        records: Vec<Record>,
    ) {
        let response = Box::new(response);
        if records.is_empty() {
            self.park_or_answer(Parked::Answer(token, response));
        } else {
            self.out
                .append(records, Continuation::Reply { token, response });
        }
    }

    fn park_or_answer(&mut self, parked: Parked) {
        match self.soft.in_flight.back_mut() {
            Some(last) => last.parked.push(parked),
            None => self.answer_parked(parked),
        }
    }

    fn answer_parked(&mut self, parked: Parked) {
        match parked {
            Parked::Answer(token, response) => self.out.reply(token, *response),
            Parked::FetchStable(token, group) => {
                let response = self.fetch_offsets(&group, true);
                self.out.reply(token, Response::OffsetFetch(response));
            }
        }
    }

    fn refuse_parked(&mut self, parked: Parked, error: ErrorCode) {
        match parked {
            Parked::Answer(token, response) => {
                self.out.reply(token, refuse_prepared(*response, error));
            }
            Parked::FetchStable(token, group) => {
                let request = Request::OffsetFetch {
                    group,
                    require_stable: true,
                };
                // Consumers before 3.9 do not know what to do with the other one.
                let error = match error {
                    ErrorCode::CoordinatorNotAvailable => ErrorCode::NotCoordinator,
                    other => other,
                };
                self.out
                    .reply(token, super::refusal::refuse(&request, error));
            }
        }
    }

    fn continue_after(&mut self, then: Continuation) {
        match then {
            Continuation::Nothing | Continuation::GroupCreated { .. } => {}
            Continuation::Reply { token, response } => self.out.reply(token, *response),
            Continuation::SyncCompleted {
                group,
                generation,
                assignment,
            } => {
                self.sync_completed(&group, generation, &assignment, Ok(()));
            }
            Continuation::StaticMemberReplaced(done) => self.static_member_replaced(&done),
        }
    }

    fn abandon_after(&mut self, then: Continuation, error: ErrorCode) {
        match then {
            Continuation::Nothing => {}
            Continuation::Reply { token, response } => {
                self.out
                    .reply(token, refuse_prepared(*response, append_error(error)));
            }
            Continuation::SyncCompleted {
                group,
                generation,
                assignment,
            } => {
                self.sync_completed(&group, generation, &assignment, Err(error));
            }
            Continuation::StaticMemberReplaced(failed) => {
                self.static_member_not_replaced(&failed, error);
            }
            Continuation::GroupCreated { group } => {
                self.group_not_created(&group, append_error(error));
            }
        }
    }

    /// Groups in memory go back to where they were before a failed append.
    fn roll_back(&mut self, rollback: Rollback) {
        for id in rollback.created {
            // Members may have come meanwhile; they will write a record of their own.
            if self
                .soft
                .groups
                .get(&id)
                .is_some_and(ClassicGroup::is_unused)
                && self.durable.group(&id).is_none()
            {
                self.soft.groups.remove(&id);
            }
        }
        for group in rollback.removed {
            self.soft.groups.entry(group.id.clone()).or_insert(group);
        }
    }
}
