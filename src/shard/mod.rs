//! What one core of the broker holds. Cores share nothing else than immutable snapshots, and reach
//! each other through the mesh.

mod connections;
mod controlling;
mod disk_failures;
mod groups;
mod metrics;
mod open_listeners;
mod start;
mod stopping;
mod view;

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use protocol::Str;
use shards::mesh::Mesh;
use shards::sync::ByteBudget;
use shards::{Core, CoreId};
use storage::Storage;

use crate::config::BrokerConfig;
use crate::controller::Controller;
use crate::coordinator::runtime::{GroupCoordinators, PartitionOptions};
use crate::metadata::Image;
use crate::replication::{FetchSessionCache, Replicas};
use crate::telemetry::levels::LogLevels;

pub use connections::{Caller, Connections, Door, Place};
pub use controlling::{ask_controller, auto_create, next_producer_id};
pub use disk_failures::DiskFailures;
pub use metrics::*;
pub use open_listeners::{OpenListener, OpenListeners};
pub use start::{Start, how_far_the_start_is};
pub use stopping::Stopping;
pub use view::ClusterView;

/// Byte limits of one core, derived from the memory the process may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `socket.request.max.bytes`.
    pub request_bytes: usize,
    /// Memory that decoding one request may take beside its frame.
    pub decode_bytes: usize,
}

/// Budgets of one core.
pub struct Memory {
    /// Requests that were read and not answered.
    pub requests: ByteBudget,
    /// Record bytes that answers refer to and that have not left yet.
    pub responses: ByteBudget,
}

/// Where a node can be reached by the listener that was asked.
#[derive(Clone, Debug)]
pub struct NodeAddress {
    /// Host name or address.
    pub host: Str,
    /// Port.
    pub port: i32,
    /// `broker.rack`.
    pub rack: Option<Str>,
}

/// One core of the broker.
pub struct Shard {
    /// The executor of this core.
    pub core: Core,
    /// Configuration of the node.
    pub config: Arc<BrokerConfig>,
    /// Id of the cluster.
    pub cluster_id: Str,
    /// Byte limits.
    pub limits: Limits,
    /// Byte budgets.
    pub memory: Memory,
    /// How much this process logs.
    pub log_levels: LogLevels,
    /// Logs of this core.
    pub storage: Storage,
    /// Partitions of this core.
    pub replicas: Rc<Replicas>,
    /// Fetch sessions that this core keeps.
    pub sessions: RefCell<FetchSessionCache>,
    /// Group coordinators of this core.
    pub groups: GroupCoordinators,
    /// Connections of this core.
    pub connections: Connections,
    /// Connections of every core; used on the core that accepts.
    pub door: Door,
    /// The broker's open listeners; used on the core that accepts.
    pub open_listeners: OpenListeners,
    /// Set when the broker stops: no new work.
    pub stopping: Stopping,
    /// Set when everything has stopped: the core may end.
    pub released: Stopping,
    /// Disks that failed, on core 0.
    pub disk_failures: DiskFailures,
    /// How far the start has come; used on the core that directs it.
    pub start: Start,
    /// Counters.
    pub metrics: ShardMetrics,
    view: RefCell<Arc<ClusterView>>,
    mesh: OnceCell<Mesh<Shard>>,
    controller: OnceCell<Rc<Controller>>,
    next_wait: Cell<u64>,
    producer_ids: RefCell<Range<i64>>,
}

/// What a shard is made of.
pub struct ShardParts {
    /// Configuration of the node.
    pub config: Arc<BrokerConfig>,
    /// Id of the cluster.
    pub cluster_id: Str,
    /// Byte limits.
    pub limits: Limits,
    /// Bytes for requests, and for records in answers.
    pub budgets: (u64, u64),
    /// How much is logged.
    pub log_levels: LogLevels,
    /// What the cluster looks like at first.
    pub view: Arc<ClusterView>,
}

impl Shard {
    /// A shard that nobody can reach yet; see [`Shard::connect`].
    pub fn new(core: Core, storage: Storage, parts: ShardParts) -> Rc<Shard> {
        let cores = core.core_count();
        let slots = (parts.config.fetch.session_slots as usize).div_ceil(cores);
        let cores = u16::try_from(cores).unwrap_or(u16::MAX);
        let sessions = FetchSessionCache::new(slots, core.id().0, cores);
        let options = PartitionOptions::from_config(&parts.config.groups, &parts.config.offsets);
        let groups = GroupCoordinators::new(core.clone(), options);
        Rc::new(Shard {
            replicas: Replicas::new(core.clone()),
            sessions: RefCell::new(sessions),
            core,
            config: parts.config,
            cluster_id: parts.cluster_id,
            limits: parts.limits,
            log_levels: parts.log_levels,
            memory: Memory {
                requests: ByteBudget::new(parts.budgets.0),
                responses: ByteBudget::new(parts.budgets.1),
            },
            storage,
            groups,
            connections: Connections::default(),
            door: Door::new(usize::from(cores)),
            open_listeners: OpenListeners::default(),
            stopping: Stopping::default(),
            released: Stopping::default(),
            disk_failures: DiskFailures::default(),
            start: Start::default(),
            metrics: ShardMetrics::default(),
            view: RefCell::new(parts.view),
            mesh: OnceCell::new(),
            controller: OnceCell::new(),
            next_wait: Cell::new(0),
            producer_ids: RefCell::new(0..0),
        })
    }

    /// Opens the shard to calls of other cores.
    pub fn connect(self: &Rc<Self>, mesh: Mesh<Shard>) {
        if self.mesh.set(mesh.clone()).is_ok() {
            self.watch_disks();
            mesh.serve(self.clone());
        }
    }

    /// Makes the controller known; it lives on core 0.
    pub fn set_controller(&self, controller: Rc<Controller>) {
        drop(self.controller.set(controller));
    }

    /// The way to other cores.
    pub fn mesh(&self) -> &Mesh<Shard> {
        self.mesh
            .get()
            .expect("a shard is connected before it serves")
    }

    /// Number of cores.
    pub fn core_count(&self) -> u16 {
        u16::try_from(self.core.core_count()).unwrap_or(u16::MAX)
    }

    /// Every core, this one too.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.core_count()).map(CoreId)
    }

    /// The cluster as this core sees it.
    pub fn view(&self) -> Arc<ClusterView> {
        self.view.borrow().clone()
    }

    /// The metadata as this core sees it.
    pub fn image(&self) -> Arc<Image> {
        self.view.borrow().image.clone()
    }

    /// Shows a newer cluster to the requests that start from now on.
    pub fn show(&self, view: Arc<ClusterView>) {
        *self.view.borrow_mut() = view;
    }

    /// Name of one of the broker's listeners.
    pub fn listener_name(&self, index: usize) -> &str {
        self.config
            .listeners
            .get(index)
            .map_or("", |listener| &listener.name)
    }

    /// Where a node is reached by the listener with this index.
    pub fn node_address(&self, image: &Image, id: i32, listener: usize) -> Option<NodeAddress> {
        let broker = image.broker(id)?;
        let endpoint = broker.endpoint(self.listener_name(listener))?;
        Some(NodeAddress {
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            rack: broker.rack.clone(),
        })
    }

    /// A number for a waiting fetch.
    pub fn next_wait(&self) -> u64 {
        let number = self.next_wait.get();
        self.next_wait.set(number + 1);
        number
    }
}
