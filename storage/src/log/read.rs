//! Reading: slices of memory and of files, never copies of records.
//!
//! A read answers *whole batches only*: it never cuts the last one at `max_bytes`, as Kafka may. Clients must cope
//! with either, and whole batches cost nobody bytes that are thrown away.

use super::state::{Cached, State};
use super::{Log, LogInner};
use crate::batch::BatchHeader;
use crate::error::{ReadError, StorageError};
use crate::names::FileKind;
use crate::segment::reader::{LOOKUP_WINDOW, Placed, Source, Walk, WalkError};
use crate::segment::segment_path;
use bytes::Bytes;
use shards::io::File;
use std::path::PathBuf;

/// A run of record bytes. May cross cores.
#[derive(Clone)]
pub enum Piece {
    Memory(Bytes),
    /// Lies below the written prefix in whole blocks (or in a file that no longer grows): safe for sendfile.
    File {
        file: File,
        offset: u64,
        len: u32,
    },
}

impl Piece {
    pub fn len(&self) -> usize {
        match self {
            Piece::Memory(bytes) => bytes.len(),
            Piece::File { len, .. } => *len as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a reader wants.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    pub max_bytes: u32,
    /// Nothing at or above this offset: high watermark, last stable offset, or `i64::MAX` for followers. The written
    /// prefix bounds it in any case.
    pub up_to_offset: i64,
    /// Answer the first batch even where it alone exceeds `max_bytes` (KIP-74).
    pub whole_first_batch: bool,
}

/// What a read found. No pieces where nothing readable stands at the offset yet, or not within the limits.
#[derive(Clone)]
pub struct ReadResult {
    /// In order; together whole batches, beginning with the one that holds the offset.
    pub pieces: Vec<Piece>,
    pub bytes: u32,
    /// Base offset of the first batch and offset behind the last one; both the requested offset where empty.
    pub first_offset: i64,
    pub next_offset: i64,
    pub log_start_offset: i64,
    pub log_end_offset: i64,
}

/// Times a read starts over when a truncation came between.
const RETRIES: u32 = 3;

impl Log {
    /// Reads from the batch that holds `from_offset`, or the next one where compaction left a hole.
    ///
    /// # Errors
    /// `OutOfRange` below the start or above the end of the log; `Corrupt` where a damaged batch stands; I/O errors take
    /// the log offline.
    pub async fn read(
        &self,
        from_offset: i64,
        limits: ReadLimits,
    ) -> Result<ReadResult, ReadError> {
        for _ in 0..RETRIES {
            let truncations = {
                let state = self.0.state.borrow();
                state.check_open()?;
                state.check_range(from_offset)?;
                state.truncations
            };
            if let Some(result) = self.0.state.borrow().read_memory(from_offset, limits) {
                self.count(&result);
                return Ok(result);
            }
            let result = self.0.read_files(from_offset, limits).await;
            let state = self.0.state.borrow();
            if state.truncations != truncations {
                continue;
            }
            // A segment may have been trimmed while it was read.
            state.check_range(from_offset)?;
            drop(state);
            let result = self.0.settle(result)?;
            self.count(&result);
            return Ok(result);
        }
        Err(StorageError::Busy {
            path: self.directory(),
        }
        .into())
    }

    fn count(&self, result: &ReadResult) {
        let (mut memory, mut file) = (0, 0);
        for piece in &result.pieces {
            match piece {
                Piece::Memory(bytes) => memory += bytes.len() as u64,
                Piece::File { len, .. } => file += u64::from(*len),
            }
        }
        self.0.storage.count(|counters| {
            counters.memory_bytes += memory;
            counters.file_bytes += file;
            if file > 0 {
                counters.file_reads += 1;
            } else {
                counters.memory_reads += 1;
            }
        });
    }
}

/// Collects pieces within the limits.
struct Collector {
    result: ReadResult,
    remaining: u32,
    up_to: i64,
    whole_first: bool,
}

impl Collector {
    fn new(state: &State, from_offset: i64, limits: ReadLimits) -> Collector {
        Collector {
            result: ReadResult {
                pieces: Vec::new(),
                bytes: 0,
                first_offset: from_offset,
                next_offset: from_offset,
                log_start_offset: state.start_offset,
                log_end_offset: state.end_offset,
            },
            remaining: limits.max_bytes,
            up_to: limits.up_to_offset.min(state.end_offset),
            whole_first: limits.whole_first_batch,
        }
    }

    fn is_empty(&self) -> bool {
        self.result.bytes == 0
    }

    /// True where a batch of this size, ending at this offset, may be added.
    fn admits(&self, size: u32, last_offset: i64) -> bool {
        last_offset < self.up_to
            && (size <= self.remaining || (self.whole_first && self.is_empty()))
    }

    /// Notes a run of whole batches as taken; its pieces come separately.
    fn take(&mut self, bytes: u32, first_offset: i64, last_offset: i64) {
        if self.is_empty() {
            self.result.first_offset = first_offset;
        }
        self.result.bytes += bytes;
        self.result.next_offset = last_offset + 1;
        self.remaining = self.remaining.saturating_sub(bytes);
    }
}

impl State {
    fn check_range(&self, offset: i64) -> Result<(), ReadError> {
        if (self.start_offset..=self.end_offset).contains(&offset) {
            return Ok(());
        }
        Err(ReadError::OutOfRange {
            requested: offset,
            start: self.start_offset,
            end: self.end_offset,
        })
    }

    /// The whole read from kept buffers, if the first batch lies in one.
    fn read_memory(&self, from_offset: i64, limits: ReadLimits) -> Option<ReadResult> {
        let mut collector = Collector::new(self, from_offset, limits);
        if from_offset >= collector.up_to {
            return Some(collector.result);
        }
        let first = self.cached_at_offset(from_offset)?;
        let hint = self.position_hint(&self.cached[first], from_offset);
        for (index, cached) in self.cached.iter().enumerate().skip(first) {
            let from = if index == first {
                Some((from_offset, hint))
            } else {
                None
            };
            if !collect_cached(&mut collector, cached, from) {
                break;
            }
        }
        Some(collector.result)
    }

    /// Where in a kept buffer to start looking: the index saves walking a large one from its beginning.
    fn position_hint(&self, cached: &Cached, offset: i64) -> u32 {
        let active = &self.active;
        if cached.segment_base != active.plan.base_offset {
            return cached.start;
        }
        let Some(index) = &active.index else {
            return cached.start;
        };
        let relative = u32::try_from(offset - index.base_offset).unwrap_or(u32::MAX);
        let position = index.offset_entries().position_before(relative);
        if position < cached.end {
            position.max(cached.start)
        } else {
            cached.start
        }
    }
}

/// Takes batches of a kept buffer; false where the read ends within it.
fn collect_cached(collector: &mut Collector, cached: &Cached, from: Option<(i64, u32)>) -> bool {
    let mut position = cached.start;
    let mut first_offset = cached.first_offset;
    if let Some((offset, hint)) = from {
        position = hint;
        loop {
            let Some(header) = cached.header_at(position) else {
                return false;
            };
            if header.last_offset >= offset {
                first_offset = header.base_offset;
                break;
            }
            position += header.size as u32;
        }
    }
    let start = position;
    let rest = cached.end - start;
    if rest <= collector.remaining && cached.last_offset < collector.up_to {
        collector.take(rest, first_offset, cached.last_offset);
        collector
            .result
            .pieces
            .push(Piece::Memory(cached.slice(start, cached.end)));
        return true;
    }
    while let Some(header) = cached.header_at(position) {
        let size = header.size as u32;
        if !collector.admits(size, header.last_offset) {
            break;
        }
        collector.take(size, header.base_offset, header.last_offset);
        position += size;
    }
    if position > start {
        collector
            .result
            .pieces
            .push(Piece::Memory(cached.slice(start, position)));
    }
    false
}

impl Cached {
    fn header_at(&self, position: u32) -> Option<BatchHeader> {
        if position >= self.end {
            return None;
        }
        // Written by us and kept since: it parses.
        BatchHeader::parse(&self.data[(position - self.data_position) as usize..]).ok()
    }

    fn slice(&self, from: u32, to: u32) -> Bytes {
        let at = |position: u32| (position - self.data_position) as usize;
        self.data.slice(at(from)..at(to))
    }
}

/// One segment's bytes, wherever they are.
pub(crate) struct LogSource<'a> {
    pub log: &'a LogInner,
    pub base_offset: i64,
}

/// Where the byte at a position is.
enum Place {
    Memory(Bytes),
    /// In the file, and no further than to this position.
    FileUpTo(u32),
}

impl State {
    /// Bytes at `position`, up to `end` at most.
    fn place(&self, base_offset: i64, position: u32, end: u32) -> Place {
        if let Some(cached) = self.cached_at_position(base_offset, position) {
            return Place::Memory(cached.slice(position, cached.end.min(end)));
        }
        let mut limit = end;
        if self.active.plan.base_offset == base_offset
            && self.active.file.is_some()
            && let Some(tail) = &self.active.tail
        {
            // The last block is rewritten by the next write, and what the journal has is nowhere else yet: both come
            // from memory.
            let safe = tail.start();
            if position >= safe {
                return Place::Memory(tail.slice(position, end.min(self.active.plan.size)));
            }
            limit = limit.min(safe);
        }
        // Go on in memory as soon as possible.
        let after = self.cached.partition_point(|cached| {
            (cached.segment_base, cached.data_position) <= (base_offset, position)
        });
        if let Some(next) = self.cached.get(after)
            && next.segment_base == base_offset
        {
            limit = limit.min(next.data_position);
        }
        Place::FileUpTo(limit)
    }
}

impl Source for LogSource<'_> {
    async fn window(&self, position: u32, want: u32) -> Result<Bytes, StorageError> {
        let place = self
            .log
            .state
            .borrow()
            .place(self.base_offset, position, position + want);
        let limit = match place {
            Place::Memory(bytes) => return Ok(bytes),
            Place::FileUpTo(limit) => limit,
        };
        let file = self.log.read_file(self.base_offset).await?;
        let bytes = file
            .read_at_most(
                self.log.storage.core(),
                u64::from(position),
                (limit - position) as usize,
            )
            .await
            .map_err(|error| StorageError::io("read", &self.path(), error))?;
        self.log
            .storage
            .count(|counters| counters.lookup_bytes += bytes.len() as u64);
        Ok(bytes)
    }

