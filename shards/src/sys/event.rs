use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd(2): ends the sleep of a core from any thread.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    pub(crate) fn signal(&self) {
        // Fails only when 2^64-2 signals wait unread, and non-blocking: it is signalled then.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes all signals at once; fine when there is none.
    pub(crate) fn clear(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
