//! The simulated network, and how it fails.
//!
//! # The model
//! Every node has one address (`10.0.x.y`) and a loopback of its own. A connection is two streams
//! of bytes as TCP promises them: in order, each byte once, or the connection fails. So a lost
//! packet is not seen as such, only as time:
//!
//! - **Delay.** What is sent is cut into segments of seeded sizes; each takes a seeded time from
//!   the range of its link (loopback or between nodes), and none overtakes another.
//! - **Back-pressure.** At most [`WINDOW`] bytes are under way or unread per direction; a sender
//!   waits for the reader beyond that.
//! - **Partition**, of both directions or one. Segments do not arrive; they are tried again after
//!   200 ms, then twice that and so on up to 3 s, and get through once the partition has healed. A segment
//!   that fails for [`NetworkFaults::give_up`] fails its sender with ETIMEDOUT; the other end is told
//!   nothing. Connecting retries in the same way.
//! - **Reset.** Both ends get ECONNRESET at once: for all connections of two nodes, or by chance per
//!   segment ([`NetworkFaults::reset_per_million`]). What had arrived can still be read.
//! - **Half-open.** [`Network::lose_connections`] has the way between two nodes forget the
//!   connections that exist, as a firewall does: nothing arrives, nobody is told, new connections
//!   work. A node that loses power is the other kind: its ends vanish without a word, and what is
//!   sent to them is retried until the node is back, which answers with a reset.
//! - **A process that dies** (killed, not the machine): its sockets are closed by its kernel; ends with
//!   unread bytes send a reset, others an ordinary end of stream.
//!
//! Not modelled: bandwidth, reordering (TCP hides it), corrupt bytes (its checksum hides most), the
//! delay of acknowledgements and resets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use super::NodeId;
use super::connection::Connection;
use super::random::Random;
use super::shared::Shared;

/// Bytes that may be under way or unread in one direction of a connection.
pub const WINDOW: usize = 256 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: usize = 1024;
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(3);

/// What the network does by itself, see the module.
#[derive(Clone, Debug)]
pub struct NetworkFaults {
    /// One way within a node.
    pub loopback_delay: RangeInclusive<Duration>,
    /// One way between two nodes.
    pub delay: RangeInclusive<Duration>,
    /// Segments that take `slow_delay` more, in a million.
    pub slow_per_million: u32,
    pub slow_delay: Duration,
    /// Segments at which the connection is reset, in a million.
    pub reset_per_million: u32,
    /// How long a segment, or a connection attempt, is retried.
    pub give_up: Duration,
}

impl Default for NetworkFaults {
    fn default() -> Self {
        Self {
            loopback_delay: Duration::from_micros(5)..=Duration::from_micros(40),
            delay: Duration::from_micros(50)..=Duration::from_micros(500),
            slow_per_million: 0,
            slow_delay: Duration::from_millis(200),
            reset_per_million: 0,
            give_up: Duration::from_secs(30),
        }
    }
}

pub(crate) struct Net {
    pub(super) state: RefCell<State>,
    pub(super) random: Random,
}

pub(super) struct State {
    pub(super) faults: NetworkFaults,
    /// Ordered pairs of nodes between which nothing arrives.
    blocked: BTreeSet<(NodeId, NodeId)>,
    pub(super) hosts: Vec<Host>,
    pub(super) connections: BTreeMap<u64, Connection>,
    next_number: u64,
}

pub(super) struct Host {
    pub(super) address: IpAddr,
    /// Has power.
    pub(super) up: bool,
    next_port: u16,
    pub(super) listeners: BTreeMap<u64, Listening>,
}

pub(super) struct Listening {
    address: SocketAddr,
    /// The number of the connection, and who called.
    pub(super) queue: VecDeque<(u64, SocketAddr)>,
    pub(super) waker: Option<Waker>,
}

/// What became of one attempt to connect, when it arrived.
pub(super) enum Attempt {
    Connected {
        number: u64,
        local: SocketAddr,
    },
    /// Nobody answers.
    Silence,
    Refused(i32),
}

