//! SIGINT and SIGTERM, which ask a tool to end well.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::Failure;

/// Readable as soon as the process was asked to end.
pub(super) struct Signals(UnixStream);

impl Signals {
    /// From now on the two signals do not end the process by themselves.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn catch() -> Result<Signals, Failure> {
        let catch = || {
            let (read, write) = UnixStream::pair()?;
            for signal in [SIGINT, SIGTERM] {
                pipe::register(signal, write.try_clone()?)?;
            }
            Ok::<_, std::io::Error>(Signals(read))
        };
        catch().map_err(|error| Failure::new(format!("signals cannot be caught: {error}")))
    }

    /// Waits for a signal.
    pub(super) fn wait(&mut self) {
        // An error is as good a reason to end as a signal.
        let _ = self.0.read(&mut [0]);
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
