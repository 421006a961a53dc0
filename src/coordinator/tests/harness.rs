//! A coordinator with a clock, a log and timers that a test turns by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use protocol::{ErrorCode, Str, Uuid};

use super::super::event::{
    Effect, Event, Request, RequestContext, RequestToken, Response, Sequence, TimerKey,
};
use super::super::machine::Coordinator;
use super::super::record::{LogRecord, Record, Stored};
use super::super::settings::Settings;
use super::super::state::Durable;
use super::super::wire::*;

pub const GROUP: &str = "group";
pub const START_MS: i64 = 1_000_000_000_000;
/// Topic id of topic "foo" wherever a test needs one.
pub const FOO_ID: Uuid = Uuid([7; 16]);

pub fn text(text: &str) -> Str {
    Str::from(text)
}

/// A coordinator under test. Appends are written at once, unless `hold` says otherwise.
pub struct Bench {
    pub machine: Coordinator,
    pub settings: Settings,
    pub now_ms: i64,
    /// Everything that was written, in order.
    pub log: Vec<Record>,
    /// Answers that nobody has taken yet.
    pub answers: BTreeMap<RequestToken, Response>,
    /// Appends that wait for `write_next` or `fail_next`.
    pub held: std::collections::VecDeque<(Sequence, Vec<Record>)>,
    pub hold: bool,
    pub client_id: &'static str,
    /// What new member ids are made of, in the place of the token.
    pub random: Option<[u8; 16]>,
    timers: BTreeMap<TimerKey, i64>,
    next_token: u64,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::from_log(settings, Vec::new(), START_MS)
    }

    /// A coordinator that has just loaded this log.
    pub fn from_log(settings: Settings, log: Vec<Record>, now_ms: i64) -> Self {
        let mut machine = Coordinator::new(settings.clone());
        for (offset, record) in log.iter().enumerate() {
            machine.replay(offset as i64, &LogRecord::decode(record));
        }
        let mut bench = Bench {
            machine,
            settings,
            now_ms,
            log,
            answers: BTreeMap::new(),
            held: Default::default(),
            hold: false,
            client_id: "client",
            random: None,
            timers: BTreeMap::new(),
            next_token: 0,
        };
        let effects = bench.machine.loaded(now_ms);
        bench.perform(effects);
        bench
    }

    /// The same partition after this coordinator has gone away: a new one on the same log.
    pub fn failover(self) -> Self {
        self.check();
        Self::from_log(self.settings.clone(), self.log.clone(), self.now_ms)
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append { sequence, records } => {
                    assert!(!records.is_empty(), "an append without records");
                    self.held.push_back((sequence, records));
                }
                Effect::Reply { token, response } => {
                    let before = self.answers.insert(token, *response);
                    assert_eq!(before, None, "{token:?} was answered twice");
                }
                Effect::SetTimer { key, after } => {
                    self.timers
                        .insert(key, self.now_ms + after.as_millis() as i64);
                }
                Effect::CancelTimer(key) => {
                    self.timers.remove(&key);
                }
            }
        }
        while !self.hold && !self.held.is_empty() {
            self.write_next();
        }
    }

    /// Writes the oldest append that is held.
    pub fn write_next(&mut self) {
        let (sequence, records) = self.held.pop_front().expect("an append is held");
        let base_offset = self.log.len() as i64;
        self.log.extend(records);
        self.event(Event::Written {
            sequence,
            base_offset,
        });
    }

    /// Fails the oldest append that is held.
    pub fn fail_next(&mut self, error: ErrorCode) {
        let (sequence, _) = self.held.pop_front().expect("an append is held");
        self.event(Event::Failed { sequence, error });
    }

    pub fn event(&mut self, event: Event) {
        let effects = self.machine.handle(self.now_ms, event);
        self.perform(effects);
    }

    pub fn send_as(&mut self, api_version: i16, request: Request) -> RequestToken {
        self.next_token += 1;
        let token = RequestToken(self.next_token);
        let context = RequestContext {
            token,
            api_version,
            client_id: text(self.client_id),
            client_host: text("/127.0.0.1"),
            random: self
                .random
                .unwrap_or_else(|| u128::from(self.next_token).to_be_bytes()),
        };
        self.event(Event::Request(context, Box::new(request)));
        token
    }

    /// The answer to a request that is answered at once.
    pub fn ask(&mut self, api_version: i16, request: Request) -> Response {
        let token = self.send_as(api_version, request);
        self.take(token)
    }

    pub fn take(&mut self, token: RequestToken) -> Response {
        self.answers
            .remove(&token)
            .unwrap_or_else(|| panic!("{token:?} is not answered"))
    }

    pub fn is_answered(&self, token: RequestToken) -> bool {
        self.answers.contains_key(&token)
    }

    /// Lets time pass; timers go off in order, each at its time.
    pub fn advance(&mut self, span: Duration) {
        let end = self.now_ms + span.as_millis() as i64;
        while let Some((key, at)) = self.next_timer().filter(|(_, at)| *at <= end) {
            self.timers.remove(&key);
            self.now_ms = self.now_ms.max(at);
            self.event(Event::Timer(key));
        }
        self.now_ms = end;
    }

    pub fn advance_ms(&mut self, span_ms: u64) {
        self.advance(Duration::from_millis(span_ms));
    }

    fn next_timer(&self) -> Option<(TimerKey, i64)> {
        self.timers
            .iter()
            .map(|(key, at)| (key.clone(), *at))
            .min_by_key(|(_, at)| *at)
    }

    pub fn timers(&self) -> impl Iterator<Item = &TimerKey> {
        self.timers.keys()
    }

    /// What was written since `from`, understood.
    pub fn written(&self, from: usize) -> Vec<Stored> {
        self.log[from..]
            .iter()
            .map(|record| LogRecord::decode(record).stored)
            .collect()
    }

    /// The property that holds at the end of every test: replaying what was written gives what
    /// the coordinator holds.
    pub fn check(&self) {
        let mut replayed = Durable::default();
        for (offset, record) in self.log.iter().enumerate() {
            replayed.apply(offset as i64, &LogRecord::decode(record));
        }
        assert_eq!(
            &replayed,
            self.machine.durable(),
            "replay differs from the live state"
        );
        if self.held.is_empty() {
            self.machine.assert_settled();
        }
    }

    pub fn state(&mut self) -> String {
        self.describe(GROUP).group_state.to_string()
    }

    pub fn describe(&mut self, group: &str) -> DescribedGroup {
        match self.ask(5, Request::DescribeGroup(text(group))) {
            Response::DescribeGroup(described) => described,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

/// JoinGroup with Kafka's usual timeouts and one protocol.
pub fn join(member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: text(GROUP),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: text(member_id),
        protocol_type: text("consumer"),
        protocols: [protocol("range", "foo")].into(),
        ..Default::default()
    }
}

pub fn static_join(member_id: &str, instance_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_instance_id: Some(text(instance_id)),
        ..join(member_id)
    }
}

