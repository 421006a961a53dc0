//! Incremental fetch sessions (KIP-227): the broker remembers which partitions a client fetches,
//! the client sends only what changed, and the answer holds only what is new.
//!
//! Pure data: the cache lives on one core, time and randomness are arguments. A session is found by
//! its id alone; `id % cores` names the core that keeps it, so a client may come back over a
//! connection that another core owns.

use std::collections::HashMap;

use indexmap::IndexMap;
use planted::Bug;
use protocol::ErrorCode;
use protocol::hot::TopicKey;

/// The epoch that closes a session, or asks for none (KIP-227).
pub const FINAL_EPOCH: i32 = -1;
/// The epoch that asks for a new session.
pub const INITIAL_EPOCH: i32 = 0;

/// A session that was used more recently than this is only evicted for a larger one that is older
/// (`min.incremental.fetch.session.eviction.ms`, which Kafka fixes at two minutes).
const EVICTION_MS: i64 = 120_000;

/// One partition of a fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// The topic, by name up to Fetch v12, by id from v13.
    pub topic: TopicKey,
    /// The partition index.
    pub partition: i32,
}

/// What the client wants of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchSpec {
    /// Leader epoch known to the client, -1 for none.
    pub current_leader_epoch: i32,
    /// First offset wanted.
    pub fetch_offset: i64,
    /// Epoch of the last fetched record, -1 for none (KIP-595).
    pub last_fetched_epoch: i32,
    /// Byte limit for this partition.
    pub max_bytes: i32,
}

/// The session fields of one fetch request.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// Session id, 0 for none.
    pub id: i32,
    /// Session epoch.
    pub epoch: i32,
    /// Whether topics are named by id (v13+).
    pub uses_topic_ids: bool,
    /// Partitions to add or update, in request order.
    pub partitions: Vec<(PartitionKey, FetchSpec)>,
    /// Partitions to forget.
    pub forgotten: Vec<PartitionKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sessionless,
    Full { uses_topic_ids: bool },
    Incremental { id: i32, expected_epoch: i32 },
}

/// What is to be read, and how the answer is to be shaped.
#[derive(Clone, Debug)]
pub struct FetchPlan {
    kind: Kind,
    /// The partitions to read, in the order in which they are to be served.
    pub partitions: Vec<(PartitionKey, FetchSpec)>,
}

/// The outcome of one partition, as far as sessions care.
#[derive(Clone, Copy, Debug)]
pub struct PartitionOutcome {
    /// High watermark answered.
    pub high_watermark: i64,
    /// Log start offset answered.
    pub log_start_offset: i64,
    /// Whether record bytes go out.
    pub has_records: bool,
    /// Whether the partition answers an error, a diverging epoch or another replica to read from.
    pub must_respond: bool,
}

/// Which partitions the answer holds.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerShape {
    /// Session id for the answer, 0 for none.
    pub session_id: i32,
    /// One flag per partition of the plan.
    pub include: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Remembered {
    spec: FetchSpec,
    high_watermark: i64,
    log_start_offset: i64,
}

impl Remembered {
    fn new(spec: FetchSpec) -> Self {
        Remembered {
            spec,
            high_watermark: -1,
            log_start_offset: -1,
        }
    }

    /// Notes what is answered and tells whether the answer must hold this partition.
    fn note(&mut self, outcome: &PartitionOutcome) -> bool {
        let changed = outcome.high_watermark != self.high_watermark
            || outcome.log_start_offset != self.log_start_offset;
        self.high_watermark = outcome.high_watermark;
        self.log_start_offset = outcome.log_start_offset;
        if outcome.must_respond {
            // The first answer after an error is always sent, so that the client sees it is over.
            self.high_watermark = -1;
        }
        changed || outcome.has_records || outcome.must_respond
    }
}

struct Session {
    epoch: i32,
    uses_topic_ids: bool,
    partitions: IndexMap<PartitionKey, Remembered>,
    created_ms: i64,
    last_used_ms: i64,
}

/// The sessions that one core keeps.
pub struct FetchSessionCache {
    sessions: HashMap<i32, Session>,
    slots: usize,
    core: u16,
    cores: u16,
    /// Sessions evicted to make room for others.
    pub evictions: u64,
}

impl FetchSessionCache {
    /// A cache for `slots` sessions: this core's part of
    /// `max.incremental.fetch.session.cache.slots`.
    pub fn new(slots: usize, core: u16, cores: u16) -> Self {
        FetchSessionCache {
            sessions: HashMap::new(),
            slots,
            core,
            cores,
            evictions: 0,
        }
    }

