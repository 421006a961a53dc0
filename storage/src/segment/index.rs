//! Offset and time index of a segment, in the bytes Kafka keeps on disk.
//!
//! An offset entry is 8 bytes: offset relative to the base, position in the `.log`. A time entry is 12: timestamp,
//! relative offset. Both are big-endian and ascending. In memory they stay in that form, so that loading is reading
//! and flushing is writing.

use crate::batch::{BatchHeader, i64_at, u32_at};
use bytes::Bytes;
use planted::Bug;

pub const OFFSET_ENTRY: usize = 8;
pub const TIME_ENTRY: usize = 12;
const NO_TIMESTAMP: i64 = -1;

/// Why the bytes of an index cannot be trusted. Any of these means: rebuild it from the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexFault(pub &'static str);

/// Searches over the entries of an offset index.
#[derive(Debug, Clone, Copy)]
pub struct OffsetEntries<'a>(pub &'a [u8]);

impl OffsetEntries<'_> {
    pub fn len(&self) -> usize {
        self.0.len() / OFFSET_ENTRY
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `(relative offset, position)` of entry `index`.
    pub fn entry(&self, index: usize) -> (u32, u32) {
        let at = index * OFFSET_ENTRY;
        (u32_at(self.0, at), u32_at(self.0, at + 4))
    }

    pub fn last(&self) -> Option<(u32, u32)> {
        self.len().checked_sub(1).map(|index| self.entry(index))
    }

    /// Position of the last entry whose offset is not above `relative`; 0 where there is none.
    pub fn position_before(&self, relative: u32) -> u32 {
        self.entry_before(relative)
            .map_or(0, |(_, position)| position)
    }

    /// The entry of [`OffsetEntries::position_before`], where there is one.
    pub fn entry_before(&self, relative: u32) -> Option<(u32, u32)> {
        let mut after = partition(self.len(), |index| self.entry(index).0 <= relative);
        if after < self.len() && planted::here(Bug::IndexOffByOne) {
            after += 1;
        }
        after.checked_sub(1).map(|index| self.entry(index))
    }

    /// The largest indexed position not above `position`; 0 where there is none.
    pub fn position_not_above(&self, position: u32) -> u32 {
        let after = partition(self.len(), |index| self.entry(index).1 <= position);
        after.checked_sub(1).map_or(0, |index| self.entry(index).1)
    }

    /// Entries that stay when everything from `relative` on is cut off.
    pub fn entries_below(&self, relative: u32) -> usize {
        partition(self.len(), |index| self.entry(index).0 < relative)
    }

    /// Checks order and that positions lie inside a segment of `segment_size` bytes.
    pub fn check(&self, segment_size: u32) -> Result<(), IndexFault> {
        if !self.0.len().is_multiple_of(OFFSET_ENTRY) {
            return Err(IndexFault("size is not a multiple of 8"));
        }
        let mut before: Option<(u32, u32)> = None;
        for index in 0..self.len() {
            let entry = self.entry(index);
            if before.is_some_and(|before| entry.0 <= before.0 || entry.1 <= before.1) {
                return Err(IndexFault("entries do not ascend"));
            }
            before = Some(entry);
        }
        match before {
            Some(last) if last.1 >= segment_size || last.0 > i32::MAX as u32 => {
                Err(IndexFault("an entry points beyond the segment"))
            }
            _ => Ok(()),
        }
    }
}

/// Searches over the entries of a time index.
#[derive(Debug, Clone, Copy)]
pub struct TimeEntries<'a>(pub &'a [u8]);

