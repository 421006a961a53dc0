//! The seam: everything that differs between the kernel's ring, epoll and the simulation.

pub(crate) mod epoll;
pub(crate) mod recv_pool;
pub(crate) mod ring;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::Core;
use crate::io::{OsFile, ReadBuf};
use crate::sys;
use crate::time::Instant;

/// How a core talks to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// io_uring.
    Ring,
    /// epoll for sockets, threads for files.
    Epoll,
    /// No kernel at all: the seeded simulation.
    Sim,
}

impl BackendKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "io_uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        }
    }
}

/// How long a turn of the driver may wait for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    Until(Instant),
    Forever,
}

/// What a sync makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncKind {
    /// The file's bytes and its length.
    Data,
    /// All metadata too.
    All,
}

pub(crate) enum Driver {
    Ring(Rc<ring::RingDriver>),
    Epoll(Rc<epoll::EpollDriver>),
    #[cfg(feature = "sim")]
    Sim(Rc<crate::sim::SimDriver>),
}

/// A real file on a core that has no kernel.
#[cfg(feature = "sim")]
fn not_simulated<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "a simulated core works with simulated files only",
    ))
}

impl Driver {
    pub(crate) fn kind(&self) -> BackendKind {
        match self {
            Self::Ring(_) => BackendKind::Ring,
            Self::Epoll(_) => BackendKind::Epoll,
            #[cfg(feature = "sim")]
            Self::Sim(_) => BackendKind::Sim,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Ring(_) | Self::Epoll(_) => sys::monotonic(),
            #[cfg(feature = "sim")]
            Self::Sim(driver) => driver.now(),
        }
    }

    pub(crate) fn wall_clock_ms(&self) -> i64 {
        match self {
            Self::Ring(_) | Self::Epoll(_) => sys::wall_clock_ms(),
            #[cfg(feature = "sim")]
            Self::Sim(driver) => driver.wall_clock_ms(),
        }
    }

    pub(crate) fn operations_in_flight(&self) -> usize {
        match self {
            Self::Ring(driver) => driver.operations_in_flight(),
            Self::Epoll(_) => 0,
            #[cfg(feature = "sim")]
            Self::Sim(_) => 0,
        }
    }

    /// Holds up a file operation as a slow disk would.
    pub(crate) async fn delay(&self, core: &Core, span: Duration) {
        match self {
            Self::Ring(_) => core.sleep(span).await,
            Self::Epoll(driver) => driver.delay(core, span).await,
            #[cfg(feature = "sim")]
            Self::Sim(_) => core.sleep(span).await,
        }
    }

    pub(crate) fn runs_blocking_inline(&self) -> bool {
        match self {
            Self::Ring(_) | Self::Epoll(_) => false,
            #[cfg(feature = "sim")]
            Self::Sim(_) => true,
        }
    }

    /// The simulated disk, where there is one.
    #[cfg(feature = "sim")]
    pub(crate) fn disk(&self) -> Option<&crate::sim::Disk> {
        match self {
            Self::Ring(_) | Self::Epoll(_) => None,
            Self::Sim(driver) => Some(driver.disk()),
        }
    }

    /// Submits what has gathered, takes completions, and waits for some if told to.
    pub(crate) fn turn(&self, core: &Core, wait: Wait) {
        match self {
            Self::Ring(driver) => driver.turn(core, wait),
            Self::Epoll(driver) => driver.turn(core, wait),
            // The world takes its cores' turns.
            #[cfg(feature = "sim")]
            Self::Sim(_) => {}
        }
    }

    /// Waits until no operation is in flight, so that their memory may go.
    pub(crate) fn shut_down(&self, _core: &Core) {
        match self {
            Self::Ring(driver) => driver.shut_down(),
            Self::Epoll(_) => {}
            #[cfg(feature = "sim")]
            Self::Sim(_) => {}
        }
    }

    /// One write; may be short.
    pub(crate) async fn write_at(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        data: Bytes,
        offset: u64,
        durable: bool,
    ) -> io::Result<usize> {
        match self {
            Self::Ring(driver) => driver.write_at(file, data, offset, durable).await,
            Self::Epoll(driver) => driver.write_at(core, file, data, offset, durable).await,
            #[cfg(feature = "sim")]
            Self::Sim(_) => not_simulated(),
        }
    }

    /// One read into all of `buffer`, from the descriptor that the buffer is for; may be short, 0 at the end of the file.
    pub(crate) async fn read_at(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        buffer: ReadBuf,
        offset: u64,
    ) -> io::Result<(ReadBuf, usize)> {
        match self {
            Self::Ring(driver) => driver.read_at(file, buffer, offset).await,
            Self::Epoll(driver) => driver.read_at(core, file, buffer, offset).await,
            #[cfg(feature = "sim")]
            Self::Sim(_) => not_simulated(),
        }
    }

    pub(crate) async fn sync(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        kind: SyncKind,
    ) -> io::Result<()> {
        match self {
            Self::Ring(driver) => driver.sync(file, kind).await,
            Self::Epoll(driver) => driver.sync(core, file, kind).await,
            #[cfg(feature = "sim")]
            Self::Sim(_) => not_simulated(),
        }
    }

    pub(crate) async fn allocate(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        offset: u64,
        len: u64,
    ) -> io::Result<()> {
        match self {
            Self::Ring(driver) => driver.allocate(file, offset, len).await,
            Self::Epoll(driver) => driver.allocate(core, file, offset, len).await,
            #[cfg(feature = "sim")]
            Self::Sim(_) => not_simulated(),
        }
    }
}