    /// The core that keeps the session `id`.
    pub fn keeper(id: i32, cores: u16) -> u16 {
        u16::try_from(id.rem_euclid(i32::from(cores))).unwrap_or(0)
    }

    /// Sessions kept now.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no session is kept.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Partitions remembered in all sessions.
    pub fn partition_count(&self) -> usize {
        self.sessions
            .values()
            .map(|session| session.partitions.len())
            .sum()
    }

    /// Ends the session `id`, if it is here.
    pub fn remove(&mut self, id: i32) {
        self.sessions.remove(&id);
    }

    /// Turns a request into the list of partitions to read.
    ///
    /// # Errors
    /// FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR or INVALID_FETCH_SESSION_EPOCH,
    /// each for the whole request.
    pub fn open(&mut self, request: SessionRequest, now_ms: i64) -> Result<FetchPlan, ErrorCode> {
        if request.epoch == INITIAL_EPOCH || request.epoch == FINAL_EPOCH {
            self.remove(request.id);
            let kind = match request.epoch {
                FINAL_EPOCH => Kind::Sessionless,
                _ => Kind::Full {
                    uses_topic_ids: request.uses_topic_ids,
                },
            };
            return Ok(FetchPlan {
                kind,
                partitions: request.partitions,
            });
        }
        let session = self
            .sessions
            .get_mut(&request.id)
            .ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if session.epoch != request.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.update(&request);
        if session.partitions.is_empty() {
            self.remove(request.id);
            return Ok(FetchPlan {
                kind: Kind::Sessionless,
                partitions: request.partitions,
            });
        }
        session.epoch = next_epoch(session.epoch);
        session.last_used_ms = now_ms;
        let partitions = session
            .partitions
            .iter()
            .map(|(key, part)| (key.clone(), part.spec))
            .collect();
        let kind = Kind::Incremental {
            id: request.id,
            expected_epoch: session.epoch,
        };
        Ok(FetchPlan { kind, partitions })
    }

    /// Shapes the answer to `plan` whose partitions came out as `outcomes`, in the plan's order.
    ///
    /// # Errors
    /// INVALID_FETCH_SESSION_EPOCH if another request moved the session on meanwhile,
    /// FETCH_SESSION_ID_NOT_FOUND if it was evicted.
    pub fn close(
        &mut self,
        plan: &FetchPlan,
        outcomes: &[PartitionOutcome],
        now_ms: i64,
        random: u64,
    ) -> Result<AnswerShape, ErrorCode> {
        match plan.kind {
            Kind::Sessionless => Ok(everything(0, outcomes.len())),
            Kind::Full { uses_topic_ids } => {
                let id = self.create(plan, outcomes, uses_topic_ids, now_ms, random);
                Ok(everything(id, outcomes.len()))
            }
            Kind::Incremental { id, expected_epoch } => {
                let session = self
                    .sessions
                    .get_mut(&id)
                    .ok_or(ErrorCode::FetchSessionIdNotFound)?;
                if session.epoch != expected_epoch {
                    return Err(ErrorCode::InvalidFetchSessionEpoch);
                }
                let include = session.note(plan, outcomes);
                Ok(AnswerShape {
                    session_id: id,
                    include,
                })
            }
        }
    }

    /// Keeps a new session if there is room; 0 where there is none (not an error).
    fn create(
        &mut self,
        plan: &FetchPlan,
        outcomes: &[PartitionOutcome],
        uses_topic_ids: bool,
        now_ms: i64,
        random: u64,
    ) -> i32 {
        if !self.make_room(plan.partitions.len(), now_ms) {
            return 0;
        }
        let id = self.fresh_id(random);
        let mut partitions = IndexMap::with_capacity(plan.partitions.len());
        for ((key, spec), outcome) in plan.partitions.iter().zip(outcomes) {
            let mut part = Remembered::new(*spec);
            part.note(outcome);
            partitions.insert(key.clone(), part);
        }
        let session = Session {
            epoch: next_epoch(INITIAL_EPOCH),
            uses_topic_ids,
            partitions,
            created_ms: now_ms,
            last_used_ms: now_ms,
        };
        self.sessions.insert(id, session);
        id
    }

