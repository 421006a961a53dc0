//! Thread-per-core runtime: one executor a core, one io_uring (or epoll) under it, and a mesh of
//! mailboxes between cores. It knows nothing of what runs on it.
//!
//! The rules:
//! - A core's state belongs to its thread: futures are not `Send`, state is shared by `Rc`, and a
//!   [`Core`] handle is passed explicitly. Other cores are reached through [`mesh`] only.
//! - Buffers given to the kernel are owned by the operation. Dropping a future neither frees
//!   memory that the kernel may still touch nor loses bytes that it has received.
//! - Nothing here prints, and every failure is a value; a panic on a core ends the process.
//! - Time and randomness come from the [`Core`], so that a simulation can turn the clock.

mod backend;
mod core;
mod executor;
pub mod fault;
mod histogram;
pub mod io;
mod large_blocks;
pub mod mesh;
pub mod metrics;
pub mod placement;
mod runtime;
pub mod signals;
#[cfg(feature = "sim")]
pub mod sim;
pub mod sync;
mod sys;
pub mod time;

pub use crate::core::{Core, CoreId, StallCallback, StallReport};
pub use backend::BackendKind;
pub use executor::{Aborted, JoinHandle, TaskClass};
pub use large_blocks::LargeBlocks;
pub use metrics::CoreMetrics;
pub use runtime::{BackendChoice, CoreMain, Runtime, RuntimeOptions, StartError};
pub use time::Elapsed;