impl Net {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: RefCell::new(State {
                faults: NetworkFaults::default(),
                blocked: BTreeSet::new(),
                hosts: Vec::new(),
                connections: BTreeMap::new(),
                next_number: 0,
            }),
            random: Random::new(seed, 2),
        }
    }

    pub(super) fn add_host(&self) -> IpAddr {
        let mut state = self.state.borrow_mut();
        let [high, low] = u16::try_from(state.hosts.len() + 1)
            .expect("fewer than 65535 nodes")
            .to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, high, low));
        state.hosts.push(Host {
            address,
            up: true,
            next_port: 40_000,
            listeners: BTreeMap::new(),
        });
        address
    }

    pub(super) fn bind(&self, node: NodeId, address: SocketAddr) -> io::Result<(u64, SocketAddr)> {
        let mut state = self.state.borrow_mut();
        let number = state.number();
        let host = &mut state.hosts[node.index()];
        if !host.owns(address.ip()) {
            return Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL));
        }
        let mut address = address;
        if address.port() == 0 {
            address.set_port(host.free_port());
        } else if host
            .listeners
            .values()
            .any(|other| other.clashes_with(address))
        {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        let listening = Listening {
            address,
            queue: VecDeque::new(),
            waker: None,
        };
        host.listeners.insert(number, listening);
        Ok((number, address))
    }

    /// Closes a listener; connections that nobody has accepted are reset.
    pub(super) fn unbind(&self, shared: &Rc<Shared>, node: NodeId, number: u64) {
        let removed = {
            let mut state = self.state.borrow_mut();
            state.hosts[node.index()].listeners.remove(&number)
        };
        let Some(listening) = removed else { return };
        for (connection, _) in listening.queue {
            self.close(shared, connection, 1);
        }
    }

    /// How long one segment takes; loopback when both are the same node.
    pub(super) fn delay(&self, faults: &NetworkFaults, from: NodeId, to: NodeId) -> Duration {
        let range = if from == to {
            &faults.loopback_delay
        } else {
            &faults.delay
        };
        let mut delay = self.random.span(range);
        if self.random.chance(faults.slow_per_million) {
            delay += faults.slow_delay;
        }
        delay
    }

    /// An attempt to connect has travelled its way to `target`.
    pub(super) fn arrive(&self, from: NodeId, target: SocketAddr) -> Attempt {
        let mut state = self.state.borrow_mut();
        let Some(to) = state.find(from, target.ip()) else {
            return Attempt::Refused(libc::EHOSTUNREACH);
        };
        if state.is_blocked(from, to) || state.is_blocked(to, from) {
            return Attempt::Silence;
        }
        let number = state.number();
        let host = &mut state.hosts[from.index()];
        let own = if target.ip().is_loopback() || target.ip().is_unspecified() {
            target.ip()
        } else {
            host.address
        };
        let local = SocketAddr::new(own, host.free_port());
        let host = &mut state.hosts[to.index()];
        let listening = host
            .listeners
            .values_mut()
            .find(|listening| listening.takes(target));
        let Some(listening) = listening else {
            return Attempt::Refused(libc::ECONNREFUSED);
        };
        if listening.queue.len() >= BACKLOG {
            return Attempt::Silence;
        }
        listening.queue.push_back((number, local));
        let waker = listening.waker.take();
        let connection = Connection::new([(from, local), (to, target)]);
        state.connections.insert(number, connection);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Attempt::Connected { number, local }
    }

    /// The node's power fails: its ends of connections vanish, and nobody is told.
    pub(super) fn power_off(&self, node: NodeId) {
        let mut state = self.state.borrow_mut();
        let host = &mut state.hosts[node.index()];
        host.up = false;
        let listeners = std::mem::take(&mut host.listeners);
        let mut wakers = Vec::new();
        state.connections.retain(|_, connection| {
            connection.vanish(node, &mut wakers);
            !connection.is_over()
        });
        drop(state);
        drop((listeners, wakers));
    }

    pub(super) fn power_on(&self, node: NodeId) {
        self.state.borrow_mut().hosts[node.index()].up = true;
    }
}