    fn path(&self) -> PathBuf {
        segment_path(
            &self.log.state.borrow().directory,
            self.base_offset,
            FileKind::Log,
        )
    }
}

impl LogInner {
    /// The read with files in it.
    async fn read_files(
        &self,
        from_offset: i64,
        limits: ReadLimits,
    ) -> Result<ReadResult, StorageError> {
        let (mut collector, mut segment) = {
            let state = self.state.borrow();
            (
                Collector::new(&state, from_offset, limits),
                state.segment_for(from_offset),
            )
        };
        while let Some((base_offset, size)) = segment {
            let before = collector.result.bytes;
            let next_offset = collector.result.next_offset;
            let first = match self.locate(base_offset, size, next_offset).await {
                // What stands before a damaged batch is served; the next read begins there.
                Err(StorageError::Corrupt { .. }) if !collector.is_empty() => break,
                first => first?,
            };
            if let Some(first) = first {
                let end = self
                    .run_end(base_offset, size, first, &mut collector)
                    .await?;
                if end > first.position {
                    self.cut_pieces(base_offset, first.position, end, &mut collector.result)
                        .await?;
                }
                if end < size {
                    break;
                }
            }
            if first.is_some() && collector.result.bytes == before {
                break;
            }
            segment = self.state.borrow().segment_after(base_offset);
        }
        Ok(collector.result)
    }

