//! What the shell needs from the log of a partition, and how records get into it and out again.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use protocol::ErrorCode;
use protocol::records::{BatchBuilder, BatchError, BatchView, Codec, SplitError, split_batches};

use super::super::record::{LogRecord, Record, Stored};

/// A future that stays on its core.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One partition of `__consumer_offsets`, as its leader sees it.
pub trait CoordinatorLog {
    /// Appends one v2 batch (base offset 0, no leader epoch yet), and gives the offset of its
    /// first record once the batch is committed: written here, and by the whole in-sync set.
    fn append(&self, batch: Bytes) -> LocalFuture<'_, Result<i64, ErrorCode>>;

    /// Whole batches from the one that holds `offset` on: about `max_bytes`, but at least one
    /// batch. Nothing at the end of the log.
    fn read(&self, offset: i64, max_bytes: usize) -> LocalFuture<'_, Result<Bytes, ErrorCode>>;

    /// The first offset that can be read.
    fn start_offset(&self) -> i64;

    /// The offset behind the last written record.
    fn end_offset(&self) -> i64;

    /// `max.message.bytes` of the topic: no batch may be larger.
    fn max_batch_bytes(&self) -> usize;
}

/// Why a partition could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("the log could not be read at offset {offset}: {}", error.name())]
    Read { offset: i64, error: ErrorCode },
    #[error("after offset {offset} the log has bytes that are no batch: {reason}")]
    Split { offset: i64, reason: SplitError },
    #[error("the batch at offset {offset} is damaged: {reason}")]
    Batch { offset: i64, reason: BatchError },
    #[error("this broker stopped leading the partition while it was loading")]
    Stopped,
}

/// Memory that one compressed batch may take while it is read.
const DECOMPRESSED_BATCH_MAX: usize = 64 << 20;

/// Bytes that a record takes in a batch beside its key and value, at most.
const RECORD_OVERHEAD_MAX: usize = 32;

pub(super) fn encoded_size(records: &[Record]) -> usize {
    let size_of = |record: &Record| {
        record.key.len() + record.value.as_ref().map_or(0, Bytes::len) + RECORD_OVERHEAD_MAX
    };
    records.iter().map(size_of).sum()
}

/// One batch of these records.
pub(super) fn build_batch<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    now_ms: i64,
    codec: Codec,
) -> Result<Bytes, ErrorCode> {
    let mut builder = BatchBuilder::new(0).codec(codec);
    for record in records {
        builder.append(now_ms, Some(&record.key), record.value.as_deref(), &[]);
    }
    builder
        .build_bytes()
        .map_err(|_| ErrorCode::RecordListTooLarge)
}

/// The records of a chunk of the log, in order, each handed to `apply` with its offset.
/// Returns the offset to go on from.
pub(super) fn replay_chunk(
    chunk: Bytes,
    from: i64,
    mut apply: impl FnMut(i64, &LogRecord),
) -> Result<i64, LoadError> {
    let mut next = from;
    for batch in split_batches(chunk) {
        let batch = batch.map_err(|reason| LoadError::Split {
            offset: next,
            reason,
        })?;
        let offset = batch.base_offset;
        replay_batch(&batch, from, &mut apply)
            .map_err(|reason| LoadError::Batch { offset, reason })?;
        next = next.max(batch.next_offset());
    }
    Ok(next)
}

fn replay_batch(
    batch: &BatchView,
    from: i64,
    apply: &mut impl FnMut(i64, &LogRecord),
) -> Result<(), BatchError> {
    batch.check_crc()?;
    let is_control = batch.is_control();
    let producer_id = if batch.is_transactional() {
        batch.producer_id
    } else {
        -1
    };
    for record in batch.records(DECOMPRESSED_BATCH_MAX)? {
        let record = record?;
        let Some(key) = record.key.filter(|_| record.offset >= from) else {
            continue;
        };
        let understood = if is_control {
            let stored = transaction_marker(&key).unwrap_or(Stored::Unknown);
            LogRecord {
                producer_id,
                stored,
            }
        } else {
            LogRecord::decode_parts(producer_id, key, record.value)
        };
        apply(record.offset, &understood);
    }
    Ok(())
}

/// Key of a control record: version, then type (0 abort, 1 commit; others are not ours).
fn transaction_marker(key: &[u8]) -> Option<Stored> {
    match key.get(2..4)? {
        [0, 0] => Some(Stored::EndTransaction { commit: false }),
        [0, 1] => Some(Stored::EndTransaction { commit: true }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &'static [u8]) -> Record {
        Record {
            key: Bytes::from_static(key),
            value: None,
        }
    }

    #[test]
    fn what_is_built_is_replayed_and_damage_is_reported() {
        let records = [record(b"one"), record(b"two")];
        let batch = build_batch(&records, 7, Codec::NONE).unwrap();
        assert!(batch.len() <= encoded_size(&records) + 61);
        let mut seen = Vec::new();
        let next = replay_chunk(batch.clone(), 0, |offset, _| seen.push(offset)).unwrap();
        assert_eq!((next, seen), (2, vec![0, 1]));
        let next = replay_chunk(batch.clone(), 1, |offset, _| assert_eq!(offset, 1)).unwrap();
        assert_eq!(next, 2, "records before the first offset are left out");

        let mut flipped = batch.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        let error = replay_chunk(Bytes::from(flipped), 0, |_, _| {}).unwrap_err();
        assert!(
            matches!(error, LoadError::Batch { offset: 0, .. }),
            "{error}"
        );
        let error = replay_chunk(batch.slice(..20), 0, |_, _| {}).unwrap_err();
        assert!(matches!(error, LoadError::Split { .. }), "{error}");
    }

    #[test]
    fn markers_end_transactions() {
        assert_eq!(
            transaction_marker(&[0, 0, 0, 1]),
            Some(Stored::EndTransaction { commit: true })
        );
        assert_eq!(
            transaction_marker(&[0, 0, 0, 0]),
            Some(Stored::EndTransaction { commit: false })
        );
        assert_eq!(transaction_marker(&[0, 0, 0, 2]), None);
        assert_eq!(transaction_marker(&[0]), None);
    }
}
