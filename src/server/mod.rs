//! The one place that wires everything: listeners, cores, logs, metadata, and the order in which
//! they start and stop.

mod ballast;
mod boot;
mod checkpoints;
mod disk_space;
mod disks;
mod doors;
mod hosted;
mod hosting;
mod inventory;
pub mod listeners;
mod memory;
mod metadata_log;
mod node;
mod registration;
mod stop;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use shards::{BackendChoice, Runtime, RuntimeOptions, StartError, mesh};
use storage::StorageError;

use crate::config::directories::Directories;
use crate::config::{BrokerConfig, IoBackend};
use crate::controller::ControllerError;
use crate::telemetry::levels::LogLevels;
use memory::memory_limit;

pub use hosting::topic_config;
pub use memory::Budgets;
pub use node::Node;

/// Messages that one lane between two cores holds before its sender waits.
pub const LANE_CAPACITY: usize = 4096;

/// Why the broker did not start, or ended otherwise than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listener.
    #[error("cannot listen on {endpoint}: {}", reason(.source))]
    Listener {
        /// The configured endpoint.
        endpoint: String,
        /// The system's reason.
        source: io::Error,
    },
    /// io_uring, memory locks, threads.
    #[error(transparent)]
    Runtime(#[from] StartError),
    /// A log directory that another broker has.
    #[error(
        "{} is in use by another broker: stop it, or choose another directory in `log.dirs`",
        .directory.display()
    )]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// A log directory that cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Disks that failed while the broker ran, and without which it cannot go on.
    #[error("{0}")]
    Disks(String),
    /// The metadata log.
    #[error("the metadata log: {0}")]
    Controller(#[from] ControllerError),
}

/// The system's reason with what to do about it.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is in use; stop the other process, or choose another port in `listeners`"
                .into()
        }
        io::ErrorKind::PermissionDenied => {
            format!("{error}; ports below 1024 need privileges")
        }
        _ => error.to_string(),
    }
}

/// Runs the broker until it is asked to stop.
///
/// # Errors
/// Why it could not start; nothing has been lost then.
pub fn serve(
    mut config: BrokerConfig,
    directories: Directories,
    log_levels: LogLevels,
) -> Result<(), ServeError> {
    let started = process_start();
    let listeners = listeners::bind(&mut config, listeners::bind_patiently)?;
    let cores = config
        .runtime
        .shards
        .map_or_else(default_cores, usize::from);
    let budgets = Budgets::new(
        memory_limit(),
        cores as u64,
        config.network.queued_max_bytes,
    );
    let runtime = Runtime::new(runtime_options(&config, cores, &budgets))?;
    let node = Node {
        config: Arc::new(config),
        directories: Arc::new(directories),
        budgets,
        backend: runtime.backend(),
        fallback_reason: runtime.fallback_reason().map(Arc::from),
        log_levels,
        took_so_far: started.elapsed(),
    };
    let (failure, failed) = std::sync::mpsc::channel();
    let endpoints = mesh::endpoints(&runtime, LANE_CAPACITY);
    runtime.run(node.mains(endpoints, listeners, failure))?;
    failed.try_recv().map_or(Ok(()), Err)
}

fn default_cores() -> usize {
    shards::placement::default_core_count()
}

/// How the cores of a node with these budgets run.
pub fn runtime_options(config: &BrokerConfig, cores: usize, budgets: &Budgets) -> RuntimeOptions {
    RuntimeOptions {
        cores,
        pin: config.runtime.pin,
        backend: match config.runtime.backend {
            IoBackend::Auto => BackendChoice::Auto,
            IoBackend::Ring => BackendChoice::Ring,
            IoBackend::Epoll => BackendChoice::Epoll,
        },
        recv_pool_bytes_per_core: usize::try_from(budgets.receive_pool).unwrap_or(usize::MAX),
        cold_read_bytes_per_core: usize::try_from(budgets.cold_reads).unwrap_or(usize::MAX),
        large_block_bytes_per_core: usize::try_from(budgets.large_blocks).unwrap_or(usize::MAX),
        on_stall: Some(Arc::new(|report| {
            tracing::warn!(
                core = report.core.0, task = report.task, held = ?report.held,
                "a task held its core for too long"
            );
        })),
        ..RuntimeOptions::default()
    }
}

/// When the process began, for the line that tells how long the start took.
#[expect(
    clippy::disallowed_methods,
    reason = "before the cores run there is no clock to ask"
)]
fn process_start() -> std::time::Instant {
    std::time::Instant::now()
}
