//! After a crash: what the journals of a log directory hold goes into the segments, before any log is opened.
//!
//! An entry says which bytes stand where in which segment, so putting it back twice is putting it back once, and the
//! recovery of the logs finds what it would have found if each batch had been written to its segment.

use super::format::{
    Entry, FrameHeader, Generation, Owner, Place, begins_frame, decode_file_header, entries,
    frame_header, frame_holds,
};
use super::{ASIDE_DAMAGED, ASIDE_STALE, FRAME_BYTES_MAX, aside_path, is_journal};
use crate::batch::{BatchHeader, checksum_holds};
use crate::disk::sync_directory;
use crate::error::StorageError;
use crate::log::sync_file;
use crate::names::{FileKind, TopicPartition};
use crate::segment::{BLOCK, segment_path};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use shards::Core;
use shards::io::{Durability, File, OpenOptions, dir};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;

/// Files open at a time while entries are put back.
const OPEN_FILES: usize = 128;
/// Segments that are synced at the same time.
const SYNCS_AT_ONCE: usize = 32;

/// What was found in the journals of a directory and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Journals read.
    pub journals: usize,
    /// Entries that were still needed, and their bytes.
    pub entries: u64,
    pub bytes: u64,
    /// Bytes that were not in their segment yet.
    pub written_bytes: u64,
    /// Entries of partitions or segments that are not there any more.
    pub gone: u64,
    /// Partitions that somebody else has written to since, with file and position: their entries were left alone.
    pub conflicts: Vec<String>,
    /// Journals that were set aside unread, because the directory was closed cleanly after them.
    pub set_aside: Vec<PathBuf>,
    /// Journals whose first block is damaged, so that nothing tells which of their frames count: set aside unread too.
    pub damaged: Vec<PathBuf>,
}

/// Puts back what the journals below `log_directory` hold, makes it durable, and removes them. With `clean`, the
/// directory was closed cleanly since: whatever journals are there are older, and are set aside under another name. So are
/// those that cannot be read, for somebody to look at.
///
/// # Errors
/// I/O errors: then nothing was removed, and it may be tried again.
pub async fn replay(
    core: &Core,
    log_directory: &Path,
    clean: bool,
) -> Result<JournalReport, StorageError> {
    let mut report = JournalReport::default();
    let found = dir::read_names(core, log_directory)
        .await
        .map_err(|error| StorageError::io("list", log_directory, error))?;
    let paths: Vec<PathBuf> = found
        .keys()
        .filter(|name| name.to_str().is_some_and(is_journal))
        .map(|name| log_directory.join(name))
        .collect();
    if paths.is_empty() {
        return Ok(report);
    }
    if clean {
        for path in &paths {
            report
                .set_aside
                .push(set_aside(core, path, ASIDE_STALE).await?);
        }
        return sync_directory(core, log_directory).await.map(|()| report);
    }
    let mut target = Target::new(core, log_directory);
    let mut damaged = BTreeSet::new();
    for path in &paths {
        report.journals += 1;
        let journal = Reader::open(core, path).await?;
        match journal.generation().await? {
            Some(generation) => {
                replay_one(&journal, generation, &mut target, &mut report).await?;
            }
            // The first block is durable before the first frame is: without frames nothing was ever acknowledged from here.
            None if journal.begins_frames().await? => {
                damaged.insert(path);
            }
            None => {}
        }
    }
    target.sync().await?;
    for path in &paths {
        if damaged.contains(path) {
            report
                .damaged
                .push(set_aside(core, path, ASIDE_DAMAGED).await?);
            continue;
        }
        dir::remove_file(core, path)
            .await
            .map_err(|error| StorageError::io("remove", path, error))?;
    }
    sync_directory(core, log_directory).await?;
    Ok(report)
}

/// Renames a journal, so that it is not found again; answers its new path.
async fn set_aside(core: &Core, path: &Path, suffix: &str) -> Result<PathBuf, StorageError> {
    let aside = aside_path(path, suffix);
    dir::rename(core, path, &aside)
        .await
        .map_err(|error| StorageError::io("rename", path, error))?;
    Ok(aside)
}

async fn replay_one(
    journal: &Reader<'_>,
    generation: Generation,
    target: &mut Target<'_>,
    report: &mut JournalReport,
) -> Result<(), StorageError> {
    let frames = journal.frames(generation).await?;
    let Some((_, (_, newest))) = frames.last_key_value() else {
        return Ok(());
    };
    let oldest = newest.oldest;
    // What a log has before its last cut says nothing any more.
    let mut cuts: BTreeMap<Owner, u64> = BTreeMap::new();
    for (sequence, (position, header)) in frames.range(oldest..) {
        for entry in journal.entries(*position, *header).await? {
            if let Entry::Cut { owner } = entry {
                cuts.insert(owner, *sequence);
            }
        }
    }
    let mut ends = BTreeMap::new();
    for (sequence, (position, header)) in frames.range(oldest..) {
        for entry in journal.entries(*position, *header).await? {
            let Entry::Bytes {
                owner,
                place,
                bytes,
            } = entry
            else {
                continue;
            };
            let void = cuts.get(&owner).is_some_and(|cut| cut > sequence);
            if void || !follows(&mut ends, &owner, place, bytes.len()) {
                continue;
            }
            report.entries += 1;
            report.bytes += bytes.len() as u64;
            target.put(&owner, place, bytes, report).await?;
        }
    }
    Ok(())
}