    /// The first batch of a segment that ends at or behind `offset`.
    ///
    /// A damaged place before it is passed; where `offset` itself cannot be read, the answer is `Corrupt`.
    pub async fn locate(
        &self,
        base_offset: i64,
        size: u32,
        offset: i64,
    ) -> Result<Option<Placed>, StorageError> {
        let relative = u32::try_from((offset - base_offset).max(0)).unwrap_or(u32::MAX);
        let indexed = self
            .with_offset_index(base_offset, size, |entries| entries.entry_before(relative))
            .await?;
        let behind_damage = {
            let state = self.state.borrow();
            if let Some(damaged) = state.damaged.at(base_offset, offset) {
                let why = "damaged since it was written";
                let path = segment_path(&state.directory, base_offset, FileKind::Log);
                return Err(StorageError::corrupt(&path, u64::from(damaged.from), why));
            }
            state.damaged.behind(base_offset, offset)
        };
        let mut from = behind_damage;
        if let Some((entry, position)) = indexed.filter(|(_, position)| *position > from) {
            let entry = base_offset + i64::from(entry);
            if self.is_at(base_offset, size, entry, position).await? {
                from = position;
            } else {
                self.mend_index(base_offset, size).await?;
            }
        }
        self.walk_to(base_offset, size, from, offset).await
    }

    /// Whether a batch with that offset begins at that position, as an index says.
    async fn is_at(
        &self,
        base_offset: i64,
        size: u32,
        offset: i64,
        position: u32,
    ) -> Result<bool, StorageError> {
        let source = LogSource {
            log: self,
            base_offset,
        };
        match Walk::new(&source, position, size, LOOKUP_WINDOW)
            .next()
            .await
        {
            // Brokers before 0.10.2 indexed the first offset of a batch, later ones the last.
            Ok(Some(Placed { header, .. })) => {
                Ok((header.base_offset..=header.last_offset).contains(&offset))
            }
            Ok(None) | Err(WalkError::Bad { .. }) => Ok(false),
            Err(error) => Err(error.into_storage(&source.path())),
        }
    }

