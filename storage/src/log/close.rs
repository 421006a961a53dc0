//! Flushing, resting and closing. A log at rest is on disk exactly what a clean stop leaves: cut to its length, indexes
//! whole, producers in a snapshot, all durable. So a stop has nothing to do for logs at rest, and a crash no recovery.

use super::state::Status;
use super::{Log, LogInner};
use crate::checkpoint;
use crate::error::StorageError;
use crate::names::FileKind;
use crate::producer::snapshot;
use crate::segment::segment_path;
use bytes::Bytes;
use shards::io::{File, OpenOptions, dir};
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(crate) const EPOCHS_FILE: &str = "leader-epoch-checkpoint";

impl Log {
    /// Makes everything written so far durable, indexes and epochs too, and moves the recovery point.
    ///
    /// # Errors
    /// Any failure takes the log offline, but for a full disk.
    pub async fn flush(&self) -> Result<(), StorageError> {
        self.0.check_open()?;
        let result = self.0.flush().await;
        self.0.settle(result)
    }

    /// Waits for the appends so far, then leaves the directory as a clean stop must: call before the clean marker is
    /// written. The log stays usable; the caller sees to it that nobody appends meanwhile.
    ///
    /// # Errors
    /// Any failure takes the log offline, but for a full disk. In either case the marker must not be written.
    pub async fn close(&self) -> Result<(), StorageError> {
        loop {
            self.0.check_open()?;
            self.0.drain().await;
            let result = self.0.rest().await;
            self.0.settle(result)?;
            if !self.0.is_watched() {
                return Ok(());
            }
        }
    }
}

enum Duty {
    Rest,
    Flush,
}

impl LogInner {
    /// An error of the disk other than being full takes the log offline. A damaged batch does not: it is one batch.
    pub fn settle<T>(&self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if let Err(error) = &result
            && !matches!(
                error,
                StorageError::Full { .. }
                    | StorageError::Corrupt { .. }
                    | StorageError::Busy { .. }
                    | StorageError::Offline { .. }
            )
        {
            self.disk_failed(error);
        }
        result
    }

    /// What housekeeping has to do with this log now.
    fn duty(&self) -> Option<Duty> {
        let now = self.storage.core().now();
        let state = self.state.borrow();
        if !state.watched || !matches!(state.status, Status::Open) || state.held {
            return None;
        }
        let since_append = now.saturating_duration_since(state.last_append);
        let quiet = state.queue.is_empty() && !state.writing;
        if quiet && since_append >= self.storage.0.options.idle_after {
            return Some(Duty::Rest);
        }
        let unflushed_ms = state.unflushed_since.map(|since| {
            i64::try_from(now.saturating_duration_since(since).as_millis()).unwrap_or(i64::MAX)
        });
        unflushed_ms
            .is_some_and(|waited| waited >= state.config.flush_ms)
            .then_some(Duty::Flush)
    }

    pub fn tick_due(&self) -> bool {
        self.duty().is_some()
    }

    pub async fn tick(self: &Rc<Self>) {
        let result = match self.duty() {
            Some(Duty::Rest) => self.rest().await,
            Some(Duty::Flush) => self.flush().await,
            None => return,
        };
        // A full disk leaves the log busy: the next tick tries again.
        let _ = self.settle(result);
    }

    pub async fn flush(self: &Rc<Self>) -> Result<(), StorageError> {
        let _hold = self.hold().await;
        self.flush_held().await
    }

    async fn flush_held(self: &Rc<Self>) -> Result<(), StorageError> {
        self.move_tail().await?;
        let (directory, unsynced, end_offset) = {
            let state = self.state.borrow();
            (
                state.directory.clone(),
                state.segments_above(state.recovery_point),
                state.end_offset,
            )
        };
        self.flush_index().await?;
        self.write_epochs().await?;
        for base_offset in unsynced {
            self.sync_segment(&directory, base_offset).await?;
        }
        let mut state = self.state.borrow_mut();
        state.unflushed_messages = 0;
        state.unflushed_since = None;
        state.recovery_point = end_offset;
        Ok(())
    }

