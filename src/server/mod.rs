//! The one place that wires everything: listeners, cores, logs, metadata, and the order in which
//! they start and stop.

mod boot;
mod checkpoints;
mod disk_space;
mod hosted;
mod hosting;
mod inventory;
mod listeners;
mod memory;
mod metadata_log;
mod registration;
mod stop;

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use protocol::Str;
use shards::mesh::{self, Endpoint, Mesh};
use shards::{BackendChoice, BackendKind, Core, CoreMain, Runtime, RuntimeOptions, StartError};
use storage::{Storage, StorageError, StorageOptions};

use crate::config::directories::Directories;
use crate::config::{BrokerConfig, IoBackend};
use crate::controller::ControllerError;
use crate::metadata::{Image, Placement};
use crate::shard::{ClusterView, Limits, Shard, ShardParts};
use memory::{Budgets, memory_limit};

pub use hosting::topic_config;

/// Messages that one lane between two cores holds before its sender waits.
const LANE_CAPACITY: usize = 4096;

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

/// What every core gets to start with.
#[derive(Clone)]
struct Common {
    config: Arc<BrokerConfig>,
    directories: Arc<Directories>,
    budgets: Budgets,
    backend: BackendKind,
    fallback_reason: Option<Arc<str>>,
}

/// Runs the broker until it is asked to stop.
///
/// # Errors
/// Why it could not start; nothing has been lost then.
pub fn serve(config: BrokerConfig, directories: Directories) -> Result<(), ServeError> {
    let started = process_start();
    let listeners = listeners::bind(&config)?;
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
    let common = Common {
        config: Arc::new(config),
        directories: Arc::new(directories),
        budgets,
        backend: runtime.backend(),
        fallback_reason: runtime.fallback_reason().map(Arc::from),
    };
    let (failure, failed) = std::sync::mpsc::channel();
    let mut listeners = Some(listeners);
    let mains: Vec<CoreMain> = mesh::endpoints::<Shard>(&runtime, LANE_CAPACITY)
        .into_iter()
        .map(|endpoint| {
            let common = common.clone();
            let first = listeners.take().map(|bound| (bound, failure.clone()));
            let main: CoreMain = Box::new(move |core| {
                Box::pin(async move {
                    let shard = start_core(&core, endpoint, &common);
                    match first {
                        Some((bound, failure)) => {
                            boot::run(shard, common, bound, failure, started).await;
                        }
                        None => shard.released.wait().await,
                    }
                })
            });
            main
        })
        .collect();
    runtime.run(mains)?;
    failed.try_recv().map_or(Ok(()), Err)
}

fn default_cores() -> usize {
    shards::placement::default_core_count()
}

fn runtime_options(config: &BrokerConfig, cores: usize, budgets: &Budgets) -> RuntimeOptions {
    RuntimeOptions {
        cores,
        pin: config.runtime.pin,
        backend: match config.runtime.backend {
            IoBackend::Auto => BackendChoice::Auto,
            IoBackend::Ring => BackendChoice::Ring,
            IoBackend::Epoll => BackendChoice::Epoll,
        },
        recv_pool_bytes_per_core: usize::try_from(budgets.receive_pool).unwrap_or(usize::MAX),
        on_stall: Some(Arc::new(|report| {
            tracing::warn!(
                core = report.core.0, task = report.task, held = ?report.held,
                "a task held its core for too long"
            );
        })),
        ..RuntimeOptions::default()
    }
}

/// Makes the shard of a core and opens it to calls.
fn start_core(core: &Core, endpoint: Endpoint<Shard>, common: &Common) -> Rc<Shard> {
    let bytes = |budget: u64| usize::try_from(budget).unwrap_or(usize::MAX);
    let storage = Storage::new(
        core.clone(),
        StorageOptions {
            cache_bytes: bytes(common.budgets.batch_cache),
            index_cache_bytes: bytes(common.budgets.index_cache),
            ..StorageOptions::default()
        },
    );
    let request_bytes = common.config.network.request_max_bytes as usize;
    let cores = u16::try_from(core.core_count()).unwrap_or(u16::MAX);
    let parts = ShardParts {
        config: common.config.clone(),
        cluster_id: Str::from(common.directories.cluster_id.clone()),
        limits: Limits {
            request_bytes: request_bytes.min(bytes(common.budgets.requests)),
            decode_bytes: bytes(common.budgets.requests) / 4,
        },
        budgets: (common.budgets.requests, common.budgets.responses),
        view: Arc::new(ClusterView {
            image: Arc::new(Image::default()),
            placement: Arc::new(Placement::new(cores)),
        }),
    };
    let shard = Shard::new(core.clone(), storage, parts);
    let mesh: Mesh<Shard> = endpoint.attach(core);
    shard.connect(mesh);
    shard
}

/// When the process began, for the line that tells how long the start took.
#[expect(
    clippy::disallowed_methods,
    reason = "before the cores run there is no clock to ask"
)]
fn process_start() -> std::time::Instant {
    std::time::Instant::now()
}
