//! The answers of one connection, in request order, whatever order they become ready in.
//!
//! A client that asks on and takes no answers is not read any further: answers wait here in a number
//! and in bytes that are both bounded.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use shards::sync::{Event, Permit};

use crate::outgoing::Answer;
use crate::shard::Asked;

struct Slot {
    asked: Rc<Asked>,
    answer: Option<Answer>,
    /// The request's memory, given back when its answer has left.
    _permit: Permit,
}

/// Answers that may wait before the next request is read.
const ANSWERS_MAX: usize = 128;
/// Bytes of answers that may wait, or be on their way out, before the next request is read.
const BYTES_MAX: usize = 1 << 20;

/// The queue between the handlers and the writer of a connection.
#[derive(Default)]
pub struct Outbox {
    slots: RefCell<VecDeque<Slot>>,
    /// Number of the slot at the front.
    front: Cell<u64>,
    unanswered: Cell<usize>,
    /// Bytes of the answers that are ready and have not left.
    unsent: Cell<usize>,
    closed: Cell<bool>,
    changed: Event,
}

/// An answer whose turn has come, and what it answers.
pub struct Ready {
    /// The request.
    pub asked: Rc<Asked>,
    /// Its answer.
    pub answer: Answer,
}

/// A place in the order, to be filled once.
pub struct Place {
    outbox: Rc<Outbox>,
    number: u64,
    filled: bool,
}

impl Outbox {
    /// Takes the next place in the order; `permit` is held until the answer has left.
    pub fn place(self: &Rc<Self>, asked: Rc<Asked>, permit: Permit) -> Place {
        let mut slots = self.slots.borrow_mut();
        let number = self.front.get() + slots.len() as u64;
        slots.push_back(Slot {
            asked,
            answer: None,
            _permit: permit,
        });
        self.unanswered.set(self.unanswered.get() + 1);
        Place {
            outbox: self.clone(),
            number,
            filled: false,
        }
    }

    /// No further requests come: the writer ends after what is queued.
    pub fn close(&self) {
        self.closed.set(true);
        self.changed.notify_all();
    }

    /// Drops everything queued, for a connection whose socket is gone; how many requests that were.
    pub fn abandon(&self) -> usize {
        self.closed.set(true);
        let dropped = std::mem::take(&mut *self.slots.borrow_mut());
        self.front.set(self.front.get() + dropped.len() as u64);
        self.changed.notify_all();
        dropped.len()
    }

    /// Whether a request is unanswered.
    pub fn is_busy(&self) -> bool {
        self.unanswered.get() > 0
    }

    /// Waits until at most `count` requests are unanswered, or the connection is closed.
    pub async fn at_most_unanswered(&self, count: usize) {
        while self.unanswered.get() > count && !self.closed.get() {
            self.changed.wait().await;
        }
    }

    /// Waits until there is room for another answer, or the connection is closed.
    pub async fn room(&self) {
        while self.is_full() && !self.closed.get() {
            self.changed.wait().await;
        }
    }

    /// Whether no further request may be read.
    pub fn is_full(&self) -> bool {
        self.slots.borrow().len() >= ANSWERS_MAX || self.unsent.get() >= BYTES_MAX
    }

    /// Those bytes of answers have left.
    pub fn sent(&self, bytes: usize) {
        self.unsent.set(self.unsent.get().saturating_sub(bytes));
        self.changed.notify_all();
    }

    /// The answers that are ready at the front; empty when the outbox is closed and done. What
    /// becomes of their bytes is told to [`Outbox::sent`].
    pub async fn ready(&self) -> Vec<Ready> {
        loop {
            let answers = self.take_ready();
            if !answers.is_empty() || (self.closed.get() && self.slots.borrow().is_empty()) {
                return answers;
            }
            self.changed.wait().await;
        }
    }

    fn take_ready(&self) -> Vec<Ready> {
        let mut slots = self.slots.borrow_mut();
        let mut answers = Vec::new();
        while slots.front().is_some_and(|slot| slot.answer.is_some()) {
            let Some(Slot {
                asked,
                answer: Some(answer),
                ..
            }) = slots.pop_front()
            else {
                break;
            };
            answers.push(Ready { asked, answer });
            self.front.set(self.front.get() + 1);
        }
        if !answers.is_empty() {
            self.changed.notify_all();
        }
        answers
    }

