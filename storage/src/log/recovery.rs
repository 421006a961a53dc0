//! Finding the end of a log at start: by its tail alone after a clean stop, batch by batch after a crash.

use super::append::end_marker;
use super::indexes;
use crate::batch::{self, BatchHeader, PREFIX};
use crate::epochs::LeaderEpochs;
use crate::error::StorageError;
use crate::names::FileKind;
use crate::producer::{ProducerState, snapshot};
use crate::segment::index::{ActiveIndex, IndexCursor, OFFSET_ENTRY, TIME_ENTRY};
use crate::segment::reader::{
    FileSource, LOOKUP_WINDOW, Placed, SCAN_WINDOW, Source, Walk, WalkError,
};
use crate::segment::{Sealed, segment_path};
use bytes::Bytes;
use shards::Core;
use shards::io::{File, OpenOptions, dir};
use std::path::{Path, PathBuf};

/// A place where a log was cut at open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncation {
    pub file: PathBuf,
    /// Byte where the first thing that is no whole, valid batch begins.
    pub at: u64,
    /// Bytes cut off there; segments behind are listed as removed files.
    pub bytes: u64,
    pub why: String,
    /// Nothing but zeros were cut off: space the file was extended by, not data.
    pub only_zeros: bool,
}

/// What opening a log had to do. All zero after a clean stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The directory was made.
    pub created: bool,
    pub recovered_segments: u64,
    pub recovered_bytes: u64,
    pub truncations: Vec<Truncation>,
    pub rebuilt_indexes: u64,
    pub removed_files: Vec<String>,
    /// Files that could not be read and were made anew: what and why.
    pub repaired: Vec<String>,
}

/// A scanned segment.
pub(crate) struct Scan {
    pub index: ActiveIndex,
    pub cursor: IndexCursor,
    /// End of the last good batch.
    pub size: u32,
    pub next_offset: i64,
    pub first_timestamp: Option<i64>,
    /// What ended the scan before the end of the file.
    pub fault: Option<Fault>,
    /// Offset and time index as the files had them, where they were read.
    pub files_had: Option<(Bytes, Bytes)>,
    /// Where the check began.
    pub trusted: u32,
}

pub(crate) struct Fault {
    pub at: u32,
    pub why: String,
}

pub(crate) async fn open_segment(core: &Core, path: &Path) -> Result<File, StorageError> {
    File::open(core, path, &OpenOptions::reading())
        .await
        .map_err(|error| StorageError::io("open", path, error))
}

/// The end of a segment that was closed cleanly, from the last index entry on. `None` where the tail is not as a clean
/// stop leaves it: then it needs [`scan`].
pub(crate) async fn clean_tail(
    core: &Core,
    directory: &Path,
    base_offset: i64,
    lengths: super::startup_files::FileLengths,
) -> Result<Option<Scan>, StorageError> {
    let (Some(offset_bytes), Some(time_bytes)) = (lengths.offset_index, lengths.time_index) else {
        return Ok(None);
    };
    let Ok(length) = u32::try_from(lengths.log) else {
        return Ok(None);
    };
    if offset_bytes % OFFSET_ENTRY as u64 != 0 || time_bytes % TIME_ENTRY as u64 != 0 {
        return Ok(None);
    }
    let path = segment_path(directory, base_offset, FileKind::OffsetIndex);
    let last = last_entry(core, &path, offset_bytes, OFFSET_ENTRY).await?;
    let indexed = last.map(|raw| (batch::u32_at(&raw, 0), batch::u32_at(&raw, 4)));
    let path = segment_path(directory, base_offset, FileKind::TimeIndex);
    let last = last_entry(core, &path, time_bytes, TIME_ENTRY).await?;
    let last_time = last.map(|raw| (batch::i64_at(&raw, 0), batch::u32_at(&raw, 8)));
    let from = indexed.map_or(0, |(_, position)| position);
    if indexed.is_some_and(|(_, position)| position == 0 || position >= length) {
        return Ok(None);
    }
    let path = segment_path(directory, base_offset, FileKind::Log);
    let file = open_segment(core, &path).await?;
    let source = FileSource {
        core,
        file: &file,
        path: &path,
    };
    let mut walk = Walk::new(&source, from, length, LOOKUP_WINDOW);
    let mut scan = Scan {
        index: ActiveIndex::new(base_offset),
        cursor: IndexCursor::resume(
            base_offset,
            offset_bytes as usize / OFFSET_ENTRY,
            time_bytes as usize / TIME_ENTRY,
            last_time,
        ),
        size: from,
        next_offset: base_offset,
        first_timestamp: None,
        fault: None,
        files_had: None,
        trusted: 0,
    };
    let mut expected = indexed.map(|(relative, _)| base_offset + i64::from(relative));
    loop {
        match walk.next().await {
            Ok(Some(placed)) => {
                let wrong = expected
                    .take()
                    .is_some_and(|last| placed.header.last_offset != last);
                if wrong || placed.header.last_offset < scan.next_offset {
                    return Ok(None);
                }
                scan.pass(&placed);
            }
            Ok(None) => return Ok(Some(scan)),
            Err(WalkError::Bad { .. }) => return Ok(None),
            Err(WalkError::Storage(error)) => return Err(error),
        }
    }
}

