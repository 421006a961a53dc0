//! The thread that sends: takes what is ready to its leader, with several requests under way, and reads the answers.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use protocol::Str;
use protocol::messages::{
    MetadataRequest, MetadataRequestMetadataRequestTopic, ProduceRequest,
    ProduceRequestPartitionProduceData, ProduceRequestTopicProduceData,
};

use super::batch::{Batch, Delivery};
use super::id::ProducerId;
use super::responses::{Fate, fate, of_partition};
use super::state::State;
use super::{OnDelivery, ProducerSettings, Shared};
use crate::tools::Failure;
use crate::tools::client::{Client, ClientError, Node, Ticket};
use crate::tools::wake::wait;

/// The newest version that names topics; later ones have their ids.
const PRODUCE_MAX: i16 = 12;
const PRODUCE_MIN: i16 = 3;
/// The longest wait when nothing is to be done.
const IDLE: Duration = Duration::from_secs(60);

/// One request under way.
struct UnderWay {
    /// None where no answer comes (acks=0).
    ticket: Option<Ticket<ProduceRequest>>,
    started: Instant,
    batches: Vec<(usize, Batch)>,
}

pub(super) struct Sender {
    client: Client,
    topic: Str,
    settings: ProducerSettings,
    on_delivery: OnDelivery,
    id: ProducerId,
    under_way: BTreeMap<i32, VecDeque<UnderWay>>,
    /// Leaders are looked up again before more is sent.
    look_up: bool,
    looked_up: Instant,
    /// Not looked up again before.
    next_look_up: Instant,
    /// A leader does not answer: why, and since when.
    trouble: Option<ClientError>,
}

impl Sender {
    pub(super) fn new(
        client: Client,
        topic: Str,
        settings: ProducerSettings,
        on_delivery: OnDelivery,
    ) -> Sender {
        let now = Instant::now();
        Sender {
            client,
            topic,
            settings,
            on_delivery,
            id: ProducerId::default(),
            under_way: BTreeMap::new(),
            look_up: false,
            looked_up: now,
            next_look_up: now,
            trouble: None,
        }
    }

    /// The leaders of the topic, which is created if the brokers do so.
    pub(super) fn first_metadata(&mut self) -> Result<Vec<Option<i32>>, Failure> {
        let deadline = Instant::now() + self.settings.max_block;
        loop {
            match self.leaders() {
                Ok(leaders) if !leaders.is_empty() => return Ok(leaders),
                Err(error) if !passes(&error) => return Err(Failure::from(error)),
                _ => {}
            }
            if Instant::now() + self.settings.retry_backoff >= deadline {
                return Err(Failure::new(format!(
                    "Topic {} not present in metadata after {} ms.",
                    self.topic,
                    self.settings.max_block.as_millis()
                )));
            }
            std::thread::sleep(self.settings.retry_backoff);
        }
    }

    fn leaders(&mut self) -> Result<Vec<Option<i32>>, ClientError> {
        let request = MetadataRequest {
            topics: Some(
                [MetadataRequestMetadataRequestTopic {
                    name: Some(self.topic.clone()),
                    ..MetadataRequestMetadataRequestTopic::default()
                }]
                .into(),
            ),
            allow_auto_topic_creation: true,
            ..MetadataRequest::default()
        };
        let response = self.client.send_metadata(&request)?;
        self.looked_up = Instant::now();
        let Some(topic) = response.topics.first() else {
            return Ok(Vec::new());
        };
        ClientError::check(topic.error_code, None)?;
        let mut leaders = vec![None; topic.partitions.len()];
        for partition in &topic.partitions {
            let index = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
            if let Some(leader) = leaders.get_mut(index) {
                *leader = (partition.leader_id >= 0).then_some(partition.leader_id);
            }
        }
        Ok(leaders)
    }

    /// Runs until the producer closes and nothing is left.
    pub(super) fn run(mut self, shared: &Shared) {
        loop {
            shared.wake.clear();
            self.maintain(shared);
            self.send_ready(shared);
            let state = shared.lock();
            if state.broken.is_some() || (state.closing && state.undelivered == 0) {
                break;
            }
            let timeout = self.next_event(&state);
            drop(state);
            self.await_answers(shared, timeout);
        }
        shared.progress.notify_all();
    }

