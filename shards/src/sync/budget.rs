use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Waiters;

struct State {
    capacity: u64,
    free: u64,
    waiters: Waiters,
}

/// A bounded number of bytes to hand out; first come, first served, so that a large request is
/// not starved by small ones.
#[derive(Clone)]
pub struct ByteBudget(Rc<RefCell<State>>);

impl ByteBudget {
    pub fn new(capacity: u64) -> Self {
        let waiters = Waiters::default();
        Self(Rc::new(RefCell::new(State {
            capacity,
            free: capacity,
            waiters,
        })))
    }

    pub fn capacity(&self) -> u64 {
        self.0.borrow().capacity
    }

    pub fn in_use(&self) -> u64 {
        let state = self.0.borrow();
        state.capacity - state.free
    }

    /// Waits until `bytes` are free. More than the whole budget is granted as the whole budget:
    /// such a request runs alone instead of never.
    pub fn reserve(&self, bytes: u64) -> Reserve {
        Reserve {
            budget: self.clone(),
            bytes,
            number: None,
        }
    }

    /// Takes `bytes` when they are free and nobody waits before.
    pub fn try_reserve(&self, bytes: u64) -> Option<Permit> {
        self.take(bytes, None)
    }

    fn take(&self, bytes: u64, number: Option<u64>) -> Option<Permit> {
        let mut state = self.0.borrow_mut();
        let bytes = bytes.min(state.capacity);
        let in_turn = match state.waiters.first() {
            None => true,
            first => first == number,
        };
        if !in_turn || state.free < bytes {
            return None;
        }
        state.free -= bytes;
        Some(Permit {
            budget: self.clone(),
            bytes,
        })
    }

    /// Lets the first waiter try; each that succeeds calls this again.
    fn wake_first(&self) {
        let waker = self.0.borrow().waiters.first_waker();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn leave(&self, number: u64) {
        let waker = self.0.borrow_mut().waiters.remove(number);
        drop(waker);
        self.wake_first();
    }
}

/// See [`ByteBudget::reserve`].
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve {
    budget: ByteBudget,
    bytes: u64,
    number: Option<u64>,
}

impl Future for Reserve {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        if let Some(permit) = self.budget.take(self.bytes, self.number) {
            if let Some(number) = self.number.take() {
                self.budget.leave(number);
            }
            return Poll::Ready(permit);
        }
        let number = self
            .budget
            .0
            .borrow_mut()
            .waiters
            .wait(self.number, context.waker());
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.budget.leave(number);
        }
    }
}

/// Bytes taken from a budget; dropping it gives them back.
pub struct Permit {
    budget: ByteBudget,
    bytes: u64,
}

impl Permit {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back all but `bytes`, when they turn out to be enough.
    pub fn shrink_to(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.budget.0.borrow_mut().free += self.bytes - bytes;
            self.bytes = bytes;
            self.budget.wake_first();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.0.borrow_mut().free += self.bytes;
        self.budget.wake_first();
    }
}
