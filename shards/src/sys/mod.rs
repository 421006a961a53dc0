//! What the process asks of the operating system outside of a ring: clocks, events, threads.
//! The only module that may read clocks and start threads.

mod clock;
mod event;
mod pool;
mod residency;
mod thread;

pub(crate) use clock::{monotonic, wall_clock_ms};
pub(crate) use event::EventFd;
pub(crate) use pool::{JobResult, Pool};
pub(crate) use residency::{is_readable_now, is_resident};
pub(crate) use thread::{block_thread, random_seed, spawn_thread, thread_token};
