//! The checkpoint files of all log directories, gathered from the cores and written in one place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::{Either, join_all, select};
use protocol::Array;
use shards::{Core, TaskClass};
use storage::TopicPartition;
use storage::disk::{self, Checkpoint};
use tracing::warn;

use super::disk_space::DiskSpace;
use super::hosted::{self, ClosedLog};
use super::hosting::Hosting;
use super::metadata_log::MetadataLogFile;
use crate::shard::Shard;

/// Writes recovery points, log starts and high watermarks from time to time, until the broker stops.
pub async fn keep(
    shard: Rc<Shard>,
    hosting: Rc<Hosting>,
    metadata_log: Rc<MetadataLogFile>,
    space: DiskSpace,
) {
    // High watermarks could be written more often (replica.high.watermark.checkpoint.interval.ms); a
    // node that holds the only replica never reads them back.
    let interval = shard.config.storage.recovery_point_interval;
    let mut last = BTreeMap::new();
    loop {
        metadata_log.ballast().keep().await;
        let tick = std::pin::pin!(shard.core.sleep(interval));
        let stop = std::pin::pin!(shard.stopping.wait());
        if let Either::Right(_) = select(tick, stop).await {
            return;
        }
        let asked = shard.cores().map(|core| {
            shard
                .mesh()
                .call(core, TaskClass::Background, |shard: &Rc<Shard>| {
                    std::future::ready(hosted::describe_all(shard))
                })
        });
        let logs: Array<ClosedLog> = join_all(asked).await.into_iter().flatten().collect();
        let mut now = by_directory(&logs);
        now.retain(|directory, _| hosting.online(directory).is_some());
        if now != last {
            write(&shard.core, &now).await;
            last = now;
        }
        hosting.save_placement().await;
        space.look(&shard.core, hosting.directories()).await;
    }
}

/// The entries of one directory's checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    recovery_points: BTreeMap<TopicPartition, i64>,
    log_starts: BTreeMap<TopicPartition, i64>,
    high_watermarks: BTreeMap<TopicPartition, i64>,
}

/// Sorts what the logs say by their directory.
pub fn by_directory(logs: &Array<ClosedLog>) -> BTreeMap<PathBuf, Entries> {
    let mut directories: BTreeMap<PathBuf, Entries> = BTreeMap::new();
    for log in logs {
        let entries = directories.entry(log.log_directory.clone()).or_default();
        let name = &log.partition;
        entries
            .recovery_points
            .insert(name.clone(), log.recovery_point);
        entries
            .high_watermarks
            .insert(name.clone(), log.high_watermark);
        if log.log_start_offset > 0 {
            entries
                .log_starts
                .insert(name.clone(), log.log_start_offset);
        }
    }
    directories
}

/// Writes the checkpoints; a directory that cannot be written is told and passed over.
pub async fn write(core: &Core, directories: &BTreeMap<PathBuf, Entries>) {
    for (path, entries) in directories {
        let files = [
            (Checkpoint::RecoveryPoint, &entries.recovery_points),
            (Checkpoint::LogStartOffset, &entries.log_starts),
            (Checkpoint::Replication, &entries.high_watermarks),
        ];
        for (kind, values) in files {
            if let Err(failure) = disk::write_checkpoint(core, path, kind, values).await {
                warn!(%failure, "a checkpoint cannot be written");
            }
        }
    }
}
