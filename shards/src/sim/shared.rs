//! What all nodes of one world share: the clock, what will happen when, and the trace.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::rc::Rc;

use super::net::Net;
use crate::time::Instant;

/// Something the world does by itself at an instant: bytes arrive, a retry is due.
type Event = Box<dyn FnOnce(&Rc<Shared>)>;

/// Each look at the clock takes this long, so that a loop that waits for the clock ends.
const LOOK: u64 = 100;

pub(crate) struct Shared {
    nanos: Cell<u64>,
    events: RefCell<BTreeMap<(u64, u64), Event>>,
    next_event: Cell<u64>,
    pub(super) trace: Trace,
    pub(super) net: Net,
}

impl Shared {
    pub(super) fn new(net: Net, kept: Kept) -> Rc<Self> {
        Rc::new(Self {
            nanos: Cell::new(1_000_000_000),
            events: RefCell::default(),
            next_event: Cell::new(0),
            trace: Trace::new(kept),
            net,
        })
    }

    /// The present, without taking time to look.
    pub(super) fn nanos(&self) -> u64 {
        self.nanos.get()
    }

    pub(super) fn look(&self) -> Instant {
        self.pass(LOOK);
        Instant::from_nanos(self.nanos.get())
    }

    pub(super) fn pass(&self, nanos: u64) {
        self.nanos.set(self.nanos.get().saturating_add(nanos));
    }

    /// Moves the clock forward to `nanos`; never back.
    pub(super) fn jump_to(&self, nanos: u64) {
        self.nanos.set(self.nanos.get().max(nanos));
    }

    pub(super) fn at(&self, nanos: u64, event: impl FnOnce(&Rc<Self>) + 'static) {
        let number = self.next_event.get();
        self.next_event.set(number + 1);
        self.events
            .borrow_mut()
            .insert((nanos, number), Box::new(event));
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        let events = self.events.borrow();
        events.first_key_value().map(|((nanos, _), _)| *nanos)
    }

    /// Does what is due.
    pub(super) fn run_events(self: &Rc<Self>) {
        loop {
            let due = {
                let mut events = self.events.borrow_mut();
                match events.first_entry() {
                    Some(entry) if entry.key().0 <= self.nanos() => entry.remove(),
                    _ => return,
                }
            };
            due(self);
        }
    }

    /// Writes one line of the trace.
    pub(super) fn note(&self, what: fmt::Arguments<'_>) {
        self.trace.note(self.nanos(), what);
    }
}

/// What a world keeps of what happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    Digest,
    Text,
}

/// What happened, one line each: its fingerprint, its text, or neither.
pub(super) struct Trace {
    kept: Kept,
    digest: Cell<u64>,
    lines: Cell<u64>,
    text: RefCell<String>,
}

impl Trace {
    fn new(kept: Kept) -> Self {
        Self {
            kept,
            // FNV-1a, 64 bits: its offset basis here and its prime below.
            digest: Cell::new(0xCBF2_9CE4_8422_2325),
            lines: Cell::new(0),
            text: RefCell::default(),
        }
    }

    fn note(&self, nanos: u64, what: fmt::Arguments<'_>) {
        if self.kept == Kept::Nothing {
            return;
        }
        let mut text = self.text.borrow_mut();
        let start = if self.kept == Kept::Text {
            text.len()
        } else {
            0
        };
        text.truncate(start);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{nanos} {what}");
        let mut digest = self.digest.get();
        for byte in text.as_bytes()[start..].iter() {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.digest.set(digest);
        self.lines.set(self.lines.get() + 1);
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest.get()
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines.get()
    }

    pub(super) fn text(&self) -> String {
        if self.kept == Kept::Text {
            self.text.borrow().clone()
        } else {
            String::new()
        }
    }
}