/// Whether an entry stands behind one that was put back, or behind what its segment has. Frames that no flush made durable
/// may be lost with the power while later ones are kept: nothing behind such a gap belongs to the log.
fn follows(
    ends: &mut BTreeMap<Owner, (i64, u32)>,
    owner: &Owner,
    place: Place,
    length: usize,
) -> bool {
    let follows = place.first || ends.get(owner) == Some(&(place.segment, place.position));
    if follows {
        let end = place.position.saturating_add(length as u32);
        ends.insert(owner.clone(), (place.segment, end));
    } else {
        ends.remove(owner);
    }
    follows
}

/// A journal's file, read.
struct Reader<'a> {
    core: &'a Core,
    path: &'a Path,
    file: File,
    length: u64,
    /// What was read last, and where it begins.
    window: RefCell<(u64, Bytes)>,
}

impl<'a> Reader<'a> {
    async fn open(core: &'a Core, path: &'a Path) -> Result<Reader<'a>, StorageError> {
        let io = |error| StorageError::io("read", path, error);
        // Past the page cache, as it was written.
        let options = OpenOptions {
            direct: true,
            ..OpenOptions::reading()
        };
        let file = File::open(core, path, &options).await.map_err(io)?;
        let length = file.len(core).await.map_err(io)?;
        Ok(Reader {
            core,
            path,
            file,
            length,
            window: RefCell::default(),
        })
    }

    /// `None` where the first block does not name one.
    async fn generation(&self) -> Result<Option<Generation>, StorageError> {
        Ok(decode_file_header(&self.read(0, BLOCK as usize).await?))
    }

    /// Whether there is any block that a frame of any generation might begin with.
    async fn begins_frames(&self) -> Result<bool, StorageError> {
        let mut position = u64::from(BLOCK);
        while position < self.length {
            if begins_frame(&self.read(position, BLOCK as usize).await?) {
                return Ok(true);
            }
            position += u64::from(BLOCK);
        }
        Ok(false)
    }

    /// Every whole frame, by its number, with where it begins.
    async fn frames(
        &self,
        generation: Generation,
    ) -> Result<BTreeMap<u64, (u64, FrameHeader)>, StorageError> {
        let mut frames = BTreeMap::new();
        let mut position = u64::from(BLOCK);
        while position < self.length {
            let block = self.read(position, BLOCK as usize).await?;
            let Some(header) = frame_header(&block, generation) else {
                position += u64::from(BLOCK);
                continue;
            };
            let whole = self.read(position, header.length as usize).await?;
            if whole.len() == header.length as usize && frame_holds(&whole) {
                frames.insert(header.sequence, (position, header));
                position += u64::from(header.length).next_multiple_of(u64::from(BLOCK));
            } else {
                position += u64::from(BLOCK);
            }
        }
        Ok(frames)
    }

    async fn entries(&self, at: u64, header: FrameHeader) -> Result<Vec<Entry>, StorageError> {
        Ok(entries(self.read(at, header.length as usize).await?))
    }

    /// At most what a frame may have, whatever a header claims. Frames stand one behind the other, and are read many at a time.
    async fn read(&self, at: u64, length: usize) -> Result<Bytes, StorageError> {
        let length = length.min(FRAME_BYTES_MAX);
        if let Some(bytes) = self.in_window(at, length) {
            return Ok(bytes);
        }
        let window = self
            .file
            .read_at_most(self.core, at, FRAME_BYTES_MAX)
            .await
            .map_err(|error| StorageError::io("read", self.path, error))?;
        let bytes = window.slice(..length.min(window.len()));
        *self.window.borrow_mut() = (at, window);
        Ok(bytes)
    }

    fn in_window(&self, at: u64, length: usize) -> Option<Bytes> {
        let window = self.window.borrow();
        let from = usize::try_from(at.checked_sub(window.0)?).ok()?;
        let to = from.checked_add(length)?;
        (to <= window.1.len()).then(|| window.1.slice(from..to))
    }
}