    fn fill(&self, number: u64, answer: Answer) {
        self.unanswered.set(self.unanswered.get() - 1);
        let index = number
            .checked_sub(self.front.get())
            .and_then(|i| usize::try_from(i).ok());
        if let Some(index) = index
            && let Some(slot) = self.slots.borrow_mut().get_mut(index)
        {
            self.unsent.set(self.unsent.get() + answer.len());
            slot.answer = Some(answer);
        }
        self.changed.notify_all();
    }
}

impl Place {
    /// Fills the place.
    pub fn fill(mut self, answer: Answer) {
        self.filled = true;
        self.outbox.fill(self.number, answer);
    }
}

impl Drop for Place {
    /// A handler that ended without an answer closes the connection instead of stalling it.
    fn drop(&mut self) {
        if !self.filled {
            self.outbox.fill(self.number, Answer::Close);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use protocol::ApiKey;
    use protocol::frame::RequestHeader;
    use shards::sync::ByteBudget;
    use shards::time::Instant;

    use crate::outgoing::{Outgoing, Part};
    use crate::shard::RequestMetrics;

    fn asked() -> Rc<Asked> {
        let header = RequestHeader {
            api: ApiKey::Metadata,
            version: 0,
            correlation_id: 0,
            client_id: None,
        };
        let metrics = RequestMetrics::default();
        Asked::new(&metrics, header, 0, Instant::default())
    }

    fn numbered(number: u8) -> Answer {
        Answer::Send(Outgoing::new(vec![Part::Memory(Bytes::from(
            vec![number; usize::from(number)],
        ))]))
    }

    fn sizes(answers: &[Ready]) -> Vec<usize> {
        answers
            .iter()
            .map(|ready| match &ready.answer {
                Answer::Close => usize::MAX,
                answer => answer.len(),
            })
            .collect()
    }

    #[test]
    fn answers_leave_in_request_order() {
        let budget = ByteBudget::new(100);
        let outbox = Rc::new(Outbox::default());
        let permit = || budget.try_reserve(1).unwrap();
        let places = [
            outbox.place(asked(), permit()),
            outbox.place(asked(), permit()),
            outbox.place(asked(), permit()),
        ];
        let [first, second, third] = places;
        second.fill(numbered(2));
        assert!(outbox.take_ready().is_empty());
        first.fill(numbered(1));
        assert_eq!(sizes(&outbox.take_ready()), [1, 2]);
        assert_eq!(outbox.unanswered.get(), 1);
        third.fill(numbered(3));
        assert_eq!(sizes(&outbox.take_ready()), [3]);
        assert_eq!(outbox.slots.borrow().len(), 0);
        assert_eq!(budget.in_use(), 0, "memory is given back with the answer");
    }

    #[test]
    fn answers_that_do_not_leave_stop_the_reading() {
        let budget = ByteBudget::new(100);
        let outbox = Rc::new(Outbox::default());
        let large = || {
            let bytes = Bytes::from(vec![0; BYTES_MAX]);
            Answer::Send(Outgoing::new(vec![Part::Memory(bytes)]))
        };
        let first = outbox.place(asked(), budget.try_reserve(1).unwrap());
        let second = outbox.place(asked(), budget.try_reserve(1).unwrap());
        assert!(!outbox.is_full());
        second.fill(large());
        assert!(outbox.is_full());
        first.fill(numbered(1));
        assert_eq!(sizes(&outbox.take_ready()), [1, BYTES_MAX]);
        assert!(outbox.is_full(), "they are being sent");
        outbox.sent(1 + BYTES_MAX);
        assert!(!outbox.is_full());
        let waiting: Vec<_> = (0..ANSWERS_MAX)
            .map(|_| outbox.place(asked(), budget.try_reserve(0).unwrap()))
            .collect();
        assert!(outbox.is_full());
        drop(waiting);
    }

    #[test]
    fn a_lost_handler_closes_the_connection() {
        let budget = ByteBudget::new(100);
        let outbox = Rc::new(Outbox::default());
        drop(outbox.place(asked(), budget.try_reserve(1).unwrap()));
        assert_eq!(sizes(&outbox.take_ready()), [usize::MAX]);
    }

    #[test]
    fn an_answer_after_the_end_is_dropped() {
        let budget = ByteBudget::new(100);
        let outbox = Rc::new(Outbox::default());
        let late = outbox.place(asked(), budget.try_reserve(1).unwrap());
        outbox.abandon();
        late.fill(numbered(1));
        assert!(outbox.take_ready().is_empty());
        assert_eq!(outbox.unanswered.get(), 0);
    }
}
