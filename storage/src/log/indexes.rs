//! The indexes of a log: the growing one in memory, sealed ones through the core's cache, lost ones rebuilt.

use super::LogInner;
use super::close::open_new;
use crate::cache::IndexKey;
use crate::error::StorageError;
use crate::names::FileKind;
use crate::segment::index::{ActiveIndex, IndexCursor, OffsetEntries, TimeEntries};
use crate::segment::reader::{FileSource, SCAN_WINDOW, Walk};
use crate::segment::roll::SegmentPlan;
use crate::segment::segment_path;
use bytes::Bytes;
use shards::Core;
use shards::io::{Durability, File, OpenOptions, dir};
use std::path::Path;

/// An index can never be larger: 2^31 positions, 8 bytes for every other 4 KiB would be far less.
const INDEX_BYTES_MAX: usize = 256 << 20;

impl LogInner {
    /// A segment's file, open for buffered reading.
    pub async fn read_file(&self, base_offset: i64) -> Result<File, StorageError> {
        let core = self.storage.core();
        let known = self
            .storage
            .0
            .files
            .borrow_mut()
            .get(self.id, base_offset, core.now());
        if let Some(file) = known {
            return Ok(file);
        }
        let path = segment_path(&self.state.borrow().directory, base_offset, FileKind::Log);
        let options = OpenOptions {
            read: true,
            ..Default::default()
        };
        let file = File::open(core, &path, &options)
            .await
            .map_err(|error| StorageError::io("open", &path, error))?;
        self.storage
            .0
            .files
            .borrow_mut()
            .insert(self.id, base_offset, core.now(), file.clone());
        self.storage.wake_housekeeping();
        Ok(file)
    }

    /// Entries of the active segment, from memory or from the files of a log at rest.
    pub async fn load_active_index(&self, plan: SegmentPlan) -> Result<ActiveIndex, StorageError> {
        if self.state.borrow().active.index.is_some() || plan.size == 0 {
            return Ok(ActiveIndex::new(plan.base_offset));
        }
        let offsets = self
            .sealed_index(plan.base_offset, plan.size, false)
            .await?;
        let times = self.sealed_index(plan.base_offset, plan.size, true).await?;
        // It grows from here on: a copy in the cache would go stale.
        self.storage
            .0
            .indexes
            .borrow_mut()
            .remove_segment(self.id, plan.base_offset);
        Ok(ActiveIndex::loaded(plan.base_offset, offsets, times))
    }