    /// Batches past their time, the producer's id, the leaders.
    fn maintain(&mut self, shared: &Shared) {
        let now = Instant::now();
        self.expire(shared, now);
        let idle = self.under_way.values().all(VecDeque::is_empty);
        if self.settings.idempotent && self.id.get().is_none() && idle {
            if self.id.stale {
                self.forget_sequences(shared);
            }
            if let Err(error) = self.id.renew(&mut self.client) {
                if passes(&error) {
                    self.trouble = Some(error);
                    self.look_up = true;
                } else {
                    shared.lock().broken = Some(error.to_string());
                    shared.progress.notify_all();
                    return;
                }
            }
        }
        let old = now.saturating_duration_since(self.looked_up) > self.settings.metadata_max_age;
        if (self.look_up || old) && now >= self.next_look_up {
            self.next_look_up = now + self.settings.retry_backoff;
            match self.leaders() {
                Ok(leaders) => {
                    self.look_up = leaders.iter().any(Option::is_none);
                    self.trouble = None;
                    shared.lock().set_leaders(&leaders);
                }
                Err(error) => self.trouble = Some(error),
            }
        }
    }

    /// All open batches get new sequences.
    fn forget_sequences(&mut self, shared: &Shared) {
        for waiting in &mut shared.lock().partitions {
            for batch in &mut waiting.batches {
                batch.sequence = None;
            }
        }
    }

    /// Gives up what is older than `delivery.timeout.ms`.
    fn expire(&mut self, shared: &Shared, now: Instant) {
        let mut expired = Vec::new();
        let mut state = shared.lock();
        for (partition, waiting) in state.partitions.iter_mut().enumerate() {
            while let Some(first) = waiting.batches.front() {
                let age = now.saturating_duration_since(first.created);
                if age < self.settings.delivery_timeout || waiting.in_flight > 0 {
                    break;
                }
                let sent = first.sequence.is_some();
                let led = waiting.leader.is_some();
                let batch = waiting.batches.pop_front();
                expired.extend(batch.map(|batch| (partition, batch, led)));
                self.id.stale |= sent && self.settings.idempotent;
            }
        }
        drop(state);
        for (partition, batch, led) in expired {
            let trouble = self.trouble.as_ref().map(ToString::to_string);
            let leaderless = || (!led).then(|| "the partition has no leader".to_owned());
            let why = trouble
                .or_else(|| batch.trouble.clone())
                .or_else(leaderless);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let text = format!(
                "Expiring {} record(s) for {}-{partition}:{} ms has passed since batch creation{why}",
                batch.records.len(),
                self.topic,
                now.saturating_duration_since(batch.created).as_millis()
            );
            self.deliver(shared, batch, Some(ClientError::Settings(text)));
        }
    }

    /// Starts requests with all that is ready, one batch a partition in each.
    fn send_ready(&mut self, shared: &Shared) {
        if self.settings.idempotent && self.id.get().is_none() {
            return;
        }
        loop {
            let now = Instant::now();
            let mut requests: BTreeMap<i32, Vec<(usize, Batch)>> = BTreeMap::new();
            let mut state = shared.lock();
            self.take_ready(&mut state, &mut requests, now);
            drop(state);
            if requests.is_empty() {
                return;
            }
            for (node, batches) in requests {
                self.start(shared, node, batches);
            }
        }
    }

    fn take_ready(
        &mut self,
        state: &mut MutexGuard<'_, State>,
        requests: &mut BTreeMap<i32, Vec<(usize, Batch)>>,
        now: Instant,
    ) {
        let mut sizes: BTreeMap<i32, usize> = BTreeMap::new();
        for partition in 0..state.partition_count() {
            let waiting = &state.partitions[partition];
            let Some(node) = waiting.leader else {
                self.look_up |= !waiting.batches.is_empty();
                continue;
            };
            let busy = self.under_way.get(&node).map_or(0, VecDeque::len);
            if busy >= self.settings.max_in_flight
                || state.ready_in(waiting, &self.settings, now) != Some(Duration::ZERO)
            {
                continue;
            }
            let size = sizes.entry(node).or_default();
            let first = waiting.batches.front().map_or(0, |batch| batch.size);
            if *size > 0 && *size + first > self.settings.max_request_size {
                continue;
            }
            *size += first;
            let waiting = &mut state.partitions[partition];
            let Some(mut batch) = waiting.batches.pop_front() else {
                continue;
            };
            waiting.in_flight += 1;
            if self.settings.idempotent && batch.sequence.is_none() {
                batch.sequence = Some(self.id.take(partition, batch.records.len()));
            }
            requests.entry(node).or_default().push((partition, batch));
        }
    }

