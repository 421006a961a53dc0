//! A v2 batch as a view over bytes that are shared, not copied; and cutting a run of bytes into batches.

use std::ops::Deref;

use bytes::Bytes;

use super::error::{BatchError, SplitError};
use super::header::{BATCH_OVERHEAD, BatchHeader, compute_crc};
use super::record::RecordIter;

/// One complete v2 batch. Dereferences to its [`BatchHeader`].
///
/// That the length fits the bytes is checked; the checksum and what the records hold are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchView {
    header: BatchHeader,
    bytes: Bytes,
}

impl BatchView {
    /// The batch at the start of `bytes`; what follows it is left out of the view.
    ///
    /// # Errors
    /// Those of [`BatchHeader::parse`], and `Truncated` if the batch reaches past `bytes`.
    pub fn parse(bytes: &Bytes) -> Result<BatchView, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let size = header.size_in_bytes();
        if size > bytes.len() {
            return Err(BatchError::Truncated {
                needed: size,
                available: bytes.len(),
            });
        }
        Ok(BatchView {
            header,
            bytes: bytes.slice(..size),
        })
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What follows the header: records, compressed as the attributes say.
    pub fn records_payload(&self) -> Bytes {
        self.bytes.slice(BATCH_OVERHEAD..)
    }

    pub fn computed_crc(&self) -> u32 {
        compute_crc(&self.bytes)
    }

    pub fn crc_ok(&self) -> bool {
        self.computed_crc() == self.header.crc
    }

    /// # Errors
    /// `Crc` with both checksums.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.header.crc, self.computed_crc());
        if stored == computed {
            Ok(())
        } else {
            Err(BatchError::Crc { stored, computed })
        }
    }

    /// The records, decompressed first if need be: at most `max_decompressed` bytes of memory.
    /// Keys, values and headers are slices of the batch (or of the decompressed bytes).
    ///
    /// # Errors
    /// `UnknownCompression`, `NegativeCount`, or that decompression failed or passed the limit.
    pub fn records(&self, max_decompressed: usize) -> Result<RecordIter, BatchError> {
        RecordIter::new(self, max_decompressed)
    }
}

impl Deref for BatchView {
    type Target = BatchHeader;

    fn deref(&self) -> &BatchHeader {
        &self.header
    }
}

/// Cuts `bytes` into v2 batches, one after the other. After the first error it yields nothing more.
pub fn split_batches(bytes: Bytes) -> SplitBatches {
    SplitBatches {
        rest: bytes,
        position: 0,
        failed: false,
    }
}

/// See [`split_batches`].
#[derive(Debug, Clone)]
pub struct SplitBatches {
    rest: Bytes,
    position: usize,
    failed: bool,
}

