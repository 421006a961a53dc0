//! Long polls that wait for a partition to move.
//!
//! A fetch that found too little leaves a one-shot interest with the core that owns the partition.
//! An append, a leadership change or a failure fires it; the fetch then reads again. The byte goal
//! and the deadline stay with the fetch, because they span partitions of several cores.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use planted::Bug;
use shards::sync::Event;

/// Names a waiting fetch across cores: the core it came from, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitId {
    /// The core that answers the client.
    pub home: u16,
    /// A number that this core gives once.
    pub number: u64,
}

/// A waiting fetch, as the partitions it waits for see it.
#[derive(Default)]
pub struct Waiter {
    fired: Cell<bool>,
    event: Event,
}

impl Waiter {
    /// Ends the wait.
    pub fn fire(&self) {
        self.fired.set(true);
        self.event.notify_all();
    }

    /// Waits until somebody fires.
    pub async fn wait(&self) {
        while !self.fired.get() {
            self.event.wait().await;
        }
    }
}

/// The fetches that wait for one partition.
#[derive(Default)]
pub struct WaitList {
    waiters: RefCell<Vec<Rc<Waiter>>>,
}

impl WaitList {
    /// Adds a waiter until it is fired or removed.
    pub fn add(&self, waiter: &Rc<Waiter>) {
        self.waiters.borrow_mut().push(waiter.clone());
    }

    /// Forgets a waiter.
    pub fn remove(&self, waiter: &Rc<Waiter>) {
        self.waiters
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, waiter));
    }

    /// Fires every waiter: they read again.
    pub fn fire_all(&self) {
        for waiter in std::mem::take(&mut *self.waiters.borrow_mut()) {
            waiter.fire();
            if planted::here(Bug::LostWakeUp) {
                return;
            }
        }
    }

    /// Waiters now.
    pub fn len(&self) -> usize {
        self.waiters.borrow().len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.borrow().is_empty()
    }
}

/// The waiting fetches of one core by name, so that another core can call them off.
#[derive(Default)]
pub struct WaitersByName {
    waiters: RefCell<HashMap<WaitId, Rc<Waiter>>>,
}

impl WaitersByName {
    /// Registers a waiter under its name.
    pub fn insert(&self, id: WaitId, waiter: Rc<Waiter>) {
        self.waiters.borrow_mut().insert(id, waiter);
    }

    /// Forgets the name.
    pub fn remove(&self, id: WaitId) {
        self.waiters.borrow_mut().remove(&id);
    }

    /// Ends the wait of that name, if it still waits.
    pub fn call_off(&self, id: WaitId) {
        let waiter = self.waiters.borrow().get(&id).cloned();
        if let Some(waiter) = waiter {
            waiter.fire();
        }
    }

    /// Fetches parked on this core.
    pub fn len(&self) -> usize {
        self.waiters.borrow().len()
    }

    /// Whether none is parked.
    pub fn is_empty(&self) -> bool {
        self.waiters.borrow().is_empty()
    }
}
