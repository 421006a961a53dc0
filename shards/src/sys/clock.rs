use rustix::time::{ClockId, clock_gettime};

use crate::time::Instant;

fn nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

pub(crate) fn monotonic() -> Instant {
    Instant::from_nanos(u64::try_from(nanos(ClockId::Monotonic)).unwrap_or(0))
}

pub(crate) fn wall_clock_ms() -> i64 {
    i64::try_from(nanos(ClockId::Realtime) / 1_000_000).unwrap_or(i64::MAX)
}
