//! Time and waiting, in one place: a test waits for a condition, with a limit, and never for a time.
#![allow(
    clippy::disallowed_methods,
    reason = "tests run beside the broker, in real time"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest that anything in these tests may take on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(120);

pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, as records carry them.
pub fn wall_clock_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is set");
    i64::try_from(since.as_millis()).expect("the clock is set")
}

/// Asks `condition` again and again until it answers, at most for `limit`.
pub fn wait_within<T>(limit: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = condition() {
            return answer;
        }
        assert!(Instant::now() < end, "waited {limit:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    wait_within(LIMIT, what, condition)
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Lets time pass between two rounds of work that goes on by the clock; never to wait for something.
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}
