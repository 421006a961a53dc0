//! The way down: no new connections, answer what is in flight, close every log, write the clean
//! marker. A directory whose logs did not all close gets no marker and is recovered next time.

use protocol::Array;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use shards::TaskClass;
use storage::{StorageError, disk};
use tracing::{info, warn};

use super::boot::Running;
use super::checkpoints;
use super::hosted::{self, ClosedLog};
use crate::shard::Shard;

/// How long connections may take to send what they owe.
const DRAIN: Duration = Duration::from_secs(5);

/// Stops a running broker.
pub async fn run(shard: &Rc<Shard>, running: Running) {
    let drained = shard.cores().map(|core| {
        shard
            .mesh()
            .call(core, TaskClass::Network, |shard: &Rc<Shard>| {
                drain(shard.clone())
            })
    });
    join_all(drained).await;
    let closed = shard.cores().map(|core| {
        shard
            .mesh()
            .call(core, TaskClass::Background, |shard: &Rc<Shard>| {
                hosted::close_all(shard.clone())
            })
    });
    let logs: Array<ClosedLog> = join_all(closed).await.into_iter().flatten().collect();
    let failed = shard.cores().map(|core| {
        shard
            .mesh()
            .call(core, TaskClass::Background, |shard: &Rc<Shard>| {
                std::future::ready(shard.replicas.offline())
            })
    });
    let failed: Vec<StorageError> = join_all(failed).await.into_iter().flatten().collect();
    let metadata_closed = close_metadata(&running).await;
    checkpoints::write(&shard.core, &checkpoints::by_directory(&logs)).await;
    running.hosting.save_placement().await;
    let mut unclean: BTreeSet<PathBuf> = logs
        .iter()
        .filter(|log| !log.clean)
        .map(|log| log.log_directory.clone())
        .collect();
    if !metadata_closed {
        unclean.insert(shard.config.storage.metadata_log_dir.clone());
    }
    mark_clean(shard, &running, &unclean, &failed).await;
    info!(partitions = logs.len(), "stopped");
}

/// Fences this broker and closes the metadata log.
async fn close_metadata(running: &Running) -> bool {
    if let Err(error) = running.controller.close().await {
        warn!(%error, "the controller did not end cleanly");
    }
    match running.metadata_log.close().await {
        Ok(()) => true,
        Err(failure) => {
            warn!(%failure, "the metadata log could not be closed cleanly");
            false
        }
    }
}

/// Ends the connections of one core.
async fn drain(shard: Rc<Shard>) {
    shard.stopping.raise();
    // Members that wait for a rebalance are told to look for another coordinator.
    shard.groups.resign_all();
    let closed = shard.connections.all_closed();
    if shard.core.timeout(DRAIN, closed).await.is_err() {
        warn!(
            connections = shard.connections.len(),
            "cutting connections that did not end"
        );
        shard.connections.for_each(|stream, _| stream.shutdown());
    }
}

/// Marks the directories in which everything was closed cleanly. What could not even be opened (`failed`)
/// is to be recovered by the next start.
async fn mark_clean(
    shard: &Rc<Shard>,
    running: &Running,
    unclean: &BTreeSet<PathBuf>,
    failed: &[StorageError],
) {
    let epoch = running.controller.broker_epoch();
    for directory in running.hosting.directories() {
        let holds = |failure: &StorageError| failure.path().starts_with(&directory.path);
        if unclean.contains(&directory.path) || failed.iter().any(holds) {
            continue;
        }
        let marked = disk::write_clean_marker(&shard.core, &directory.path, epoch).await;
        if let Err(failure) = marked {
            warn!(%failure, "the clean marker cannot be written; the next start recovers");
        }
    }
}
