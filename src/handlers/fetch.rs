//! Fetch: records to consumers.
//!
//! The connection's core resolves the session, asks each owner core once for its partitions, adds
//! up, and answers or waits. Byte goal and deadline stay here, because they span partitions of
//! several cores. Record bytes go out as slices of memory or of files.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{join_all, select, select_all};
use protocol::ErrorCode;
use protocol::hot::fetch::FetchRequest;
use protocol::hot::{TopicEntry, TopicKey};
use protocol::wire::Reader;
use shards::sync::Permit;
use shards::{CoreId, TaskClass};

use super::api::{Begun, Call, undecodable};
use super::fetch_answer::{PartitionAnswer, encode_answer, encode_error, encode_refusal};
use crate::outgoing::Answer;
use crate::replication::fetch_session::{
    AnswerShape, FetchPlan, FetchSessionCache, FetchSpec, PartitionKey as SessionKey,
    PartitionOutcome, SessionRequest,
};
use crate::replication::{
    Fetched, FetchedRecords, Isolation, PartitionKey, ReadFailure, ReadRequest, WaitId,
};
use crate::shard::{Park, Shard, Stage};

/// How long a fetch waits for its share of the budget of answers.
const RESERVE_PATIENCE: Duration = Duration::from_millis(100);
/// What it may read without one.
const UNRESERVED_BYTES: usize = 64 * 1024;

/// First version of Fetch whose clients know zstd (KIP-110).
const ZSTD_SINCE_FETCH: i16 = 10;

/// Decodes the request; everything else may overlap with other requests.
pub fn begin(call: Call, mut body: Reader) -> Begun {
    let begun = call.shard.core.now();
    match FetchRequest::parse(&mut body, call.version()) {
        Ok(request) => {
            call.took(Stage::Decode, begun);
            Begun::Overlapping(Box::pin(run(call, request)))
        }
        Err(error) => Begun::Done(undecodable(&call, &error)),
    }
}

async fn run(call: Call, request: FetchRequest) -> Answer {
    let (session_id, session) = session_request(&call, &request);
    let plan = match open_session(&call, session_id, session).await {
        Ok(plan) => plan,
        Err(error) => return encode_error(&call, error),
    };
    let isolation = isolation(&request);
    let readable = isolation.unwrap_or(Isolation::ReadUncommitted);
    let mut fetch = Fetch::new(&call, &request, readable, &plan);
    if isolation.is_none() && !fetch.owners.is_empty() {
        // Kafka's way to say that there is no such level, where there is something to read.
        return encode_refusal(&call, &request, ErrorCode::UnknownServerError);
    }
    let permit = fetch.until_enough().await;
    let outcomes = fetch.outcomes();
    let answers = fetch.answers;
    match close_session(&call, session_id, plan, outcomes).await {
        Ok(shape) => {
            let follower = request.replica_id >= 0;
            encode_answer(&call, shape, answers, follower, permit)
        }
        Err(error) => encode_error(&call, error),
    }
}

fn isolation(request: &FetchRequest) -> Option<Isolation> {
    match request.isolation_level {
        0 => Some(Isolation::ReadUncommitted),
        1 => Some(Isolation::ReadCommitted),
        _ => None,
    }
}

fn session_request(call: &Call, request: &FetchRequest) -> (i32, SessionRequest) {
    let uses_topic_ids = call.version() >= 13;
    let mut partitions = Vec::with_capacity(request.partitions().len());
    for TopicEntry { topic, entry, .. } in request.partitions() {
        let spec = FetchSpec {
            // Any negative one is none.
            current_leader_epoch: entry.current_leader_epoch.max(-1),
            fetch_offset: entry.fetch_offset,
            last_fetched_epoch: entry.last_fetched_epoch,
            max_bytes: entry.max_bytes,
        };
        partitions.push((session_key(topic, entry.partition), spec));
    }
    let forgotten = request
        .forgotten()
        .map(|TopicEntry { topic, entry, .. }| session_key(topic, entry.0))
        .collect();
    let (id, epoch) = (request.session_id, request.session_epoch);
    (
        id,
        SessionRequest {
            id,
            epoch,
            uses_topic_ids,
            partitions,
            forgotten,
        },
    )
}

