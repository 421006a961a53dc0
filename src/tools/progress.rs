//! How far long work has come, on one line of the terminal that is written again and again.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter work shows nothing, and the line is not written more often.
const INTERVAL: Duration = Duration::from_millis(500);
/// Nothing is shown where standard error is no terminal.
pub(super) struct Progress {
    what: &'static str,
    total: u64,
    shown: bool,
    next: Option<Instant>,
}

impl Progress {
    /// For work on `total` of something, bytes say, that prints nothing meanwhile.
    pub(super) fn new(what: &'static str, total: u64) -> Progress {
        let wanted = std::io::stderr().is_terminal();
        Progress {
            what,
            total,
            shown: false,
            next: wanted.then(|| Instant::now() + INTERVAL),
        }
    }

    /// The same for work on all of these.
    pub(super) fn of<T>(what: &'static str, all: &[T]) -> Progress {
        Progress::new(what, all.len() as u64)
    }

    /// For work that prints what it does: where that goes to a terminal too, it is progress enough.
    pub(super) fn beside_output(what: &'static str, total: u64) -> Progress {
        let mut progress = Progress::new(what, total);
        if std::io::stdout().is_terminal() {
            progress.next = None;
        }
        progress
    }

    /// Says that `done` of the total are done.
    pub(super) fn at(&mut self, done: u64) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + INTERVAL);
        self.shown = true;
        // A terminal that is gone needs no progress.
        let _ = write!(
            std::io::stderr(),
            "\r{}\x1b[K",
            told(self.what, done, self.total)
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            clear_line();
        }
    }
}

fn told(what: &str, done: u64, total: u64) -> String {
    let percent = (u128::from(done) * 100 / u128::from(total.max(1))).min(100);
    format!("{what}: {percent} %")
}

/// Takes a line of progress off the terminal, before something else is said there.
pub(super) fn clear_line() {
    let mut errors = std::io::stderr();
    if errors.is_terminal() {
        let _ = write!(errors, "\r\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_percent() {
        assert_eq!(told("dump-log", 0, 0), "dump-log: 0 %");
        assert_eq!(told("dump-log", 1, 3), "dump-log: 33 %");
        assert_eq!(told("dump-log", u64::MAX, u64::MAX), "dump-log: 100 %");
        // A file may grow meanwhile.
        assert_eq!(told("dump-log", 5, 4), "dump-log: 100 %");
    }
}
