//! A log directory that fails while the broker runs goes offline alone: its partitions have no leader
//! until the next start finds the disk in order, and those of other directories go on.
//!
//! One failed log is not a failed disk: the directory itself is asked, by a small durable write.

use std::path::Path;
use std::rc::Rc;

use futures_util::future::join_all;
use protocol::Uuid;
use shards::TaskClass;
use storage::{LogFailure, disk};
use tracing::{error, info};

use super::hosting::Hosting;
use super::inventory::METADATA_PARTITION;
use crate::controller::{Command, Controller};
use crate::shard::Shard;

/// Looks at every directory in which a log failed, for as long as the broker runs.
pub async fn watch(shard: Rc<Shard>, hosting: Rc<Hosting>, controller: Rc<Controller>) {
    loop {
        let failure = shard.disk_failures.next().await;
        if failure.partition.directory_name() == METADATA_PARTITION {
            let why = format!("the metadata log has failed: {}", failure.reason);
            shard.disk_failures.give_up(why);
            continue;
        }
        let Some(directory) = hosting.online(&failure.log_directory) else {
            continue;
        };
        match disk::probe(&shard.core, &failure.log_directory).await {
            Ok(()) => info!(
                directory = %failure.log_directory.display(),
                "the disk of the failed partition works otherwise; its other partitions go on"
            ),
            Err(problem) => {
                error!(
                    directory = %failure.log_directory.display(), %problem,
                    "a log directory has failed: its partitions are offline; repair the disk, then \
                     start the broker again"
                );
                take_offline(&shard, &hosting, &controller, directory, &failure).await;
            }
        }
    }
}

async fn take_offline(
    shard: &Rc<Shard>,
    hosting: &Hosting,
    controller: &Rc<Controller>,
    directory: Uuid,
    failure: &LogFailure,
) {
    let path = &failure.log_directory;
    hosting.set_failed(directory);
    shard.disk_failures.set_failed(path.clone());
    let told = shard.cores().map(|core| {
        let (path, reason) = (path.clone(), failure.reason.clone());
        shard
            .mesh()
            .call(core, TaskClass::Background, move |shard: &Rc<Shard>| {
                close_logs(shard, &path, &reason);
                std::future::ready(())
            })
    });
    join_all(told).await;
    if *path == shard.config.storage.metadata_log_dir {
        let why = format!("the directory of the metadata log, {}", path.display());
        shard
            .disk_failures
            .give_up(format!("{why}, has failed: {}", failure.reason));
        return;
    }
    let command = Command::TakeDirectoriesOffline(vec![directory]);
    if let Err(problem) = controller.submit(command).await {
        error!(%problem, "the metadata still names this broker as leader of what it lost");
    }
}

/// Takes every log of this core that lies in the directory out of service.
fn close_logs(shard: &Shard, directory: &Path, reason: &str) {
    for partition in shard.replicas.all() {
        if partition.log.directory().parent() == Some(directory) {
            partition.log.take_offline(reason);
        }
    }
    shard.stand_down();
}