/// Detached from the frame: a session must not keep a whole request alive.
fn session_key(topic: TopicKey, partition: i32) -> SessionKey {
    let topic = match topic {
        TopicKey::Name(name) => TopicKey::Name(name.detached()),
        TopicKey::Id(id) => TopicKey::Id(id),
    };
    SessionKey { topic, partition }
}

/// The core that keeps the session: named by its id, or this one for a new session.
fn keeper(call: &Call, session_id: i32) -> CoreId {
    match session_id {
        0 => call.shard.core.id(),
        id => CoreId(FetchSessionCache::keeper(id, call.shard.core_count())),
    }
}

async fn open_session(
    call: &Call,
    session_id: i32,
    request: SessionRequest,
) -> Result<FetchPlan, ErrorCode> {
    let opening = move |shard: &Rc<Shard>| {
        let now_ms = shard.core.wall_clock_ms();
        std::future::ready(shard.sessions.borrow_mut().open(request, now_ms))
    };
    call.shard
        .mesh()
        .call(keeper(call, session_id), TaskClass::Fetch, opening)
        .await
}

async fn close_session(
    call: &Call,
    session_id: i32,
    plan: FetchPlan,
    outcomes: Vec<PartitionOutcome>,
) -> Result<AnswerShape, ErrorCode> {
    let closing = move |shard: &Rc<Shard>| {
        let (now_ms, random) = (shard.core.wall_clock_ms(), shard.core.random_u64());
        std::future::ready(
            shard
                .sessions
                .borrow_mut()
                .close(&plan, &outcomes, now_ms, random),
        )
    };
    call.shard
        .mesh()
        .call(keeper(call, session_id), TaskClass::Fetch, closing)
        .await
}

/// A fetch under way.
struct Fetch<'a> {
    call: &'a Call,
    isolation: Isolation,
    max_bytes: usize,
    /// A byte limit below 0, for all of it.
    negative: bool,
    /// And for single answers, by their index.
    negative_parts: BTreeSet<usize>,
    min_bytes: usize,
    max_wait: Duration,
    /// By owner core: index in the answers, and what to read.
    owners: BTreeMap<CoreId, Vec<(usize, ReadRequest)>>,
    answers: Vec<PartitionAnswer>,
}

impl<'a> Fetch<'a> {
    fn new(call: &'a Call, request: &FetchRequest, isolation: Isolation, plan: &FetchPlan) -> Self {
        let limit = call.shard.config.fetch.max_bytes as usize;
        let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(limit);
        let follower = request.replica_id >= 0;
        let mut fetch = Fetch {
            call,
            isolation,
            max_bytes,
            negative: request.max_bytes < 0,
            negative_parts: BTreeSet::new(),
            min_bytes: usize::try_from(request.min_bytes)
                .unwrap_or(0)
                .min(max_bytes),
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            owners: BTreeMap::new(),
            answers: Vec::with_capacity(plan.partitions.len()),
        };
        for (key, spec) in &plan.partitions {
            fetch.route(key, spec, follower);
        }
        fetch
    }