async fn last_entry(
    core: &Core,
    path: &Path,
    length: u64,
    entry: usize,
) -> Result<Option<Bytes>, StorageError> {
    if length == 0 {
        return Ok(None);
    }
    let failed = |error| StorageError::io("read", path, error);
    let file = File::open(core, path, &OpenOptions::reading())
        .await
        .map_err(failed)?;
    file.read_exact_at(core, length - entry as u64, entry)
        .await
        .map(Some)
        .map_err(failed)
}

impl Scan {
    /// The index files hold these very entries already.
    pub fn index_is_on_disk(&self) -> bool {
        self.files_had.as_ref().is_some_and(|(offsets, times)| {
            offsets == &self.index.offsets && times == &self.index.times
        })
    }

    fn pass(&mut self, placed: &Placed) {
        self.note(placed);
        self.cursor.pass(&placed.header);
    }

    fn note(&mut self, placed: &Placed) {
        if placed.position == 0 {
            self.first_timestamp = Some(placed.header.max_timestamp);
        }
        self.size = placed.end();
        self.next_offset = placed.header.last_offset + 1;
    }
}

/// What a scan needs to know.
pub(crate) struct ScanJob<'a> {
    pub core: &'a Core,
    pub directory: &'a Path,
    pub base_offset: i64,
    pub length: u32,
    /// Batches below are durable and indexed: the scan starts at the last one that the index knows.
    pub trusted_below: i64,
    pub interval_bytes: u32,
}

/// Checks every batch of a segment from the trusted part on: header, checksum, order of offsets. Rebuilds the indexes
/// and tells the epochs of each batch.
pub(crate) async fn scan(
    job: &ScanJob<'_>,
    mut batch_seen: impl FnMut(&BatchHeader),
) -> Result<Scan, StorageError> {
    let path = segment_path(job.directory, job.base_offset, FileKind::Log);
    let file = open_segment(job.core, &path).await?;
    let source = FileSource {
        core: job.core,
        file: &file,
        path: &path,
    };
    let (mut scan, from) = start_of_scan(job, &source).await?;
    let mut walk = Walk::new(&source, from, job.length, SCAN_WINDOW);
    let mut pace = Pace::default();
    let fault = loop {
        let placed = match walk.next().await {
            Ok(Some(placed)) => placed,
            Ok(None) => break None,
            Err(WalkError::Bad { at, why, .. }) => break Some((at, why)),
            Err(WalkError::Storage(error)) => return Err(error),
        };
        let header = &placed.header;
        if header.base_offset < scan.next_offset {
            break Some((placed.position, "offsets go back"));
        }
        if header.last_offset - job.base_offset > i64::from(i32::MAX) {
            break Some((placed.position, "offset too far from the segment's base"));
        }
        let bytes = match walk.batch_bytes(&placed).await {
            Ok(bytes) => bytes,
            Err(WalkError::Bad { at, why, .. }) => break Some((at, why)),
            Err(WalkError::Storage(error)) => return Err(error),
        };
        if !batch::checksum_holds(&bytes) {
            break Some((placed.position, "checksum does not match"));
        }
        let new = scan
            .cursor
            .advance(header, placed.position, job.interval_bytes);
        scan.index.push(new);
        scan.note(&placed);
        batch_seen(header);
        pace.step(job.core).await;
    };
    scan.fault = fault.map(|(at, why)| Fault {
        at,
        why: why.to_owned(),
    });
    Ok(scan)
}

