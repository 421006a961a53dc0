//! The broker under test: one node of the world, on its simulated disk.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use broker::cli::{FormatPlan, new_files};
use broker::config::BrokerConfig;
use broker::config::directories;
use broker::server::{self, Budgets, LANE_CAPACITY, Node, ServeError, listeners};
use protocol::Uuid;
use shards::BackendKind;
use shards::sim::{NodeId, World};

pub const CLUSTER: &str = "c2ltdWxhdGlvbi4uLi4uLg";
const PORT: u16 = 9092;
const DATA: &str = "/data";
/// Small, so that budgets and caches are at their limits sometimes.
const MEMORY: u64 = 256 << 20;

pub struct Broker {
    pub node: NodeId,
    pub address: SocketAddr,
    config: BrokerConfig,
    budgets: Budgets,
    failure: RefCell<Option<Receiver<ServeError>>>,
}

impl Broker {
    /// Adds the node, the first one of its world, and formats its disk.
    pub fn new(world: &World, cores: usize, settings: &[(&str, &str)]) -> Self {
        let host = "10.0.0.1";
        let listeners = format!("PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:9093");
        let mut all = vec![("listeners", listeners.as_str()), ("log.dirs", DATA)];
        all.extend(settings);
        let config = BrokerConfig::single_node(&all).expect("sound settings");
        let budgets = Budgets::new(MEMORY, cores as u64, None);
        let node = world.node(server::runtime_options(&config, cores, &budgets));
        assert_eq!(world.address(node).to_string(), host);
        let disk = world.disk(node);
        let directory = Uuid([7; 16]);
        let plan = FormatPlan::standalone(&config, CLUSTER.to_owned(), directory, 0);
        let plan = plan.expect("a plan");
        for file in new_files(&config, &plan, Path::new(DATA), directory).expect("files") {
            disk.put(&file.path, &file.bytes).expect("an empty disk");
        }
        Self {
            node,
            address: SocketAddr::new(world.address(node), PORT),
            config,
            budgets,
            failure: RefCell::new(None),
        }
    }

    /// Starts the node's next process, as `ringmain serve` does.
    pub fn boot(&self, world: &World) {
        let disk = world.disk(self.node);
        let mut config = self.config.clone();
        let found = directories::look_by(&config.storage.log_dirs, |path| disk.contents(path));
        let metadata = &config.storage.metadata_log_dir;
        let directories = directories::verify(config.node_id, metadata, &found);
        let boot = world.boot(self.node).expect("descriptors");
        let bound = listeners::bind(&mut config, |address| boot.listen(address));
        let node = Node {
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