    /// Finds the owner of a partition, or the reason why it has none.
    fn route(&mut self, key: &SessionKey, spec: &FetchSpec, follower: bool) {
        let view = self.call.shard.view();
        let (topic, missing) = match &key.topic {
            TopicKey::Name(name) => (
                view.image.topic_by_name(name),
                ErrorCode::UnknownTopicOrPartition,
            ),
            TopicKey::Id(id) => (view.image.topic(*id), ErrorCode::UnknownTopicId),
        };
        let index = self.answers.len();
        let mut missing = topic.is_none().then_some(missing);
        let mut refused = None;
        if let Some(topic) = topic {
            match view.owner(topic.id, key.partition) {
                None => missing = Some(ErrorCode::UnknownTopicOrPartition),
                Some(_) if follower => {
                    let known = view.image.partition(topic.id, key.partition);
                    refused = Some(match known {
                        Some(known) if spec.current_leader_epoch > known.leader_epoch => {
                            ErrorCode::UnknownLeaderEpoch
                        }
                        _ => ErrorCode::NotLeaderOrFollower,
                    });
                }
                Some(owner) => {
                    let request = ReadRequest {
                        key: PartitionKey {
                            topic_id: topic.id,
                            partition: key.partition,
                        },
                        offset: spec.fetch_offset,
                        current_leader_epoch: spec.current_leader_epoch,
                        last_fetched_epoch: spec.last_fetched_epoch,
                        max_bytes: usize::try_from(spec.max_bytes).unwrap_or(0),
                    };
                    self.negative_parts
                        .extend((spec.max_bytes < 0).then_some(index));
                    self.owners.entry(owner).or_default().push((index, request));
                }
            }
        }
        self.answers.push(match missing {
            Some(error) => PartitionAnswer::missing(key.clone(), error),
            None => PartitionAnswer::new(key.clone(), refused),
        });
    }

    /// Reads until there is enough, something went wrong, or time is up.
    async fn until_enough(&mut self) -> Option<Permit> {
        let core = &self.call.shard.core;
        let deadline = core.now() + self.max_wait;
        loop {
            let permit = self.read_once().await;
            let found: usize = self.answers.iter().map(|answer| answer.bytes).sum();
            let settled = self
                .answers
                .iter()
                .any(|answer| answer.data.error_code != 0)
                || self.answers.iter().any(PartitionAnswer::diverges);
            let nothing_to_wait_for = self.owners.is_empty() || self.answers.is_empty();
            let over = core.now() >= deadline || self.call.shard.stopping.is_raised();
            if found >= self.min_bytes || settled || nothing_to_wait_for || over {
                return permit;
            }
            drop(permit);
            self.release_records();
            self.wait(deadline).await;
        }
    }

    /// Memory that an answer refers to is reserved before it is read, and given back when sent.
    ///
    /// Clients that do not take their answers may hold the whole budget. Nobody starves for that: who
    /// waited for long enough gets a small answer without a reservation.
    async fn read_once(&mut self) -> Option<Permit> {
        let shard = &self.call.shard;
        let budget = &shard.memory.responses;
        let wanted = (self.max_bytes as u64).min(budget.capacity() / 4);
        let mut permit = shard
            .core
            .timeout(RESERVE_PATIENCE, budget.reserve(wanted))
            .await
            .ok();
        let max_bytes = match &permit {
            Some(_) => self.max_bytes,
            None => {
                shard.metrics.fetches_without_budget.add(1);
                self.max_bytes.min(UNRESERVED_BYTES)
            }
        };
        let reads = self
            .owners
            .iter()
            .map(|(owner, items)| self.ask(*owner, items, max_bytes));
        let sent = shard.core.now();
        let results: Vec<_> = join_all(reads).await;
        let away = shard.core.now() - sent;
        let read = results
            .iter()
            .map(|(_, took)| *took)
            .max()
            .unwrap_or_default();
        self.call.header.took(Stage::Read, read);
        self.call.header.took(Stage::Hop, away.saturating_sub(read));
        let asked = self.owners.values().flatten();
        let results = results.into_iter().flat_map(|(results, _)| results);
        for ((index, request), result) in asked.zip(results) {
            let answer = &mut self.answers[*index];
            answer.set(result, self.isolation);
            let negative = self.negative || self.negative_parts.contains(index);
            if negative && answer.data.high_watermark > request.offset {
                // As in Kafka, whose reader does not expect it.
                answer.fail(ErrorCode::UnknownServerError);
            }
        }
        let found = self.keep_within_limit();
        if let Some(permit) = &mut permit {
            permit.shrink_to(found as u64);
        }
        permit
    }

