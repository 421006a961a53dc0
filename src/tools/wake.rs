//! Waiting for sockets, for other threads and for signals at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Wakes a thread that waits in [`wait`].
#[derive(Debug)]
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> io::Result<Wake> {
        Ok(Wake(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Ends the wait of now, or the next one.
    pub(super) fn wake(&self) {
        // It fails only where the count is full, and then the other side is awake.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// The next wait waits again.
    pub(super) fn clear(&self) {
        // Nothing to read is clear already.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of them can be read, for so long at most. Says which can.
pub(super) fn wait(files: &[BorrowedFd<'_>], timeout: Duration) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> = files
        .iter()
        .map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // A signal ends it early, which the caller takes for a timeout.
    let _ = poll(&mut polled, Some(&timeout));
    polled
        .iter()
        .map(|file| !file.revents().is_empty())
        .collect()
}
