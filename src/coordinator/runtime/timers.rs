//! The timers of one coordinator.
//!
//! Nearly all of them are sessions that every heartbeat pushes back. So a timer whose deadline
//! moves later keeps its place in the queue, and is queued again only when it gets there: a
//! heartbeat costs one lookup, and the task that sleeps is not woken.

use std::collections::{BTreeMap, BTreeSet};

use shards::time::Instant;

use super::super::event::TimerKey;

#[derive(Debug)]
struct Timer {
    deadline: Instant,
    /// Where it stands in the queue; never later than the deadline.
    queued_at: Instant,
}

/// Deadlines by key.
#[derive(Debug, Default)]
pub(super) struct Timers {
    timers: BTreeMap<TimerKey, Timer>,
    queue: BTreeSet<(Instant, TimerKey)>,
}

impl Timers {
    /// Sets the timer, in the place of one of the same key. True if it is the next to look at.
    pub(super) fn set(&mut self, key: TimerKey, deadline: Instant) -> bool {
        if let Some(timer) = self.timers.get_mut(&key) {
            if deadline >= timer.queued_at {
                timer.deadline = deadline;
                return false;
            }
            self.queue.remove(&(timer.queued_at, key.clone()));
        }
        let is_next = self.next().is_none_or(|next| deadline < next);
        self.timers.insert(
            key.clone(),
            Timer {
                deadline,
                queued_at: deadline,
            },
        );
        self.queue.insert((deadline, key));
        is_next
    }

    pub(super) fn cancel(&mut self, key: &TimerKey) {
        if let Some(timer) = self.timers.remove(key) {
            self.queue.remove(&(timer.queued_at, key.clone()));
        }
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes one timer that has run out.
    pub(super) fn expired(&mut self, now: Instant) -> Option<TimerKey> {
        while self.next().is_some_and(|next| next <= now) {
            let (_, key) = self.queue.pop_first()?;
            match self.timers.get_mut(&key) {
                Some(timer) if timer.deadline > now => {
                    timer.queued_at = timer.deadline;
                    self.queue.insert((timer.deadline, key));
                }
                Some(_) => {
                    self.timers.remove(&key);
                    return Some(key);
                }
                None => {}
            }
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::Str;

    use super::*;

    fn key(name: &str) -> TimerKey {
        TimerKey::Join {
            group: Str::from(name),
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn a_timer_pushed_back_keeps_its_place_until_then() {
        let mut timers = Timers::default();
        assert!(timers.set(key("a"), at(10)));
        assert!(
            !timers.set(key("a"), at(20)),
            "nobody has to be woken for a later deadline"
        );
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.expired(at(10)), None);
        assert_eq!(timers.next(), Some(at(20)));
        assert_eq!(timers.expired(at(19)), None);
        assert_eq!(timers.expired(at(20)), Some(key("a")));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn an_earlier_deadline_moves_the_timer_forward() {
        let mut timers = Timers::default();
        timers.set(key("a"), at(20));
        assert!(timers.set(key("a"), at(5)));
        assert!(!timers.set(key("b"), at(6)));
        assert_eq!(timers.expired(at(7)), Some(key("a")));
        assert_eq!(timers.expired(at(7)), Some(key("b")));
        assert_eq!(timers.expired(at(30)), None, "the old place of `a` is gone");
    }

    #[test]
    fn a_cancelled_timer_is_gone() {
        let mut timers = Timers::default();
        timers.set(key("a"), at(1));
        timers.set(key("a"), at(3));
        timers.cancel(&key("a"));
        assert_eq!(timers.next(), None);
        assert_eq!(timers.expired(at(9)), None);
    }
}