    fn ask(
        &self,
        owner: CoreId,
        items: &[(usize, ReadRequest)],
        max_bytes: usize,
    ) -> impl Future<Output = (Vec<Result<Fetched, ReadFailure>>, Duration)> + use<> {
        let requests: Vec<ReadRequest> = items.iter().map(|(_, request)| *request).collect();
        let isolation = self.isolation;
        let zstd_known = self.call.version() >= ZSTD_SINCE_FETCH;
        self.call
            .shard
            .mesh()
            .call(owner, TaskClass::Fetch, move |shard: &Rc<Shard>| {
                let core = shard.core.clone();
                let replicas = shard.replicas.clone();
                async move {
                    let begun = core.now();
                    let results = replicas
                        .read_all(requests, max_bytes, isolation, zstd_known)
                        .await;
                    (results, core.now() - begun)
                }
            })
    }

    /// Each owner keeps the byte limit by itself; together they may be over it. Partitions are
    /// served in the plan's order, the first batch found always.
    fn keep_within_limit(&mut self) -> usize {
        let mut total = 0;
        for answer in self.answers.iter_mut().filter(|answer| answer.bytes > 0) {
            if total > 0 && total + answer.bytes > self.max_bytes {
                answer.drop_records();
            }
            total += answer.bytes;
        }
        total
    }

    fn release_records(&mut self) {
        self.answers
            .iter_mut()
            .for_each(PartitionAnswer::drop_records);
    }

    /// Parks until one of the partitions moves, or until the deadline.
    async fn wait(&self, deadline: shards::time::Instant) {
        let shard = &self.call.shard;
        let core = shard.core.clone();
        let id = WaitId {
            home: core.id().0,
            number: shard.next_wait(),
        };
        let waits: Vec<_> = self
            .owners
            .iter()
            .map(|(owner, items)| {
                let seen = items
                    .iter()
                    .map(|(index, request)| {
                        let data = &self.answers[*index];
                        (request.key, data.data.high_watermark, data.leader_epoch)
                    })
                    .collect();
                let wait = shard
                    .mesh()
                    .call(*owner, TaskClass::Fetch, move |shard: &Rc<Shard>| {
                        shard.replicas.wait_for_any(id, seen)
                    });
                Box::pin(wait)
            })
            .collect();
        let _parked = shard.metrics.parks.enter(Park::FetchRecords);
        let begun = core.now();
        let left = deadline.saturating_duration_since(core.now());
        let fired = std::pin::pin!(core.timeout(left, select_all(waits)));
        let stop = std::pin::pin!(shard.stopping.wait());
        drop(select(fired, stop).await);
        self.call.took(Stage::Park, begun);
        for owner in self.owners.keys() {
            shard
                .mesh()
                .post(*owner, TaskClass::Fetch, move |shard: &Rc<Shard>| {
                    shard.replicas.waiters.call_off(id);
                    std::future::ready(())
                });
        }
    }

    fn outcomes(&self) -> Vec<PartitionOutcome> {
        self.answers.iter().map(PartitionAnswer::outcome).collect()
    }
}

impl PartitionAnswer {
    /// Takes over what the owner found.
    fn set(&mut self, result: Result<Fetched, ReadFailure>, isolation: Isolation) {
        self.drop_records();
        let fetched = match result {
            Ok(fetched) => fetched,
            Err(failure) => {
                self.fail(failure.code());
                return;
            }
        };
        self.leader_epoch = fetched.leader_epoch;
        let data = &mut self.data;
        data.error_code = ErrorCode::None.code();
        data.high_watermark = fetched.high_watermark;
        data.last_stable_offset = fetched.last_stable_offset;
        data.log_start_offset = fetched.log_start_offset;
        data.aborted_transactions = match isolation {
            Isolation::ReadUncommitted => None,
            Isolation::ReadCommitted => Some(Vec::new()),
        };
        match fetched.records {
            FetchedRecords::Slices { parts, bytes } => {
                self.parts = parts;
                self.bytes = bytes;
            }
            FetchedRecords::Diverging { epoch, end_offset } => {
                data.diverging_epoch = Some((epoch, end_offset));
            }
        }
    }
}
