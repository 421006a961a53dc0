//! A consumer as Kafka's clients have it: the partitions of a topic, of topics by a pattern as a member of a group, or one
//! partition alone.
//!
//! [`Consumer::poll`] does everything on the caller's thread: it joins, beats, commits and fetches when that is due.

mod assignor;
mod fetcher;
mod group;
mod offsets;
mod records;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use protocol::Str;

use self::fetcher::{Fetcher, Trouble};
use self::group::{Change, Membership, Position, partition_counts};
pub(super) use self::records::RecordBatch;
pub(super) use self::settings::{ConsumerSettings, OffsetReset};
use super::Failure;
use super::client::{Client, ClientError, Node, Partition};
use super::pattern::Pattern;
use super::signals::Signals;
use super::wake::wait;

/// The longest wait when nothing is to be done.
const IDLE: Duration = Duration::from_secs(60);
/// The leader epoch of a position that no record told.
const NO_EPOCH: i32 = -1;

/// What a consumer of a group reads.
pub(super) enum Topics {
    Named(Str),
    /// Looked up again from time to time.
    Matching(Pattern),
}

/// Where one partition is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Earliest,
    Latest,
    At(i64),
}

/// What `poll` came back with.
#[derive(Debug)]
pub(super) enum Polled {
    Batch(RecordBatch),
    /// Nothing in time.
    Nothing,
    /// The process was asked to end.
    Ending,
}

/// Reads records.
pub(super) struct Consumer {
    client: Client,
    settings: ConsumerSettings,
    signals: Option<Signals>,
    membership: Option<Membership>,
    topics: Topics,
    /// Of the topics that are read, as last looked up.
    counts: BTreeMap<Str, i32>,
    looked_up: Option<Instant>,
    fetcher: Fetcher,
    /// What the caller has seen, to be committed.
    seen: BTreeMap<Partition, Position>,
    committed: BTreeMap<Partition, Position>,
    next_commit: Instant,
    /// How long partitions were being handed out, and since when they are now.
    rebalance_time: Duration,
    rebalancing: Option<Instant>,
}

impl Consumer {
    fn new(client: Client, settings: ConsumerSettings, topics: Topics) -> Consumer {
        let now = Instant::now();
        Consumer {
            client,
            signals: None,
            membership: None,
            topics,
            counts: BTreeMap::new(),
            looked_up: None,
            fetcher: Fetcher::new(settings.clone()),
            seen: BTreeMap::new(),
            committed: BTreeMap::new(),
            next_commit: now + settings.auto_commit_interval,
            rebalance_time: Duration::ZERO,
            rebalancing: Some(now),
            settings,
        }
    }

    /// As a member of the group of the settings.
    ///
    /// # Errors
    /// There is no group in the settings.
    pub(super) fn subscribe(
        client: Client,
        settings: ConsumerSettings,
        topics: Topics,
    ) -> Result<Consumer, Failure> {
        let group = settings
            .group
            .clone()
            .filter(|group| !group.is_empty())
            .ok_or_else(|| Failure::new("group.id: a group is needed to subscribe"))?;
        let mut consumer = Consumer::new(client, settings, topics);
        let settings = consumer.settings.clone();
        consumer.membership = Some(Membership::new(group, settings));
        Ok(consumer)
    }

    /// One partition, without a group.
    ///
    /// # Errors
    /// The partition is not there, or nobody answers.
    pub(super) fn assign(
        client: Client,
        settings: ConsumerSettings,
        partition: Partition,
        start: Start,
    ) -> Result<Consumer, Failure> {
        let topics = Topics::Named(partition.topic.clone());
        let mut consumer = Consumer::new(client, settings, topics);
        let offset = match start {
            Start::At(offset) => offset,
            Start::Earliest => consumer.end_of(&partition, offsets::EARLIEST)?,
            Start::Latest => consumer.end_of(&partition, offsets::LATEST)?,
        };
        consumer
            .fetcher
            .assign(BTreeMap::from([(partition, offset)]));
        consumer.rebalancing = None;
        Ok(consumer)
    }

    /// `poll` comes back when the process is asked to end.
    pub(super) fn end_on(&mut self, signals: Signals) {
        self.signals = Some(signals);
    }

    /// How long this member waited for partitions so far.
    pub(super) fn rebalance_time(&self) -> Duration {
        let now = self
            .rebalancing
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.rebalance_time + now
    }