    /// Looks into a segment's offset index.
    pub async fn with_offset_index<R>(
        &self,
        base_offset: i64,
        size: u32,
        look: impl FnOnce(OffsetEntries<'_>) -> R,
    ) -> Result<R, StorageError> {
        {
            let state = self.state.borrow();
            if state.active.plan.base_offset == base_offset
                && let Some(index) = &state.active.index
            {
                return Ok(look(index.offset_entries()));
            }
        }
        let raw = self.sealed_index(base_offset, size, false).await?;
        Ok(look(OffsetEntries(&raw)))
    }

    /// Looks into a segment's time index.
    pub async fn with_time_index<R>(
        &self,
        base_offset: i64,
        size: u32,
        look: impl FnOnce(TimeEntries<'_>) -> R,
    ) -> Result<R, StorageError> {
        {
            let state = self.state.borrow();
            if state.active.plan.base_offset == base_offset
                && let Some(index) = &state.active.index
            {
                return Ok(look(index.time_entries()));
            }
        }
        let raw = self.sealed_index(base_offset, size, true).await?;
        Ok(look(TimeEntries(&raw)))
    }

    /// Raw entries of a segment at rest: from the cache, the file, or, where that is missing or damaged, rebuilt.
    async fn sealed_index(
        &self,
        base_offset: i64,
        size: u32,
        time: bool,
    ) -> Result<Bytes, StorageError> {
        let key = IndexKey {
            log: self.id,
            base_offset,
            time,
        };
        if let Some(raw) = self.storage.0.indexes.borrow_mut().get(key) {
            return Ok(raw);
        }
        let directory = self.state.borrow().directory.clone();
        let core = self.storage.core();
        let raw = match read_index(core, &directory, base_offset, size, time).await? {
            Some(raw) => raw,
            None => {
                let interval = self.state.borrow().config.index_interval_bytes;
                self.storage.count(|counters| counters.rebuilt_indexes += 1);
                let (index, _) = rebuild(core, &directory, base_offset, size, interval).await?;
                write_index_files(core, &directory, &index).await?;
                if time {
                    index.times.into()
                } else {
                    index.offsets.into()
                }
            }
        };
        self.storage.0.indexes.borrow_mut().insert(key, raw.clone());
        Ok(raw)
    }

    /// Builds the indexes of a segment anew, because one does not point where it should. That of a segment which is
    /// being written stays as it is: readers look past it.
    pub async fn mend_index(&self, base_offset: i64, size: u32) -> Result<(), StorageError> {
        let (directory, interval) = {
            let state = self.state.borrow();
            if state.active.plan.base_offset == base_offset && state.active.index.is_some() {
                return Ok(());
            }
            (state.directory.clone(), state.config.index_interval_bytes)
        };
        let core = self.storage.core();
        self.storage.count(|counters| counters.rebuilt_indexes += 1);
        let (index, _) = rebuild(core, &directory, base_offset, size, interval).await?;
        write_index_files(core, &directory, &index).await?;
        self.storage
            .0
            .indexes
            .borrow_mut()
            .remove_segment(self.id, base_offset);
        Ok(())
    }

    /// Appends the last time entry, as Kafka does when a segment becomes inactive or closes.
    pub fn finish_active_index(&self) {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        if let Some(entry) = state.active.plan.cursor.time_entry_due() {
            state.active.index_mut().push_time(entry);
        }
        // Nothing is planned beyond what is written here, or the plan is another segment's.
        if state.planned.base_offset == state.active.plan.base_offset && state.queue.is_empty() {
            state.planned = state.active.plan;
        }
    }

    /// Appends the entries that the index files lack. Makes the files where they are missing.
    pub async fn flush_index(&self) -> Result<(), StorageError> {
        let core = self.storage.core();
        let work = {
            let state = self.state.borrow();
            let Some(index) = &state.active.index else {
                return Ok(());
            };
            let directory = state.directory.clone();
            let base = index.base_offset;
            [
                (
                    segment_path(&directory, base, FileKind::OffsetIndex),
                    index.offsets_flushed,
                    Bytes::copy_from_slice(&index.offsets[index.offsets_flushed..]),
                ),
                (
                    segment_path(&directory, base, FileKind::TimeIndex),
                    index.times_flushed,
                    Bytes::copy_from_slice(&index.times[index.times_flushed..]),
                ),
            ]
        };
        let mut flushed = [0; 2];
        for (at, (path, from, bytes)) in work.into_iter().enumerate() {
            flushed[at] = from + bytes.len();
            let options = OpenOptions {
                read: true,
                write: true,
                create: true,
                ..Default::default()
            };
            let file = File::open(core, &path, &options)
                .await
                .map_err(|error| StorageError::io("open", &path, error))?;
            if bytes.is_empty() {
                continue;
            }
            file.write_all_at(core, bytes, from as u64, Durability::Written)
                .await
                .map_err(|error| StorageError::io("write", &path, error))?;
        }
        let mut state = self.state.borrow_mut();
        if let Some(index) = &mut state.active.index {
            index.offsets_flushed = flushed[0];
            index.times_flushed = flushed[1];
        }
        Ok(())
    }
}

/// Reads and checks an index file. `None` where it must be rebuilt.
pub(crate) async fn read_index(
    core: &Core,
    directory: &Path,
    base_offset: i64,
    size: u32,
    time: bool,
) -> Result<Option<Bytes>, StorageError> {
    let kind = if time {
        FileKind::TimeIndex
    } else {
        FileKind::OffsetIndex
    };
    let path = segment_path(directory, base_offset, kind);
    let raw = match dir::read_file(core, &path, INDEX_BYTES_MAX).await {
        Ok(raw) => raw,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("read", &path, error)),
    };
    let checked = if time {
        TimeEntries(&raw).check()
    } else {
        OffsetEntries(&raw).check(size)
    };
    Ok(checked.is_ok().then_some(raw))
}

/// Builds a segment's indexes from its batch headers, up to `size`; what is no batch is passed over.
pub(crate) async fn rebuild(
    core: &Core,
    directory: &Path,
    base_offset: i64,
    size: u32,
    interval_bytes: u32,
) -> Result<(ActiveIndex, IndexCursor), StorageError> {
    let path = segment_path(directory, base_offset, FileKind::Log);
    let options = OpenOptions {
        read: true,
        ..Default::default()
    };
    let file = File::open(core, &path, &options)
        .await
        .map_err(|error| StorageError::io("open", &path, error))?;
    let source = FileSource {
        core,
        file: &file,
        path: &path,
    };
    let mut walk = Walk::new(&source, 0, size, SCAN_WINDOW);
    let mut index = ActiveIndex::new(base_offset);
    let mut cursor = IndexCursor::new(base_offset);
    let mut pace = super::recovery::Pace::default();
    while let Some(placed) = walk.next_good(&path).await? {
        index.push(cursor.advance(&placed.header, placed.position, interval_bytes));
        pace.step(core).await;
    }
    if let Some(entry) = cursor.time_entry_due() {
        index.push_time(entry);
    }
    Ok((index, cursor))
}

/// Replaces both index files of a segment.
pub(crate) async fn write_index_files(
    core: &Core,
    directory: &Path,
    index: &ActiveIndex,
) -> Result<(), StorageError> {
    let files = [
        (FileKind::OffsetIndex, &index.offsets),
        (FileKind::TimeIndex, &index.times),
    ];
    for (kind, entries) in files {
        let path = segment_path(directory, index.base_offset, kind);
        let file = open_new(core, &path).await?;
        if !entries.is_empty() {
            file.write_all_at(
                core,
                Bytes::copy_from_slice(entries),
                0,
                Durability::Written,
            )
            .await
            .map_err(|error| StorageError::io("write", &path, error))?;
        }
    }
    Ok(())
}
