//! Fetches: one under way to each leader while the records of the last one are looked at.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use protocol::messages::{
    FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic, FetchResponse,
    FetchResponsePartitionData,
};
use protocol::{ErrorCode, Str};

use super::records::{BadBatch, Fetched, RecordBatch};
use super::settings::{ConsumerSettings, millis};
use crate::tools::Failure;
use crate::tools::client::{Client, ClientError, Node, Partition, Ticket};

/// The newest version that names topics; later ones have their ids.
const FETCH_MAX: i16 = 12;
const FETCH_MIN: i16 = 4;

struct UnderWay {
    ticket: Ticket<FetchRequest>,
    /// From where each partition was asked for.
    asked: BTreeMap<Partition, i64>,
}

/// What has to be done about a partition before it can be fetched from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    OutOfRange(Partition),
}

pub(super) struct Fetcher {
    settings: ConsumerSettings,
    /// Where the next fetch begins.
    positions: BTreeMap<Partition, i64>,
    leaders: BTreeMap<Partition, Node>,
    under_way: BTreeMap<Node, UnderWay>,
    fetched: VecDeque<Fetched>,
    pub(super) look_up: bool,
    looked_up: Option<Instant>,
    not_before: Instant,
    /// Partitions of one leader take turns at the front.
    turn: usize,
}

impl Fetcher {
    pub(super) fn new(settings: ConsumerSettings) -> Fetcher {
        Fetcher {
            settings,
            positions: BTreeMap::new(),
            leaders: BTreeMap::new(),
            under_way: BTreeMap::new(),
            fetched: VecDeque::new(),
            look_up: true,
            looked_up: None,
            not_before: Instant::now(),
            turn: 0,
        }
    }

    /// Reads these partitions from these offsets, and nothing else.
    pub(super) fn assign(&mut self, positions: BTreeMap<Partition, i64>) {
        self.fetched.clear();
        self.positions = positions;
        self.look_up = true;
    }

    /// Goes on elsewhere in one partition.
    pub(super) fn seek(&mut self, partition: &Partition, offset: i64) {
        self.fetched
            .retain(|fetched| fetched.partition != *partition);
        self.positions.insert(partition.clone(), offset);
    }

