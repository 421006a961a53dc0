//! Appending: offsets at the call, the rest when the write is done.

use super::state::{Queued, QueuedBatch, State};
use super::{Log, LogInner};
use crate::batch::BatchHeader;
use crate::config::TimestampType;
use crate::error::{AppendError, StorageError};
use crate::producer::{AppendOrigin, EndMarker, Undo, Verdict, snapshot};
use crate::segment::roll::SegmentPlan;
use crate::segment::writer::PlacedBatch;
use bytes::Bytes;
use planted::Bug;
use protocol::records::BatchView;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What became of an append.
pub type WriteOutcome = Result<(), StorageError>;

/// Shared by the batches of one append and by those who wait for it.
pub(crate) struct Completion {
    outcome: RefCell<Outcome>,
}

enum Outcome {
    Pending {
        /// Nearly always the only one.
        first: Option<Waker>,
        others: Vec<Waker>,
    },
    Done(WriteOutcome),
}

impl Completion {
    fn new() -> Rc<Completion> {
        Rc::new(Completion {
            outcome: RefCell::new(Outcome::Pending {
                first: None,
                others: Vec::new(),
            }),
        })
    }

    fn done() -> Rc<Completion> {
        Rc::new(Completion {
            outcome: RefCell::new(Outcome::Done(Ok(()))),
        })
    }

    /// Settles it and wakes who waits. Call without the log borrowed.
    pub fn complete(&self, outcome: WriteOutcome) {
        if let Outcome::Pending { first, others } = self.outcome.replace(Outcome::Done(outcome)) {
            first.into_iter().chain(others).for_each(Waker::wake);
        }
    }
}

/// An append that has its offsets. Resolves when its batches are written (durable with `flush.messages=1`), with the
/// reason where they could not be. Dropping it does not take the append back.
pub struct AppendTicket {
    /// Offsets given to the batches, or those of the original where this is a duplicate.
    pub first_offset: i64,
    pub last_offset: i64,
    /// The broker's time stamped on the records; `None` unless the topic uses LogAppendTime. Of a duplicate always: the
    /// last time in the original, whoever gave it.
    pub log_append_time_ms: Option<i64>,
    /// Sent again by an idempotent producer: nothing was appended.
    pub duplicate: bool,
    completion: Rc<Completion>,
}

impl Future for AppendTicket {
    type Output = WriteOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WriteOutcome> {
        match &mut *self.completion.outcome.borrow_mut() {
            Outcome::Done(outcome) => Poll::Ready(outcome.clone()),
            Outcome::Pending { .. } if planted::here(Bug::AnswerBeforeWrite) => Poll::Ready(Ok(())),
            Outcome::Pending { first, others } => {
                let waker = context.waker();
                if !first.iter().chain(&*others).any(|it| it.will_wake(waker)) {
                    match first {
                        None => *first = Some(waker.clone()),
                        Some(_) => others.push(waker.clone()),
                    }
                }
                Poll::Pending
            }
        }
    }
}

impl Log {
    /// Appends whole v2 batches that were validated before. Offsets are assigned now, in call order; await the ticket
    /// for the write. `leader_epoch` is written into the batches, except from replication, whose batches keep their
    /// own epochs and offsets.
    ///
    /// Memory: the batches are kept until their write begins, then they are copied once.
    ///
    /// # Errors
    /// A refusal leaves the log as it was.
    pub fn append(
        &self,
        batches: &[Bytes],
        leader_epoch: i32,
        origin: AppendOrigin,
    ) -> Result<AppendTicket, AppendError> {
        let ticket = self.0.plan_append(batches, leader_epoch, origin);
        if ticket.is_err() {
            self.0
                .storage
                .count(|counters| counters.refused_batches += batches.len() as u64);
        }
        let ticket = ticket?;
        self.0.count_producers();
        if !ticket.duplicate && !batches.is_empty() {
            self.0.storage.count(|counters| {
                counters.appended_batches += batches.len() as u64;
                counters.appended_bytes += batches.iter().map(|b| b.len() as u64).sum::<u64>();
            });
            self.0.ensure_watched();
            self.0.start_writer();
        }
        Ok(ticket)
    }
}

/// What to restore where a later batch of the same append is refused.
struct Checkpoint {
    queue_len: usize,
    next_offset: i64,
    planned: SegmentPlan,
    epochs: crate::epochs::LeaderEpochs,
}

