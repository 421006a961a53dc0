//! Cutting the end of a log off, and starting over elsewhere: what a follower does to agree with its leader.

use super::ahead::Ahead;
use super::indexes::{self, write_index_files};
use super::open::{cut_durably, empty_scan};
use super::recovery::{self, RecoveryReport, Scan, load_snapshot, replay_producers, segment_list};
use super::startup_files::put_in_order;
use super::trim::remove_if_there;
use super::{Log, LogInner};
use crate::disk::sync_directory;
use crate::error::StorageError;
use crate::names::{FileKind, file_name};
use crate::producer::ProducerState;
use crate::segment::index::{ActiveIndex, IndexCursor};
use crate::segment::reader::{FileSource, LOOKUP_WINDOW, Walk};
use crate::segment::roll::SegmentPlan;
use crate::segment::{Active, segment_path};
use std::path::Path;
use std::rc::Rc;

impl Log {
    /// Removes every batch that reaches `offset` or beyond; the log then ends at `offset`. Appends are refused with
    /// `Busy` until it is done. Without effect on records at or above the end, where only epochs that never wrote are
    /// forgotten. Below the first segment the log starts over at `offset`.
    ///
    /// # Errors
    /// I/O errors take the log offline.
    pub async fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        let offset = offset.max(0);
        let refusal = self.0.refuse_appends();
        self.0.drain().await;
        let hold = self.0.hold().await;
        self.0.check_open()?;
        let (end_offset, first_base) = {
            let state = self.0.state.borrow();
            let first = state.sealed.first().map(|segment| segment.base_offset);
            (
                state.end_offset,
                first.unwrap_or(state.active.plan.base_offset),
            )
        };
        let result = if offset >= end_offset {
            let mut state = self.0.state.borrow_mut();
            if state.epochs.truncate_from_end(end_offset) {
                state.epochs_dirty = true;
            }
            Ok(())
        } else if offset < first_base {
            self.0.start_over(offset).await
        } else {
            self.0.cut_end(offset).await
        };
        let result = self.0.settle(result);
        self.0.ensure_watched();
        drop((hold, refusal));
        self.0.progress.notify_all();
        result
    }

    /// Removes everything and starts over, empty, at `offset` (a follower whose leader's log begins above its own end).
    ///
    /// # Errors
    /// As [`Log::truncate_to`].
    pub async fn reset_to(&self, offset: i64) -> Result<(), StorageError> {
        let refusal = self.0.refuse_appends();
        self.0.drain().await;
        let hold = self.0.hold().await;
        self.0.check_open()?;
        let result = self.0.start_over(offset.max(0)).await;
        let result = self.0.settle(result);
        self.0.ensure_watched();
        drop((hold, refusal));
        self.0.progress.notify_all();
        result
    }
}

impl LogInner {
    /// Forgets what memory holds of the end of the log, before files change under it.
    fn forget_end(&self) {
        let cached = {
            let mut state = self.state.borrow_mut();
            state.truncations += 1;
            state.active.file = None;
            state.active.tail = None;
            state.take_cached()
        };
        self.storage.let_go(cached);
        self.storage.0.files.borrow_mut().remove_log(self.id);
        self.storage.0.indexes.borrow_mut().remove_log(self.id);
    }

    async fn cut_end(self: &Rc<Self>, offset: i64) -> Result<(), StorageError> {
        let core = self.storage.core();
        // The files must hold every entry before they are cut, and all batches.
        self.move_tail().await?;
        self.void_journal().await?;
        self.flush_index().await?;
        self.cut_to_size().await?;
        self.forget_end();
        self.state.borrow_mut().active.index = None;
        let (directory, mut segments, interval) = {
            let state = self.state.borrow();
            let active = (state.active.plan.base_offset, state.active.plan.size);
            let interval = state.config.index_interval_bytes;
            (
                state.directory.clone(),
                segment_list(&state.sealed, active),
                interval,
            )
        };
        let keep = segments.partition_point(|(base, _)| *base <= offset).max(1);
        for (base_offset, _) in segments.split_off(keep) {
            self.remove_segment_files(base_offset, true).await?;
        }
        // partition_point kept at least one.
        let Some((base_offset, size)) = segments.pop() else {
            return Ok(());
        };
        let scan = cut_segment(core, &directory, (base_offset, size), offset, interval).await?;
        let (producers, last_snapshot_offset) = self
            .producers_at(&directory, &segments, (base_offset, scan.size), offset)
            .await?;
        // What was removed must not come back.
        sync_directory(core, &directory).await?;
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        state.sealed.truncate(segments.len());
        let mut plan = SegmentPlan::new(
            base_offset,
            core.wall_clock_ms(),
            &state.config,
            core.random_u64(),
        );
        plan.size = scan.size;
        plan.cursor = scan.cursor;
        state.active = Active::resting(plan);
        state.planned = plan;
        state.producers = producers;
        state.last_snapshot_offset = last_snapshot_offset;
        state.set_end(offset);
        Ok(())
    }

