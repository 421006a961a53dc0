//! How long things take, in fixed buckets: counting one is a shift and two additions.

use std::cell::Cell;
use std::time::Duration;

/// The first bucket ends at 2 to this power nanoseconds, about 33 microseconds.
const FIRST_BITS: u32 = 15;
/// Each bucket ends at twice the one before; the last of these at 17 seconds. One more has no end.
const BOUNDED: usize = 20;
const BUCKETS: usize = BOUNDED + 1;

/// Durations counted on one core.
#[derive(Default)]
pub struct Histogram {
    counts: [Cell<u64>; BUCKETS],
    nanos: Cell<u64>,
}

/// What a [`Histogram`] holds at one moment; those of several cores can be added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: [u64; BUCKETS],
    nanos: u64,
}

impl Histogram {
    /// Counts one.
    pub fn add(&self, span: Duration) {
        self.add_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts one of so many nanoseconds.
    pub fn add_nanos(&self, nanos: u64) {
        let count = &self.counts[bucket(nanos)];
        count.set(count.get() + 1);
        self.nanos.set(self.nanos.get().saturating_add(nanos));
    }

    /// A copy.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut copy = HistogramSnapshot {
            nanos: self.nanos.get(),
            ..Default::default()
        };
        for (to, from) in copy.counts.iter_mut().zip(&self.counts) {
            *to = from.get();
        }
        copy
    }
}

/// The bucket of a duration: its bound belongs to it, as Prometheus has it.
fn bucket(nanos: u64) -> usize {
    let bits = u64::BITS - nanos.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(FIRST_BITS) as usize).min(BOUNDED)
}

impl HistogramSnapshot {
    /// Adds what another core counted.
    pub fn merge(&mut self, other: &HistogramSnapshot) {
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// End of each bucket in seconds, and how many are in it; the last one has no end.
    pub fn buckets(&self) -> [(f64, u64); BUCKETS] {
        let mut buckets = [(f64::MAX, 0); BUCKETS];
        for (index, (bucket, count)) in buckets.iter_mut().zip(self.counts).enumerate() {
            if index < BOUNDED {
                bucket.0 = (1u64 << (FIRST_BITS as usize + index)) as f64 / 1e9;
            }
            bucket.1 = count;
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_where_it_belongs() {
        let histogram = Histogram::default();
        let bound = 1u64 << FIRST_BITS;
        for nanos in [0, 1, bound, bound + 1, 2 * bound, 2 * bound + 1] {
            histogram.add_nanos(nanos);
        }
        histogram.add(Duration::MAX);
        let snapshot = histogram.snapshot();
        let buckets = snapshot.buckets();
        assert_eq!(buckets[0], (0.000_032_768, 3));
        assert_eq!(buckets[1], (0.000_065_536, 2));
        assert_eq!(buckets[2].1, 1);
        assert_eq!(buckets[BOUNDED], (f64::MAX, 1));
        assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
        assert!((16.0..18.0).contains(&buckets[BOUNDED - 1].0));
        assert_eq!(snapshot.count(), 7);
    }

    #[test]
    fn those_of_several_cores_add_up() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.add(Duration::from_millis(3));
        other.add(Duration::from_millis(3));
        other.add(Duration::from_secs(2));
        let mut sum = one.snapshot();
        sum.merge(&other.snapshot());
        assert_eq!(sum.count(), 3);
        assert!((sum.sum_seconds() - 2.006).abs() < 1e-9);
    }
}
