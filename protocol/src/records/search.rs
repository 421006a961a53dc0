//! Finding records by time inside a batch, for ListOffsets.

use std::ops::ControlFlow;

use super::batch::BatchView;
use super::compress::Scratch;
use super::error::BatchError;
use super::walk::{Limits, RecordFacts, walk};

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampAndOffset {
    /// Unix milliseconds.
    pub timestamp: i64,
    pub offset: i64,
}

impl BatchView {
    /// The first record from `start_offset` on whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// The batch does not keep its format up to that record, or unpacks to more than
    /// `max_decompressed` bytes before it.
    pub fn first_at_or_after(
        &self,
        timestamp: i64,
        start_offset: i64,
        max_decompressed: usize,
        scratch: &mut Scratch,
    ) -> Result<Option<TimestampAndOffset>, BatchError> {
        // A record is never later than what the header says, unless the batch lies.
        if self.max_timestamp < timestamp || self.last_offset() < start_offset {
            return Ok(None);
        }
        self.find(max_decompressed, scratch, |found| {
            found.timestamp >= timestamp && found.offset >= start_offset
        })
    }

    /// The first record that holds the maximum timestamp of the batch (ListOffsets -3).
    ///
    /// # Errors
    /// As [`BatchView::first_at_or_after`].
    pub fn first_of_max_timestamp(
        &self,
        max_decompressed: usize,
        scratch: &mut Scratch,
    ) -> Result<Option<TimestampAndOffset>, BatchError> {
        self.find(max_decompressed, scratch, |found| {
            found.timestamp == self.max_timestamp
        })
    }

    fn find(
        &self,
        max_decompressed: usize,
        scratch: &mut Scratch,
        wanted: impl Fn(TimestampAndOffset) -> bool,
    ) -> Result<Option<TimestampAndOffset>, BatchError> {
        let mut result = None;
        walk(
            self,
            Limits::decompressed(max_decompressed),
            scratch,
            |record: RecordFacts| {
                let found = TimestampAndOffset {
                    timestamp: record.timestamp,
                    offset: self
                        .base_offset
                        .wrapping_add(i64::from(record.offset_delta)),
                };
                if wanted(found) {
                    result = Some(found);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            },
        )?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Compression, rewrite};
    use super::*;

    fn batch(compression: Compression, timestamps: &[i64]) -> BatchView {
        let mut builder = BatchBuilder::new(1000).codec(compression);
        for timestamp in timestamps {
            builder.append(*timestamp, Some(b"k"), Some(&[7; 100]), &[]);
        }
        BatchView::parse(&builder.build_bytes().unwrap()).unwrap()
    }

    #[test]
    fn every_timestamp_of_a_batch_is_found_at_its_record() {
        let timestamps: Vec<i64> = (1..=100).collect();
        let mut scratch = Scratch::default();
        for compression in Compression::ALL {
            let batch = batch(compression, &timestamps);
            for timestamp in timestamps.iter().copied() {
                let found = batch.first_at_or_after(timestamp, 0, 1 << 20, &mut scratch);
                let offset = 999 + timestamp;
                assert_eq!(found, Ok(Some(TimestampAndOffset { timestamp, offset })));
            }
            assert_eq!(
                batch.first_at_or_after(101, 0, 1 << 20, &mut scratch),
                Ok(None)
            );
        }
    }

    #[test]
    fn a_search_that_stops_early_leaves_nothing_behind_for_the_next() {
        let mut scratch = Scratch::default();
        for compression in Compression::ALL {
            let mut builder = BatchBuilder::new(0).codec(compression);
            for at in 0..400 {
                let value: Vec<u8> = (0..1000i64).map(|byte| (byte * at % 251) as u8).collect();
                builder.append(at, None, Some(&value), &[]);
            }
            let batch = BatchView::parse(&builder.build_bytes().unwrap()).unwrap();
            for timestamp in [0, 399, 1, 200] {
                let found = batch.first_at_or_after(timestamp, 0, 1 << 20, &mut scratch);
                assert_eq!(found.unwrap().unwrap().offset, timestamp, "{compression:?}");
            }
        }
    }

    #[test]
    fn times_out_of_order_give_the_first_record_that_is_late_enough() {
        let batch = batch(Compression::Gzip, &[50, 10, 70, 30, 70, 20]);
        let mut scratch = Scratch::default();
        let mut at = |timestamp, start| {
            let found = batch
                .first_at_or_after(timestamp, start, 1 << 20, &mut scratch)
                .unwrap();
            found.map(|found| (found.offset, found.timestamp))
        };
        assert_eq!(at(0, 0), Some((1000, 50)));
        assert_eq!(at(51, 0), Some((1002, 70)));
        assert_eq!(at(0, 1003), Some((1003, 30)));
        assert_eq!(at(60, 1005), None);
        assert_eq!(at(71, 0), None);
        let most = batch
            .first_of_max_timestamp(1 << 20, &mut scratch)
            .unwrap()
            .unwrap();
        assert_eq!((most.offset, most.timestamp), (1002, 70));
    }

    #[test]
    fn with_append_time_all_records_have_the_batch_time() {
        let plain = batch(Compression::None, &[1, 2, 3]);
        let mut bytes = plain.bytes().to_vec();
        rewrite::set_log_append_time(&mut bytes, 500);
        let batch = BatchView::parse(&bytes.into()).unwrap();
        let mut scratch = Scratch::default();
        let expected = Ok(Some(TimestampAndOffset {
            timestamp: 500,
            offset: 1000,
        }));
        assert_eq!(batch.first_of_max_timestamp(0, &mut scratch), expected);
        assert_eq!(batch.first_at_or_after(400, 0, 0, &mut scratch), expected);
    }
}