/// Where the trusted part ends: at an index entry below the point, or at the start where there is none to trust.
async fn start_of_scan<S: Source>(
    job: &ScanJob<'_>,
    source: &S,
) -> Result<(Scan, u32), StorageError> {
    let base_offset = job.base_offset;
    let mut scan = Scan {
        index: ActiveIndex::new(base_offset),
        cursor: IndexCursor::new(base_offset),
        size: 0,
        next_offset: base_offset,
        first_timestamp: None,
        fault: None,
        files_had: None,
        trusted: 0,
    };
    if job.trusted_below <= base_offset {
        return Ok((scan, 0));
    }
    let read = |time| indexes::read_index(job.core, job.directory, base_offset, job.length, time);
    let (Some(offsets), Some(times)) = (read(false).await?, read(true).await?) else {
        return Ok((scan, 0));
    };
    scan.files_had = Some((offsets.clone(), times.clone()));
    let mut index = ActiveIndex::loaded(base_offset, offsets, times);
    index.truncate(job.trusted_below);
    let Some((relative, position)) = index.offset_entries().last() else {
        return Ok((scan, 0));
    };
    // The entry must point at the batch it names.
    let mut walk = Walk::new(source, position, job.length, LOOKUP_WINDOW);
    let expected = base_offset + i64::from(relative);
    match walk.next().await {
        Ok(Some(placed)) if placed.header.last_offset == expected => {
            scan.next_offset = placed.header.base_offset;
        }
        Err(WalkError::Storage(error)) => return Err(error),
        _ => return Ok((scan, 0)),
    }
    // Time entries at or behind the entry's batch come again with the scan.
    index.times.truncate(
        index
            .time_entries()
            .entries_below(relative.saturating_add(1))
            * TIME_ENTRY,
    );
    index.offsets_flushed = 0;
    index.times_flushed = 0;
    scan.cursor = IndexCursor::resume(
        base_offset,
        index.offset_entries().len(),
        index.time_entries().len(),
        index.time_entries().last(),
    );
    scan.size = position;
    scan.trusted = position;
    scan.index = index;
    Ok((scan, position))
}

/// Lets other tasks of the core in between, every so many batches.
#[derive(Default)]
pub(crate) struct Pace(u32);

impl Pace {
    pub async fn step(&mut self, core: &Core) {
        self.0 += 1;
        if self.0.is_multiple_of(64) {
            core.yield_now().await;
        }
    }
}

/// True where a file holds only zeros from `from` on.
pub(crate) async fn only_zeros(
    core: &Core,
    path: &Path,
    from: u32,
    length: u64,
) -> Result<bool, StorageError> {
    let file = open_segment(core, path).await?;
    let mut at = u64::from(from);
    while at < length {
        let want = (length - at).min(u64::from(SCAN_WINDOW)) as usize;
        let bytes = file
            .read_at_most(core, at, want)
            .await
            .map_err(|error| StorageError::io("read", path, error))?;
        if bytes.is_empty() {
            break;
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes.len() as u64;
    }
    Ok(true)
}

/// Segments as a replay needs them: base offset and size, ascending.
pub(crate) type SegmentList = [(i64, u32)];

pub(crate) fn segment_list(sealed: &[Sealed], active: (i64, u32)) -> Vec<(i64, u32)> {
    sealed
        .iter()
        .map(|segment| (segment.base_offset, segment.size))
        .chain([active])
        .collect()
}

/// The newest readable snapshot not above `end_offset`, and its offset. Unreadable ones are noted and removed.
pub(crate) async fn load_snapshot(
    core: &Core,
    directory: &Path,
    snapshots: &[i64],
    end_offset: i64,
    report: &mut RecoveryReport,
) -> Result<Option<(i64, ProducerState)>, StorageError> {
    const SNAPSHOT_BYTES_MAX: usize = 256 << 20;
    for offset in snapshots
        .iter()
        .rev()
        .filter(|offset| **offset <= end_offset)
    {
        let path = segment_path(directory, *offset, FileKind::ProducerSnapshot);
        let bytes = match dir::read_file(core, &path, SNAPSHOT_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StorageError::io("read", &path, error)),
        };
        match snapshot::decode(&bytes) {
            Ok(state) => return Ok(Some((*offset, state))),
            Err(fault) => {
                report
                    .repaired
                    .push(format!("{}: {}", path.display(), fault.0));
                let name = crate::names::file_name(*offset, FileKind::ProducerSnapshot);
                super::startup_files::remove(core, directory, &name, report).await?;
            }
        }
    }
    Ok(None)
}

