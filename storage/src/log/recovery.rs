//! Finding the end of a log at start: by its tail alone after a clean stop, batch by batch after a crash.

use super::ahead::{Ahead, EndSource};
use super::append::end_marker;
use super::damage::{Damage, DamagedRange, begins_with_zeros, is_lost_write};
use super::indexes;
use super::startup_files::{FileLengths, SegmentFiles};
use crate::batch::{self, BatchHeader, PREFIX};
use crate::epochs::LeaderEpochs;
use crate::error::StorageError;
use crate::names::{FileKind, file_name};
use crate::producer::{ProducerState, snapshot};
use crate::segment::index::{ActiveIndex, IndexCursor, OFFSET_ENTRY, TIME_ENTRY};
use crate::segment::reader::{
    FileSource, LOOKUP_WINDOW, Placed, SCAN_WINDOW, Source, Walk, WalkError,
};
use crate::segment::{Sealed, segment_path};
use bytes::Bytes;
use shards::Core;
use shards::io::{Durability, File, OpenOptions, dir};
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
    /// Places in the middle that cannot be read any more; nothing behind them was cut off.
    pub damages: Vec<Damage>,
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
    /// Damaged places that were passed, each with the reason.
    pub damages: Vec<(DamagedRange, &'static str)>,
    /// Offset and time index as the files had them, where they were read.
    pub files_had: Option<(Bytes, Bytes)>,
    /// Where the check began.
    pub trusted: u32,
}

pub(crate) struct Fault {
    pub at: u32,
    pub why: &'static str,
}

pub(crate) async fn open_segment(core: &Core, path: &Path) -> Result<File, StorageError> {
    File::open(core, path, &OpenOptions::reading())
        .await
        .map_err(|error| StorageError::io("open", path, error))
}

/// Writes again what the page cache holds of a part and the disk does not. What a failed sync left there counts as clean:
/// it can be read, and was acknowledged, but no later sync would write it.
pub(crate) async fn write_what_the_disk_lacks(
    core: &Core,
    path: &Path,
    part: std::ops::Range<u32>,
) -> Result<(), StorageError> {
    let direct = OpenOptions {
        direct: true,
        ..OpenOptions::reading()
    };
    let failed = |error| StorageError::io("read", path, error);
    let on_disk = File::open(core, path, &direct).await.map_err(failed)?;
    let cached = open_segment(core, path).await?;
    let mut at = part.start;
    while at < part.end {
        let want = (part.end - at).min(SCAN_WINDOW) as usize;
        let bytes = cached.read_exact_at(core, u64::from(at), want).await;
        let bytes = bytes.map_err(failed)?;
        let there = on_disk.read_at_most(core, u64::from(at), want).await;
        if there.map_err(failed)? != bytes {
            let options = OpenOptions {
                read: true,
                write: true,
                ..Default::default()
            };
            let failed = |error| StorageError::io("write", path, error);
            let file = File::open(core, path, &options).await.map_err(failed)?;
            file.write_all_at(core, bytes, u64::from(at), Durability::Written)
                .await
                .map_err(failed)?;
        }
        at += want as u32;
    }
    Ok(())
}

