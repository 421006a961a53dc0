//! Who is connected to this core, and how many are connected to each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use protocol::ListenerKind;
use shards::CoreId;
use shards::io::TcpStream;
use shards::sync::Event;
use shards::time::Instant;

use super::metrics::{Software, SoftwareCounts};
use crate::config::ConnectionLimits;

/// Who is asking: what a connection knows of itself.
pub struct Caller {
    /// Address of the client.
    pub peer: SocketAddr,
    /// Index of the listener in the broker's list: names the advertised addresses to answer with.
    pub listener: usize,
    /// Whether the listener is a broker's or a controller's.
    pub kind: ListenerKind,
    /// What the client calls itself, once it has said so.
    software: RefCell<Option<Software>>,
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
            software: RefCell::default(),
            last_active,
            unanswered,
        }
    }

    /// The client says what it is (KIP-511).
    pub fn named(&self, name: &str, version: &str) {
        *self.software.borrow_mut() = Some((name.to_owned(), version.to_owned()));
    }

    /// What the client calls itself.
    pub fn software(&self) -> Option<Software> {
        self.software.borrow().clone()
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

    /// Requests whose answers have not left.
    pub fn unanswered(&self) -> usize {
        let open = self.open.borrow();
        open.values()
            .map(|(_, caller)| caller.unanswered.get())
            .sum()
    }

    /// How many there are of each kind of client.
    pub fn by_software(&self) -> BTreeMap<Software, u64> {
        let mut counts = SoftwareCounts::default();
        self.for_each(|_, caller| counts.add(caller.software(), 1));
        counts.into_all()
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

/// What every listener of the broker shares: how many connections each core has, and each address.
pub struct Door {
    by_core: RefCell<Vec<usize>>,
    /// Of the broker's listeners; those of the quorum are not limited.
    by_address: RefCell<BTreeMap<IpAddr, usize>>,
    limited: Cell<usize>,
    left: Event,
}

/// A place behind the [`Door`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the connection is served.
    pub core: CoreId,
    /// Whose it is, where that is limited.
    address: Option<IpAddr>,
}

impl Door {
    /// No connections yet.
    pub fn new(cores: usize) -> Self {
        Door {
            by_core: RefCell::new(vec![0; cores]),
            by_address: RefCell::default(),
            limited: Cell::new(0),
            left: Event::default(),
        }
    }

    /// Whether as many limited connections are open as there may be.
    pub fn is_full(&self, max: usize) -> bool {
        self.limited.get() >= max
    }

    /// Waits until fewer than `max` limited connections are open; `max` is asked again each time.
    pub async fn room(&self, max: impl Fn() -> usize) {
        while self.limited.get() >= max() {
            self.left.wait().await;
        }
    }

    /// Takes a place on the core with the fewest connections; none where the address has as many as
    /// it may. `kind` says whether there are limits.
    pub fn enter(
        &self,
        peer: IpAddr,
        kind: ListenerKind,
        limits: &ConnectionLimits,
    ) -> Option<Place> {
        let address = (kind == ListenerKind::Broker).then(|| peer.to_canonical());
        if let Some(address) = address {
            let mut addresses = self.by_address.borrow_mut();
            let count = addresses.get(&address).copied().unwrap_or(0);
            if count >= limits.of(address) {
                return None;
            }
            addresses.insert(address, count + 1);
            self.limited.set(self.limited.get() + 1);
        }
        let mut counts = self.by_core.borrow_mut();
        let least = (0..counts.len())
            .min_by_key(|core| counts[*core])
            .unwrap_or(0);
        counts[least] += 1;
        let core = CoreId(u16::try_from(least).unwrap_or(0));
        Some(Place { core, address })
    }

    /// Gives the place back.
    pub fn leave(&self, place: Place) {
        let mut counts = self.by_core.borrow_mut();
        let count = &mut counts[place.core.index()];
        *count = count.saturating_sub(1);
        if let Some(address) = place.address {
            let mut addresses = self.by_address.borrow_mut();
            match addresses.get_mut(&address) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(addresses.remove(&address)),
            }
            self.limited.set(self.limited.get().saturating_sub(1));
            self.left.notify_all();
        }
    }
}
