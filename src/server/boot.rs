//! From an empty process to a broker that serves, on core 0: directories, metadata, partitions,
//! listeners; then it waits for the signal to stop.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures_util::future::{Either, select};
use protocol::Uuid;
use shards::io::dir;
use shards::signals;
use shards::{JoinHandle, TaskClass};
use tracing::{error, info, warn};

use super::disk_space::DiskSpace;
use super::hosting::Hosting;
use super::inventory::{self, LogDirectory};
use super::listeners::{Bound, bind_when_released};
use super::metadata_log::MetadataLogFile;
use super::registration::registration;
use super::{Node, ServeError, checkpoints, disks, doors, stop};
use crate::controller::{Controller, ControllerOptions, ControllerSettings, SnapshotRules};
use crate::shard::{Shard, how_far_the_start_is};
use crate::{http, network};

/// A start that takes longer says how far it is, as often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// What `storage format` leaves in the metadata directory.
const BOOTSTRAP_FILE: &str = "bootstrap.checkpoint";
/// Largest of these that is read.
const BOOTSTRAP_BYTES_MAX: usize = 16 << 20;

/// Runs the broker from core 0 until it is asked to stop; a failed start is left in `failure`.
pub async fn run(shard: Rc<Shard>, node: Node, listeners: Vec<Bound>, failure: Sender<ServeError>) {
    // Listened for from the beginning: a signal in the middle of a start stops the broker cleanly as
    // soon as it has started.
    let core = shard.core.clone();
    let signal = shard.core.spawn(TaskClass::Network, "signals", async move {
        signals::termination(&core).await
    });
    match start_aloud(&shard, &node, listeners).await {
        Ok(running) => {
            wait_for(&shard, signal).await;
            stop::run(&shard, running).await;
            if let Some(reason) = shard.disk_failures.fatal() {
                drop(failure.send(ServeError::Disks(reason)));
            }
        }
        Err(error) => {
            // The receiver waits for the cores to end, so it is there.
            drop(failure.send(error));
        }
    }
    for core in shard.cores() {
        shard
            .mesh()
            .post(core, TaskClass::Network, |shard: &Rc<Shard>| {
                shard.released.raise();
                std::future::ready(())
            });
    }
}

/// What has to be stopped in order.
pub struct Running {
    /// Keeps partitions in step with the metadata.
    pub hosting: Rc<Hosting>,
    /// The controller of this node.
    pub controller: Rc<Controller>,
    /// The log it writes.
    pub metadata_log: Rc<MetadataLogFile>,
}

/// Starts, and says in the log how far it is where that takes long.
async fn start_aloud(
    shard: &Rc<Shard>,
    node: &Node,
    listeners: Vec<Bound>,
) -> Result<Running, ServeError> {
    let mut starting = pin!(start(shard, node, listeners));
    loop {
        let tick = pin!(shard.core.sleep(PROGRESS_INTERVAL));
        match select(starting.as_mut(), tick).await {
            Either::Left((started, _)) => return started,
            Either::Right(_) => info!("starting: {}", how_far_the_start_is(shard).await),
        }
    }
}

async fn start(
    shard: &Rc<Shard>,
    node: &Node,
    listeners: Vec<Bound>,
) -> Result<Running, ServeError> {
    let began = shard.core.now();
    if let Some(endpoint) = &shard.config.runtime.http {
        let sockets = bind_when_released(&shard.core, endpoint).await;
        let opened = sockets.and_then(|sockets| http::open(shard, sockets));
        opened.map_err(|source| ServeError::Listener {
            endpoint: endpoint.to_string(),
            source,
        })?;
    }
    let mut directories = open_directories(shard, node).await?;
    let log = MetadataLogFile::open(&shard.storage, &shard.config, &directories).await?;
    let metadata_log = Rc::new(log);
    let space = DiskSpace::default();
    space.look(&shard.core, directories.iter()).await;
    let controller = start_controller(shard, &metadata_log, &directories, &space).await?;
    let image = controller.image();
    let node_id = shard.config.node_id;
    let held = inventory::settle(&shard.core, &mut directories, &image, node_id).await;
    inventory::tell(&directories);
    let hosting = Rc::new(Hosting::new(shard.clone(), directories, node.backend).await);
    let (partitions, offline) = hosting.open_first(image, held).await;
    if offline > 0 {
        warn!(
            partitions,
            offline, "some partitions are offline; the lines above say why"
        );
    }
    // The controller is known to the shard, and that to the hosting: they would keep each other alive.
    let follower = Rc::downgrade(&hosting);
    controller.publish_to(move |image| {
        let hosting = follower.upgrade();
        Box::pin(async move {
            if let Some(hosting) = hosting {
                hosting.follow(image).await;
            }
        })
    });
    shard.set_controller(controller.clone());
    doors::open(shard, listeners)?;
    // The metadata may name others than the file.
    doors::follow(shard, &shard.view().config, node.backend);
    keep_house(shard, &hosting, &metadata_log, space);
    let watch = disks::watch(shard.clone(), hosting.clone(), controller.clone());
    drop(shard.core.spawn(TaskClass::Background, "disks", watch));
    hosting.assign_directories(&controller).await;
    shard.start.done();
    announce(shard, node, partitions);
    let took = node.took_so_far + (shard.core.now() - began);
    info!(milliseconds = took.as_millis() as u64, "ready");
    Ok(Running {
        hosting,
        controller,
        metadata_log,
    })
}