/// The partitions that entries go to.
struct Target<'a> {
    core: &'a Core,
    log_directory: &'a Path,
    /// Whether the entries of a log may be put back at all.
    accepts: BTreeMap<Owner, bool>,
    open: BTreeMap<PathBuf, File>,
    touched: BTreeSet<PathBuf>,
}

impl<'a> Target<'a> {
    fn new(core: &'a Core, log_directory: &'a Path) -> Target<'a> {
        Target {
            core,
            log_directory,
            accepts: BTreeMap::new(),
            open: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    async fn put(
        &mut self,
        owner: &Owner,
        place: Place,
        bytes: Bytes,
        report: &mut JournalReport,
    ) -> Result<(), StorageError> {
        let name = TopicPartition::new(&*owner.topic, owner.partition);
        let directory = self.log_directory.join(name.directory_name());
        if !self.accepts(owner, &directory).await? {
            report.gone += 1;
            return Ok(());
        }
        let position = place.position;
        let path = segment_path(&directory, place.segment, FileKind::Log);
        let Some(file) = self.file(&path).await? else {
            report.gone += 1;
            return Ok(());
        };
        let there = file
            .read_at_most(self.core, u64::from(position), bytes.len())
            .await
            .map_err(|error| StorageError::io("read", &path, error))?;
        if there != bytes && self.is_foreign(&file, &path, place, &there, &bytes).await? {
            report
                .conflicts
                .push(format!("{} at byte {position}", path.display()));
            self.accepts.insert(owner.clone(), false);
            return Ok(());
        }
        if there != bytes {
            report.written_bytes += bytes.len() as u64;
        }
        // Also what is there already: after a failed sync it may be in the page cache alone.
        file.write_all_at(self.core, bytes, u64::from(position), Durability::Written)
            .await
            .map_err(|error| StorageError::io("write", &path, error))?;
        self.touched.insert(path);
        Ok(())
    }

    /// Whether the partition is there, and is the same one.
    async fn accepts(&mut self, owner: &Owner, directory: &Path) -> Result<bool, StorageError> {
        if let Some(accepts) = self.accepts.get(owner) {
            return Ok(*accepts);
        }
        let accepts = match dir::metadata(self.core, directory).await {
            Ok(_) => match crate::disk::read_topic_id(self.core, directory).await {
                // Nobody opens it before its file is mended; then its records must be there.
                Err(StorageError::Corrupt { .. }) => true,
                found => found? == Some(owner.topic_id),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(StorageError::io("look at", directory, error)),
        };
        self.accepts.insert(owner.clone(), accepts);
        Ok(accepts)
    }

    /// The segment; `None` where it is not there (any more).
    async fn file(&mut self, path: &Path) -> Result<Option<File>, StorageError> {
        if let Some(file) = self.open.get(path) {
            return Ok(Some(file.clone()));
        }
        let options = OpenOptions {
            read: true,
            write: true,
            ..OpenOptions::default()
        };
        let file = match File::open(self.core, path, &options).await {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io("open", path, error)),
        };
        if self.open.len() >= OPEN_FILES {
            self.open.pop_first();
        }
        self.open.insert(path.to_path_buf(), file.clone());
        Ok(Some(file))
    }

    /// Whether another broker went on with this directory: what it wrote differs in what the segment had already, or is a
    /// whole batch where ours begins.
    async fn is_foreign(
        &self,
        file: &File,
        path: &Path,
        place: Place,
        there: &[u8],
        ours: &[u8],
    ) -> Result<bool, StorageError> {
        let lead = place.lead as usize;
        // What a lost write leaves is zeros.
        let differs = |(there, ours): (&u8, &u8)| there != ours && *there != 0;
        if there.iter().zip(ours).take(lead).any(differs) {
            return Ok(true);
        }
        let position = place.position.saturating_add(place.lead);
        let (there, ours) = (
            there.get(lead..).unwrap_or_default(),
            &ours[lead.min(ours.len())..],
        );
        let Ok(header) = BatchHeader::parse(there) else {
            return Ok(false);
        };
        if ours.get(..header.size) == there.get(..header.size) && header.size <= ours.len() {
            return Ok(false);
        }
        if header.size > FRAME_BYTES_MAX {
            // Too large to have come through a journal.
            return Ok(true);
        }
        let whole = file
            .read_at_most(self.core, u64::from(position), header.size)
            .await
            .map_err(|error| StorageError::io("read", path, error))?;
        Ok(whole.len() == header.size && checksum_holds(&whole))
    }

    async fn sync(&self) -> Result<(), StorageError> {
        // The filesystem makes many files durable for little more than what one costs, if it is asked at the same time.
        let syncs = self.touched.iter().map(|path| sync_file(self.core, path));
        let mut syncs = pin!(stream::iter(syncs).buffer_unordered(SYNCS_AT_ONCE));
        while let Some(synced) = syncs.next().await {
            synced?;
        }
        Ok(())
    }
}
