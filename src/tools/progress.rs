//! How far long work has come, on one line of the terminal that is written again and again.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter work shows nothing, and the line is not written more often.
const INTERVAL: Duration = Duration::from_millis(500);

/// Nothing is shown where standard error is no terminal, or where the answer itself goes to one.
pub(super) struct Progress {
    total: u64,
    shown: bool,
    next: Option<Instant>,
}

impl Progress {
    /// For work on `total` of something, bytes say.
    pub(super) fn new(total: u64) -> Progress {
        let wanted = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        Progress {
            total,
            shown: false,
            next: wanted.then(|| Instant::now() + INTERVAL),
        }
    }

    /// Says that `done` of the total are done.
    pub(super) fn at(&mut self, done: u64, what: &str) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + INTERVAL);
        self.shown = true;
        let percent = done.saturating_mul(100) / self.total.max(1);
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr(), "\r{what}: {percent} %\x1b[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
