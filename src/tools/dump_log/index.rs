//! Offset and time indexes, compared with their segment.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::entries::LogFile;
use super::log::{Batch, MOST_UNPACKED};
use super::{DumpLogArgs, Failure, Findings, absolute, failed, offset_of};
use crate::tools::progress::Progress;
use storage::index::{OFFSET_ENTRY, TIME_ENTRY};

/// Entries that are read at once.
const WINDOW: usize = 4096;

/// An index file with entries of `N` bytes, read a window at a time.
struct IndexFile<const N: usize> {
    file: File,
    path: PathBuf,
    size: u64,
    base: i64,
    window: Vec<u8>,
    /// The entry that the window begins with.
    first: u64,
}

impl<const N: usize> IndexFile<N> {
    fn open(path: &Path, base: i64) -> Result<IndexFile<N>, Failure> {
        let failed = |error| failed(path, error);
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(IndexFile {
            file,
            path: path.to_path_buf(),
            size,
            base,
            window: Vec::new(),
            first: 0,
        })
    }

    fn entries(&self) -> u64 {
        self.size / N as u64
    }

    fn entry(&mut self, index: u64) -> Result<[u8; N], Failure> {
        let held = (self.window.len() / N) as u64;
        if index < self.first || index >= self.first + held {
            let count = WINDOW.min(usize::try_from(self.entries() - index).unwrap_or(WINDOW));
            self.window.resize(count * N, 0);
            self.first = index;
            self.file
                .read_exact_at(&mut self.window, index * N as u64)
                .map_err(|error| failed(&self.path, error))?;
        }
        let at = usize::try_from(index - self.first).unwrap_or(0) * N;
        let mut entry = [0; N];
        entry.copy_from_slice(&self.window[at..at + N]);
        Ok(entry)
    }
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    i32::from_be_bytes(number)
}

impl IndexFile<OFFSET_ENTRY> {
    /// Offset and position.
    fn offset_entry(&mut self, index: u64) -> Result<(i64, i32), Failure> {
        let entry = self.entry(index)?;
        let relative = i64::from(i32_at(&entry, 0));
        Ok((self.base.wrapping_add(relative), i32_at(&entry, 4)))
    }

    /// The position of the last entry that is not above `offset`.
    fn lookup(&mut self, offset: i64) -> Result<i32, Failure> {
        let (mut low, mut high) = (0, self.entries());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offset_entry(middle)?.0 <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        match low.checked_sub(1) {
            Some(index) => Ok(self.offset_entry(index)?.1),
            None => Ok(0),
        }
    }

    /// What a broker checks when it starts.
    fn check(&mut self) -> Result<(), Failure> {
        let path = absolute(&self.path);
        let path = path.display();
        let (last, _) = self.offset_entry(self.entries() - 1)?;
        if last < self.base {
            return Err(Failure::new(format!(
                "Corrupt index found, index file {path} has non-zero size but the last offset is {last} which is less \
                 than the base offset {}",
                self.base
            )));
        }
        if !self.size.is_multiple_of(OFFSET_ENTRY as u64) {
            return Err(Failure::new(format!(
                "Index file {path} is corrupt, found {} bytes which is neither positive nor a multiple of {OFFSET_ENTRY}",
                self.size
            )));
        }
        Ok(())
    }
}

impl IndexFile<TIME_ENTRY> {
    /// Timestamp and offset.
    fn time_entry(&mut self, index: u64) -> Result<(i64, i64), Failure> {
        let entry = self.entry(index)?;
        let mut timestamp = [0; 8];
        timestamp.copy_from_slice(&entry[..8]);
        let relative = i64::from(i32_at(&entry, 8));
        Ok((
            i64::from_be_bytes(timestamp),
            self.base.wrapping_add(relative),
        ))
    }

    fn check(&mut self) -> Result<(), Failure> {
        let path = absolute(&self.path);
        let path = path.display();
        if self.entries() > 0 {
            let (first_time, _) = self.time_entry(0)?;
            let (last_time, last) = self.time_entry(self.entries() - 1)?;
            let corrupt = |why: String| {
                Failure::new(format!(
                    "Corrupt time index found, time index file ({path}) has non-zero size but {why}"
                ))
            };
            if last_time < first_time {
                return Err(corrupt(format!(
                    "the last timestamp is {last_time} which is less than the first timestamp {first_time}"
                )));
            }
            if last < self.base {
                return Err(corrupt(format!(
                    "the last offset is {last} which is less than the first offset {}",
                    self.base
                )));
            }
        }
        if !self.size.is_multiple_of(TIME_ENTRY as u64) {
            return Err(Failure::new(format!(
                "Time index file {path} is corrupt, found {} bytes which is neither positive nor a multiple of {TIME_ENTRY}",
                self.size
            )));
        }
        Ok(())
    }
}

/// The file of the same segment with another ending.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    path.with_file_name(format!("{stem}.{suffix}"))
}

/// Checks a position that stands in an index, as one in its log.
fn position_in(log: &LogFile, position: i32, offset: i64) -> Result<u64, Failure> {
    match u64::try_from(position) {
        Ok(position) if position <= log.size() => Ok(position),
        _ => Err(Failure::new(format!(
            "the index has position {position} for offset {offset}, but {} has {} bytes",
            log.path().display(),
            log.size()
        ))),
    }
}