impl TimeEntries<'_> {
    pub fn len(&self) -> usize {
        self.0.len() / TIME_ENTRY
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `(timestamp, relative offset)` of entry `index`.
    pub fn entry(&self, index: usize) -> (i64, u32) {
        let at = index * TIME_ENTRY;
        (i64_at(self.0, at), u32_at(self.0, at + 8))
    }

    pub fn last(&self) -> Option<(i64, u32)> {
        self.len().checked_sub(1).map(|index| self.entry(index))
    }

    /// Relative offset of the last entry whose timestamp is below `timestamp`: every batch up to it is older.
    /// 0 where there is none.
    ///
    /// Kafka takes "not above"; the entry stands for the *last* offset of its batch, so with "not above" a search
    /// would start behind the first record of that very timestamp when the index interval falls inside its batch.
    /// Kafka is saved by the position lookup, which rounds down to that batch; "below" needs no such luck.
    pub fn offset_before(&self, timestamp: i64) -> u32 {
        let after = partition(self.len(), |index| self.entry(index).0 < timestamp);
        after.checked_sub(1).map_or(0, |index| self.entry(index).1)
    }

    /// Entries that stay when everything from offset `relative` on is cut off.
    pub fn entries_below(&self, relative: u32) -> usize {
        partition(self.len(), |index| self.entry(index).1 < relative)
    }

    pub fn check(&self) -> Result<(), IndexFault> {
        if !self.0.len().is_multiple_of(TIME_ENTRY) {
            return Err(IndexFault("size is not a multiple of 12"));
        }
        let mut before: Option<(i64, u32)> = None;
        for index in 0..self.len() {
            let entry = self.entry(index);
            if before.is_some_and(|before| entry.0 <= before.0 || entry.1 < before.1)
                || entry.1 > i32::MAX as u32
            {
                return Err(IndexFault("entries do not ascend"));
            }
            before = Some(entry);
        }
        Ok(())
    }
}

/// First index in `0..len` for which `below` is false.
fn partition(len: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Decides, batch by batch, which entries an index gets. The same rule serves live appends, the plan for batches not
/// yet written, and recovery, so the files come out the same whichever way they were made.
///
/// Kafka's rule (LogSegment): before a batch is counted, an offset entry (last offset, position) is due when *more*
/// than `index.interval.bytes` were appended since the last entry; with it goes a time entry of the largest timestamp
/// so far, if that is larger than the last time entry's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexCursor {
    bytes_since_entry: u32,
    pub offset_entries: u32,
    pub time_entries: u32,
    last_time_entry: i64,
    /// Largest timestamp so far and the last offset of the batch that has it; -1 without records.
    pub max_timestamp: i64,
    pub max_timestamp_offset: i64,
}

/// What one batch adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewEntries {
    /// Last offset and position of the batch.
    pub offset: Option<(i64, u32)>,
    /// Timestamp and offset.
    pub time: Option<(i64, i64)>,
}

impl IndexCursor {
    pub fn new(base_offset: i64) -> IndexCursor {
        IndexCursor {
            bytes_since_entry: 0,
            offset_entries: 0,
            time_entries: 0,
            last_time_entry: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            max_timestamp_offset: base_offset,
        }
    }

    /// Goes on behind existing entries: how many there are, and the last of the time index (timestamp, relative offset).
    /// The walk that follows starts at the last indexed batch, whose bytes count towards the next entry.
    pub fn resume(
        base_offset: i64,
        offset_entries: usize,
        time_entries: usize,
        last_time: Option<(i64, u32)>,
    ) -> IndexCursor {
        let mut cursor = IndexCursor::new(base_offset);
        cursor.offset_entries = u32::try_from(offset_entries).unwrap_or(u32::MAX);
        cursor.time_entries = u32::try_from(time_entries).unwrap_or(u32::MAX);
        if let Some((timestamp, relative)) = last_time {
            cursor.last_time_entry = timestamp;
            cursor.max_timestamp = timestamp;
            cursor.max_timestamp_offset = base_offset + i64::from(relative);
        }
        cursor
    }

    /// Counts a batch that the files index already, as far as they do.
    pub fn pass(&mut self, header: &BatchHeader) {
        self.observe(header);
        let size = u32::try_from(header.size).unwrap_or(u32::MAX);
        self.bytes_since_entry = self.bytes_since_entry.saturating_add(size);
    }

