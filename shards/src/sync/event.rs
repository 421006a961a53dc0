use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Waiters;

#[derive(Default)]
struct State {
    /// How often `notify_all` was called.
    epoch: Cell<u64>,
    waiters: RefCell<Waiters>,
}

/// Wakes everybody who waits. It has no memory: [`Event::wait`] is ready at the first
/// `notify_all` after `wait` was *called* (not polled), so "make the future, check the condition,
/// await the future" misses nothing.
#[derive(Clone, Default)]
pub struct Event(Rc<State>);

impl Event {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn notify_all(&self) {
        self.0.epoch.set(self.0.epoch.get() + 1);
        let wakers = self.0.waiters.borrow_mut().take_all();
        for waker in wakers {
            waker.wake();
        }
    }

    pub fn wait(&self) -> Wait {
        Wait {
            event: self.clone(),
            epoch: self.0.epoch.get(),
            number: None,
        }
    }
}

/// See [`Event::wait`].
#[must_use = "futures do nothing unless awaited"]
pub struct Wait {
    event: Event,
    epoch: u64,
    number: Option<u64>,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.event.0.epoch.get() != self.epoch {
            return Poll::Ready(());
        }
        let number = self
            .event
            .0
            .waiters
            .borrow_mut()
            .wait(self.number, context.waker());
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.event.0.waiters.borrow_mut().remove(number);
            drop(waker);
        }
    }
}