/// A protocol whose metadata subscribes to one topic.
pub fn protocol(name: &str, topic: &str) -> JoinProtocol {
    let mut metadata = vec![0, 0, 0, 0, 0, 1];
    metadata.extend((topic.len() as i16).to_be_bytes());
    metadata.extend(topic.as_bytes());
    metadata.extend((-1i32).to_be_bytes());
    JoinProtocol {
        name: text(name),
        metadata: Bytes::from(metadata),
    }
}

pub fn joined(response: Response) -> JoinGroupResponse {
    match response {
        Response::JoinGroup(joined) => joined,
        other => panic!("{other:?}"),
    }
}

pub fn synced(response: Response) -> SyncGroupResponse {
    match response {
        Response::SyncGroup(synced) => synced,
        other => panic!("{other:?}"),
    }
}

pub fn sync(member_id: &str, generation_id: i32, assignments: &[(&str, &str)]) -> SyncGroupRequest {
    let assignments = assignments
        .iter()
        .map(|(member, assignment)| SyncAssignment {
            member_id: text(member),
            assignment: Bytes::copy_from_slice(assignment.as_bytes()),
        });
    SyncGroupRequest {
        group_id: text(GROUP),
        generation_id,
        member_id: text(member_id),
        protocol_type: Some(text("consumer")),
        protocol_name: Some(text("range")),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

impl Bench {
    pub fn join(&mut self, version: i16, request: JoinGroupRequest) -> RequestToken {
        self.send_as(version, Request::JoinGroup(request))
    }

    pub fn sync(&mut self, request: SyncGroupRequest) -> RequestToken {
        self.send_as(5, Request::SyncGroup(request))
    }

    pub fn heartbeat(&mut self, member_id: &str, generation_id: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: text(GROUP),
            generation_id,
            member_id: text(member_id),
            ..Default::default()
        };
        match self.ask(4, Request::Heartbeat(request)) {
            Response::Heartbeat(response) => error_of(response.error_code),
            other => panic!("{other:?}"),
        }
    }

    /// The first step of a dynamic member: an id.
    pub fn member_id(&mut self) -> String {
        let token = self.join(9, join(""));
        let response = joined(self.take(token));
        assert_eq!(error_of(response.error_code), ErrorCode::MemberIdRequired);
        response.member_id.to_string()
    }

    /// A stable group of `size` dynamic members of generation 1; the first one leads.
    pub fn stable_group(&mut self, size: usize) -> Vec<String> {
        let ids: Vec<String> = (0..size).map(|_| self.member_id()).collect();
        let joins: Vec<_> = ids.iter().map(|id| self.join(9, join(id))).collect();
        self.advance_ms(10_000);
        let mut leader = String::new();
        for token in joins {
            leader = joined(self.take(token)).leader.to_string();
        }
        let assignments: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "mine")).collect();
        let mut tokens = Vec::new();
        for id in ids.iter().filter(|id| **id != leader).chain([&leader]) {
            let assignments = if *id == leader {
                assignments.as_slice()
            } else {
                &[]
            };
            tokens.push(self.sync(sync(id, 1, assignments)));
        }
        for token in tokens {
            assert_eq!(synced(self.take(token)).error_code, 0);
        }
        assert_eq!(self.state(), "Stable");
        let mut ordered = vec![leader.clone()];
        ordered.extend(ids.into_iter().filter(|id| *id != leader));
        ordered
    }

    pub fn commit(&mut self, request: OffsetCommitRequest) -> Vec<ErrorCode> {
        let token = self.send_as(9, Request::OffsetCommit(request));
        committed(self.take(token))
    }

    /// Offset of a partition of the test group, as a client sees it; -1 for none.
    pub fn offset(&mut self, topic: &str, partition: i32) -> i64 {
        let group = OffsetFetchGroup {
            group_id: text(GROUP),
            topics: Some(
                [OffsetFetchTopic {
                    name: text(topic),
                    partition_indexes: [partition].into(),
                    ..Default::default()
                }]
                .into(),
            ),
            ..Default::default()
        };
        match self.ask(
            8,
            Request::OffsetFetch {
                group,
                require_stable: false,
            },
        ) {
            Response::OffsetFetch(fetched) => fetched.topics[0].partitions[0].committed_offset,
            other => panic!("{other:?}"),
        }
    }
}

pub fn committed(response: Response) -> Vec<ErrorCode> {
    match response {
        Response::OffsetCommit(response) => response
            .topics
            .iter()
            .flat_map(|topic| &topic.partitions)
            .map(|partition| error_of(partition.error_code))
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// A commit of one offset of topic "foo" by nobody in particular.
pub fn commit(partition: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: text(GROUP),
        generation_id_or_member_epoch: -1,
        topics: [CommitTopic {
            name: text("foo"),
            topic_id: FOO_ID,
            partitions: [CommitPartition {
                partition_index: partition,
                committed_offset: offset,
                ..Default::default()
            }]
            .into(),
        }]
        .into(),
        ..Default::default()
    }
}

pub fn commit_as(member_id: &str, generation: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        member_id: text(member_id),
        generation_id_or_member_epoch: generation,
        ..commit(0, offset)
    }
}

pub fn error_of(code: i16) -> ErrorCode {
    ErrorCode::from_i16(code).expect("a known code")
}