/// The end of a segment that was closed cleanly, from the last index entry on. `None` where the tail is not as a clean
/// stop leaves it: then it needs [`scan`].
pub(crate) async fn clean_tail(
    core: &Core,
    directory: &Path,
    base_offset: i64,
    lengths: FileLengths,
    ahead: &Ahead,
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
    let part = |kind| ahead.get(&file_name(base_offset, kind));
    let path = segment_path(directory, base_offset, FileKind::OffsetIndex);
    let end = part(FileKind::OffsetIndex);
    let last = last_entry(core, &path, end, offset_bytes, OFFSET_ENTRY).await?;
    let indexed = last.map(|raw| (batch::u32_at(&raw, 0), batch::u32_at(&raw, 4)));
    let path = segment_path(directory, base_offset, FileKind::TimeIndex);
    let end = part(FileKind::TimeIndex);
    let last = last_entry(core, &path, end, time_bytes, TIME_ENTRY).await?;
    let last_time = last.map(|raw| (batch::i64_at(&raw, 0), batch::u32_at(&raw, 8)));
    let from = indexed.map_or(0, |(_, position)| position);
    if indexed.is_some_and(|(_, position)| position == 0 || position >= length) {
        return Ok(None);
    }
    let path = segment_path(directory, base_offset, FileKind::Log);
    let source = EndSource::open(core, &path, part(FileKind::Log), from).await?;
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
        damages: Vec::new(),
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
    ahead: Option<(u64, &Bytes)>,
    length: u64,
    entry: usize,
) -> Result<Option<Bytes>, StorageError> {
    if length == 0 {
        return Ok(None);
    }
    if let Some((_, bytes)) = ahead {
        return Ok(Some(bytes.clone()));
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
    /// A power loss may have taken batches from this offset on.
    pub power_takes_from: i64,
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
    loop {
        match check_next(&mut walk, &scan).await? {
            Checked::End => break,
            Checked::Good(placed) => {
                let new = scan
                    .cursor
                    .advance(&placed.header, placed.position, job.interval_bytes);
                scan.index.push(new);
                scan.note(&placed);
                batch_seen(&placed.header);
            }
            Checked::Bad(at, why) => {
                if !pass_damage(job, &mut walk, &mut scan, (at, why)).await? {
                    scan.fault = Some(Fault { at, why });
                    break;
                }
            }
        }
        pace.step(job.core).await;
    }
    Ok(scan)
}

/// What a scan finds next.
enum Checked {
    End,
    Good(Placed),
    /// Where, and why it is no whole batch in its place.
    Bad(u32, &'static str),
}

async fn check_next<S: Source>(
    walk: &mut Walk<'_, S>,
    scan: &Scan,
) -> Result<Checked, StorageError> {
    let placed = match walk.next().await {
        Ok(Some(placed)) => placed,
        Ok(None) => return Ok(Checked::End),
        Err(WalkError::Bad { at, why }) => return Ok(Checked::Bad(at, why)),
        Err(WalkError::Storage(error)) => return Err(error),
    };
    let header = &placed.header;
    if header.base_offset < scan.next_offset {
        return Ok(Checked::Bad(placed.position, "offsets go back"));
    }
    if header.last_offset - scan.index.base_offset > i64::from(i32::MAX) {
        let why = "offset too far from the segment's base";
        return Ok(Checked::Bad(placed.position, why));
    }
    match walk.batch_bytes(&placed).await {
        Ok(bytes) if batch::checksum_holds(&bytes) => {
            let why = "its offset does not fit between its neighbours";
            Ok(match leaps(walk, scan, &placed).await? {
                true => Checked::Bad(placed.position, why),
                false => Checked::Good(placed),
            })
        }
        Ok(_) => Ok(Checked::Bad(placed.position, "checksum does not match")),
        Err(WalkError::Bad { at, why }) => Ok(Checked::Bad(at, why)),
        Err(WalkError::Storage(error)) => Err(error),
    }
}

/// Whether a batch's offset lies beyond that of the next one. Offsets are not under the checksum, so that a flipped bit
/// in one would make all that follow seem to go back.
async fn leaps<S: Source>(
    walk: &mut Walk<'_, S>,
    scan: &Scan,
    placed: &Placed,
) -> Result<bool, StorageError> {
    if placed.header.base_offset == scan.next_offset {
        return Ok(false);
    }
    let next = walk.next().await;
    walk.go_to(placed.end());
    match next {
        Ok(Some(next)) => Ok(next.header.base_offset <= placed.header.last_offset
            && next.header.base_offset > scan.next_offset),
        Ok(None) | Err(WalkError::Bad { .. }) => Ok(false),
        Err(WalkError::Storage(error)) => Err(error),
    }
}

/// Goes on behind a bad batch where whole ones follow it; false where the log ends here.
async fn pass_damage<S: Source>(
    job: &ScanJob<'_>,
    walk: &mut Walk<'_, S>,
    scan: &mut Scan,
    (from, why): (u32, &'static str),
) -> Result<bool, StorageError> {
    let path = walk.path();
    let power_took = scan.next_offset >= job.power_takes_from;
    if power_took && begins_with_zeros(job.core, &path, from).await? {
        return Ok(false);
    }
    let found = walk.resync(from, scan.next_offset).await;
    let Some(to) = found.map_err(|error| error.into_storage(&path))? else {
        return Ok(false);
    };
    if power_took && is_lost_write(job.core, &path, from, to).await? {
        return Ok(false);
    }
    let next = walk.next().await;
    let Some(next) = next.map_err(|error| error.into_storage(&path))? else {
        return Ok(false);
    };
    let next_offset = next.header.base_offset;
    if next.header.last_offset - job.base_offset > i64::from(i32::MAX) {
        return Ok(false);
    }
    let range = DamagedRange {
        segment_base: job.base_offset,
        from,
        to,
        first_offset: scan.next_offset,
        next_offset,
    };
    scan.damages.push((range, why));
    scan.size = to;
    scan.next_offset = next_offset;
    walk.go_to(to);
    Ok(true)
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
        damages: Vec::new(),
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

/// The newest readable snapshot not above `end_offset`, and its offset. Unreadable ones are noted in the report and
/// removed.
pub(crate) async fn load_snapshot(
    core: &Core,
    directory: &Path,
    (files, ahead): (&SegmentFiles, &Ahead),
    end_offset: i64,
    report: &mut RecoveryReport,
) -> Result<Option<(i64, ProducerState)>, StorageError> {
    const SNAPSHOT_BYTES_MAX: usize = 256 << 20;
    for (offset, _) in files.snapshots.range(..=end_offset).rev() {
        let name = file_name(*offset, FileKind::ProducerSnapshot);
        let path = directory.join(&name);
        let bytes = match ahead.get(&name) {
            Some((_, bytes)) => bytes.clone(),
            None => match dir::read_file(core, &path, SNAPSHOT_BYTES_MAX).await {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StorageError::io("read", &path, error)),
            },
        };
        match snapshot::decode(&bytes) {
            Ok(state) => return Ok(Some((*offset, state))),
            Err(fault) => {
                report
                    .repaired
                    .push(format!("{}: {}", path.display(), fault.0));
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
        while let Some(placed) = walk.next_good(&path).await? {
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
        while let Some(placed) = walk.next_good(&path).await? {
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
