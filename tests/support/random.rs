//! Repeatable randomness: a test prints its seed, and the seed makes the same choices again.

/// `SplitMix64`, the small generator of Steele, Lea and Flood.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `low..high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        let span = u64::try_from(high - low).expect("a small range");
        low + usize::try_from(self.next() % span).expect("below the span")
    }
}

/// The seed of a run: `RINGMAIN_TEST_SEED`, else one from the clock.
pub fn seed() -> u64 {
    let given = std::env::var("RINGMAIN_TEST_SEED")
        .ok()
        .map(|text| text.parse().expect("a number"));
    given.unwrap_or_else(|| super::clock::wall_clock_ms().unsigned_abs())
}
