//! From the bytes of a fetch to records: batch by batch, without those of aborted transactions.

use std::collections::BTreeSet;

use bytes::Bytes;
use protocol::messages::FetchResponseAbortedTransaction;
use protocol::records::legacy::LegacyView;
use protocol::records::{BatchError, BatchView, Peek, Record, TimestampType};
use protocol::stored::ControlRecordTypeSchema;
use protocol::wire::Reader;

use crate::tools::client::Partition;

/// What one batch may unpack to.
const MOST_UNPACKED: usize = 1 << 30;

/// The records of one batch.
#[derive(Debug)]
pub(in crate::tools) struct RecordBatch {
    pub(in crate::tools) partition: Partition,
    pub(in crate::tools) records: Vec<Record>,
    /// None in messages of format 0.
    pub(in crate::tools) timestamp_type: Option<TimestampType>,
    /// -1 in old formats.
    pub(in crate::tools) leader_epoch: i32,
    /// Where to go on behind this batch.
    pub(in crate::tools) next_offset: i64,
}

/// A batch that cannot be read.
#[derive(Debug)]
pub(super) struct BadBatch {
    /// Its first offset.
    pub(super) offset: i64,
    /// Where to go on behind it, as far as its header can be trusted.
    pub(super) next_offset: Option<i64>,
    pub(super) error: BatchError,
}

/// The bytes of a partition out of one answer.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) partition: Partition,
    bytes: Bytes,
    /// Records before it are not wanted: a batch comes whole.
    from: i64,
    /// By first offset, the last one first.
    aborted: Vec<FetchResponseAbortedTransaction>,
    /// Producers in an aborted transaction at this place.
    aborting: BTreeSet<i64>,
    read_committed: bool,
    check_crcs: bool,
}

impl Fetched {
    pub(super) fn new(
        partition: Partition,
        bytes: Bytes,
        from: i64,
        mut aborted: Vec<FetchResponseAbortedTransaction>,
        read_committed: bool,
        check_crcs: bool,
    ) -> Fetched {
        aborted.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Fetched {
            partition,
            bytes,
            from,
            aborted,
            aborting: BTreeSet::new(),
            read_committed,
            check_crcs,
        }
    }

    /// Where the fetch behind this one goes on: behind the last whole batch, found without unpacking any.
    pub(super) fn end(&self) -> i64 {
        let mut rest = self.bytes.clone();
        let mut end = self.from;
        while let Ok(peek) = Peek::parse(&rest) {
            if peek.size > rest.len() {
                break;
            }
            let last = match BatchView::parse(&rest) {
                Ok(batch) => batch.last_offset(),
                Err(_) => peek.offset,
            };
            end = end.max(last.saturating_add(1));
            rest = rest.slice(peek.size..);
        }
        end
    }

    /// The next batch, which may have no records; none at the end. What is cut off at the end is fetched again.
    pub(super) fn next(&mut self) -> Option<Result<RecordBatch, BadBatch>> {
        let peek = match Peek::parse(&self.bytes) {
            Ok(peek) if peek.size <= self.bytes.len() => peek,
            Ok(_) | Err(BatchError::Truncated { .. }) => return None,
            Err(error) => {
                self.bytes = Bytes::new();
                return Some(Err(BadBatch {
                    offset: self.from,
                    next_offset: None,
                    error,
                }));
            }
        };
        let entry = self.bytes.split_to(peek.size);
        let batch = if peek.magic < 2 {
            self.old(&entry)
        } else {
            self.new_format(&entry)
        };
        Some(batch.map_err(|error| {
            self.bytes = Bytes::new();
            let end = BatchView::parse(&entry).map(|view| view.last_offset().saturating_add(1));
            BadBatch {
                offset: peek.offset,
                next_offset: end.ok().filter(|end| *end > peek.offset),
                error,
            }
        }))
    }

    fn old(&self, entry: &Bytes) -> Result<RecordBatch, BatchError> {
        let view = LegacyView::parse(entry)?;
        if self.check_crcs {
            view.check_crc()?;
        }
        let records: Result<Vec<Record>, BatchError> = view.records(MOST_UNPACKED)?.collect();
        let timestamp_type = (view.magic > 0).then(|| view.timestamp_type());
        Ok(self.batch(records?, timestamp_type, -1, view.offset))
    }

    fn new_format(&mut self, entry: &Bytes) -> Result<RecordBatch, BatchError> {
        let view = BatchView::parse(entry)?;
        if self.check_crcs {
            view.check_crc()?;
        }
        // Markers are followed too: they end what is left out.
        let aborted = self.is_aborted(&view)?;
        let records = if !aborted && !view.is_control() {
            let records: Result<Vec<Record>, BatchError> = view.records(MOST_UNPACKED)?.collect();
            records?
        } else {
            Vec::new()
        };
        Ok(self.batch(
            records,
            Some(view.timestamp_type()),
            view.partition_leader_epoch,
            view.last_offset(),
        ))
    }

    fn batch(
        &self,
        mut records: Vec<Record>,
        timestamp_type: Option<TimestampType>,
        leader_epoch: i32,
        last_offset: i64,
    ) -> RecordBatch {
        records.retain(|record| record.offset >= self.from);
        RecordBatch {
            partition: self.partition.clone(),
            records,
            timestamp_type,
            leader_epoch,
            next_offset: last_offset.saturating_add(1).max(self.from),
        }
    }

    /// Follows the transactions up to this batch.
    fn is_aborted(&mut self, view: &BatchView) -> Result<bool, BatchError> {
        if !self.read_committed {
            return Ok(false);
        }
        while let Some(next) = self
            .aborted
            .pop_if(|next| next.first_offset <= view.last_offset())
        {
            self.aborting.insert(next.producer_id);
        }
        if view.is_control() {
            if is_abort(view)? {
                self.aborting.remove(&view.producer_id);
            }
            return Ok(false);
        }
        Ok(view.is_transactional() && self.aborting.contains(&view.producer_id))
    }
}

fn is_abort(view: &BatchView) -> Result<bool, BatchError> {
    const ABORT: i16 = 0;
    let Some(record) = view.records(MOST_UNPACKED)?.next().transpose()? else {
        return Ok(false);
    };
    let mut key = Reader::new(record.key.unwrap_or_default());
    let kind = key
        .i16()
        .and_then(|_| ControlRecordTypeSchema::decode(&mut key, 0));
    Ok(kind.is_ok_and(|kind| kind.r#type == ABORT))
}
