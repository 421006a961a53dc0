//! A bounded queue between tasks of the same core: any number of senders, one receiver.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::Event;

struct State<T> {
    queue: RefCell<VecDeque<T>>,
    capacity: usize,
    senders: Cell<usize>,
    receiver_gone: Cell<bool>,
    receiver: RefCell<Option<Waker>>,
    /// There is room again, or the receiver has gone.
    room: Event,
}

/// A channel that holds at most `capacity` (at least 1) values.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(State {
        queue: RefCell::new(VecDeque::new()),
        capacity: capacity.max(1),
        senders: Cell::new(1),
        receiver_gone: Cell::new(false),
        receiver: RefCell::new(None),
        room: Event::new(),
    });
    (Sender(Rc::clone(&state)), Receiver(state))
}

pub struct Sender<T>(Rc<State<T>>);

/// Why [`Sender::try_send`] gave the value back.
#[derive(Debug, PartialEq, Eq)]
pub enum TrySendError<T> {
    Full(T),
    Closed(T),
}

impl<T> Sender<T> {
    /// Waits for room; gives the value back when the receiver has gone.
    pub async fn send(&self, value: T) -> Result<(), T> {
        let mut value = value;
        loop {
            let room = self.0.room.wait();
            value = match self.try_send(value) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(value)) => return Err(value),
                Err(TrySendError::Full(value)) => value,
            };
            room.await;
        }
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if self.0.receiver_gone.get() {
            return Err(TrySendError::Closed(value));
        }
        let mut queue = self.0.queue.borrow_mut();
        if queue.len() >= self.0.capacity {
            return Err(TrySendError::Full(value));
        }
        queue.push_back(value);
        drop(queue);
        self.0.wake_receiver();
        Ok(())
    }

    pub fn is_closed(&self) -> bool {
        self.0.receiver_gone.get()
    }
}

impl<T> State<T> {
    fn wake_receiver(&self) {
        let waker = self.receiver.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        Self(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        if self.0.senders.get() == 0 {
            self.0.wake_receiver();
        }
    }
}

pub struct Receiver<T>(Rc<State<T>>);

impl<T> Receiver<T> {
    /// The next value; `None` once the queue is empty and every sender has gone. Dropping the
    /// future loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| {
            if let Some(value) = self.try_recv() {
                return Poll::Ready(Some(value));
            }
            if self.0.senders.get() == 0 {
                return Poll::Ready(None);
            }
            *self.0.receiver.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub fn try_recv(&mut self) -> Option<T> {
        let value = self.0.queue.borrow_mut().pop_front()?;
        self.0.room.notify_all();
        Some(value)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.receiver_gone.set(true);
        let left = std::mem::take(&mut *self.0.queue.borrow_mut());
        drop(left);
        self.0.room.notify_all();
    }
}
