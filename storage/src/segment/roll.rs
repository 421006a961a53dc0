//! When a segment ends and the next one begins (Kafka: LogSegment.shouldRoll).

use super::index::IndexCursor;
use crate::batch::BatchHeader;
use crate::config::LogConfig;

/// The largest `.log`: positions in an offset index are signed 32-bit numbers to Kafka.
pub const SEGMENT_SIZE_MAX: u32 = i32::MAX as u32;

/// What the decision needs to know of a segment. There are two of these in a log: of what is written, and of what is
/// planned, the batches still under way included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentPlan {
    pub base_offset: i64,
    pub size: u32,
    pub cursor: IndexCursor,
    /// Largest timestamp of the first batch. `None` for an empty segment, and for one found on disk whose first batch
    /// was not looked at yet: it rolls by time only from then on.
    pub first_timestamp: Option<i64>,
    /// When the segment was made, or found at the start; stands in where records have no timestamp.
    pub created_ms: i64,
    pub jitter_ms: i64,
}

impl SegmentPlan {
    pub fn new(base_offset: i64, created_ms: i64, config: &LogConfig, random: u64) -> SegmentPlan {
        let most = config.segment_jitter_ms.min(config.segment_ms).max(0);
        // Below 2^63, and 0 where there is no jitter.
        let jitter_ms = (random >> 1).checked_rem(most.unsigned_abs()).unwrap_or(0) as i64;
        SegmentPlan {
            base_offset,
            size: 0,
            cursor: IndexCursor::new(base_offset),
            first_timestamp: None,
            created_ms,
            jitter_ms,
        }
    }

    pub fn should_roll(&self, header: &BatchHeader, now_ms: i64, config: &LogConfig) -> bool {
        let batch_size = u32::try_from(header.size).unwrap_or(u32::MAX);
        let limit = config.segment_bytes.min(SEGMENT_SIZE_MAX);
        if header.last_offset - self.base_offset > i64::from(i32::MAX) {
            return true;
        }
        if self.size == 0 {
            // Kafka would roll an empty segment by a full index only, which an empty one has not.
            return false;
        }
        batch_size > limit
            || self.size > limit - batch_size
            || self.waited_ms(header.max_timestamp, now_ms) > config.segment_ms - self.jitter_ms
            || self.cursor.is_full(config.segment_index_bytes)
    }

    /// Age of the segment: in record time where records have timestamps, else by the clock.
    fn waited_ms(&self, timestamp: i64, now_ms: i64) -> i64 {
        match self.first_timestamp {
            Some(first) if first >= 0 => timestamp.saturating_sub(first),
            Some(_) => now_ms.saturating_sub(self.created_ms),
            None => i64::MIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::opaque_batch;

    fn header(base_offset: i64, size: usize, timestamp: i64) -> BatchHeader {
        let mut batch = opaque_batch(1, size - 61, timestamp, (-1, -1, -1));
        crate::batch::place(&mut batch, base_offset, 0);
        BatchHeader::parse(&batch).unwrap()
    }

    fn plan(size: u32) -> SegmentPlan {
        let mut plan = SegmentPlan::new(100, 5_000, &LogConfig::default(), 1);
        plan.size = size;
        plan.first_timestamp = (size > 0).then_some(1_000);
        plan
    }

    #[test]
    fn size_decides_so_that_no_segment_grows_beyond() {
        let config = LogConfig {
            segment_bytes: 1_000,
            ..LogConfig::default()
        };
        assert!(
            !plan(900).should_roll(&header(101, 100, 0), 0, &config),
            "fits exactly"
        );
        assert!(plan(901).should_roll(&header(101, 100, 0), 0, &config));
        assert!(
            !plan(0).should_roll(&header(101, 5_000, 0), 0, &config),
            "empty never rolls"
        );
    }

    #[test]
    fn record_time_decides_before_the_clock() {
        let config = LogConfig {
            segment_ms: 500,
            ..LogConfig::default()
        };
        assert!(!plan(10).should_roll(&header(101, 100, 1_500), 99_999, &config));
        assert!(plan(10).should_roll(&header(101, 100, 1_501), 0, &config));
        let mut without = plan(10);
        without.first_timestamp = Some(-1);
        assert!(!without.should_roll(&header(101, 100, -1), 5_500, &config));
        assert!(without.should_roll(&header(101, 100, -1), 5_501, &config));
    }

    #[test]
    fn offsets_must_stay_relative() {
        let config = LogConfig::default();
        let last = 100 + i64::from(i32::MAX);
        assert!(!plan(10).should_roll(&header(last, 100, 0), 0, &config));
        assert!(plan(10).should_roll(&header(last + 1, 100, 0), 0, &config));
        assert!(plan(0).should_roll(&header(last + 1, 100, 0), 0, &config));
    }

    #[test]
    fn a_full_index_rolls() {
        let config = LogConfig {
            segment_index_bytes: 80,
            ..LogConfig::default()
        };
        let mut full = plan(10);
        full.cursor.offset_entries = 10;
        assert!(full.should_roll(&header(101, 100, 0), 0, &config));
    }

    #[test]
    fn jitter_stays_below_its_limit() {
        let config = LogConfig {
            segment_jitter_ms: 10,
            ..LogConfig::default()
        };
        for random in 0..100 {
            assert!(SegmentPlan::new(0, 0, &config, random).jitter_ms < 10);
        }
    }
}