    /// Gives back files, memory and the space behind the end.
    pub async fn rest(self: &Rc<Self>) -> Result<(), StorageError> {
        let _hold = self.hold().await;
        self.check_open()?;
        if !self.is_watched() {
            return Ok(());
        }
        if self.state.borrow().active.file.is_some() {
            self.move_tail().await?;
            self.finish_active_index();
            self.cut_to_size().await?;
        }
        self.flush_held().await?;
        self.snapshot_at_end().await?;
        let base_offset = self.state.borrow().active.plan.base_offset;
        let cached = {
            let mut state = self.state.borrow_mut();
            if !state.queue.is_empty() {
                // Somebody appended meanwhile: stay awake, the write comes next.
                return Ok(());
            }
            state.active.file = None;
            state.active.index = None;
            state.active.tail = None;
            state.queue.shrink_to_fit();
            state.watched = false;
            state.take_cached()
        };
        self.storage.let_go(cached);
        self.storage
            .0
            .indexes
            .borrow_mut()
            .remove_segment(self.id, base_offset);
        self.storage.0.files.borrow_mut().remove_log(self.id);
        self.storage.count(|counters| counters.rests += 1);
        Ok(())
    }

    /// Writes the producers' state at the end of the log, as Kafka does at a clean stop, and drops the one an earlier
    /// rest left, unless a segment begins there.
    async fn snapshot_at_end(&self) -> Result<(), StorageError> {
        let (directory, end_offset, before, begins_segment, bytes) = {
            let state = self.state.borrow();
            // A batch that waits for its write is in the producers' state already, but not in the log.
            if !state.queue.is_empty() || state.end_offset <= state.last_snapshot_offset {
                return Ok(());
            }
            let before = state.last_snapshot_offset;
            let begins_segment = before == state.active.plan.base_offset
                || state
                    .sealed
                    .binary_search_by_key(&before, |segment| segment.base_offset)
                    .is_ok();
            let bytes = snapshot::encode(&state.producers);
            (
                state.directory.clone(),
                state.end_offset,
                before,
                begins_segment,
                bytes,
            )
        };
        self.write_snapshot(&directory, end_offset, bytes).await?;
        self.state.borrow_mut().last_snapshot_offset = end_offset;
        if !begins_segment {
            let old = segment_path(&directory, before, FileKind::ProducerSnapshot);
            // It may be gone already; Kafka removes strays at its own start as well.
            let _ = dir::remove_file(self.storage.core(), &old).await;
        }
        Ok(())
    }

    pub async fn write_snapshot(
        &self,
        directory: &Path,
        offset: i64,
        bytes: Bytes,
    ) -> Result<(), StorageError> {
        let core = self.storage.core();
        let path = segment_path(directory, offset, FileKind::ProducerSnapshot);
        let file = open_new(core, &path).await?;
        file.write_all_at(core, bytes, 0, shards::io::Durability::Written)
            .await
            .map_err(|error| StorageError::io("write", &path, error))
    }

    /// Brings the epochs' file up to date. One at a time: a rest may come while a sealed segment is being flushed.
    pub async fn write_epochs(&self) -> Result<(), StorageError> {
        loop {
            if !self.state.borrow().epochs_writing {
                break;
            }
            self.quiet.wait().await;
        }
        let (path, text) = {
            let mut state = self.state.borrow_mut();
            if !std::mem::replace(&mut state.epochs_dirty, false) {
                return Ok(());
            }
            state.epochs_writing = true;
            let path = state.directory.join(EPOCHS_FILE);
            (path, checkpoint::encode_epochs(state.epochs.entries()))
        };
        let _writing = EpochsWriting(self);
        let result = dir::write_pieces_atomic(self.storage.core(), &path, text).await;
        result.map_err(|error| {
            self.state.borrow_mut().epochs_dirty = true;
            StorageError::io("write", &path, error)
        })
    }

    /// Cuts the active file to the written length. After a failed write this also removes what it left.
    pub async fn cut_to_size(&self) -> Result<(), StorageError> {
        let (file, size) = {
            let state = self.state.borrow();
            (state.active.file.clone(), u64::from(state.active.plan.size))
        };
        let Some(file) = file else { return Ok(()) };
        file.set_len(self.storage.core(), size)
            .await
            .map_err(|error| StorageError::io("truncate", &self.active_path(), error))?;
        self.state.borrow_mut().active.file_length = size;
        Ok(())
    }

