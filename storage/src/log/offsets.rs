//! Offsets by question: earliest, latest, by timestamp, of the largest timestamp (ListOffsets).

use super::read::LogSource;
use super::{Log, LogInner};
use crate::error::{ReadError, StorageError};
use crate::segment::reader::{LOOKUP_WINDOW, Placed, Source, Walk, WalkError};
use bytes::Bytes;
use protocol::records::{BatchView, Scratch};

/// An answer: the epoch is that of the leader which wrote there, where known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// -1 where the question was not about time.
    pub timestamp: i64,
    pub offset: i64,
    pub leader_epoch: Option<i32>,
}

/// A batch never unpacks to more than this while its records are searched.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

impl Log {
    /// -2: the start of the log.
    pub fn earliest(&self) -> TimestampOffset {
        let state = self.0.state.borrow();
        // The first entry need not reach down to the start: records older than v2 have no epoch.
        let leader_epoch = state
            .epochs
            .earliest()
            .filter(|entry| entry.start_offset <= state.start_offset)
            .map(|entry| entry.epoch);
        TimestampOffset {
            timestamp: -1,
            offset: state.start_offset,
            leader_epoch,
        }
    }

    /// -1: the end of the written prefix.
    pub fn latest(&self) -> TimestampOffset {
        let state = self.0.state.borrow();
        let leader_epoch = state.epochs.latest().map(|entry| entry.epoch);
        TimestampOffset {
            timestamp: -1,
            offset: state.end_offset,
            leader_epoch,
        }
    }

    /// The first record whose timestamp is `timestamp` or later, also inside a compressed batch. `None` where there is
    /// none in the written prefix.
    ///
    /// # Errors
    /// I/O errors, and batches that cannot be read.
    pub async fn offset_for_timestamp(
        &self,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        self.0.check_open()?;
        Ok(self.0.find_timestamp(timestamp).await?)
    }

    /// -3: the first record that has the largest timestamp of the log (KIP-734).
    ///
    /// # Errors
    /// As [`Log::offset_for_timestamp`].
    pub async fn max_timestamp(&self) -> Result<Option<TimestampOffset>, ReadError> {
        self.0.check_open()?;
        Ok(self.0.find_max_timestamp().await?)
    }
}

impl LogInner {
    /// Written segments that still hold readable records.
    fn written_segments(&self) -> Vec<(i64, u32)> {
        let state = self.state.borrow();
        let sealed = state
            .sealed
            .iter()
            .map(|segment| (segment.base_offset, segment.size));
        let active = (state.active.plan.base_offset, state.active.plan.size);
        sealed
            .chain([active])
            .filter(|(_, size)| *size > 0)
            .collect()
    }

