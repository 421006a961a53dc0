//! The driver of one simulated core: the world's clock, this node's disk, network and signals.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::NodeId;
use super::disk::Disk;
use super::shared::Shared;
use super::socket::SimListener;
use crate::backend::recv_pool::RecvPool;
use crate::metrics::Counters;
use crate::signals::Signal;
use crate::time::Instant;

/// Unix milliseconds at the clock's start: 1 January 2026.
const WALL_CLOCK_START: i64 = 1_767_225_600_000;

/// What the cores of one node share beside disk and network.
pub(super) struct Machine {
    pub(super) node: NodeId,
    pub(super) shared: Rc<Shared>,
    pub(super) disk: Disk,
    /// What the wall clock is off by.
    pub(super) wall_clock_offset: Cell<i64>,
    signal: Cell<Option<Signal>>,
    signal_waker: RefCell<Option<Waker>>,
}

impl Machine {
    pub(super) fn new(node: NodeId, shared: Rc<Shared>, disk: Disk) -> Rc<Self> {
        Rc::new(Self {
            node,
            shared,
            disk,
            wall_clock_offset: Cell::new(0),
            signal: Cell::new(None),
            signal_waker: RefCell::default(),
        })
    }

    pub(super) fn wall_clock_ms(&self) -> i64 {
        let passed = i64::try_from(self.shared.nanos() / 1_000_000).unwrap_or(i64::MAX);
        WALL_CLOCK_START
            .saturating_add(passed)
            .saturating_add(self.wall_clock_offset.get())
    }

    pub(super) fn send_signal(&self, signal: Signal) {
        self.signal.set(Some(signal));
        let waker = self.signal_waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A process that has ended takes its signals along.
    pub(super) fn forget_signals(&self) {
        self.signal.set(None);
        drop(self.signal_waker.borrow_mut().take());
    }
}

pub(crate) struct SimDriver {
    machine: Rc<Machine>,
    recv_pool: Rc<RecvPool>,
    counters: Rc<Counters>,
}

impl SimDriver {
    pub(super) fn new(
        machine: Rc<Machine>,
        recv_pool_bytes: usize,
        counters: Rc<Counters>,
    ) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            machine,
            recv_pool: RecvPool::listed(recv_pool_bytes, Rc::clone(&counters))?,
            counters,
        }))
    }

    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.machine.shared
    }

    pub(super) fn node(&self) -> NodeId {
        self.machine.node
    }

    pub(super) fn recv_pool(&self) -> &Rc<RecvPool> {
        &self.recv_pool
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.machine.disk
    }

    pub(crate) fn now(&self) -> Instant {
        self.machine.shared.look()
    }

    pub(crate) fn wall_clock_ms(&self) -> i64 {
        self.machine.wall_clock_ms()
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> io::Result<SimListener> {
        SimListener::bind(&self.machine.shared, self.machine.node, address)
    }

    pub(crate) async fn termination(&self) -> Signal {
        poll_fn(|context| match self.machine.signal.take() {
            Some(signal) => Poll::Ready(signal),
            None => {
                *self.machine.signal_waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}