    /// The producers as they were at `offset`, from the newest snapshot below it. Later snapshots are removed.
    async fn producers_at(
        &self,
        directory: &Path,
        sealed: &[(i64, u32)],
        active: (i64, u32),
        offset: i64,
    ) -> Result<(ProducerState, i64), StorageError> {
        let core = self.storage.core();
        let mut report = RecoveryReport::default();
        let files = put_in_order(core, directory, &mut report).await?;
        for late in files
            .snapshots
            .keys()
            .filter(|snapshot| **snapshot > offset)
        {
            let name = file_name(*late, FileKind::ProducerSnapshot);
            remove_if_there(core, &directory.join(name)).await?;
        }
        let ahead = Ahead::default();
        let found = load_snapshot(core, directory, (&files, &ahead), offset, &mut report).await?;
        let (from_offset, mut state) = found.unwrap_or_default();
        let segments: Vec<(i64, u32)> = sealed.iter().copied().chain([active]).collect();
        replay_producers(core, directory, &segments, from_offset, offset, &mut state).await?;
        Ok((state, from_offset))
    }

    async fn start_over(self: &Rc<Self>, offset: i64) -> Result<(), StorageError> {
        let core = self.storage.core();
        self.void_journal().await?;
        self.forget_end();
        let (directory, bases) = {
            let state = self.state.borrow();
            let bases: Vec<i64> = state.segments_above(i64::MIN);
            (state.directory.clone(), bases)
        };
        // The new segment first: a crash in between leaves a log that starts there or at the old start, never none.
        for base_offset in bases {
            self.remove_segment_files(base_offset, true).await?;
        }
        let mut report = RecoveryReport::default();
        let files = put_in_order(core, &directory, &mut report).await?;
        for snapshot in files.snapshots.into_keys() {
            let name = file_name(snapshot, FileKind::ProducerSnapshot);
            remove_if_there(core, &directory.join(name)).await?;
        }
        let path = segment_path(&directory, offset, FileKind::Log);
        super::close::open_new(core, &path).await?;
        sync_directory(core, &directory).await?;
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        let plan = SegmentPlan::new(
            offset,
            core.wall_clock_ms(),
            &state.config,
            core.random_u64(),
        );
        state.sealed.clear();
        state.active = Active::resting(plan);
        state.planned = plan;
        state.producers.clear();
        state.last_snapshot_offset = offset;
        state.epochs.clear();
        state.epochs_dirty = true;
        state.start_offset = offset;
        state.set_end(offset);
        Ok(())
    }
}

impl super::state::State {
    fn set_end(&mut self, offset: i64) {
        self.truncations += 1;
        self.damaged.truncate(offset);
        self.end_offset = offset;
        self.next_offset = offset;
        self.start_offset = self.start_offset.min(offset);
        self.recovery_point = self.recovery_point.min(offset);
        if self.epochs.truncate_from_end(offset) {
            self.epochs_dirty = true;
        }
    }
}

/// Cuts a segment before the first batch that reaches `offset`, its indexes with it.
async fn cut_segment(
    core: &shards::Core,
    directory: &Path,
    (base_offset, size): (i64, u32),
    offset: i64,
    interval_bytes: u32,
) -> Result<Scan, StorageError> {
    let mut scan = empty_scan(base_offset);
    if size == 0 {
        write_index_files(core, directory, &scan.index).await?;
        return Ok(scan);
    }
    let offsets = indexes::read_index(core, directory, base_offset, size, false).await?;
    let times = indexes::read_index(core, directory, base_offset, size, true).await?;
    let mut index = match (offsets, times) {
        (Some(offsets), Some(times)) => ActiveIndex::loaded(base_offset, offsets, times),
        _ => {
            indexes::rebuild(core, directory, base_offset, size, interval_bytes)
                .await?
                .0
        }
    };
    index.truncate(offset);
    let last = index.offset_entries().last();
    scan.cursor = IndexCursor::resume(
        base_offset,
        index.offset_entries().len(),
        index.time_entries().len(),
        index.time_entries().last(),
    );
    let from = last.map_or(0, |(_, position)| position);
    let path = segment_path(directory, base_offset, FileKind::Log);
    let file = recovery::open_segment(core, &path).await?;
    let source = FileSource {
        core,
        file: &file,
        path: &path,
    };
    let mut walk = Walk::new(&source, from, size, LOOKUP_WINDOW);
    scan.size = from;
    while let Some(placed) = walk.next_good(&path).await? {
        if placed.header.last_offset >= offset {
            break;
        }
        scan.cursor.pass(&placed.header);
        scan.size = placed.end();
    }
    cut_durably(core, &path, u64::from(scan.size)).await?;
    write_index_files(core, directory, &index).await?;
    Ok(scan)
}