    /// Takes note of a batch's timestamp without placing it (re-reading a tail that is indexed already).
    pub fn observe(&mut self, header: &BatchHeader) {
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.max_timestamp_offset = header.last_offset;
        }
    }

    /// Counts a batch at `position` and says which entries it adds.
    pub fn advance(
        &mut self,
        header: &BatchHeader,
        position: u32,
        interval_bytes: u32,
    ) -> NewEntries {
        self.observe(header);
        let mut new = NewEntries::default();
        if self.bytes_since_entry > interval_bytes {
            new.offset = Some((header.last_offset, position));
            self.offset_entries += 1;
            new.time = self.time_entry_due();
            self.bytes_since_entry = 0;
        }
        let size = u32::try_from(header.size).unwrap_or(u32::MAX);
        self.bytes_since_entry = self.bytes_since_entry.saturating_add(size);
        new
    }

    /// The time entry that a segment gets when it rolls or closes, if it is not there yet.
    pub fn time_entry_due(&mut self) -> Option<(i64, i64)> {
        if self.max_timestamp <= self.last_time_entry {
            return None;
        }
        self.last_time_entry = self.max_timestamp;
        self.time_entries += 1;
        Some((self.max_timestamp, self.max_timestamp_offset))
    }

    /// True where another entry would not fit an index of `index_bytes`: the segment has to roll.
    /// One slot of the time index is kept for the entry at the roll (Kafka, TimeIndex.isFull).
    pub fn is_full(&self, index_bytes: u32) -> bool {
        self.offset_entries >= index_bytes / 8 || self.time_entries + 1 >= index_bytes / 12
    }
}

/// The growing indexes of the segment being written: raw entries, and how many bytes of them the files hold.
#[derive(Debug, Clone, Default)]
pub struct ActiveIndex {
    pub base_offset: i64,
    pub offsets: Vec<u8>,
    pub times: Vec<u8>,
    pub offsets_flushed: usize,
    pub times_flushed: usize,
}

impl ActiveIndex {
    pub fn new(base_offset: i64) -> ActiveIndex {
        ActiveIndex {
            base_offset,
            ..ActiveIndex::default()
        }
    }

    /// Entries read from the files, all of them flushed.
    pub fn loaded(base_offset: i64, offsets: Bytes, times: Bytes) -> ActiveIndex {
        ActiveIndex {
            base_offset,
            offsets_flushed: offsets.len(),
            times_flushed: times.len(),
            offsets: offsets.to_vec(),
            times: times.to_vec(),
        }
    }

    pub fn push(&mut self, new: NewEntries) {
        if let Some((offset, position)) = new.offset {
            self.offsets
                .extend_from_slice(&self.relative(offset).to_be_bytes());
            self.offsets.extend_from_slice(&position.to_be_bytes());
        }
        if let Some(entry) = new.time {
            self.push_time(entry);
        }
    }

    pub fn push_time(&mut self, (timestamp, offset): (i64, i64)) {
        self.times.extend_from_slice(&timestamp.to_be_bytes());
        self.times
            .extend_from_slice(&self.relative(offset).to_be_bytes());
    }

    fn relative(&self, offset: i64) -> u32 {
        // A segment rolls before an offset more than i32::MAX above its base (roll.rs).
        u32::try_from(offset - self.base_offset).unwrap_or(i32::MAX as u32)
    }