/// The wait before try number `tries + 1`.
pub(super) fn retry_after(tries: u32) -> Duration {
    FIRST_RETRY
        .saturating_mul(1u32 << tries.min(8))
        .min(LAST_RETRY)
}

impl State {
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// The node that `address` names, seen from `from`.
    pub(super) fn find(&self, from: NodeId, address: IpAddr) -> Option<NodeId> {
        if address.is_loopback() || address.is_unspecified() {
            return Some(from);
        }
        let index = self.hosts.iter().position(|host| host.address == address)?;
        u16::try_from(index).ok().map(NodeId)
    }

    /// Whether a segment from one to the other would not arrive now.
    pub(super) fn is_blocked(&self, from: NodeId, to: NodeId) -> bool {
        self.blocked.contains(&(from, to)) || !self.hosts[to.index()].up
    }
}

impl Host {
    fn owns(&self, address: IpAddr) -> bool {
        address.is_loopback() || address.is_unspecified() || address == self.address
    }

    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { 40_000 } else { port + 1 };
            let taken = |listening: &Listening| listening.address.port() == port;
            if !self.listeners.values().any(taken) {
                return port;
            }
        }
    }
}

impl Listening {
    fn clashes_with(&self, other: SocketAddr) -> bool {
        let (a, b) = (self.address.ip(), other.ip());
        self.address.port() == other.port()
            && (a == b
                || (a.is_ipv4() == b.is_ipv4() && (a.is_unspecified() || b.is_unspecified())))
    }

    fn takes(&self, target: SocketAddr) -> bool {
        let (own, asked) = (self.address.ip(), target.ip());
        self.address.port() == target.port()
            && own.is_ipv4() == asked.is_ipv4()
            && (own == asked || own.is_unspecified() || asked.is_unspecified())
    }
}

/// Switches of the world's network, from [`World::network`](super::World::network).
#[derive(Clone)]
pub struct Network(pub(super) Rc<Shared>);

impl Network {
    /// Changes what the network does by itself, from the next segment on.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.0.net.state.borrow_mut().faults = faults;
    }

    pub fn faults(&self) -> NetworkFaults {
        self.0.net.state.borrow().faults.clone()
    }

    /// Lets nothing through between any of `these` and any of `those`, in both directions.
    pub fn partition(&self, these: &[NodeId], those: &[NodeId]) {
        self.0
            .note(format_args!("partition {these:?} from {those:?}"));
        let mut state = self.0.net.state.borrow_mut();
        for a in these {
            for b in those {
                state.blocked.extend([(*a, *b), (*b, *a)]);
            }
        }
    }

    /// Lets nothing from one node arrive at the other; the other direction works.
    pub fn block(&self, from: NodeId, to: NodeId) {
        self.0.note(format_args!("block {from} to {to}"));
        self.0.net.state.borrow_mut().blocked.insert((from, to));
    }

    /// Ends every partition and block. What was held back arrives at its next retry.
    pub fn heal(&self) {
        self.0.note(format_args!("heal"));
        self.0.net.state.borrow_mut().blocked.clear();
    }

    /// Resets every connection between two nodes, at both ends.
    pub fn reset(&self, a: NodeId, b: NodeId) {
        self.0.note(format_args!("reset {a} and {b}"));
        let mut wakers = Vec::new();
        for connection in self.0.net.state.borrow_mut().connections.values_mut() {
            if connection.joins(a, b) {
                connection.fail(0, libc::ECONNRESET, &mut wakers);
                connection.fail(1, libc::ECONNRESET, &mut wakers);
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The way between two nodes forgets their connections: half-open from now on.
    pub fn lose_connections(&self, a: NodeId, b: NodeId) {
        self.0.note(format_args!("lose connections {a} and {b}"));
        for connection in self.0.net.state.borrow_mut().connections.values_mut() {
            if connection.joins(a, b) {
                connection.lose();
            }
        }
    }
}