/// Reads the metadata back, registers this node and leads its partitions.
async fn start_controller(
    shard: &Rc<Shard>,
    log: &Rc<MetadataLogFile>,
    directories: &[LogDirectory],
    space: &DiskSpace,
) -> Result<Rc<Controller>, ServeError> {
    let config = &shard.config;
    let metadata_dir = &config.storage.metadata_log_dir;
    let mut log_dirs: Vec<Uuid> = directories.iter().map(|directory| directory.id).collect();
    log_dirs.sort();
    let metadata_log = &config.metadata_log;
    let bootstrap = metadata_dir.join(BOOTSTRAP_FILE);
    let options = ControllerOptions {
        settings: ControllerSettings {
            node_id: config.node_id,
            default_partitions: config.topics.partitions,
            default_replication: config.topics.replication_factor,
            delete_topics: config.topics.delete,
            settings: config.settings.clone(),
            node: registration(config, log_dirs),
            directory_id: directories
                .iter()
                .find(|directory| directory.path == *metadata_dir)
                .map_or(Uuid::ZERO, |directory| directory.id),
        },
        old_bootstrap: dir::read_file(&shard.core, &bootstrap, BOOTSTRAP_BYTES_MAX)
            .await
            .ok(),
        snapshots: SnapshotRules {
            after_bytes: metadata_log.snapshot_after_bytes,
            after: metadata_log.snapshot_after,
            retention_bytes: metadata_log.retention_bytes,
            retention: metadata_log.retention,
        },
        free_bytes: space.reader(),
    };
    let controller = Controller::start(shard.core.clone(), log.clone(), options).await?;
    for problem in controller.skipped_snapshots() {
        warn!(%problem, "a metadata snapshot cannot be read; an older one serves");
    }
    for problem in controller.mended() {
        warn!(directory = %metadata_dir.display(), %problem, "the metadata was mended");
    }
    Ok(controller)
}

/// Locks and reads the log directories. One that fails is left out, unless it is the only one.
async fn open_directories(shard: &Rc<Shard>, node: &Node) -> Result<Vec<LogDirectory>, ServeError> {
    let mut open = Vec::new();
    for path in &shard.config.storage.log_dirs {
        if let Some(why) = node.directories.failed.get(path) {
            warn!(directory = %path.display(), %why, "a log directory is offline");
            shard.disk_failures.set_failed(path.clone());
            continue;
        }
        let Some(id) = node.directories.usable.get(path) else {
            continue;
        };
        open.push(LogDirectory::open(&shard.core, path, id.unwrap_or(Uuid::ZERO)).await?);
    }
    Ok(open)
}

/// The tasks that run for as long as the broker does.
fn keep_house(
    shard: &Rc<Shard>,
    hosting: &Rc<Hosting>,
    metadata_log: &Rc<MetadataLogFile>,
    space: DiskSpace,
) {
    let keep = checkpoints::keep(shard.clone(), hosting.clone(), metadata_log.clone(), space);
    drop(shard.core.spawn(TaskClass::Background, "checkpoints", keep));
    for core in shard.cores() {
        shard
            .mesh()
            .post(core, TaskClass::Background, |shard: &Rc<Shard>| {
                network::close_idle(shard.clone())
            });
    }
}

async fn wait_for(shard: &Shard, signal: JoinHandle<io::Result<signals::Signal>>) {
    let given_up = std::pin::pin!(shard.disk_failures.given_up());
    let Either::Left((signal, _)) = select(signal, given_up).await else {
        return error!("a disk without which the broker cannot go on has failed; stopping");
    };
    match signal {
        Ok(Ok(signal)) => info!(?signal, "stopping"),
        Ok(Err(error)) => warn!(%error, "cannot wait for signals; stopping"),
        Err(aborted) => warn!(%aborted, "nobody waits for signals; stopping"),
    }
}

/// The lines that a person reads after the start.
fn announce(shard: &Rc<Shard>, node: &Node, partitions: usize) {
    let config = &shard.config;
    let listeners: Vec<String> = config.listeners.iter().map(ToString::to_string).collect();
    let directories: Vec<String> = config
        .storage
        .log_dirs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if let Some(reason) = &node.fallback_reason {
        warn!("{reason}");
    }
    info!(
        version = env!("CARGO_PKG_VERSION"), node = config.node_id,
        cluster = %shard.cluster_id, "Ringmain, a broker for Kafka clients"
    );
    info!(listeners = %listeners.join(","), directories = %directories.join(","), partitions);
    info!(shards = shard.core_count(), backend = ?node.backend, pinned = config.runtime.pin);
    if let Some(first) = config.advertised_listeners.first() {
        let host = first.host.as_deref().unwrap_or("localhost");
        info!(
            "try it: echo hello | ringmain console-producer --topic first --bootstrap-server {host}:{}",
            first.port
        );
    }
}