    pub fn offset_entries(&self) -> OffsetEntries<'_> {
        OffsetEntries(&self.offsets)
    }

    pub fn time_entries(&self) -> TimeEntries<'_> {
        TimeEntries(&self.times)
    }

    /// Cuts off every entry at or above `offset`.
    pub fn truncate(&mut self, offset: i64) {
        let relative = u32::try_from((offset - self.base_offset).max(0)).unwrap_or(u32::MAX);
        let offsets = self.offset_entries().entries_below(relative) * OFFSET_ENTRY;
        let times = self.time_entries().entries_below(relative) * TIME_ENTRY;
        self.offsets.truncate(offsets);
        self.times.truncate(times);
        self.offsets_flushed = self.offsets_flushed.min(offsets);
        self.times_flushed = self.times_flushed.min(times);
    }

    /// Bytes not in the files yet.
    pub fn unflushed(&self) -> usize {
        self.offsets.len() - self.offsets_flushed + self.times.len() - self.times_flushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::opaque_batch;

    fn header(base_offset: i64, records: i32, size: usize, timestamp: i64) -> BatchHeader {
        let mut batch = opaque_batch(records, size - 61, timestamp, (-1, -1, -1));
        crate::batch::place(&mut batch, base_offset, 0);
        BatchHeader::parse(&batch).unwrap()
    }

    #[test]
    fn entries_come_when_more_than_the_interval_was_appended() {
        let mut cursor = IndexCursor::new(0);
        let interval = 4096;
        assert_eq!(
            cursor.advance(&header(0, 1, 4096, 10), 0, interval),
            NewEntries::default()
        );
        let none = cursor.advance(&header(1, 1, 100, 9), 4096, interval);
        assert_eq!(
            none,
            NewEntries::default(),
            "exactly the interval is not more"
        );
        let entry = cursor.advance(&header(2, 5, 100, 8), 4196, interval);
        assert_eq!(entry.offset, Some((6, 4196)));
        assert_eq!(
            entry.time,
            Some((10, 0)),
            "the largest timestamp so far, with its offset"
        );
        assert_eq!(cursor.time_entry_due(), None, "no larger timestamp since");
        cursor.observe(&header(7, 1, 100, 11));
        assert_eq!(cursor.time_entry_due(), Some((11, 7)));
    }

    #[test]
    fn lookups_round_down() {
        let mut index = ActiveIndex::new(100);
        index.push(NewEntries {
            offset: Some((109, 5_000)),
            time: Some((1_000, 105)),
        });
        index.push(NewEntries {
            offset: Some((120, 10_000)),
            time: Some((2_000, 120)),
        });
        let offsets = index.offset_entries();
        assert_eq!(offsets.position_before(8), 0);
        assert_eq!(offsets.position_before(9), 5_000);
        assert_eq!(offsets.position_before(19), 5_000);
        assert_eq!(offsets.position_before(u32::MAX), 10_000);
        assert_eq!(offsets.position_not_above(9_999), 5_000);
        let times = index.time_entries();
        assert_eq!(times.offset_before(1_000), 0);
        assert_eq!(times.offset_before(1_001), 5);
        assert_eq!(times.offset_before(5_000), 20);
        index.truncate(120);
        assert_eq!(
            (index.offset_entries().len(), index.time_entries().len()),
            (1, 1)
        );
    }

    #[test]
    fn damage_is_noticed() {
        let mut index = ActiveIndex::new(0);
        index.push(NewEntries {
            offset: Some((9, 5_000)),
            time: Some((1_000, 5)),
        });
        index.push(NewEntries {
            offset: Some((20, 10_000)),
            time: Some((2_000, 20)),
        });
        assert_eq!(index.offset_entries().check(10_001), Ok(()));
        assert!(
            index.offset_entries().check(10_000).is_err(),
            "points beyond the segment"
        );
        assert!(OffsetEntries(&index.offsets[..15]).check(20_000).is_err());
        assert!(
            OffsetEntries(&[0; 16]).check(20_000).is_err(),
            "zeros of a preallocated index"
        );
        assert_eq!(index.time_entries().check(), Ok(()));
        assert!(TimeEntries(&[0; 24]).check().is_err());
    }

    #[test]
    fn a_full_index_is_seen_with_one_slot_kept_for_the_roll() {
        let mut cursor = IndexCursor::new(0);
        cursor.offset_entries = 3;
        assert!(!cursor.is_full(60));
        cursor.time_entries = 4;
        assert!(cursor.is_full(60));
    }
}
