//! What must hold, checked with every answer that a client gets.

mod groups;
mod logs;
mod topics;

use std::cell::{Cell, RefCell};

pub use logs::Expected;
pub use topics::Presence;

use groups::Groups;
use logs::Logs;
use topics::Topics;

/// What the clients together know of the broker, and the first thing that was wrong.
#[derive(Default)]
pub struct Model {
    logs: RefCell<Logs>,
    groups: RefCell<Groups>,
    topics: RefCell<Topics>,
    violation: RefCell<Option<String>>,
    /// How often data was lost that may be lost: answers from before say nothing about after.
    losses: Cell<u32>,
    /// How often the broker has started anew.
    restarts: Cell<u32>,
    /// Checks made, so that a run that checks nothing is seen.
    checks: Cell<u64>,
}

impl Model {
    /// Something is wrong with the broker. The first such finding ends the run.
    pub fn violation(&self, what: impl Into<String>) {
        self.violation
            .borrow_mut()
            .get_or_insert_with(|| what.into());
    }

    pub fn violated(&self) -> Option<String> {
        self.violation.borrow().clone()
    }

    pub fn is_violated(&self) -> bool {
        self.violation.borrow().is_some()
    }

    pub fn checks(&self) -> u64 {
        self.checks.get()
    }

    /// How often the power failed while acknowledged records may still have been in memory.
    pub fn losses(&self) -> u32 {
        self.losses.get()
    }

    /// How often the broker's process has ended.
    pub fn restarts(&self) -> u32 {
        self.restarts.get()
    }

    /// The power failed, and records that were not synced may be gone.
    pub fn lose_unsynced(&self) {
        self.losses.set(self.losses.get() + 1);
        self.logs.borrow_mut().lose_unsynced();
        self.groups.borrow_mut().lose_unsynced();
    }

    fn verdict(&self, result: Result<(), String>) {
        self.checks.set(self.checks.get() + 1);
        if let Err(what) = result {
            self.violation(what);
        }
    }
}
