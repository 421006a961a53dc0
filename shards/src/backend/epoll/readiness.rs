use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::EpollDriver;

/// What is known about a descriptor: edge-triggered, so "ready" holds until a call says EAGAIN.
#[derive(Default)]
pub(super) struct Readiness {
    readable: Direction,
    writable: Direction,
}

#[derive(Default)]
pub(super) struct Direction {
    ready: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Direction {
    fn mark(&self) {
        self.ready.set(true);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.ready.get() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Readiness {
    pub(super) fn mark(&self, flags: EventFlags) {
        let broken = EventFlags::ERR | EventFlags::HUP;
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | broken) {
            self.readable.mark();
        }
        if flags.intersects(EventFlags::OUT | broken) {
            self.writable.mark();
        }
    }
}

/// A non-blocking descriptor known to this core's epoll.
pub(crate) struct Registration {
    driver: Rc<EpollDriver>,
    fd: OwnedFd,
    key: usize,
    readiness: Rc<Readiness>,
}

impl Registration {
    pub(crate) fn new(driver: &Rc<EpollDriver>, fd: OwnedFd) -> io::Result<Self> {
        let readiness = Rc::new(Readiness::default());
        // Assume ready: the first call finds out, and an edge before `add` is not lost.
        readiness.readable.ready.set(true);
        readiness.writable.ready.set(true);
        let key = driver.registered.borrow_mut().insert(Rc::clone(&readiness));
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let registration = Self {
            driver: Rc::clone(driver),
            fd,
            key,
            readiness,
        };
        let data = EventData::new_u64(key as u64);
        epoll::add(&registration.driver.epoll, &registration.fd, data, interest)?;
        Ok(registration)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.fd)
    }

    pub(super) fn driver(&self) -> &Rc<EpollDriver> {
        &self.driver
    }

    /// Tries `call` while the descriptor may be readable, until it says something else than EAGAIN.
    pub(crate) fn poll_read<T>(
        &self,
        context: &mut Context<'_>,
        call: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Poll<io::Result<T>> {
        self.poll_io(&self.readiness.readable, context, call)
    }

    pub(crate) fn poll_write<T>(
        &self,
        context: &mut Context<'_>,
        call: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Poll<io::Result<T>> {
        self.poll_io(&self.readiness.writable, context, call)
    }

    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.readiness.readable.poll_ready(context)
    }

    fn poll_io<T>(
        &self,
        direction: &Direction,
        context: &mut Context<'_>,
        mut call: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Poll<io::Result<T>> {
        loop {
            if direction.poll_ready(context).is_pending() {
                return Poll::Pending;
            }
            match call(self.fd()) {
                Ok(value) => return Poll::Ready(Ok(value)),
                Err(Errno::AGAIN) => direction.ready.set(false),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let readiness = self.driver.registered.borrow_mut().try_remove(self.key);
        drop(readiness);
        // Explicit, because a duplicate of the descriptor would keep the registration alive.
        let _ = epoll::delete(&self.driver.epoll, &self.fd);
    }
}