    /// Remembers what was seen of a partition: everything before this offset.
    pub(super) fn seen(&mut self, partition: &Partition, offset: i64, leader_epoch: i32) {
        let position = Position {
            offset,
            leader_epoch,
        };
        match self.seen.get_mut(partition) {
            Some(known) => *known = position,
            None => {
                self.seen.insert(partition.clone(), position);
            }
        }
    }

    /// The records of the next batch, as soon as there are some.
    ///
    /// # Errors
    /// What does not pass by itself.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Polled, Failure> {
        let deadline = Instant::now().checked_add(timeout);
        let mut joining_answered = false;
        loop {
            self.keep_membership(joining_answered)?;
            self.commit_when_due();
            self.fetcher.start(&mut self.client)?;
            if let Some(batch) = self.fetcher.next()? {
                return Ok(Polled::Batch(batch));
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Polled::Nothing);
            }
            let Some(answered) = self.wait(deadline)? else {
                return Ok(Polled::Ending);
            };
            joining_answered = answered;
        }
    }

    /// Waits for answers, and takes in fetches. Says whether the group answered; nothing if the process is to end.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<bool>, Failure> {
        let arrived = self.fetcher.arrived(&self.client);
        if !arrived.is_empty() {
            for node in arrived {
                self.take_answer(node)?;
            }
            return Ok(Some(false));
        }
        let fetches = self.fetcher.awaited(&self.client);
        let group = self.membership.as_ref().and_then(Membership::awaited);
        let mut files: Vec<_> = fetches.iter().map(|(_, file)| *file).collect();
        let nodes: Vec<Node> = fetches.iter().map(|(node, _)| *node).collect();
        files.extend(group);
        files.extend(self.signals.as_ref().map(AsFd::as_fd));
        let readable = wait(&files, self.until_next_event(deadline));
        let has_group = group.is_some();
        drop(files);
        let mut behind = readable.iter().skip(nodes.len()).copied();
        let answered = has_group && behind.next().unwrap_or(false);
        if self.signals.is_some() && behind.next().unwrap_or(false) {
            return Ok(None);
        }
        for (node, readable) in nodes.into_iter().zip(&readable) {
            if *readable {
                self.take_answer(node)?;
            }
        }
        Ok(Some(answered))
    }

    fn take_answer(&mut self, node: Node) -> Result<(), Failure> {
        for Trouble::OutOfRange(partition) in self.fetcher.finish(&mut self.client, node)? {
            self.reset(&partition)?;
        }
        Ok(())
    }

    fn until_next_event(&self, deadline: Option<Instant>) -> Duration {
        let group = self.membership.as_ref();
        let commits = group.is_some() && self.settings.auto_commit;
        let events = [
            deadline,
            self.fetcher.next_event(),
            group.and_then(Membership::next_event),
            commits.then_some(self.next_commit),
        ];
        let now = Instant::now();
        events
            .into_iter()
            .flatten()
            .map(|moment| moment.saturating_duration_since(now))
            .min()
            .unwrap_or(IDLE)
            .min(IDLE)
    }

    fn keep_membership(&mut self, answered: bool) -> Result<(), Failure> {
        if self.membership.is_none() {
            return Ok(());
        }
        self.look_up_topics()?;
        let topics: Vec<Str> = match &self.topics {
            Topics::Named(topic) => vec![topic.clone()],
            Topics::Matching(_) => self.counts.keys().cloned().collect(),
        };
        let Some(membership) = &mut self.membership else {
            return Ok(());
        };
        match membership.step(&mut self.client, &topics, answered)? {
            Change::Nothing => {}
            Change::Revoked => self.revoke(),
            Change::Assigned(partitions) => self.begin(partitions)?,
        }
        Ok(())
    }

    /// Topics that come and partitions that are added balance the group anew.
    fn look_up_topics(&mut self) -> Result<(), Failure> {
        let age = self.looked_up.map(|when| when.elapsed());
        let fresh = match (age, self.counts.is_empty()) {
            (None, _) => false,
            (Some(age), true) => age < Duration::from_secs(1),
            (Some(age), false) => age < self.settings.metadata_max_age,
        };
        if fresh {
            return Ok(());
        }
        let known = self.looked_up.is_some();
        self.looked_up = Some(Instant::now());
        let metadata = match &self.topics {
            Topics::Named(topic) => self.client.metadata(Some(std::slice::from_ref(topic))),
            Topics::Matching(_) => self.client.metadata(None),
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) if error.is_passing() && known => return Ok(()),
            Err(ClientError::NobodyAnswers { .. }) if known => return Ok(()),
            Err(error) => return Err(Failure::from(error)),
        };
        let mut counts = partition_counts(&metadata);
        if let Topics::Matching(pattern) = &self.topics {
            counts.retain(|topic, _| pattern.matches(topic));
            for topic in &metadata.topics {
                if topic.is_internal {
                    counts.remove(&topic.name.clone().unwrap_or_default());
                }
            }
        }
        if known && counts != self.counts {
            self.commit_seen();
            self.revoke();
            if let Some(membership) = &mut self.membership {
                membership.rejoin();
            }
        }
        self.counts = counts;
        Ok(())
    }

    /// Gives everything back; what was seen is committed first.
    fn revoke(&mut self) {
        if self.rebalancing.is_none() {
            self.rebalancing = Some(Instant::now());
        }
        self.commit_seen();
        self.seen.clear();
        self.committed.clear();
        self.fetcher.assign(BTreeMap::new());
    }

    /// Begins with what was handed out.
    fn begin(&mut self, partitions: Vec<Partition>) -> Result<(), Failure> {
        let group = self.settings.group.clone().unwrap_or_default();
        let mut starts = BTreeMap::new();
        if !partitions.is_empty() {
            let committed = offsets::committed(&mut self.client, &group, &partitions)?;
            let (known, unknown): (Vec<_>, Vec<_>) = partitions
                .into_iter()
                .partition(|partition| committed.contains_key(partition));
            for partition in known {
                if let Some(position) = committed.get(&partition) {
                    starts.insert(partition, position.offset);
                }
            }
            if !unknown.is_empty() {
                let timestamp = self.reset_timestamp(&unknown)?;
                let isolation = self.settings.isolation_level();
                let begins = offsets::ends(&mut self.client, &unknown, timestamp, isolation)?;
                // Positions are committed before anything is read there, as Java's consumer does: whoever goes on
                // with another rule for partitions without an offset would leave out what lies there.
                for (partition, offset) in begins {
                    self.seen(&partition, offset, NO_EPOCH);
                    starts.insert(partition, offset);
                }
            }
            self.committed = committed;
        }
        self.fetcher.assign(starts);
        if let Some(since) = self.rebalancing.take() {
            self.rebalance_time += since.elapsed();
        }
        Ok(())
    }

    fn reset_timestamp(&self, partitions: &[Partition]) -> Result<i64, Failure> {
        match self.settings.reset {
            OffsetReset::Earliest => Ok(offsets::EARLIEST),
            OffsetReset::Latest => Ok(offsets::LATEST),
            OffsetReset::None => {
                let names: Vec<String> = partitions.iter().map(Partition::to_string).collect();
                Err(Failure::new(format!(
                    "Undefined offset with no reset policy for partitions: [{}]",
                    names.join(", ")
                )))
            }
        }
    }

    fn reset(&mut self, partition: &Partition) -> Result<(), Failure> {
        let timestamp = self.reset_timestamp(std::slice::from_ref(partition))?;
        let offset = self.end_of(partition, timestamp)?;
        self.fetcher.seek(partition, offset);
        Ok(())
    }

    fn end_of(&mut self, partition: &Partition, timestamp: i64) -> Result<i64, Failure> {
        let isolation = self.settings.isolation_level();
        let partitions = std::slice::from_ref(partition);
        let ends = offsets::ends(&mut self.client, partitions, timestamp, isolation);
        let ends = ends.map_err(|error| Failure::new(format!("{partition}: {error}")))?;
        ends.get(partition)
            .copied()
            .ok_or_else(|| Failure::new(format!("{partition}: the leader gave no offset")))
    }

    fn commit_when_due(&mut self) {
        let now = Instant::now();
        if now < self.next_commit {
            return;
        }
        self.next_commit = now + self.settings.auto_commit_interval;
        self.commit_seen();
    }

    /// An error is no end: what is not committed is read again, by us or by who comes after.
    fn commit_seen(&mut self) {
        if !self.settings.auto_commit {
            return;
        }
        let Some(membership) = &mut self.membership else {
            return;
        };
        let mut news = self.seen.clone();
        news.retain(|partition, position| self.committed.get(partition) != Some(position));
        if !news.is_empty() && membership.commit(&mut self.client, &news).is_ok() {
            self.committed.extend(news);
        }
    }

    /// Commits what was seen, and leaves the group.
    pub(super) fn close(mut self) {
        self.commit_seen();
        if let Some(membership) = &mut self.membership {
            membership.leave(&mut self.client);
        }
    }
}
