//! Seeded choices.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A stream of pseudo-random numbers (SplitMix64). The scheduler, the network and each disk have
/// their own, so that one more question to one of them does not change the others' answers; a test takes
/// streams from 10,000 on.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// The numbered stream of this seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let random = Self(Cell::new(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95)));
        random.next();
        random
    }

    /// Any number.
    #[allow(
        clippy::should_implement_trait,
        reason = "it never ends, and needs no &mut"
    )]
    pub fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&self, bound: u64) -> u64 {
        // The bias is below 2^-32 for the bounds used here.
        self.next() % bound.max(1)
    }

    /// An index into so many.
    pub fn index(&self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `per_million` times in a million. Asks for no number when it cannot be true.
    pub fn chance(&self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < u64::from(per_million)
    }

    /// A span of the range.
    pub fn span(&self, range: &RangeInclusive<Duration>) -> Duration {
        let (least, most) = (range.start().as_nanos(), range.end().as_nanos());
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let extra = self.below(most.saturating_sub(least).saturating_add(1));
        Duration::from_nanos(least.saturating_add(extra))
    }
}
