//! What requests of each API cost, and one request on its way through the broker.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use protocol::ApiKey;
use protocol::frame::RequestHeader;
use shards::metrics::{Histogram, HistogramSnapshot};
use shards::time::Instant;

use super::Counter;

/// Where the time of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From its last byte until it starts: earlier requests of its connection come first.
    Queue,
    /// Reading its fields.
    Decode,
    /// Between the core of the connection and the cores that own the partitions, both ways.
    Hop,
    /// Checking batches, and until they are written.
    Append,
    /// Reading records.
    Read,
    /// Waiting for what the client waits for: new records, or the other members of a group.
    Park,
    /// Everything else until the answer is ready.
    Handle,
    /// From the answer until its last byte has left: earlier answers come first.
    Write,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 8] = [
        Stage::Queue,
        Stage::Decode,
        Stage::Hop,
        Stage::Append,
        Stage::Read,
        Stage::Park,
        Stage::Handle,
        Stage::Write,
    ];

    /// Its label.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Queue => "queue",
            Stage::Decode => "decode",
            Stage::Hop => "hop",
            Stage::Append => "append",
            Stage::Read => "read",
            Stage::Park => "park",
            Stage::Handle => "handle",
            Stage::Write => "write",
        }
    }

    /// What it means for a request when most of its time went here.
    pub fn meaning(self) -> &'static str {
        match self {
            Stage::Queue => "it waited for earlier requests of its connection",
            Stage::Decode => "its fields took long to read",
            Stage::Hop => "the cores that own its partitions were busy",
            Stage::Append => "its batches took long to check or the disk to write",
            Stage::Read => "its records took long to read from disk",
            Stage::Park => "it waited for records or for other members",
            Stage::Handle => "it took long to handle",
            Stage::Write => "the client was slow to take its answer",
        }
    }
}

/// Versions that are counted apart; none is higher by far.
const VERSIONS: usize = 32;

/// Requests of one API on one core.
#[derive(Default)]
pub struct ApiMetrics {
    versions: [Counter; VERSIONS],
    errors: RefCell<BTreeMap<i16, u64>>,
    request_bytes: Counter,
    response_bytes: Counter,
    stages: [Histogram; Stage::ALL.len()],
    total: Histogram,
}

/// What an [`ApiMetrics`] holds at one moment; those of several cores can be added up.
#[derive(Clone, Debug, Default)]
pub struct ApiSnapshot {
    /// Requests begun, by version.
    pub versions: BTreeMap<i16, u64>,
    /// Error codes in answers.
    pub errors: BTreeMap<i16, u64>,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of answers.
    pub response_bytes: u64,
    /// By [`Stage`], in order.
    pub stages: [HistogramSnapshot; Stage::ALL.len()],
    /// From the last byte of the request until the last of the answer.
    pub total: HistogramSnapshot,
}

impl ApiMetrics {
    fn snapshot(&self) -> ApiSnapshot {
        let versions = (0..).zip(&self.versions);
        ApiSnapshot {
            versions: versions
                .map(|(version, count)| (version, count.get()))
                .filter(|(_, count)| *count > 0)
                .collect(),
            errors: self.errors.borrow().clone(),
            request_bytes: self.request_bytes.get(),
            response_bytes: self.response_bytes.get(),
            stages: std::array::from_fn(|stage| self.stages[stage].snapshot()),
            total: self.total.snapshot(),
        }
    }
}

impl ApiSnapshot {
    /// Adds what another core counted.
    pub fn merge(&mut self, other: &ApiSnapshot) {
        for (version, count) in &other.versions {
            *self.versions.entry(*version).or_default() += count;
        }
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_default() += count;
        }
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        for (stage, other) in self.stages.iter_mut().zip(&other.stages) {
            stage.merge(other);
        }
        self.total.merge(&other.total);
    }
}

/// By API, those that were asked for.
#[derive(Default)]
pub struct RequestMetrics {
    apis: RefCell<Vec<Option<Rc<ApiMetrics>>>>,
}

impl RequestMetrics {
    fn of(&self, api: ApiKey) -> Rc<ApiMetrics> {
        let index = usize::try_from(api.code()).unwrap_or_default();
        let mut apis = self.apis.borrow_mut();
        if apis.len() <= index {
            apis.resize(index + 1, None);
        }
        apis[index].get_or_insert_default().clone()
    }

    /// Every API that was asked for.
    pub fn snapshot(&self) -> Vec<(ApiKey, ApiSnapshot)> {
        let apis = self.apis.borrow();
        let asked = (0..).zip(apis.iter());
        asked
            .filter_map(|(code, api)| Some((ApiKey::from_i16(code)?, api.as_ref()?.snapshot())))
            .collect()
    }
}

/// A request from its last byte until its answer has left.
pub struct Asked {
    header: RequestHeader,
    counts: Rc<ApiMetrics>,
    bytes: usize,
    received: Instant,
    begun: Cell<Instant>,
    answered: Cell<Instant>,
    /// Nanoseconds by [`Stage`]; queue, handle and write follow from the instants.
    spans: [Cell<u64>; Stage::ALL.len()],
}