impl SplitBatches {
    /// Where the next batch starts, or where the bad one does.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl Iterator for SplitBatches {
    type Item = Result<BatchView, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        match BatchView::parse(&self.rest) {
            Ok(batch) => {
                let size = batch.size_in_bytes();
                self.rest = self.rest.slice(size..);
                self.position += size;
                Some(Ok(batch))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(SplitError {
                    position: self.position,
                    error,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        BatchBuilder, BatchError, Compression, Header, Record, TimestampType, rewrite,
    };
    use super::*;

    fn sample(compression: Compression) -> BatchBuilder {
        let mut builder = BatchBuilder::new(100)
            .codec(compression)
            .producer(7, 3, i32::MAX - 1)
            .partition_leader_epoch(5)
            .transactional(true);
        builder
            .append(
                1000,
                Some(b"key"),
                Some(b"value"),
                &[(b"h", Some(b"1")), (b"h", None)],
            )
            .append(900, None, Some(b""), &[])
            .append(1100, Some(b""), None, &[]);
        builder
    }

    fn record(offset: i64, timestamp: i64, key: Option<&str>, value: Option<&str>) -> Record {
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        Record {
            offset,
            timestamp,
            key: key.map(bytes),
            value: value.map(bytes),
            headers: vec![],
        }
    }

    #[test]
    fn reads_back_what_the_builder_wrote() {
        for compression in Compression::ALL {
            let bytes = sample(compression).build_bytes().unwrap();
            let batch = BatchView::parse(&bytes).unwrap();
            assert!(batch.crc_ok());
            assert_eq!(batch.compression(), Ok(compression));
            assert_eq!((batch.base_offset, batch.last_offset()), (100, 102));
            assert_eq!((batch.base_timestamp, batch.max_timestamp), (1000, 1100));
            assert_eq!((batch.producer_id, batch.producer_epoch), (7, 3));
            assert_eq!(
                (batch.base_sequence, batch.last_sequence()),
                (i32::MAX - 1, 0)
            );
            assert_eq!((batch.partition_leader_epoch, batch.records_count), (5, 3));
            assert!(batch.is_transactional() && !batch.is_control());
            assert_eq!(batch.size_in_bytes(), bytes.len());
            let mut first = record(100, 1000, Some("key"), Some("value"));
            let key = Bytes::from_static(b"h");
            first.headers.push(Header {
                key: key.clone(),
                value: Some("1".into()),
            });
            first.headers.push(Header { key, value: None });
            let records: Result<Vec<_>, _> = batch.records(1 << 20).unwrap().collect();
            assert_eq!(
                records.unwrap(),
                [
                    first,
                    record(101, 900, None, Some("")),
                    record(102, 1100, Some(""), None)
                ]
            );
        }
    }

    #[test]
    fn splits_until_the_torn_batch_and_says_where_it_starts() {
        let one = sample(Compression::None).build().unwrap();
        let mut log = one.clone();
        log.extend_from_slice(&one);
        log.extend_from_slice(&one[..one.len() - 1]);
        let mut batches = split_batches(log.freeze());
        assert!(batches.next().unwrap().is_ok());
        assert!(batches.next().unwrap().is_ok());
        assert_eq!(
            batches.next().unwrap().unwrap_err(),
            SplitError {
                position: 2 * one.len(),
                error: BatchError::Truncated {
                    needed: one.len(),
                    available: one.len() - 1
                }
            }
        );
        assert!(batches.next().is_none());
        assert_eq!(batches.position(), 2 * one.len());
    }

    #[test]
    fn zeros_and_impossible_headers_are_errors() {
        let zeros = Bytes::from_static(&[0; 100]);
        assert_eq!(
            BatchView::parse(&zeros),
            Err(BatchError::TooSmall {
                size: 12,
                minimum: 26
            }),
            "zeros look like a v0 entry of length 0"
        );
        let mut batch = sample(Compression::None).build().unwrap();
        batch[16] = 3;
        assert_eq!(
            BatchHeader::parse(&batch),
            Err(BatchError::Magic { magic: 3 })
        );
        batch[16] = 1;
        assert_eq!(
            BatchHeader::parse(&batch),
            Err(BatchError::Magic { magic: 1 })
        );
        batch[16] = 2;
        batch[8..12].copy_from_slice(&(-1i32).to_be_bytes());
        assert!(matches!(
            BatchHeader::parse(&batch),
            Err(BatchError::TooSmall { size: 11, .. })
        ));
    }

    #[test]
    fn assigning_offsets_keeps_the_checksum_and_append_time_renews_it() {
        let mut batch = sample(Compression::Gzip).build().unwrap();
        rewrite::assign(&mut batch, 5_000_000_000, 9);
        let view = BatchView::parse(&batch.clone().freeze()).unwrap();
        assert!(view.crc_ok());
        assert_eq!(
            (view.base_offset, view.partition_leader_epoch),
            (5_000_000_000, 9)
        );

        assert!(!rewrite::set_max_timestamp(
            &mut batch,
            TimestampType::CreateTime,
            1100
        ));
        rewrite::set_log_append_time(&mut batch, 77);
        let view = BatchView::parse(&batch.freeze()).unwrap();
        assert!(view.crc_ok());
        assert_ne!(
            view.crc,
            BatchHeader::parse(&sample(Compression::Gzip).build().unwrap())
                .unwrap()
                .crc
        );
        assert_eq!(
            (view.timestamp_type(), view.max_timestamp),
            (TimestampType::LogAppendTime, 77)
        );
        assert_eq!(view.base_timestamp, 1000);
        assert!(
            view.records(1 << 20)
                .unwrap()
                .all(|record| record.unwrap().timestamp == 77)
        );
    }

    #[test]
    fn a_wrong_count_is_an_error_at_the_end() {
        let mut batch = sample(Compression::None).build().unwrap();
        for (count, error) in [
            (2, BatchError::RecordsRemain { declared: 2 }),
            (
                4,
                BatchError::RecordsMissing {
                    declared: 4,
                    found: 3,
                },
            ),
        ] {
            batch[57..61].copy_from_slice(&i32::to_be_bytes(count));
            let view = BatchView::parse(&batch.clone().freeze()).unwrap();
            assert_eq!(view.records(1 << 20).unwrap().last(), Some(Err(error)));
        }
        batch[57..61].copy_from_slice(&(-1i32).to_be_bytes());
        let view = BatchView::parse(&batch.freeze()).unwrap();
        assert_eq!(
            view.records(0).unwrap_err(),
            BatchError::NegativeCount { count: -1 }
        );
    }
}