    /// The first batch from a position on that ends at or behind `offset`.
    async fn walk_to(
        &self,
        base_offset: i64,
        size: u32,
        from: u32,
        offset: i64,
    ) -> Result<Option<Placed>, StorageError> {
        let source = LogSource {
            log: self,
            base_offset,
        };
        let mut walk = Walk::new(&source, from, size, LOOKUP_WINDOW);
        let mut expected = base_offset;
        loop {
            match walk.next().await {
                Ok(Some(placed)) if placed.header.last_offset < offset => {
                    expected = placed.header.last_offset + 1;
                }
                Ok(found) => return Ok(found),
                Err(WalkError::Bad { at, why }) => {
                    let bad = || StorageError::corrupt(&source.path(), u64::from(at), why);
                    let found = walk.resync(at, expected).await;
                    let next = found.map_err(|error| error.into_storage(&source.path()))?;
                    next.ok_or_else(bad)?;
                    let placed = walk.next().await;
                    let placed = placed.map_err(|error| error.into_storage(&source.path()))?;
                    match placed {
                        Some(placed) if placed.header.base_offset <= offset => {
                            walk.go_to(placed.position);
                        }
                        _ => return Err(bad()),
                    }
                }
                Err(error) => return Err(error.into_storage(&source.path())),
            }
        }
    }

    /// Takes the batches from `first` on that the limits admit; answers where they end in the segment.
    async fn run_end(
        &self,
        base_offset: i64,
        size: u32,
        first: Placed,
        collector: &mut Collector,
    ) -> Result<u32, StorageError> {
        if !collector.admits(first.header.size as u32, first.header.last_offset) {
            return Ok(first.position);
        }
        let start = first.position;
        let limit = start
            .saturating_add(collector.remaining)
            .min(size)
            .min(self.next_damage(base_offset, start))
            .max(first.end());
        // From the last indexed batch that is certainly within both limits, walk on.
        let relative = u32::try_from((collector.up_to - base_offset).max(0)).unwrap_or(u32::MAX);
        let from = self
            .with_offset_index(base_offset, size, |entries| {
                let below = relative.saturating_sub(1);
                entries
                    .position_not_above(limit)
                    .min(entries.position_before(below))
            })
            .await?
            .max(start);
        let source = LogSource {
            log: self,
            base_offset,
        };
        let mut walk = Walk::new(&source, from, size, LOOKUP_WINDOW);
        let mut last: Option<(u32, i64)> = None;
        let last = loop {
            match walk.next().await {
                Ok(Some(placed))
                    if placed.end() <= limit && placed.header.last_offset < collector.up_to =>
                {
                    last = Some((placed.end(), placed.header.last_offset));
                }
                // Where not even the indexed batch fits, the run ends before it.
                Ok(Some(placed)) => {
                    break last.unwrap_or((placed.position, placed.header.base_offset - 1));
                }
                Ok(None) => break last.unwrap_or((start, first.header.base_offset - 1)),
                // What stands before a damaged place is served; the next read begins there.
                Err(WalkError::Bad { .. }) => match last {
                    Some(last) => break last,
                    None if from > start => {
                        last = Some((first.end(), first.header.last_offset));
                        walk.go_to(first.end());
                    }
                    None => break (first.end(), first.header.last_offset),
                },
                Err(error) => return Err(error.into_storage(&source.path())),
            }
        };
        collector.take(last.0 - start, first.header.base_offset, last.1);
        Ok(last.0)
    }

    /// Where the next place that recovery found damaged begins.
    fn next_damage(&self, base_offset: i64, position: u32) -> u32 {
        let state = self.state.borrow();
        let next = state.damaged.next_after(base_offset, position);
        next.unwrap_or(u32::MAX)
    }

    /// Cuts `from .. to` of a segment into pieces.
    async fn cut_pieces(
        &self,
        base_offset: i64,
        from: u32,
        to: u32,
        result: &mut ReadResult,
    ) -> Result<(), StorageError> {
        let mut position = from;
        while position < to {
            let place = self.state.borrow().place(base_offset, position, to);
            match place {
                Place::Memory(bytes) if bytes.is_empty() => {
                    // Cannot be: positions below the written size are in the file or in memory.
                    let path = LogSource {
                        log: self,
                        base_offset,
                    }
                    .path();
                    return Err(StorageError::corrupt(
                        &path,
                        u64::from(position),
                        "lost bytes",
                    ));
                }
                Place::Memory(bytes) => {
                    position += bytes.len() as u32;
                    result.pieces.push(Piece::Memory(bytes));
                }
                Place::FileUpTo(limit) => {
                    let file = self.read_file(base_offset).await?;
                    let len = limit - position;
                    result.pieces.push(Piece::File {
                        file,
                        offset: u64::from(position),
                        len,
                    });
                    position = limit;
                }
            }
        }
        Ok(())
    }
}