    fn start(&mut self, shared: &Shared, node: i32, batches: Vec<(usize, Batch)>) {
        let started = Instant::now();
        let request = match self.request(&batches) {
            Ok(request) => request,
            Err(why) => {
                for (partition, batch) in batches {
                    self.landed(shared, partition);
                    let error = ClientError::Settings(why.clone());
                    self.give_up(shared, batch, error);
                }
                return;
            }
        };
        let acks = self.settings.acks;
        let sent = self
            .client
            .connection(Node::Id(node))
            .and_then(|connection| {
                let version =
                    connection.version_within::<ProduceRequest>(PRODUCE_MIN, PRODUCE_MAX)?;
                if acks == 0 {
                    connection.tell(&request, version)?;
                    return Ok(None);
                }
                connection.start_as(&request, version).map(Some)
            });
        match self.client.noticing(Node::Id(node), sent) {
            Ok(None) => {
                for (partition, batch) in batches {
                    self.landed(shared, partition);
                    self.deliver(shared, batch, None);
                }
            }
            Ok(ticket) => self.under_way.entry(node).or_default().push_back(UnderWay {
                ticket,
                started,
                batches,
            }),
            Err(error) => {
                self.broke(shared, node);
                self.fail_all(shared, batches, &error);
            }
        }
    }

    fn request(&self, batches: &[(usize, Batch)]) -> Result<ProduceRequest, String> {
        let producer = self.id.get();
        let mut data = Vec::with_capacity(batches.len());
        for (partition, batch) in batches {
            data.push(ProduceRequestPartitionProduceData {
                index: i32::try_from(*partition).unwrap_or(i32::MAX),
                records: Some(batch.bytes(producer)?),
            });
        }
        Ok(ProduceRequest {
            acks: self.settings.acks,
            timeout_ms: i32::try_from(self.settings.request_timeout.as_millis())
                .unwrap_or(i32::MAX),
            topic_data: [ProduceRequestTopicProduceData {
                name: self.topic.clone(),
                partition_data: data.into(),
                ..ProduceRequestTopicProduceData::default()
            }]
            .into(),
            ..ProduceRequest::default()
        })
    }

    /// How long nothing has to be done unless an answer or a record comes.
    fn next_event(&self, state: &State) -> Duration {
        let now = Instant::now();
        let mut timeout = IDLE;
        for waiting in &state.partitions {
            let free = waiting.leader.is_some_and(|node| {
                self.under_way.get(&node).map_or(0, VecDeque::len) < self.settings.max_in_flight
            });
            if let Some(ready) = state
                .ready_in(waiting, &self.settings, now)
                .filter(|_| free)
            {
                timeout = timeout.min(ready);
            }
            if let Some(first) = waiting.batches.front() {
                let age = now.saturating_duration_since(first.created);
                timeout = timeout.min(self.settings.delivery_timeout.saturating_sub(age));
            }
        }
        for request in self.under_way.values().filter_map(VecDeque::front) {
            let age = now.saturating_duration_since(request.started);
            timeout = timeout.min(self.settings.request_timeout.saturating_sub(age));
        }
        let renewing = self.settings.idempotent && self.id.get().is_none();
        if self.look_up || renewing {
            let idle = self.under_way.values().all(VecDeque::is_empty);
            let least = if renewing && idle {
                Duration::from_millis(1)
            } else {
                Duration::ZERO
            };
            let until = self.next_look_up.saturating_duration_since(now);
            timeout = timeout.min(until.max(least));
        }
        timeout
    }

    /// Waits for answers and for work, and takes in what has come.
    fn await_answers(&mut self, shared: &Shared, timeout: Duration) {
        let nodes: Vec<i32> = self
            .under_way
            .iter()
            .filter_map(|(node, requests)| (!requests.is_empty()).then_some(*node))
            .collect();
        let mut files = vec![shared.wake.as_fd()];
        let mut watched = Vec::new();
        for node in nodes {
            if let Some(connection) = self.client.known_connection(Node::Id(node)) {
                files.push(connection.as_fd());
                watched.push(node);
            }
        }
        let readable = wait(&files, timeout);
        drop(files);
        let ready: Vec<i32> = watched
            .into_iter()
            .zip(readable.into_iter().skip(1))
            .filter_map(|(node, readable)| readable.then_some(node))
            .collect();
        for node in ready {
            self.read_answer(shared, node);
        }
        let now = Instant::now();
        let silent: Vec<i32> = self
            .under_way
            .iter()
            .filter_map(|(node, requests)| {
                let first = requests.front()?;
                let age = now.saturating_duration_since(first.started);
                (age >= self.settings.request_timeout).then_some(*node)
            })
            .collect();
        for node in silent {
            self.client.forget(Node::Id(node));
            self.broke(shared, node);
        }
    }