impl Asked {
    /// A request of so many bytes that has just arrived.
    pub fn new(
        metrics: &RequestMetrics,
        header: RequestHeader,
        bytes: usize,
        now: Instant,
    ) -> Rc<Self> {
        Rc::new(Asked {
            counts: metrics.of(header.api),
            header,
            bytes,
            received: now,
            begun: Cell::new(now),
            answered: Cell::new(now),
            spans: Default::default(),
        })
    }

    /// It starts.
    pub fn begin(&self, now: Instant) {
        self.begun.set(now);
        let version = usize::try_from(self.header.version).unwrap_or_default();
        self.counts.versions[version.min(VERSIONS - 1)].add(1);
        self.counts.request_bytes.add(self.bytes as u64);
    }

    /// A stage took so long; again and again adds up.
    pub fn took(&self, stage: Stage, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let total = &self.spans[stage as usize];
        total.set(total.get().saturating_add(nanos));
    }

    /// Counts an error code of the answer; "none" is none.
    pub fn count_error(&self, code: i16) {
        if code != 0 {
            *self.counts.errors.borrow_mut().entry(code).or_default() += 1;
        }
    }

    /// Its answer is ready.
    pub fn answer(&self, now: Instant) {
        self.answered.set(now);
    }

    /// Its answer of so many bytes has left: everything is counted.
    pub fn left(&self, now: Instant, bytes: usize) -> Took {
        let (begun, answered) = (self.begun.get(), self.answered.get());
        let known: u64 = self.spans.iter().map(Cell::get).sum();
        let whole = answered.as_nanos().saturating_sub(begun.as_nanos());
        let set = |stage: Stage, nanos: u64| self.spans[stage as usize].set(nanos);
        set(Stage::Handle, whole.saturating_sub(known));
        set(Stage::Queue, (begun - self.received).as_nanos() as u64);
        set(Stage::Write, (now - answered).as_nanos() as u64);
        for (histogram, span) in self.counts.stages.iter().zip(&self.spans) {
            if span.get() > 0 {
                histogram.add_nanos(span.get());
            }
        }
        let total = now - self.received;
        self.counts.total.add(total);
        self.counts.response_bytes.add(bytes as u64);
        Took {
            total,
            spans: std::array::from_fn(|stage| Duration::from_nanos(self.spans[stage].get())),
        }
    }

    /// Bytes of the request.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Deref for Asked {
    type Target = RequestHeader;

    fn deref(&self) -> &RequestHeader {
        &self.header
    }
}

/// How long a request took.
pub struct Took {
    /// From its last byte to the last of its answer.
    pub total: Duration,
    /// By [`Stage`].
    pub spans: [Duration; Stage::ALL.len()],
}

impl Took {
    /// Without what the client asked to wait for.
    pub fn busy(&self) -> Duration {
        self.total.saturating_sub(self.spans[Stage::Park as usize])
    }

    /// Where most of that went.
    pub fn mostly(&self) -> Stage {
        let stages = Stage::ALL.into_iter().filter(|it| *it != Stage::Park);
        stages
            .max_by_key(|stage| self.spans[*stage as usize])
            .unwrap_or(Stage::Handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn header(api: ApiKey, version: i16) -> RequestHeader {
        RequestHeader {
            api,
            version,
            correlation_id: 1,
            client_id: None,
        }
    }

    #[test]
    fn every_moment_of_a_request_belongs_to_one_stage() {
        let metrics = RequestMetrics::default();
        let asked = Asked::new(&metrics, header(ApiKey::Fetch, 12), 80, at(100));
        asked.begin(at(103));
        asked.took(Stage::Decode, Duration::from_millis(1));
        asked.took(Stage::Read, Duration::from_millis(2));
        asked.took(Stage::Park, Duration::from_millis(500));
        asked.took(Stage::Read, Duration::from_millis(4));
        asked.answer(at(620));
        let took = asked.left(at(650), 1000);
        let span = |stage: Stage| took.spans[stage as usize].as_millis();
        assert_eq!(span(Stage::Queue), 3);
        assert_eq!(span(Stage::Read), 6);
        assert_eq!(span(Stage::Handle), 517 - 507);
        assert_eq!(span(Stage::Write), 30);
        let all: Duration = took.spans.iter().sum();
        assert_eq!(all, took.total);
        assert_eq!(took.busy().as_millis(), 50);
        assert_eq!(took.mostly(), Stage::Write);
    }

    #[test]
    fn what_cores_counted_adds_up() {
        let (one, other) = (RequestMetrics::default(), RequestMetrics::default());
        for (metrics, version) in [(&one, 3), (&one, 13), (&other, 13)] {
            let asked = Asked::new(metrics, header(ApiKey::Produce, version), 10, at(0));
            asked.begin(at(0));
            asked.count_error(0);
            asked.count_error(6);
            asked.answer(at(1));
            asked.left(at(2), 5);
        }
        let (api, mut sum) = one.snapshot().remove(0);
        assert_eq!(api, ApiKey::Produce);
        sum.merge(&other.snapshot()[0].1);
        assert_eq!(sum.versions, BTreeMap::from([(3, 1), (13, 2)]));
        assert_eq!(sum.errors, BTreeMap::from([(6, 3)]));
        assert_eq!((sum.request_bytes, sum.response_bytes), (30, 15));
        assert_eq!(sum.total.count(), 3);
        assert_eq!(sum.stages[Stage::Append as usize].count(), 0);
    }
}
