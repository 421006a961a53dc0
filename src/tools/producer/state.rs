//! What waits to be sent, by partition.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::{ProducerRecord, ProducerSettings};

/// What both threads see, under one lock.
pub(super) struct State {
    pub(super) partitions: Vec<Waiting>,
    /// Bytes of records, waiting and under way.
    pub(super) buffered: usize,
    /// Records whose fate is open.
    pub(super) undelivered: usize,
    /// How many wait for all to be delivered.
    pub(super) flushing: usize,
    /// The buffer is full: nothing lingers.
    pub(super) hurry: bool,
    pub(super) closing: bool,
    /// Why the sender ended.
    pub(super) broken: Option<String>,
}

/// The batches of one partition that are not under way, the next one first.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) batches: VecDeque<Batch>,
    pub(super) in_flight: usize,
    pub(super) leader: Option<i32>,
}

impl State {
    pub(super) fn new(leaders: Vec<Option<i32>>) -> State {
        let mut state = State {
            partitions: Vec::new(),
            buffered: 0,
            undelivered: 0,
            flushing: 0,
            hurry: false,
            closing: false,
            broken: None,
        };
        state.set_leaders(&leaders);
        state
    }

    /// Partitions are added, never taken away.
    pub(super) fn set_leaders(&mut self, leaders: &[Option<i32>]) {
        if leaders.len() > self.partitions.len() {
            self.partitions.resize_with(leaders.len(), Waiting::default);
        }
        for (partition, leader) in self.partitions.iter_mut().zip(leaders) {
            partition.leader = *leader;
        }
    }

    pub(super) fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub(super) fn has_leader(&self, partition: usize) -> bool {
        self.partitions
            .get(partition)
            .is_some_and(|partition| partition.leader.is_some())
    }

    /// Adds a record to the last batch of its partition, or to a new one. Says whether the sender should look now.
    pub(super) fn append(
        &mut self,
        partition: usize,
        record: &ProducerRecord<'_>,
        size: usize,
        settings: &ProducerSettings,
        now: Instant,
    ) -> bool {
        self.buffered += size;
        self.undelivered += 1;
        let Some(waiting) = self.partitions.get_mut(partition) else {
            return false;
        };
        let batches = &mut waiting.batches;
        // What was sent before keeps its records.
        let open = batches.back_mut().filter(|last| {
            last.attempts == 0
                && last.sequence.is_none()
                && last.has_room(size, settings.batch_size)
        });
        match open {
            Some(last) => {
                last.append(record, size, now);
                last.is_full(settings.batch_size)
            }
            None => {
                let mut batch = Batch::new(settings.compression, now);
                batch.append(record, size, now);
                batches.push_back(batch);
                // The first starts to linger, a second one sends the first.
                batches.len() <= 2
            }
        }
    }

    /// How long until the first batch of a partition may go: zero for now, nothing if there is none or it has to wait for
    /// others.
    pub(super) fn ready_in(
        &self,
        partition: &Waiting,
        settings: &ProducerSettings,
        now: Instant,
    ) -> Option<Duration> {
        let first = partition.batches.front()?;
        if first.attempts > 0 {
            // Those behind it fail too: it goes when they are back, so that the order stays.
            if partition.in_flight > 0 {
                return None;
            }
            let until = first.not_before.unwrap_or(now);
            return Some(until.saturating_duration_since(now));
        }
        let full = partition.batches.len() > 1 || first.is_full(settings.batch_size);
        if full || self.flushing > 0 || self.closing || self.hurry {
            return Some(Duration::ZERO);
        }
        let lingered = now.saturating_duration_since(first.created);
        Some(settings.linger.saturating_sub(lingered))
    }

    /// Puts a batch back, in front of those that come after it.
    pub(super) fn put_back(&mut self, partition: usize, batch: Batch) {
        let Some(waiting) = self.partitions.get_mut(partition) else {
            return;
        };
        let behind = |other: &Batch| match (batch.sequence, other.sequence) {
            (Some(mine), Some(theirs)) => theirs.wrapping_sub(mine) > 0,
            _ => other.created >= batch.created,
        };
        let at = waiting
            .batches
            .iter()
            .position(behind)
            .unwrap_or(waiting.batches.len());
        waiting.batches.insert(at, batch);
    }
}