    /// Kafka's rule: the least recently used session goes if it was idle long enough, else the
    /// smallest one that is smaller than the new one and old enough.
    fn make_room(&mut self, size: usize, now_ms: i64) -> bool {
        if self.sessions.len() < self.slots {
            return true;
        }
        let idle = self
            .sessions
            .iter()
            .min_by_key(|(id, s)| (s.last_used_ms, **id));
        let victim = match idle {
            Some((id, session)) if now_ms - session.last_used_ms > EVICTION_MS => Some(*id),
            _ => self
                .sessions
                .iter()
                .filter(|(_, s)| now_ms - s.created_ms > EVICTION_MS)
                .filter(|(_, s)| s.partitions.len() < size)
                .min_by_key(|(id, s)| (s.partitions.len(), **id))
                .map(|(id, _)| *id),
        };
        let Some(victim) = victim else { return false };
        self.sessions.remove(&victim);
        self.evictions += 1;
        true
    }

    /// A positive id that names this core as the keeper and is free.
    fn fresh_id(&self, random: u64) -> i32 {
        let cores = i32::from(self.cores);
        let top = i32::MAX / cores - 1;
        let mut step = i32::try_from(random % u64::from(top.unsigned_abs())).unwrap_or(0);
        loop {
            let id = step * cores + i32::from(self.core);
            if id > 0 && !self.sessions.contains_key(&id) {
                return id;
            }
            step = (step + 1) % top;
        }
    }
}

impl Session {
    fn update(&mut self, request: &SessionRequest) {
        for (key, spec) in &request.partitions {
            match self.partitions.get_mut(key) {
                Some(_) if planted::here(Bug::StaleSession) => {}
                Some(part) => part.spec = *spec,
                None => {
                    self.partitions.insert(key.clone(), Remembered::new(*spec));
                }
            }
        }
        for key in &request.forgotten {
            self.partitions.shift_remove(key);
        }
    }

    /// Notes what goes out; a partition that gave records goes to the end of the order, so that a
    /// busy one starves no other.
    fn note(&mut self, plan: &FetchPlan, outcomes: &[PartitionOutcome]) -> Vec<bool> {
        let mut include = Vec::with_capacity(outcomes.len());
        for ((key, _), outcome) in plan.partitions.iter().zip(outcomes) {
            let Some(part) = self.partitions.get_mut(key) else {
                include.push(false);
                continue;
            };
            include.push(part.note(outcome));
            if outcome.has_records
                && let Some((key, part)) = self.partitions.shift_remove_entry(key)
            {
                self.partitions.insert(key, part);
            }
        }
        include
    }
}

fn everything(session_id: i32, count: usize) -> AnswerShape {
    AnswerShape {
        session_id,
        include: vec![true; count],
    }
}