impl LogInner {
    fn plan_append(
        &self,
        batches: &[Bytes],
        leader_epoch: i32,
        origin: AppendOrigin,
    ) -> Result<AppendTicket, AppendError> {
        let core = self.storage.core();
        let now_ms = core.wall_clock_ms();
        let mut state = self.state.borrow_mut();
        state.check_open()?;
        if state.refusals > 0 {
            return Err(StorageError::Busy {
                path: state.directory.to_path_buf(),
            }
            .into());
        }
        let stamp = (state.config.timestamp_type == TimestampType::LogAppendTime
            && origin != AppendOrigin::Replication)
            .then_some(now_ms);
        let completion = Completion::new();
        // One batch is refused before it changes anything; several may have to be taken back.
        let before = (batches.len() > 1).then(|| state.checkpoint());
        let mut appended: Option<(i64, i64)> = None;
        for (index, bytes) in batches.iter().enumerate() {
            let plan = PlanOne {
                bytes,
                leader_epoch,
                origin,
                stamp,
                now_ms,
                random: core.random_u64(),
                completes: index + 1 == batches.len(),
            };
            match state.plan_batch(&plan, &completion) {
                Ok(Planned::Accepted(header)) => {
                    let first = appended.map_or(header.base_offset, |(first, _)| first);
                    appended = Some((first, header.last_offset));
                }
                Ok(Planned::Duplicate {
                    first_offset,
                    last_offset,
                    timestamp,
                }) => {
                    state.restore(before);
                    let completion = state.completion_of(last_offset);
                    self.storage
                        .count(|counters| counters.duplicate_batches += 1);
                    return Ok(AppendTicket {
                        first_offset,
                        last_offset,
                        log_append_time_ms: Some(timestamp),
                        duplicate: true,
                        completion,
                    });
                }
                Err(error) => {
                    state.restore(before);
                    return Err(error);
                }
            }
        }
        state.last_append = core.now();
        let limit = state.config.max_producers;
        state.producers.enforce_limit(limit);
        let end = state.next_offset;
        let (first_offset, last_offset) = appended.unwrap_or((end, end - 1));
        if appended.is_none() {
            completion.complete(Ok(()));
        }
        Ok(AppendTicket {
            first_offset,
            last_offset,
            log_append_time_ms: stamp,
            duplicate: false,
            completion,
        })
    }

    /// Starts the writer, or hands over to the journal, if there is work and nothing forbids it.
    pub fn start_writer(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            if state.writing || state.held || state.nothing_to_write() {
                return;
            }
            state.writing = true;
        }
        if !self.offer_to_journal() {
            self.run_by_itself();
        }
    }
}

/// One batch to plan.
struct PlanOne<'a> {
    bytes: &'a Bytes,
    leader_epoch: i32,
    origin: AppendOrigin,
    stamp: Option<i64>,
    now_ms: i64,
    random: u64,
    completes: bool,
}

enum Planned {
    Accepted(BatchHeader),
    Duplicate {
        first_offset: i64,
        last_offset: i64,
        timestamp: i64,
    },
}

impl State {
    fn plan_batch(
        &mut self,
        one: &PlanOne<'_>,
        completion: &Rc<Completion>,
    ) -> Result<Planned, AppendError> {
        let header = self.header_of(one)?;
        if header.has_producer_id() {
            let never_written = self.next_offset == 0;
            match self.producers.check(&header, one.origin, never_written)? {
                Verdict::Accept => {}
                Verdict::Duplicate(batch) => {
                    return Ok(Planned::Duplicate {
                        first_offset: batch.first_offset(),
                        last_offset: batch.last_offset,
                        timestamp: batch.timestamp,
                    });
                }
            }
        }
        // From here on nothing fails.
        if self.planned.should_roll(&header, one.now_ms, &self.config) {
            self.plan_roll(header.base_offset, one);
        }
        let undo = self.apply_producer(&header, one.bytes).map(Box::new);
        let position = self.planned.size;
        if position == 0 {
            self.planned.first_timestamp = Some(header.max_timestamp);
        }
        let interval = self.config.index_interval_bytes;
        self.planned.cursor.advance(&header, position, interval);
        // should_roll kept the sum below 2^31, except for one oversized first batch, which place() refused.
        self.planned.size += header.size as u32;
        self.next_offset = header.last_offset + 1;
        self.epochs.assign(header.leader_epoch, header.base_offset);
        let begins_epoch = self
            .epochs
            .latest()
            .is_some_and(|latest| latest.start_offset == header.base_offset);
        self.epochs_dirty |= begins_epoch;
        self.queue.push_back(Queued::Batch(QueuedBatch {
            placed: PlacedBatch {
                header,
                bytes: one.bytes.clone(),
                stamp_ms: one.stamp,
                position,
            },
            completion: completion.clone(),
            completes: one.completes,
            undo,
        }));
        Ok(Planned::Accepted(header))
    }

