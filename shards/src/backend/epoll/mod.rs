//! The backend for kernels and containers without io_uring: epoll for sockets, a bounded pool of
//! threads for files.

mod files;
mod readiness;
mod socket;

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use slab::Slab;

use super::Wait;
use super::recv_pool::RecvPool;
use crate::Core;
use crate::executor::CoreShared;
use crate::metrics::Counters;
use crate::sys::Pool;

use readiness::Readiness;
pub(crate) use readiness::Registration;
pub(crate) use socket::EpollSocket;

/// The key under which the core's own wake-up event is registered.
const WAKE_UP: u64 = u64::MAX;
const EVENTS_PER_TURN: usize = 256;

pub(crate) struct EpollDriver {
    epoll: OwnedFd,
    registered: RefCell<Slab<Rc<Readiness>>>,
    events: RefCell<Vec<Event>>,
    /// For file operations only: directory work and the like must not queue behind a slow disk.
    file_pool: Pool,
    pub(super) recv_pool: Rc<RecvPool>,
    pub(super) counters: Rc<Counters>,
}

impl EpollDriver {
    pub(crate) fn new(
        shared: &CoreShared,
        file_pool: Pool,
        recv_pool_bytes: usize,
        counters: Rc<Counters>,
    ) -> io::Result<Rc<Self>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(WAKE_UP);
        epoll::add(&epoll, shared.event().as_fd(), data, EventFlags::IN)?;
        Ok(Rc::new(Self {
            epoll,
            registered: RefCell::new(Slab::new()),
            events: RefCell::new(Vec::with_capacity(EVENTS_PER_TURN)),
            file_pool,
            recv_pool: RecvPool::listed(recv_pool_bytes, Rc::clone(&counters))?,
            counters,
        }))
    }

    pub(crate) fn turn(&self, core: &Core, wait: Wait) {
        let timeout = match wait {
            Wait::No => Some(rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
            Wait::Forever => None,
            Wait::Until(at) => {
                let span = at.saturating_duration_since(core.now());
                rustix::time::Timespec::try_from(span).ok()
            }
        };
        let mut events = std::mem::take(&mut *self.events.borrow_mut());
        events.clear();
        self.counters.enters.one();
        let spare = rustix::buffer::spare_capacity(&mut events);
        // Fails with EINTR only (a signal): the next turn looks again.
        let _ = epoll::wait(&self.epoll, spare, timeout.as_ref());
        self.counters.completions.add(events.len() as u64);
        for event in &events {
            let key = event.data.u64();
            if key == WAKE_UP {
                core.shared().event().clear();
                continue;
            }
            // The slot may be another socket's by now: then the hint is false and costs one
            // system call that says EAGAIN.
            let readiness = self.registered.borrow().get(key as usize).cloned();
            if let Some(readiness) = readiness {
                readiness.mark(event.flags);
            }
        }
        *self.events.borrow_mut() = events;
    }
}
