//! Answers that come from another thread: the blocking pool's results and other cores' replies.
//!
//! The asking future holds a slot here; the other side sends back the slot's key and a boxed
//! value through a queue, and the owning core files the value and wakes the future. Nothing but
//! the value itself is shared between threads.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

enum Slot {
    Waiting(Option<Waker>),
    Done(Box<dyn Any + Send>),
}

/// The table of one core's outstanding questions to other threads.
#[derive(Default)]
pub(crate) struct Pending {
    slots: RefCell<Slab<(u32, Slot)>>,
    next_generation: Cell<u32>,
}

impl Pending {
    /// A new question; the answer's type is checked when it is taken.
    pub(crate) fn ask<T: 'static>(self: &Rc<Self>) -> PendingValue<T> {
        let generation = self.next_generation.get();
        self.next_generation.set(generation.wrapping_add(1));
        let index = self
            .slots
            .borrow_mut()
            .insert((generation, Slot::Waiting(None)));
        let index = u32::try_from(index).expect("fewer than 2^32 questions are outstanding");
        let key = u64::from(generation) << 32 | u64::from(index);
        PendingValue {
            table: Rc::clone(self),
            key,
            kind: PhantomData,
        }
    }

    /// Files an answer. One whose asker has gone away is dropped.
    pub(crate) fn answer(&self, key: u64, value: Box<dyn Any + Send>) {
        let (generation, index) = split(key);
        let waker = {
            let mut slots = self.slots.borrow_mut();
            match slots.get_mut(index) {
                Some((current, slot)) if *current == generation => {
                    match std::mem::replace(slot, Slot::Done(value)) {
                        Slot::Waiting(waker) => waker,
                        Slot::Done(_) => None,
                    }
                }
                _ => None,
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn split(key: u64) -> (u32, usize) {
    ((key >> 32) as u32, (key & u64::from(u32::MAX)) as usize)
}

/// Ready once the other thread has answered. Dropping it forgets the question.
pub(crate) struct PendingValue<T> {
    table: Rc<Pending>,
    key: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> PendingValue<T> {
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

impl<T: 'static> Future for PendingValue<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let (_, index) = split(self.key);
        let mut slots = self.table.slots.borrow_mut();
        let (_, slot) = slots
            .get_mut(index)
            .expect("a question keeps its slot until dropped");
        match std::mem::replace(slot, Slot::Waiting(Some(context.waker().clone()))) {
            Slot::Waiting(_) => Poll::Pending,
            Slot::Done(value) => {
                let value = value
                    .downcast::<T>()
                    .expect("the answer has the type asked for");
                Poll::Ready(*value)
            }
        }
    }
}

impl<T> Drop for PendingValue<T> {
    fn drop(&mut self) {
        let (_, index) = split(self.key);
        let removed = self.table.slots.borrow_mut().try_remove(index);
        drop(removed);
    }
}
