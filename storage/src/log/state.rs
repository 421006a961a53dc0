//! What a log knows of itself. One borrow at a time, never over an await.

use super::append::Completion;
use super::damage::DamagedRanges;
use crate::config::LogConfig;
use crate::epochs::LeaderEpochs;
use crate::error::StorageError;
use crate::journal::Sequence;
use crate::producer::{ProducerState, Undo};
use crate::segment::roll::SegmentPlan;
use crate::segment::writer::PlacedBatch;
use crate::segment::{Active, Sealed};
use bytes::Bytes;
use shards::time::Instant;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) enum Status {
    Open,
    Offline { reason: Arc<str> },
}

/// A batch that has its offsets and waits for its write, or is in it.
pub(crate) struct QueuedBatch {
    pub placed: PlacedBatch,
    pub completion: Rc<Completion>,
    /// The last batch of its append: its write completes the ticket.
    pub completes: bool,
    pub undo: Option<Box<Undo>>,
}

/// What waits for the writer, in order.
pub(crate) enum Queued {
    Batch(QueuedBatch),
    /// Seal the active segment and go on in a new one. The snapshot is the producers' state at this very point.
    Roll {
        plan: SegmentPlan,
        snapshot: Bytes,
    },
}

/// A write buffer kept for readers.
#[derive(Clone)]
pub(crate) struct Cached {
    /// Number in the core's cache.
    pub entry: u64,
    pub segment_base: i64,
    /// Where `data` begins in the segment, and where batches in it begin and end.
    pub data_position: u32,
    pub start: u32,
    pub end: u32,
    /// First offset of the first batch, last offset of the last one.
    pub first_offset: i64,
    pub last_offset: i64,
    pub data: Bytes,
}

pub(crate) struct State {
    pub directory: Rc<Path>,
    pub config: Rc<LogConfig>,
    pub status: Status,
    pub start_offset: i64,
    /// End of the written prefix.
    pub end_offset: i64,
    /// What the next batch gets.
    pub next_offset: i64,
    pub recovery_point: i64,
    pub sealed: Vec<Sealed>,
    /// What is written of the newest written segment.
    pub active: Active,
    /// The segment that the next batch goes to, as it will be when the queue is written.
    pub planned: SegmentPlan,
    pub epochs: LeaderEpochs,
    /// The table differs from its file.
    pub epochs_dirty: bool,
    /// A write of that file is under way.
    pub epochs_writing: bool,
    pub producers: ProducerState,
    pub last_snapshot_offset: i64,
    pub queue: VecDeque<Queued>,
    /// How many of the queue's first items the write under way carries.
    pub in_flight: usize,
    /// The writer task runs, or the journal has batches of this log.
    pub writing: bool,
    /// The tail goes to the segment with the next write, or without one.
    pub move_wanted: bool,
    /// The oldest frame of the journal with batches that the segment does not have yet.
    pub journal_pin: Option<Sequence>,
    /// Somebody has the files for themselves; how many wait for that; how many refuse appends.
    pub held: bool,
    pub hold_waiters: u32,
    pub refusals: u32,
    pub watched: bool,
    pub last_append: Instant,
    pub unflushed_messages: i64,
    pub unflushed_since: Option<Instant>,
    /// Oldest first; a contiguous end of the log.
    pub cached: VecDeque<Cached>,
    /// Counts truncations, so that a reader notices one that happened under it.
    pub truncations: u64,
    /// Places that recovery found damaged.
    pub damaged: DamagedRanges,
}

impl State {
    /// Nothing waits for the writer, or it has to make way.
    pub fn nothing_to_write(&self) -> bool {
        (self.queue.is_empty() && !self.move_wanted)
            || self.hold_waiters > 0
            || !matches!(self.status, Status::Open)
    }

    pub fn check_open(&self) -> Result<(), StorageError> {
        match &self.status {
            Status::Open => Ok(()),
            Status::Offline { reason } => Err(StorageError::Offline {
                path: self.directory.to_path_buf(),
                reason: reason.to_string(),
            }),
        }
    }

    /// Base offset and written size of the segment that holds `offset`, or the first one behind it.
    pub fn segment_for(&self, offset: i64) -> Option<(i64, u32)> {
        if offset >= self.active.plan.base_offset {
            return Some((self.active.plan.base_offset, self.active.plan.size));
        }
        let after = self
            .sealed
            .partition_point(|segment| segment.base_offset <= offset);
        let segment = self.sealed.get(after.saturating_sub(1))?;
        Some((segment.base_offset, segment.size))
    }

    /// The segment that follows the one with this base.
    pub fn segment_after(&self, base_offset: i64) -> Option<(i64, u32)> {
        let after = self
            .sealed
            .partition_point(|segment| segment.base_offset <= base_offset);
        match self.sealed.get(after) {
            Some(segment) => Some((segment.base_offset, segment.size)),
            None if base_offset < self.active.plan.base_offset => {
                Some((self.active.plan.base_offset, self.active.plan.size))
            }
            None => None,
        }
    }

    /// Segments with batches at or above `offset`.
    pub fn segments_above(&self, offset: i64) -> Vec<i64> {
        let bases = self.sealed.iter().map(|segment| segment.base_offset);
        let bases: Vec<i64> = bases.chain([self.active.plan.base_offset]).collect();
        let after = bases.partition_point(|base| *base <= offset);
        bases[after.saturating_sub(1)..].to_vec()
    }

    /// The kept buffer that holds the batch with `offset`.
    pub fn cached_at_offset(&self, offset: i64) -> Option<usize> {
        let after = self
            .cached
            .partition_point(|cached| cached.last_offset < offset);
        let cached = self.cached.get(after)?;
        (cached.first_offset <= offset).then_some(after)
    }

    /// The kept buffer with the byte at `position` of a segment.
    pub fn cached_at_position(&self, segment_base: i64, position: u32) -> Option<&Cached> {
        let after = self.cached.partition_point(|cached| {
            (cached.segment_base, cached.end) <= (segment_base, position)
        });
        let cached = self.cached.get(after)?;
        (cached.segment_base == segment_base && cached.data_position <= position).then_some(cached)
    }

    /// Gives every kept buffer away: for [`Storage::let_go`](crate::storage::Storage::let_go).
    pub fn take_cached(&mut self) -> VecDeque<Cached> {
        std::mem::take(&mut self.cached)
    }

    /// Takes everything planned but not written back: the state becomes that of the written prefix.
    /// Answers the completions to fail.
    pub fn roll_back(&mut self) -> Vec<Rc<Completion>> {
        let mut failed = Vec::new();
        while let Some(queued) = self.queue.pop_back() {
            if let Queued::Batch(batch) = queued {
                if let Some(undo) = batch.undo {
                    self.producers.undo_failed(*undo);
                }
                if batch.completes {
                    failed.push(batch.completion);
                }
            }
        }
        failed.reverse();
        self.in_flight = 0;
        self.next_offset = self.end_offset;
        self.planned = self.active.plan;
        // An epoch that starts at the end stays: its leader leads on, it only has not written yet.
        if self.epochs.truncate_from_end(self.end_offset + 1) {
            self.epochs_dirty = true;
        }
        failed
    }
}
