//! The broker of a world, small and quick to start.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use broker::cli::{FormatPlan, new_files};
use broker::config::{BrokerConfig, directories};
use broker::server::{self, Budgets, LANE_CAPACITY, ServeError, listeners};
use protocol::Uuid;
use shards::BackendKind;
use shards::sim::{NodeId, World};

const DATA: &str = "/data";
const MEMORY: u64 = 256 << 20;
const CORES: usize = 2;
const SETTINGS: &[(&str, &str)] = &[
    (
        "listeners",
        "PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093",
    ),
    ("log.dirs", DATA),
    ("offsets.topic.num.partitions", "2"),
    ("num.partitions", "2"),
    ("auto.create.topics.enable", "true"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "1"),
];

pub struct Node {
    pub id: NodeId,
    pub address: SocketAddr,
    config: BrokerConfig,
    budgets: Budgets,
    failure: RefCell<Option<Receiver<ServeError>>>,
}

impl Node {
    /// The first node of the world, with a formatted disk.
    pub fn new(world: &World) -> Self {
        let config = BrokerConfig::single_node(SETTINGS).expect("sound settings");
        let budgets = Budgets::new(MEMORY, CORES as u64, None);
        let id = world.node(server::runtime_options(&config, CORES, &budgets));
        let directory = Uuid([7; 16]);
        let cluster = "c2ltdWxhdGlvbi4uLi4uLg".to_owned();
        let plan = FormatPlan::standalone(&config, cluster, directory, 0).expect("a plan");
        let disk = world.disk(id);
        for file in new_files(&config, &plan, Path::new(DATA), directory).expect("files") {
            disk.put(&file.path, &file.bytes).expect("an empty disk");
        }
        Self {
            id,
            address: SocketAddr::new(world.address(id), 9092),
            config,
            budgets,
            failure: RefCell::new(None),
        }
    }

    /// Starts its process, as `ringmain serve` does.
    pub fn boot(&self, world: &World) {
        let disk = world.disk(self.id);
        let config = &self.config;
        let found = directories::look_by(&config.storage.log_dirs, |path| disk.contents(path));
        let metadata = &config.storage.metadata_log_dir;
        let directories = directories::verify(config.node_id, metadata, &found);
        let boot = world.boot(self.id).expect("descriptors");
        let mut config = config.clone();
        let bound = listeners::bind(&mut config, |address| boot.listen(address));
        let node = server::Node {
            config: Arc::new(config),
            directories: Arc::new(directories.expect("formatted directories")),
            budgets: self.budgets,
            backend: BackendKind::Sim,
            fallback_reason: None,
            log_levels: broker::telemetry::levels::LogLevels::unheeded(),
            took_so_far: Duration::ZERO,
        };
        let (failure, failed) = channel();
        let endpoints = boot.endpoints(LANE_CAPACITY);
        let mains = node.mains(endpoints, bound.expect("free ports"), failure);
        boot.run(mains).expect("memory");
        *self.failure.borrow_mut() = Some(failed);
    }

    /// Why the last start failed, if it did.
    pub fn start_failure(&self) -> Option<ServeError> {
        let failure = self.failure.borrow();
        failure.as_ref().and_then(|failed| failed.try_recv().ok())
    }
}
