//! The most memory that an entry may take, counted at the allocator.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Whatever the input says, so much for each of its bytes,
const FACTOR: usize = 256;
/// and so much for an entry's own tables.
const OVERHEAD: usize = 2 << 20;

/// Runs the entry; panics where it took more memory than an input of that size should.
pub fn limit(data: &[u8], entry: fn(&[u8]) -> bool) -> bool {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let read = entry(data);
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    let most = FACTOR * data.len() + OVERHEAD;
    assert!(
        taken <= most,
        "{} bytes of input took {taken} bytes of memory",
        data.len()
    );
    read
}