/// Epochs count up and skip 0 and negative values when they wrap.
fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        i32::MAX => 1,
        other if other < 0 => FINAL_EPOCH,
        other => other + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Str;

    fn key(partition: i32) -> PartitionKey {
        PartitionKey {
            topic: TopicKey::Name(Str::from("t")),
            partition,
        }
    }

    fn spec(fetch_offset: i64) -> FetchSpec {
        FetchSpec {
            current_leader_epoch: -1,
            fetch_offset,
            last_fetched_epoch: -1,
            max_bytes: 1 << 20,
        }
    }

    fn request(id: i32, epoch: i32, partitions: &[i32]) -> SessionRequest {
        SessionRequest {
            id,
            epoch,
            uses_topic_ids: false,
            partitions: partitions.iter().map(|&p| (key(p), spec(0))).collect(),
            forgotten: vec![],
        }
    }

    fn quiet(high_watermark: i64) -> PartitionOutcome {
        PartitionOutcome {
            high_watermark,
            log_start_offset: 0,
            has_records: false,
            must_respond: false,
        }
    }

    fn cache(slots: usize) -> FetchSessionCache {
        FetchSessionCache::new(slots, 1, 3)
    }

    fn started(cache: &mut FetchSessionCache, partitions: &[i32]) -> i32 {
        let plan = cache
            .open(request(0, INITIAL_EPOCH, partitions), 0)
            .unwrap();
        let outcomes = vec![quiet(5); partitions.len()];
        cache.close(&plan, &outcomes, 0, 77).unwrap().session_id
    }

    #[test]
    fn an_id_names_its_keeper() {
        let mut cache = cache(10);
        for _ in 0..5 {
            let id = started(&mut cache, &[0]);
            assert!(id > 0);
            assert_eq!(FetchSessionCache::keeper(id, 3), 1);
        }
        assert_eq!(cache.len(), 5);
    }

    #[test]
    fn unchanged_partitions_are_left_out_and_changes_come_back() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0, 1]);
        let plan = cache.open(request(id, 1, &[]), 1).unwrap();
        assert_eq!(plan.partitions.len(), 2);
        let shape = cache.close(&plan, &[quiet(5), quiet(6)], 1, 0).unwrap();
        assert_eq!(
            shape,
            AnswerShape {
                session_id: id,
                include: vec![false, true]
            }
        );

        let failed = PartitionOutcome {
            must_respond: true,
            ..quiet(-1)
        };
        let plan = cache.open(request(id, 2, &[]), 2).unwrap();
        assert_eq!(
            cache
                .close(&plan, &[failed, quiet(6)], 2, 0)
                .unwrap()
                .include,
            [true, false]
        );
        let plan = cache.open(request(id, 3, &[]), 3).unwrap();
        let shape = cache.close(&plan, &[quiet(5), quiet(6)], 3, 0).unwrap();
        assert_eq!(shape.include, [true, false], "the end of an error is told");
    }

    #[test]
    fn a_moved_log_start_is_told() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0]);
        let plan = cache.open(request(id, 1, &[]), 1).unwrap();
        let trimmed = PartitionOutcome {
            log_start_offset: 3,
            ..quiet(5)
        };
        assert_eq!(
            cache.close(&plan, &[trimmed], 1, 0).unwrap().include,
            [true]
        );
    }

    #[test]
    fn records_move_a_partition_to_the_end() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0, 1, 2]);
        let plan = cache.open(request(id, 1, &[]), 1).unwrap();
        let full = PartitionOutcome {
            has_records: true,
            ..quiet(9)
        };
        cache
            .close(&plan, &[full, quiet(5), quiet(5)], 1, 0)
            .unwrap();
        let plan = cache.open(request(id, 2, &[]), 2).unwrap();
        let order: Vec<i32> = plan
            .partitions
            .iter()
            .map(|(key, _)| key.partition)
            .collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn wrong_epochs_and_ids_are_refused() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0]);
        let refused = |r| match r {
            Err(code) => code,
            Ok(plan) => panic!("accepted {plan:?}"),
        };
        let code = refused(cache.open(request(id, 2, &[]), 1));
        assert_eq!(code, ErrorCode::InvalidFetchSessionEpoch);
        let code = refused(cache.open(request(id + 3, 1, &[]), 1));
        assert_eq!(code, ErrorCode::FetchSessionIdNotFound);
        let by_id = SessionRequest {
            uses_topic_ids: true,
            ..request(id, 1, &[])
        };
        assert_eq!(
            refused(cache.open(by_id, 1)),
            ErrorCode::FetchSessionTopicIdError
        );
    }

    #[test]
    fn forgetting_all_ends_the_session() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0]);
        let forget = SessionRequest {
            forgotten: vec![key(0)],
            ..request(id, 1, &[])
        };
        let plan = cache.open(forget, 1).unwrap();
        assert!(plan.partitions.is_empty());
        assert!(cache.is_empty());
        assert_eq!(cache.close(&plan, &[], 1, 0).unwrap().session_id, 0);
    }

    #[test]
    fn a_final_epoch_closes_and_serves_without_session() {
        let mut cache = cache(10);
        let id = started(&mut cache, &[0]);
        let plan = cache.open(request(id, FINAL_EPOCH, &[0]), 1).unwrap();
        assert!(cache.is_empty());
        assert_eq!(cache.close(&plan, &[quiet(5)], 1, 0).unwrap().session_id, 0);
    }

    #[test]
    fn a_full_cache_answers_without_a_session() {
        let mut cache = cache(2);
        let first = started(&mut cache, &[0]);
        started(&mut cache, &[0]);
        assert_eq!(started(&mut cache, &[0]), 0);
        let plan = cache
            .open(request(0, INITIAL_EPOCH, &[0]), EVICTION_MS + 1)
            .unwrap();
        let id = cache
            .close(&plan, &[quiet(1)], EVICTION_MS + 1, 3)
            .unwrap()
            .session_id;
        assert_ne!(id, 0, "an idle one makes room");
        assert_eq!(cache.evictions, 1);
        assert!(cache.open(request(first, 1, &[]), EVICTION_MS + 1).is_err());
    }

    #[test]
    fn an_overtaken_answer_is_refused() {
        let mut cache = cache(2);
        let id = started(&mut cache, &[0]);
        let slow = cache.open(request(id, 1, &[]), 1).unwrap();
        cache.open(request(id, 2, &[]), 1).unwrap();
        let refused = cache.close(&slow, &[quiet(5)], 1, 0);
        assert_eq!(refused, Err(ErrorCode::InvalidFetchSessionEpoch));
    }

    #[test]
    fn epochs_wrap_to_one() {
        assert_eq!(next_epoch(i32::MAX), 1);
        assert_eq!(next_epoch(1), 2);
    }
}
