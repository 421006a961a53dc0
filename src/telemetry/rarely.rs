//! Lines of a kind that a client can cause at will: a few at a time, the rest is counted.

use std::cell::Cell;
use std::time::Duration;

use shards::time::Instant;

/// So many lines in a [`PERIOD`].
const LINES: u32 = 10;
const PERIOD: Duration = Duration::from_secs(10);

/// Says when it is time for another line.
#[derive(Default)]
pub struct Rarely {
    began: Cell<Option<Instant>>,
    told: Cell<u32>,
    kept_back: Cell<u64>,
    kept_back_in_all: Cell<u64>,
}

impl Rarely {
    /// Whether a line may be written; then, how many were kept back since the last one.
    pub fn tell(&self, now: Instant) -> Option<u64> {
        let began = self.began.get();
        if began.is_none_or(|began| now.saturating_duration_since(began) >= PERIOD) {
            self.began.set(Some(now));
            self.told.set(0);
        }
        if self.told.get() >= LINES {
            self.kept_back.set(self.kept_back.get() + 1);
            self.kept_back_in_all.set(self.kept_back_in_all.get() + 1);
            return None;
        }
        self.told.set(self.told.get() + 1);
        Some(self.kept_back.take())
    }

    /// Lines kept back since the start.
    pub fn kept_back(&self) -> u64 {
        self.kept_back_in_all.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_is_told_with_the_next_line() {
        let rarely = Rarely::default();
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let told = (0..100).filter_map(|_| rarely.tell(at(1))).count();
        assert_eq!(told, 10);
        assert_eq!(rarely.tell(at(10)), None);
        assert_eq!(rarely.tell(at(11)), Some(91));
        assert_eq!(rarely.tell(at(11)), Some(0));
        assert_eq!(rarely.kept_back(), 91);
    }
}
