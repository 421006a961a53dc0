//! Who is connected to this core, and how many are connected to each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use protocol::ListenerKind;
use shards::CoreId;
use shards::io::TcpStream;
use shards::sync::Event;
use shards::time::Instant;

/// Who is asking: what a connection knows of itself.
pub struct Caller {
    /// Address of the client.
    pub peer: SocketAddr,
    /// Index of the listener in the broker's list: names the advertised addresses to answer with.
    pub listener: usize,
    /// Whether the listener is a broker's or a controller's.
    pub kind: ListenerKind,
    last_active: Cell<Instant>,
    unanswered: Cell<usize>,
}

impl Caller {
    /// A new connection.
    pub fn new(peer: SocketAddr, listener: usize, kind: ListenerKind, now: Instant) -> Self {
        let (last_active, unanswered) = (Cell::new(now), Cell::new(0));
        Caller {
            peer,
            listener,
            kind,
            last_active,
            unanswered,
        }
    }

    /// A request arrived.
    pub fn asked(&self, now: Instant) {
        self.last_active.set(now);
        self.unanswered.set(self.unanswered.get() + 1);
    }

    /// An answer left.
    pub fn answered(&self, now: Instant) {
        self.last_active.set(now);
        self.unanswered.set(self.unanswered.get().saturating_sub(1));
    }

    /// When the connection last carried something.
    pub fn last_active(&self) -> Instant {
        self.last_active.get()
    }

    /// Whether the client waits for nothing.
    pub fn is_idle(&self) -> bool {
        self.unanswered.get() == 0
    }
}

/// The open connections of one core.
#[derive(Default)]
pub struct Connections {
    open: RefCell<BTreeMap<u64, (TcpStream, Rc<Caller>)>>,
    next: Cell<u64>,
    closed: Event,
}

impl Connections {
    /// Adds a connection.
    pub fn add(&self, stream: TcpStream, caller: Rc<Caller>) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut().insert(number, (stream, caller));
        number
    }

    /// Takes it out.
    pub fn remove(&self, number: u64) {
        self.open.borrow_mut().remove(&number);
        self.closed.notify_all();
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Waits until all are closed.
    pub async fn all_closed(&self) {
        while !self.is_empty() {
            self.closed.wait().await;
        }
    }

    /// Calls `visit` for every connection.
    pub fn for_each(&self, mut visit: impl FnMut(&TcpStream, &Caller)) {
        for (stream, caller) in self.open.borrow().values() {
            visit(stream, caller);
        }
    }
}

/// What every listener of the broker shares: how many connections each core has.
pub struct Door {
    connections: RefCell<Vec<usize>>,
}

impl Door {
    /// No connections yet.
    pub fn new(cores: usize) -> Self {
        Door {
            connections: RefCell::new(vec![0; cores]),
        }
    }

    /// Takes a place on the core with the fewest connections.
    pub fn enter(&self) -> CoreId {
        let mut counts = self.connections.borrow_mut();
        let least = (0..counts.len())
            .min_by_key(|core| counts[*core])
            .unwrap_or(0);
        counts[least] += 1;
        CoreId(u16::try_from(least).unwrap_or(0))
    }

    /// Gives the place back.
    pub fn leave(&self, core: CoreId) {
        let mut counts = self.connections.borrow_mut();
        counts[core.index()] = counts[core.index()].saturating_sub(1);
    }
}