    /// Largest timestamp of a segment, and the last offset of the batch that has it.
    async fn segment_max_timestamp(
        &self,
        base_offset: i64,
        size: u32,
    ) -> Result<(i64, i64), StorageError> {
        {
            let state = self.state.borrow();
            let plan = &state.active.plan;
            if plan.base_offset == base_offset {
                return Ok((plan.cursor.max_timestamp, plan.cursor.max_timestamp_offset));
            }
            let found = state
                .sealed
                .binary_search_by_key(&base_offset, |segment| segment.base_offset)
                .ok()
                .and_then(|at| state.sealed[at].max_timestamp);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        // A sealed segment's last entry is its largest timestamp.
        let last = self
            .with_time_index(base_offset, size, |entries| entries.last())
            .await?;
        let found = last.map_or((-1, base_offset), |(time, relative)| {
            (time, base_offset + i64::from(relative))
        });
        let mut state = self.state.borrow_mut();
        if let Ok(at) = state
            .sealed
            .binary_search_by_key(&base_offset, |segment| segment.base_offset)
        {
            state.sealed[at].max_timestamp = Some(found);
        }
        Ok(found)
    }

    async fn find_timestamp(
        &self,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let start_offset = self.state.borrow().start_offset;
        for (base_offset, size) in self.written_segments() {
            if self.segment_max_timestamp(base_offset, size).await?.0 < timestamp {
                continue;
            }
            let relative = self
                .with_time_index(base_offset, size, |entries| {
                    entries.offset_before(timestamp)
                })
                .await?;
            let from = (base_offset + i64::from(relative)).max(start_offset);
            let wanted = |placed: &Placed| {
                placed.header.max_timestamp >= timestamp
                    && placed.header.last_offset >= start_offset
            };
            let found = self
                .find_record(base_offset, size, from, wanted, |view, scratch| {
                    view.first_at_or_after(timestamp, start_offset, UNPACKED_BYTES_MAX, scratch)
                })
                .await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn find_max_timestamp(&self) -> Result<Option<TimestampOffset>, StorageError> {
        let mut best: Option<(i64, u32, i64, i64)> = None;
        for (base_offset, size) in self.written_segments() {
            let (timestamp, offset) = self.segment_max_timestamp(base_offset, size).await?;
            // The first of equals: it holds the first record with that timestamp.
            if timestamp >= 0 && best.is_none_or(|(_, _, most, _)| timestamp > most) {
                best = Some((base_offset, size, timestamp, offset));
            }
        }
        let Some((base_offset, size, timestamp, offset)) = best else {
            return Ok(None);
        };
        let wanted = |placed: &Placed| placed.header.max_timestamp == timestamp;
        self.find_record(base_offset, size, offset, wanted, |view, scratch| {
            view.first_of_max_timestamp(UNPACKED_BYTES_MAX, scratch)
        })
        .await
    }

    /// Walks a segment from the batch of `from_offset` on until a wanted batch yields a record.
    async fn find_record(
        &self,
        base_offset: i64,
        size: u32,
        from_offset: i64,
        wanted: impl Fn(&Placed) -> bool,
        search: impl Fn(
            &BatchView,
            &mut Scratch,
        ) -> Result<
            Option<protocol::records::TimestampAndOffset>,
            protocol::records::BatchError,
        >,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let relative = u32::try_from((from_offset - base_offset).max(0)).unwrap_or(u32::MAX);
        let position = self
            .with_offset_index(base_offset, size, |entries| {
                entries.position_before(relative)
            })
            .await?;
        let source = LogSource {
            log: self,
            base_offset,
        };
        let mut walk = Walk::new(&source, position, size, LOOKUP_WINDOW);
        let mut scratch = Scratch::default();
        loop {
            let Some(placed) = walk.next_good(&source.path()).await? else {
                return Ok(None);
            };
            let header = &placed.header;
            let damaged = self
                .state
                .borrow()
                .damaged
                .at(base_offset, header.base_offset);
            if header.last_offset < from_offset || damaged.is_some() || !wanted(&placed) {
                continue;
            }
            let bytes = walk.batch_bytes(&placed).await;
            let bytes = bytes.map_err(|error: WalkError| error.into_storage(&source.path()))?;
            if let Some(found) =
                search_batch(&placed, &bytes, &mut scratch, &search).map_err(|why| {
                    StorageError::corrupt(&source.path(), u64::from(placed.position), why)
                })?
            {
                return Ok(Some(found));
            }
        }
    }
}

/// The record within a batch; for formats before v2 the batch itself answers.
fn search_batch(
    placed: &Placed,
    bytes: &Bytes,
    scratch: &mut Scratch,
    search: impl Fn(
        &BatchView,
        &mut Scratch,
    ) -> Result<
        Option<protocol::records::TimestampAndOffset>,
        protocol::records::BatchError,
    >,
) -> Result<Option<TimestampOffset>, String> {
    let header = &placed.header;
    if header.magic < 2 {
        return Ok(Some(TimestampOffset {
            timestamp: header.max_timestamp,
            offset: header.base_offset,
            leader_epoch: None,
        }));
    }
    let view = BatchView::parse(bytes).map_err(|error| error.to_string())?;
    let found = search(&view, scratch).map_err(|error| error.to_string())?;
    Ok(found.map(|found| TimestampOffset {
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: Some(header.leader_epoch).filter(|epoch| *epoch >= 0),
    }))
}
