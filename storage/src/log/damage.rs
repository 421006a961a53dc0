//! Damage in the middle of a log: bytes that were once whole batches and no longer are, with whole batches behind them.
//!
//! Recovery looks for the end of a log, and a torn write is its end. A bad batch that others follow is something else:
//! what follows was written and acknowledged later, and must stay. So the damaged place stays as it is, is told, and
//! whoever reads there gets an error; readers before and behind it notice nothing.
//!
//! Only what power may have taken ends the log, with all that follows: nothing that no flush made durable was promised
//! beyond. It leaves zeros where a write was lost while a later one was kept, or a file whose last length was lost, so
//! that it ends early, inside a batch or behind one. A place that had been made durable cannot come from that: one below
//! the recovery point, or, where each write is durable before the next (`flush.messages=1`), one before a later segment
//! with batches in it.

use super::recovery::open_segment;
use crate::batch::{self, ATTRIBUTES_AT, BatchHeader, CRC_AT, HEADER_V2, PREFIX};
use crate::error::StorageError;
use shards::Core;
use std::path::{Path, PathBuf};

/// Disks lose whole sectors.
const SECTOR: u32 = 512;
/// Bytes looked at in one go.
const WINDOW: u32 = 256 << 10;

/// A damaged place, found when the log was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub file: PathBuf,
    /// First byte of it, and the first byte behind it.
    pub from: u64,
    pub to: u64,
    /// Offsets that cannot be read: the first one, and the one behind the last.
    pub first_offset: i64,
    pub next_offset: i64,
    pub why: String,
}

/// A damaged place as readers look it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamagedRange {
    pub segment_base: i64,
    pub from: u32,
    pub to: u32,
    pub first_offset: i64,
    pub next_offset: i64,
}

impl DamagedRange {
    pub fn contains(&self, offset: i64) -> bool {
        (self.first_offset..self.next_offset).contains(&offset)
    }
}

/// Damaged places of a log, ascending. Nearly always none.
#[derive(Debug, Default)]
pub(crate) struct DamagedRanges(Vec<DamagedRange>);

impl DamagedRanges {
    pub fn new(ranges: Vec<DamagedRange>) -> DamagedRanges {
        DamagedRanges(ranges)
    }

    fn of_segment(&self, base_offset: i64) -> impl Iterator<Item = &DamagedRange> {
        self.0
            .iter()
            .filter(move |range| range.segment_base == base_offset)
    }

    /// The place in a segment that holds `offset`.
    pub fn at(&self, base_offset: i64, offset: i64) -> Option<DamagedRange> {
        let mut ranges = self.of_segment(base_offset);
        ranges.find(|range| range.contains(offset)).copied()
    }

    /// Where to begin to look for `offset`: behind the last damaged place before it.
    pub fn behind(&self, base_offset: i64, offset: i64) -> u32 {
        let before = self
            .of_segment(base_offset)
            .filter(|range| range.next_offset <= offset);
        before.map(|range| range.to).max().unwrap_or(0)
    }

    /// Where the next damaged place at or behind `position` begins.
    pub fn next_after(&self, base_offset: i64, position: u32) -> Option<u32> {
        let after = self
            .of_segment(base_offset)
            .filter(|range| range.from >= position);
        after.map(|range| range.from).min()
    }

    /// Forgets what lies at or above an offset: it is cut off, or overwritten.
    pub fn truncate(&mut self, offset: i64) {
        self.0.retain(|range| range.first_offset < offset);
    }
}

/// Whether zeros stand where a batch would begin: the end of what was written, and no need to look further.
pub(crate) async fn begins_with_zeros(
    core: &Core,
    path: &Path,
    at: u32,
) -> Result<bool, StorageError> {
    let file = open_segment(core, path).await?;
    let head = file.read_at_most(core, u64::from(at), PREFIX).await;
    let head = head.map_err(|error| StorageError::io("read", path, error))?;
    Ok(only_zeros(&head))
}

fn only_zeros(part: &[u8]) -> bool {
    part.iter().all(|byte| *byte == 0)
}

/// Whether a place looks like a write that was lost when power went: zeros where a batch begins, or a whole sector of
/// zeros within, as far as the file has it.
pub(crate) async fn is_lost_write(
    core: &Core,
    path: &Path,
    from: u32,
    to: u32,
) -> Result<bool, StorageError> {
    if begins_with_zeros(core, path, from).await? {
        return Ok(true);
    }
    let file = open_segment(core, path).await?;
    let length = file.len(core).await;
    let length = length.map_err(|error| StorageError::io("look at", path, error))?;
    let is_lost = |part: &[u8], at: u64| {
        (part.len() == SECTOR as usize || at + part.len() as u64 == length) && only_zeros(part)
    };
    let mut at = from.next_multiple_of(SECTOR);
    while at < to {
        let want = (to - at).min(WINDOW) as usize;
        let bytes = file.read_at_most(core, u64::from(at), want).await;
        let bytes = bytes.map_err(|error| StorageError::io("read", path, error))?;
        let starts = (u64::from(at)..).step_by(SECTOR as usize);
        let mut sectors = bytes.chunks(SECTOR as usize).zip(starts);
        if sectors.any(|(part, at)| is_lost(part, at)) {
            return Ok(true);
        }
        at = at.saturating_add(WINDOW);
    }
    Ok(false)
}

/// Whether a file of this length ends inside the v2 batch that begins at `from`. One that is whole, but whose length
/// field was changed, does not.
pub(crate) async fn is_cut_off(
    core: &Core,
    path: &Path,
    from: u32,
    length: u32,
) -> Result<bool, StorageError> {
    let Some(rest) = length.checked_sub(from) else {
        return Ok(false);
    };
    if (rest as usize) < HEADER_V2 {
        return Ok(true);
    }
    let file = open_segment(core, path).await?;
    let failed = |error| StorageError::io("read", path, error);
    let head = file.read_at_most(core, u64::from(from), HEADER_V2).await;
    let head = head.map_err(failed)?;
    match BatchHeader::parse(&head) {
        Ok(header) if header.magic == 2 && header.size > rest as usize => {}
        _ => return Ok(false),
    }
    let mut checksum = 0;
    let mut at = from.saturating_add(ATTRIBUTES_AT as u32);
    while at < length {
        let want = (length - at).min(WINDOW) as usize;
        let bytes = file.read_at_most(core, u64::from(at), want).await;
        let bytes = bytes.map_err(failed)?;
        if bytes.is_empty() {
            break;
        }
        checksum = crc32c::crc32c_append(checksum, &bytes);
        at += bytes.len() as u32;
    }
    Ok(checksum != batch::u32_at(&head, CRC_AT))
}