    /// The same, so that no power loss brings back what was cut off.
    pub async fn cut_durably(&self) -> Result<(), StorageError> {
        self.cut_to_size().await?;
        let file = self.state.borrow().active.file.clone();
        let Some(file) = file else { return Ok(()) };
        let synced = file.sync_data(self.storage.core()).await;
        match synced.map_err(|error| StorageError::io("fdatasync", &self.active_path(), error)) {
            // No space, not even for that: only a power loss would tell.
            Err(StorageError::Full { .. }) => Ok(()),
            done => done,
        }
    }

    /// Forces all that nothing vouches for yet before the segment that begins at `end_offset` to disk, then lets recovery
    /// start there. After a crash that may be more than the last sealed segment.
    pub async fn sync_sealed(&self, end_offset: i64) -> Result<(), StorageError> {
        let (directory, unsynced, truncations) = {
            let state = self.state.borrow();
            let mut unsynced = state.segments_above(state.recovery_point);
            unsynced.retain(|base| *base < end_offset);
            (state.directory.clone(), unsynced, state.truncations)
        };
        if unsynced.is_empty() {
            return Ok(());
        }
        for base_offset in unsynced {
            self.sync_segment(&directory, base_offset).await?;
        }
        let snapshot = segment_path(&directory, end_offset, FileKind::ProducerSnapshot);
        sync_file(self.storage.core(), &snapshot).await?;
        self.write_epochs().await?;
        let mut state = self.state.borrow_mut();
        // A truncation since then set the point itself, and a log that was moved aside is not found by its path.
        if state.truncations == truncations && matches!(state.status, Status::Open) {
            state.recovery_point = state.recovery_point.max(end_offset);
        }
        Ok(())
    }

    async fn sync_segment(&self, directory: &Path, base_offset: i64) -> Result<(), StorageError> {
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex] {
            let path = segment_path(directory, base_offset, kind);
            sync_file(self.storage.core(), &path).await?;
        }
        self.storage.count(|counters| counters.syncs += 1);
        Ok(())
    }

    pub fn active_path(&self) -> PathBuf {
        let state = self.state.borrow();
        segment_path(
            &state.directory,
            state.active.plan.base_offset,
            FileKind::Log,
        )
    }
}

/// Lets the next one write the epochs, also where this one was dropped.
struct EpochsWriting<'a>(&'a LogInner);

impl Drop for EpochsWriting<'_> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().epochs_writing = false;
        self.0.quiet.notify_all();
    }
}

/// Forces the bytes of a file to disk, if it is there: an index may never have been needed.
pub(crate) async fn sync_file(core: &shards::Core, path: &Path) -> Result<(), StorageError> {
    let options = OpenOptions {
        read: true,
        write: true,
        ..Default::default()
    };
    match File::open(core, path, &options).await {
        Ok(file) => file
            .sync_data(core)
            .await
            .map_err(|error| StorageError::io("fdatasync", path, error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StorageError::io("open", path, error)),
    }
}

/// A file with nothing in it yet.
pub(crate) async fn open_new(core: &shards::Core, path: &Path) -> Result<File, StorageError> {
    open_empty(core, path, false).await
}

/// The same, for aligned writes past the page cache.
pub(crate) async fn open_new_direct(
    core: &shards::Core,
    path: &Path,
) -> Result<File, StorageError> {
    open_empty(core, path, true).await
}

async fn open_empty(core: &shards::Core, path: &Path, direct: bool) -> Result<File, StorageError> {
    let options = OpenOptions {
        read: true,
        write: true,
        create: true,
        truncate: true,
        direct,
        ..Default::default()
    };
    File::open(core, path, &options)
        .await
        .map_err(|error| StorageError::io("create", path, error))
}

impl Drop for LogInner {
    fn drop(&mut self) {
        self.storage
            .count_producers(self.counted_producers.get(), 0);
        let cached = self.state.borrow_mut().take_cached();
        self.storage.let_go(cached);
        self.storage.0.files.borrow_mut().remove_log(self.id);
        self.storage.0.indexes.borrow_mut().remove_log(self.id);
        self.storage.0.logs.borrow_mut().remove(&self.id);
    }
}