    /// The next batch of what has come.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        while let Some(front) = self.fetched.front_mut() {
            match front.next() {
                Some(Ok(batch)) => return Ok(Some(batch)),
                Some(Err(bad)) => return Err(unreadable(&front.partition, &bad)),
                None => {
                    self.fetched.pop_front();
                }
            }
        }
        Ok(None)
    }

    pub(super) fn awaited<'a>(&self, client: &'a Client) -> Vec<(Node, BorrowedFd<'a>)> {
        self.under_way
            .keys()
            .filter_map(|node| Some((*node, client.known_connection(*node)?.as_fd())))
            .collect()
    }

    /// Leaders whose answer need not be waited for: it was read along with another one, or will never come.
    pub(super) fn arrived(&self, client: &Client) -> Vec<Node> {
        let at_hand = |(node, request): (&Node, &UnderWay)| {
            let known = client.known_connection(*node);
            let waits = known.is_some_and(|connection| {
                connection.expects(&request.ticket) && !connection.has_answer(&request.ticket)
            });
            (!waits).then_some(*node)
        };
        self.under_way.iter().filter_map(at_hand).collect()
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        (!self.positions.is_empty() && (self.look_up || self.under_way.is_empty()))
            .then_some(self.not_before)
    }

    /// Starts a fetch to each leader that has none under way, as long as little is left of the last ones.
    pub(super) fn start(&mut self, client: &mut Client) -> Result<(), Failure> {
        let now = Instant::now();
        if self.positions.is_empty() || now < self.not_before {
            return Ok(());
        }
        let old = self.looked_up.is_none_or(|when| {
            now.saturating_duration_since(when) > self.settings.metadata_max_age
        });
        if self.look_up || old {
            self.look_up_leaders(client, now)?;
        }
        // One answer is looked at and one is on its way.
        if self.fetched.len() > self.positions.len() {
            return Ok(());
        }
        let mut by_node: BTreeMap<Node, BTreeMap<Partition, i64>> = BTreeMap::new();
        for (partition, offset) in &self.positions {
            if let Some(node) = self.leaders.get(partition)
                && !self.under_way.contains_key(node)
            {
                let asked = by_node.entry(*node).or_default();
                asked.insert(partition.clone(), *offset);
            }
        }
        for (node, asked) in by_node {
            let request = self.request(&asked);
            let started = client.connection(node).and_then(|connection| {
                let version = connection.version_within::<FetchRequest>(FETCH_MIN, FETCH_MAX)?;
                connection.start_as(&request, version)
            });
            match client.noticing(node, started) {
                Ok(ticket) => {
                    self.under_way.insert(node, UnderWay { ticket, asked });
                }
                Err(error) => self.pause(&error, now)?,
            }
        }
        Ok(())
    }

    fn look_up_leaders(&mut self, client: &mut Client, now: Instant) -> Result<(), Failure> {
        let mut topics: Vec<Str> = Vec::new();
        for partition in self.positions.keys() {
            if topics.last() != Some(&partition.topic) {
                topics.push(partition.topic.clone());
            }
        }
        match client.leaders(&topics) {
            Ok(leaders) => {
                self.leaders = leaders;
                self.look_up = false;
                self.looked_up = Some(now);
                Ok(())
            }
            // It may come back, as Java's consumer hopes too.
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => {
                self.not_before = now + self.settings.retry_backoff;
                Ok(())
            }
            Err(error) => self.pause(&error, now),
        }
    }

    fn pause(&mut self, error: &ClientError, now: Instant) -> Result<(), Failure> {
        if !error.is_passing() && !matches!(error, ClientError::NobodyAnswers { .. }) {
            return Err(Failure::new(error.to_string()));
        }
        self.look_up = true;
        self.not_before = now + self.settings.retry_backoff;
        Ok(())
    }

    fn request(&mut self, asked: &BTreeMap<Partition, i64>) -> FetchRequest {
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % asked.len().max(1);
        let mut topics: Vec<FetchRequestFetchTopic> = Vec::new();
        let all = asked.iter();
        for (partition, offset) in all.clone().skip(first).chain(all.take(first)) {
            let entry = FetchRequestFetchPartition {
                partition: partition.number,
                fetch_offset: *offset,
                partition_max_bytes: self.settings.partition_max_bytes,
                ..FetchRequestFetchPartition::default()
            };
            match topics
                .last_mut()
                .filter(|last| last.topic == partition.topic)
            {
                Some(topic) => topic.partitions.push(entry),
                None => topics.push(FetchRequestFetchTopic {
                    topic: partition.topic.clone(),
                    partitions: [entry].into(),
                    ..FetchRequestFetchTopic::default()
                }),
            }
        }
        FetchRequest {
            max_wait_ms: millis(self.settings.fetch_max_wait),
            min_bytes: self.settings.fetch_min_bytes,
            max_bytes: self.settings.fetch_max_bytes,
            isolation_level: self.settings.isolation_level(),
            topics: topics.into(),
            ..FetchRequest::default()
        }
    }

    /// Takes in the answer of a node that has begun to arrive.
    pub(super) fn finish(
        &mut self,
        client: &mut Client,
        node: Node,
    ) -> Result<Vec<Trouble>, Failure> {
        let Some(request) = self.under_way.remove(&node) else {
            return Ok(Vec::new());
        };
        let expected = client
            .known_connection(node)
            .is_some_and(|connection| connection.expects(&request.ticket));
        if !expected {
            self.look_up = true;
            return Ok(Vec::new());
        }
        let answer = client
            .connection(node)
            .and_then(|connection| connection.finish(request.ticket));
        match client.noticing(node, answer) {
            Ok(response) => self.take(response, &request.asked),
            Err(error) => {
                self.pause(&error, Instant::now())?;
                Ok(Vec::new())
            }
        }
    }

    pub(super) fn take(
        &mut self,
        response: FetchResponse,
        asked: &BTreeMap<Partition, i64>,
    ) -> Result<Vec<Trouble>, Failure> {
        let failed = |code| ClientError::check(code, None).map_err(Failure::from);
        failed(response.error_code)?;
        let mut troubles = Vec::new();
        for topic in response.responses {
            for data in topic.partitions {
                let partition = Partition {
                    topic: topic.topic.clone(),
                    number: data.partition_index,
                };
                // Taken away or moved while the answer was on its way.
                let from = asked.get(&partition);
                if from.is_none() || self.positions.get(&partition) != from {
                    continue;
                }
                match ErrorCode::from_i16(data.error_code) {
                    Some(ErrorCode::None) => self.keep(partition, data),
                    Some(ErrorCode::OffsetOutOfRange) => {
                        troubles.push(Trouble::OutOfRange(partition));
                    }
                    // It stays so, though others may be tried again.
                    Some(ErrorCode::CorruptMessage) => {
                        return Err(Failure::new(format!(
                            "the broker cannot serve the records of {partition} from offset {} on: a batch is damaged there, \
                             and its log names the file. To go on behind it, begin at a later offset",
                            from.copied().unwrap_or_default()
                        )));
                    }
                    Some(error) if error.is_retriable() => {
                        self.look_up = true;
                        self.not_before = Instant::now() + self.settings.retry_backoff;
                    }
                    _ => failed(data.error_code)?,
                }
            }
        }
        Ok(troubles)
    }

    fn keep(&mut self, partition: Partition, data: FetchResponsePartitionData) {
        let bytes = data.records.unwrap_or_default();
        let Some(from) = self.positions.get(&partition).copied() else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let fetched = Fetched::new(
            partition.clone(),
            bytes,
            from,
            data.aborted_transactions.unwrap_or_default().into(),
            self.settings.read_committed,
            self.settings.check_crcs,
        );
        self.positions.insert(partition, fetched.end());
        self.fetched.push_back(fetched);
    }
}

fn unreadable(partition: &Partition, bad: &BadBatch) -> Failure {
    let behind = bad
        .next_offset
        .map_or_else(|| "a later one".to_owned(), |next| format!("{next}"));
    Failure::new(format!(
        "the records of {partition} from offset {} on cannot be read: {}. To go on behind them, begin at offset {behind}",
        bad.offset, bad.error
    ))
}