    fn read_answer(&mut self, shared: &Shared, node: i32) {
        let Some(request) = self.under_way.get_mut(&node).and_then(VecDeque::pop_front) else {
            return;
        };
        let Some(ticket) = request.ticket else { return };
        let answer = self
            .client
            .connection(Node::Id(node))
            .and_then(|connection| connection.finish(ticket));
        match self.client.noticing(Node::Id(node), answer) {
            Ok(response) => {
                for (partition, batch) in request.batches {
                    let (code, message) = of_partition(&response, partition);
                    self.answered(shared, partition, batch, code, message);
                }
            }
            Err(error) => {
                self.fail_all(shared, request.batches, &error);
                self.broke(shared, node);
            }
        }
    }

    fn answered(
        &mut self,
        shared: &Shared,
        partition: usize,
        batch: Batch,
        code: i16,
        message: Option<Str>,
    ) {
        self.landed(shared, partition);
        let first = !shared.lock().partitions[partition]
            .batches
            .iter()
            .any(|other| other.attempts > 0);
        let error = |code| ClientError::Server { code, message };
        match fate(code, self.settings.idempotent, first) {
            Fate::Written => self.deliver(shared, batch, None),
            Fate::Again { code, look_up } => {
                self.look_up |= look_up;
                self.retry(shared, partition, batch, error(code));
            }
            Fate::AgainRenewed { code } => {
                self.id.stale = true;
                self.retry(shared, partition, batch, error(code));
            }
            Fate::Lost { code } => self.give_up(shared, batch, error(code)),
        }
    }

    /// A request of a partition is over.
    fn landed(&self, shared: &Shared, partition: usize) {
        if let Some(waiting) = shared.lock().partitions.get_mut(partition) {
            waiting.in_flight = waiting.in_flight.saturating_sub(1);
        }
    }

    /// Everything under way to a node comes back: its connection is gone.
    fn broke(&mut self, shared: &Shared, node: i32) {
        let requests = self.under_way.remove(&node).unwrap_or_default();
        self.look_up = true;
        for request in requests {
            let address = format!("node {node}");
            let error = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "no answer");
            let error = ClientError::Broken { address, error };
            self.fail_all(shared, request.batches, &error);
        }
    }

    fn fail_all(&mut self, shared: &Shared, batches: Vec<(usize, Batch)>, error: &ClientError) {
        self.look_up = true;
        for (partition, batch) in batches {
            self.landed(shared, partition);
            let again = ClientError::Settings(error.to_string());
            if passes(error) {
                self.retry(shared, partition, batch, again);
            } else {
                self.give_up(shared, batch, again);
            }
        }
    }

    fn retry(&mut self, shared: &Shared, partition: usize, mut batch: Batch, error: ClientError) {
        let now = Instant::now();
        let too_old =
            now.saturating_duration_since(batch.created) >= self.settings.delivery_timeout;
        if batch.attempts >= self.settings.retries || too_old {
            self.give_up(shared, batch, error);
            return;
        }
        batch.attempts += 1;
        batch.trouble = Some(error.to_string());
        batch.not_before = Some(now + self.settings.retry_backoff);
        shared.lock().put_back(partition, batch);
    }

    fn give_up(&mut self, shared: &Shared, batch: Batch, error: ClientError) {
        self.id.stale |= batch.sequence.is_some();
        self.deliver(shared, batch, Some(error));
    }

    fn deliver(&mut self, shared: &Shared, batch: Batch, failure: Option<ClientError>) {
        let count = batch.records.len();
        let size = batch.size;
        (self.on_delivery)(&Delivery {
            records: batch.records,
            failure,
        });
        let mut state = shared.lock();
        state.buffered = state.buffered.saturating_sub(size);
        state.undelivered = state.undelivered.saturating_sub(count);
        state.hurry = false;
        drop(state);
        shared.progress.notify_all();
    }
}

/// As for other requests, and besides a topic may be about to be created.
fn passes(error: &ClientError) -> bool {
    error.is_passing()
        || error.code().is_some_and(protocol::ErrorCode::is_retriable)
        || matches!(error, ClientError::NobodyAnswers { .. })
}
