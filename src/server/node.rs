//! A node before its cores run. It asks the machine for nothing: sockets, memory, disk and clock
//! come from whoever runs its mains, the real runtime in [`super::serve`] or a simulation.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use protocol::Str;
use shards::mesh::{Endpoint, Mesh};
use shards::{BackendKind, Core, CoreMain};
use storage::{Storage, StorageOptions};

use super::listeners::Bound;
use super::memory::Budgets;
use super::{ServeError, boot};
use crate::config::BrokerConfig;
use crate::config::directories::Directories;
use crate::metadata::{Image, Placement};
use crate::shard::{ClusterView, Limits, Shard, ShardParts};
use crate::telemetry::levels::LogLevels;

/// What one idempotent producer takes in one partition.
const PRODUCER_BYTES: usize = 320;

/// What every core gets to start with.
#[derive(Clone)]
pub struct Node {
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// The log directories, after their checks.
    pub directories: Arc<Directories>,
    /// What each core may use.
    pub budgets: Budgets,
    /// What the cores run on.
    pub backend: BackendKind,
    /// Why it is not the best one.
    pub fallback_reason: Option<Arc<str>>,
    /// How much is logged.
    pub log_levels: LogLevels,
    /// How long the start has taken before the cores run.
    pub took_so_far: Duration,
}

impl Node {
    /// The main of each core, in the order of the endpoints. They end when the node was asked to stop; a
    /// failed start is left in `failure`.
    pub fn mains(
        &self,
        endpoints: Vec<Endpoint<Shard>>,
        listeners: Vec<Bound>,
        failure: Sender<ServeError>,
    ) -> Vec<CoreMain> {
        let mut first = Some((listeners, failure));
        let main = |endpoint| -> CoreMain {
            let (node, first) = (self.clone(), first.take());
            Box::new(move |core| Box::pin(run_core(core, endpoint, node, first)))
        };
        endpoints.into_iter().map(main).collect()
    }
}

/// Runs one core; the first has the listeners and directs the others.
async fn run_core(
    core: Core,
    endpoint: Endpoint<Shard>,
    node: Node,
    first: Option<(Vec<Bound>, Sender<ServeError>)>,
) {
    let shard = start_core(&core, endpoint, &node);
    match first {
        Some((listeners, failure)) => boot::run(shard, node, listeners, failure).await,
        None => shard.released.wait().await,
    }
}

/// Makes the shard of a core and opens it to calls.
fn start_core(core: &Core, endpoint: Endpoint<Shard>, node: &Node) -> Rc<Shard> {
    let bytes = |budget: u64| usize::try_from(budget).unwrap_or(usize::MAX);
    let storage = Storage::new(
        core.clone(),
        StorageOptions {
            cache_bytes: bytes(node.budgets.batch_cache),
            index_cache_bytes: bytes(node.budgets.index_cache),
            producer_check_interval: node.config.producer_ids.expiration_check_interval,
            journal_bytes: node.config.runtime.journal_bytes.min(node.budgets.journal),
            producers_max: bytes(node.budgets.producers) / PRODUCER_BYTES,
            ..StorageOptions::default()
        },
    );
    let request_bytes = node.config.network.request_max_bytes as usize;
    let cores = u16::try_from(core.core_count()).unwrap_or(u16::MAX);
    let parts = ShardParts {
        config: node.config.clone(),
        cluster_id: Str::from(node.directories.cluster_id.clone()),
        limits: Limits {
            request_bytes: request_bytes.min(bytes(node.budgets.requests)),
            decode_bytes: bytes(node.budgets.requests) / 4,
        },
        budgets: (node.budgets.requests, node.budgets.responses),
        log_levels: node.log_levels.clone(),
        view: Arc::new(ClusterView {
            image: Arc::new(Image::default()),
            config: node.config.clone(),
            placement: Arc::new(Placement::new(cores)),
        }),
    };
    let shard = Shard::new(core.clone(), storage, parts);
    let mesh: Mesh<Shard> = endpoint.attach(core);
    shard.connect(mesh);
    shard
}