/// Brings the producers up from `from_offset` to the end by the batches' headers.
pub(crate) async fn replay_producers(
    core: &Core,
    directory: &Path,
    segments: &SegmentList,
    from_offset: i64,
    end_offset: i64,
    state: &mut ProducerState,
) -> Result<(), StorageError> {
    for (index, (base_offset, size)) in segments.iter().enumerate() {
        let ends_before = segments
            .get(index + 1)
            .is_some_and(|(next, _)| *next <= from_offset);
        if ends_before || *size == 0 {
            continue;
        }
        let path = segment_path(directory, *base_offset, FileKind::Log);
        let file = open_segment(core, &path).await?;
        let source = FileSource {
            core,
            file: &file,
            path: &path,
        };
        let start = replay_start(core, directory, *base_offset, *size, from_offset).await?;
        let mut walk = Walk::new(&source, start, *size, SCAN_WINDOW);
        while let Some(placed) = walk
            .next()
            .await
            .map_err(|error| error.into_storage(&path))?
        {
            let header = placed.header;
            if header.base_offset < from_offset
                || header.base_offset >= end_offset
                || !header.has_producer_id()
            {
                continue;
            }
            if !header.is_control() {
                state.apply_batch(&header);
                continue;
            }
            let bytes = walk.batch_bytes(&placed).await;
            let bytes = bytes.map_err(|error| error.into_storage(&path))?;
            if let Some(marker) = end_marker(&bytes) {
                state.apply_marker(&header, marker);
            }
        }
    }
    Ok(())
}

/// Skips what lies before `from_offset` by the index, where there is a good one.
async fn replay_start(
    core: &Core,
    directory: &Path,
    base_offset: i64,
    size: u32,
    from_offset: i64,
) -> Result<u32, StorageError> {
    if from_offset <= base_offset {
        return Ok(0);
    }
    let raw = indexes::read_index(core, directory, base_offset, size, false).await?;
    let relative = u32::try_from(from_offset - base_offset).unwrap_or(u32::MAX);
    Ok(raw.map_or(0, |raw| {
        crate::segment::index::OffsetEntries(&raw).position_before(relative.saturating_sub(1))
    }))
}

/// The epochs by all batch headers, for a checkpoint that cannot be read.
pub(crate) async fn rebuild_epochs(
    core: &Core,
    directory: &Path,
    segments: &SegmentList,
) -> Result<LeaderEpochs, StorageError> {
    let mut epochs = LeaderEpochs::default();
    for (base_offset, size) in segments {
        if (*size as usize) < PREFIX {
            continue;
        }
        let path = segment_path(directory, *base_offset, FileKind::Log);
        let file = open_segment(core, &path).await?;
        let source = FileSource {
            core,
            file: &file,
            path: &path,
        };
        let mut walk = Walk::new(&source, 0, *size, SCAN_WINDOW);
        let mut pace = Pace::default();
        while let Ok(Some(placed)) = walk.next().await {
            note_epoch(&mut epochs, &placed.header);
            pace.step(core).await;
        }
    }
    Ok(epochs)
}

/// Notes a batch's epoch if it is newer than all known.
pub(crate) fn note_epoch(epochs: &mut LeaderEpochs, header: &BatchHeader) -> bool {
    let newer = epochs
        .latest()
        .is_none_or(|latest| header.leader_epoch > latest.epoch);
    newer && epochs.assign(header.leader_epoch, header.base_offset)
}