pub(super) fn dump_offsets(
    arguments: &DumpLogArgs,
    path: &Path,
    out: &mut dyn Write,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let base = offset_of(path)?;
    let log = LogFile::open(&beside(path, "log"))?;
    let mut index: IndexFile<OFFSET_ENTRY> = IndexFile::open(path, base)?;
    if index.entries() == 0 {
        writeln!(out, "{} is empty.", path.display())?;
        return Ok(());
    }
    if arguments.index_sanity_check {
        index.check()?;
        writeln!(out, "{} passed sanity check.", path.display())?;
        return Ok(());
    }
    let mut progress = progress(arguments, index.entries());
    for at in 0..index.entries() {
        progress.at(at);
        let (offset, position) = index.offset_entry(at)?;
        // Behind a crash the rest of the file may be zeros.
        if offset == base && at > 0 {
            return Ok(());
        }
        let start = position_in(&log, position, offset)?;
        let most = u64::from(arguments.max_message_size.unsigned_abs());
        let end = log.size().min(start + most);
        let entry = log.entry(start, end)?.ok_or_else(|| {
            log.at(
                start,
                format!(
                    "no whole batch of at most {most} bytes, where the index has offset {offset}"
                ),
            )
        })?;
        let last = match entry.magic {
            ..2 => entry.offset,
            _ => last_offset(&log, &entry)?,
        };
        if last != offset {
            Findings::add(&mut findings.index_mismatches, path, offset, last);
        }
        if !arguments.verify_index_only {
            writeln!(out, "offset: {offset} position: {position}")?;
        }
    }
    Ok(())
}

/// Only what does not fit is printed where the index is verified.
fn progress(arguments: &DumpLogArgs, entries: u64) -> Progress {
    match arguments.verify_index_only {
        true => Progress::new("dump-log", entries),
        false => Progress::beside_output("dump-log", entries),
    }
}

/// Of a batch of format 2, from its header.
fn last_offset(log: &LogFile, entry: &super::entries::Entry) -> Result<i64, Failure> {
    const HEAD: usize = 27;
    const LAST_OFFSET_DELTA: usize = 23;
    if entry.size < HEAD {
        return Err(log.at(entry.position, "a batch without a whole header"));
    }
    let head: [u8; HEAD] = log.head(entry)?;
    let delta = i64::from(i32_at(&head, LAST_OFFSET_DELTA));
    Ok(entry.offset.wrapping_add(delta))
}

pub(super) fn dump_times(
    arguments: &DumpLogArgs,
    path: &Path,
    out: &mut dyn Write,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let base = offset_of(path)?;
    let log = LogFile::open(&beside(path, "log"))?;
    let mut offsets: IndexFile<OFFSET_ENTRY> = IndexFile::open(&beside(path, "index"), base)?;
    let mut times: IndexFile<TIME_ENTRY> = IndexFile::open(path, base)?;
    if arguments.index_sanity_check {
        times.check()?;
        writeln!(out, "{} passed sanity check.", path.display())?;
        return Ok(());
    }
    let mut progress = progress(arguments, times.entries());
    let mut before = -1;
    for at in 0..times.entries() {
        progress.at(at);
        let (timestamp, offset) = times.time_entry(at)?;
        if offset == base && at > 0 {
            return Ok(());
        }
        let position = position_in(&log, offsets.lookup(offset)?, offset)?;
        match find(&log, position, offset)? {
            Some((last, largest)) if last == offset => {
                if largest != timestamp {
                    let kind = &mut findings.time_mismatches;
                    Findings::add(kind, path, timestamp, largest);
                }
                if before >= timestamp {
                    Findings::add(&mut findings.time_disorder, path, timestamp, before);
                }
            }
            Some((last, _)) => Findings::add(&mut findings.time_not_found, path, offset, last),
            None => Findings::add(&mut findings.time_not_found, path, offset, -1),
        }
        if !arguments.verify_index_only {
            writeln!(out, "timestamp: {timestamp} offset: {offset}")?;
        }
        before = timestamp;
    }
    Ok(())
}

/// Last offset and largest timestamp of the batch that `offset` lies in, searched from `position` on. The timestamp is
/// looked up only where the offset is the batch's last one.
fn find(log: &LogFile, mut position: u64, offset: i64) -> Result<Option<(i64, i64)>, Failure> {
    while let Some(entry) = log.entry(position, log.size())? {
        let last = match entry.magic {
            ..2 => entry.offset,
            _ => last_offset(log, &entry)?,
        };
        if last == offset {
            return Ok(Some((last, largest_timestamp(log, &entry)?)));
        }
        if last > offset {
            return Ok(Some((last, -1)));
        }
        position += entry.size as u64;
    }
    Ok(None)
}

fn largest_timestamp(log: &LogFile, entry: &super::entries::Entry) -> Result<i64, Failure> {
    let failed = |error| log.at(entry.position, error);
    let mut largest = -1;
    let mut take = |record: protocol::records::Record| largest = record.timestamp.max(largest);
    match Batch::read(log, entry)? {
        Batch::New(batch) => {
            for record in batch.records(MOST_UNPACKED).map_err(failed)? {
                take(record.map_err(failed)?);
            }
        }
        Batch::Old(batch) => {
            for record in batch.records(MOST_UNPACKED).map_err(failed)? {
                take(record.map_err(failed)?);
            }
        }
    }
    Ok(largest)
}
