//! Operations in flight. Each owns, in its slot, the memory and the descriptor that the kernel
//! uses, until its completion has been taken; a future that goes away leaves the slot behind.

use std::any::Any;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::squeue;
use slab::Slab;

use super::RingDriver;

/// What a completion brings that must not leak when nobody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOver {
    Nothing,
    /// A receive buffer of the pool.
    Buffer,
    /// A new descriptor.
    Descriptor,
}

/// Whether an operation whose future is dropped is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// It may wait for ever (sockets).
    Cancel,
    /// It ends by itself, and cancelling might undo half of it (files).
    LetEnd,
}

enum State {
    Waiting(Option<Waker>),
    Done(i32, u32),
    Forgotten,
}

struct Slot {
    generation: u32,
    state: State,
    held: Box<dyn Any>,
    left_over: LeftOver,
    on_drop: OnDrop,
}

#[derive(Default)]
pub(super) struct Ops {
    slots: Slab<Slot>,
    next_generation: u32,
}

fn split(key: u64) -> (u32, usize) {
    ((key >> 32) as u32, (key & u64::from(u32::MAX)) as usize)
}

impl Ops {
    fn insert(&mut self, held: Box<dyn Any>, left_over: LeftOver, on_drop: OnDrop) -> u64 {
        // Stays below 2^31, so that no key is one of the driver's own.
        let generation = self.next_generation;
        self.next_generation = (generation + 1) & (u32::MAX >> 1);
        let state = State::Waiting(None);
        let index = self.slots.insert(Slot {
            generation,
            state,
            held,
            left_over,
            on_drop,
        });
        u64::from(generation) << 32 | index as u64
    }

    fn get(&mut self, key: u64) -> Option<&mut Slot> {
        let (generation, index) = split(key);
        self.slots
            .get_mut(index)
            .filter(|slot| slot.generation == generation)
    }

    /// Files a completion; gives back what a forgotten operation held.
    pub(super) fn complete(
        &mut self,
        key: u64,
        result: i32,
        flags: u32,
    ) -> Option<(Box<dyn Any>, LeftOver)> {
        let slot = self
            .get(key)
            .expect("an operation keeps its slot until it completes");
        match std::mem::replace(&mut slot.state, State::Done(result, flags)) {
            State::Waiting(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                None
            }
            State::Forgotten => {
                let slot = self.slots.remove(split(key).1);
                Some((slot.held, slot.left_over))
            }
            State::Done(..) => unreachable!("an operation completes once"),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn cancellable(&self) -> Vec<u64> {
        self.slots
            .iter()
            .filter(|(_, slot)| slot.on_drop == OnDrop::Cancel)
            .map(|(index, slot)| u64::from(slot.generation) << 32 | index as u64)
            .collect()
    }

    /// At shutdown: nobody will ask for results any more.
    pub(super) fn forget_all(&mut self) {
        for (_, slot) in &mut self.slots {
            if matches!(slot.state, State::Waiting(_)) {
                slot.state = State::Forgotten;
            }
        }
    }

    pub(super) fn sweep_done(&mut self) {
        self.slots
            .retain(|_, slot| !matches!(slot.state, State::Done(..)));
    }

    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.slots));
    }
}

/// The result of a completion: what the system call would have returned, and its flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    result: i32,
    pub(crate) flags: u32,
}

impl Completion {
    pub(crate) fn value(self) -> io::Result<usize> {
        usize::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(-self.result))
    }

    pub(crate) fn errno(self) -> i32 {
        if self.result < 0 { -self.result } else { 0 }
    }
}

/// An operation in flight that holds an `H`. Await it for its result and the `H`. Dropping it
/// forgets the result; the `H` stays where it is until the kernel has let go of it.
pub(crate) struct Op<H: 'static> {
    driver: Rc<RingDriver>,
    key: u64,
    taken: bool,
    kind: PhantomData<fn() -> H>,
}

impl<H: 'static> Op<H> {
    /// Queues the operation that `build` makes. What its entry points to must be owned by
    /// `held`, which does not move any more, or be static.
    pub(crate) fn submit(
        driver: &Rc<RingDriver>,
        mut held: Box<H>,
        left_over: LeftOver,
        on_drop: OnDrop,
        build: impl FnOnce(&mut H) -> squeue::Entry,
    ) -> Self {
        let entry = build(&mut held);
        let key = driver.ops.borrow_mut().insert(held, left_over, on_drop);
        driver.push(&entry.user_data(key));
        Self {
            driver: Rc::clone(driver),
            key,
            taken: false,
            kind: PhantomData,
        }
    }

    /// Asks the kernel to end it soon; it still completes, in one way or the other.
    pub(crate) fn cancel(&self) {
        self.driver.cancel(self.key);
    }

    /// Like `Future::poll`; must not be called again once ready.
    pub(crate) fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<(Completion, Box<H>)> {
        let mut ops = self.driver.ops.borrow_mut();
        let slot = ops
            .get(self.key)
            .expect("an operation keeps its slot until it is taken");
        if let State::Done(result, flags) = slot.state {
            let slot = ops.slots.remove(split(self.key).1);
            self.taken = true;
            let held = slot
                .held
                .downcast::<H>()
                .expect("the slot holds what was put in");
            return Poll::Ready((Completion { result, flags }, held));
        }
        slot.state = State::Waiting(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl<H: 'static> Future for Op<H> {
    type Output = (Completion, Box<H>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_done(context)
    }
}

impl<H: 'static> Drop for Op<H> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let done = {
            let mut ops = self.driver.ops.borrow_mut();
            let Some(slot) = ops.get(self.key) else {
                return;
            };
            match std::mem::replace(&mut slot.state, State::Forgotten) {
                State::Done(result, flags) => Some((result, flags)),
                State::Waiting(waker) => {
                    let cancel = slot.on_drop == OnDrop::Cancel;
                    drop(ops);
                    drop(waker);
                    if cancel {
                        self.cancel();
                    }
                    None
                }
                State::Forgotten => None,
            }
        };
        if let Some((result, flags)) = done {
            self.driver.complete(self.key, result, flags);
        }
    }
}