    /// The batch's header as it will stand in the log.
    fn header_of(&self, one: &PlanOne<'_>) -> Result<BatchHeader, AppendError> {
        let Ok(mut header) = BatchHeader::parse(one.bytes) else {
            return Err(AppendError::Malformed {
                why: "unreadable header",
            });
        };
        if header.magic != 2 {
            return Err(AppendError::Malformed {
                why: "not a v2 batch",
            });
        }
        if header.size != one.bytes.len() {
            return Err(AppendError::Malformed {
                why: "not exactly one batch",
            });
        }
        let segment_bytes = self
            .config
            .segment_bytes
            .min(crate::segment::roll::SEGMENT_SIZE_MAX);
        if header.size > segment_bytes as usize {
            return Err(AppendError::LargerThanSegment {
                bytes: header.size,
                segment_bytes,
            });
        }
        if one.origin == AppendOrigin::Replication {
            if header.base_offset < self.next_offset {
                return Err(AppendError::NotContiguous {
                    expected: self.next_offset,
                    got: header.base_offset,
                });
            }
            return Ok(header);
        }
        let delta = header.last_offset - header.base_offset;
        header.base_offset = self.next_offset;
        header.last_offset = self.next_offset + delta;
        header.leader_epoch = one.leader_epoch;
        if let Some(time_ms) = one.stamp {
            header.max_timestamp = time_ms;
        }
        Ok(header)
    }

    fn apply_producer(&mut self, header: &BatchHeader, bytes: &Bytes) -> Option<Undo> {
        if !header.has_producer_id() {
            return None;
        }
        if !header.is_control() {
            return Some(self.producers.apply_batch(header));
        }
        // Aborted transactions get their index entries with the transactions' own issue.
        end_marker(bytes).map(|marker| self.producers.apply_marker(header, marker).0)
    }

    fn plan_roll(&mut self, base_offset: i64, one: &PlanOne<'_>) {
        let plan = SegmentPlan::new(base_offset, one.now_ms, &self.config, one.random);
        self.planned = plan;
        // The producers as they are before the batch that begins the new segment.
        let snapshot = snapshot::encode(&self.producers);
        self.queue.push_back(Queued::Roll { plan, snapshot });
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            queue_len: self.queue.len(),
            next_offset: self.next_offset,
            planned: self.planned,
            epochs: self.epochs.clone(),
        }
    }

    /// Takes the batches of a refused append back.
    fn restore(&mut self, before: Option<Checkpoint>) {
        let Some(before) = before else { return };
        while self.queue.len() > before.queue_len {
            if let Some(Queued::Batch(QueuedBatch {
                undo: Some(undo), ..
            })) = self.queue.pop_back()
            {
                self.producers.undo(*undo);
            }
        }
        self.next_offset = before.next_offset;
        self.planned = before.planned;
        self.epochs = before.epochs;
    }

    /// What a duplicate waits for: its original's write, if that is still under way.
    fn completion_of(&self, last_offset: i64) -> Rc<Completion> {
        if last_offset < self.end_offset {
            return Completion::done();
        }
        let original = self.queue.iter().find_map(|queued| match queued {
            Queued::Batch(batch) if batch.placed.header.last_offset == last_offset => {
                Some(batch.completion.clone())
            }
            _ => None,
        });
        original.unwrap_or_else(Completion::done)
    }
}

/// The marker in a control batch: key int16 version, int16 type (0 abort, 1 commit); value int16 version, int32
/// coordinator epoch. Other control records (KRaft's) are none.
pub(crate) fn end_marker(bytes: &Bytes) -> Option<EndMarker> {
    let view = BatchView::parse(bytes).ok()?;
    let record = view.records(4096).ok()?.next()?.ok()?;
    let (key, value) = (record.key?, record.value?);
    if key.len() < 4 || value.len() < 6 {
        return None;
    }
    let kind = i16::from_be_bytes([key[2], key[3]]);
    if !(0..=1).contains(&kind) {
        return None;
    }
    Some(EndMarker {
        commit: kind == 1,
        coordinator_epoch: crate::batch::i32_at(&value, 2),
        timestamp: record.timestamp,
    })
}
