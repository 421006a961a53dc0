use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Waker;

use super::Instant;

/// Names one armed timer: its deadline, and a number that makes equal deadlines distinct and
/// fires them in the order in which they were set.
pub(crate) type TimerKey = (Instant, u64);

/// The armed timers of one core, ordered by deadline.
#[derive(Default)]
pub(crate) struct Timers {
    armed: RefCell<BTreeMap<TimerKey, Waker>>,
    next_number: Cell<u64>,
}

impl Timers {
    pub(crate) fn arm(&self, at: Instant, waker: Waker) -> TimerKey {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        self.armed.borrow_mut().insert((at, number), waker);
        (at, number)
    }

    /// Replaces the waker of an armed timer; false when it has fired meanwhile.
    pub(crate) fn rewake(&self, key: TimerKey, waker: &Waker) -> bool {
        match self.armed.borrow_mut().get_mut(&key) {
            Some(armed) => {
                armed.clone_from(waker);
                true
            }
            None => false,
        }
    }

    pub(crate) fn disarm(&self, key: TimerKey) {
        let removed = self.armed.borrow_mut().remove(&key);
        drop(removed); // after the borrow: dropping a waker may drop a task's last reference
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.armed
            .borrow()
            .first_key_value()
            .map(|((at, _), _)| *at)
    }

    /// Wakes every timer due at `now`; returns how many.
    pub(crate) fn fire(&self, now: Instant) -> usize {
        let mut fired = 0;
        loop {
            let due = {
                let mut armed = self.armed.borrow_mut();
                match armed.first_entry() {
                    Some(entry) if entry.key().0 <= now => entry.remove(),
                    _ => return fired,
                }
            };
            due.wake();
            fired += 1;
        }
    }

    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.armed.borrow_mut());
        drop(all);
    }
}
