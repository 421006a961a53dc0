//! One look at all cores, for the page of metrics and that of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures_util::future::join_all;
use protocol::{ApiKey, Str};
use shards::TaskClass;
use shards::io::dir::{self, Space};
use shards::metrics::CoreMetrics;
use storage::{Counters, DiskSnapshot};

use crate::shard::{ApiSnapshot, OldClients, ReasonSnapshot, Shard, ShardSnapshot, Software};

/// What one core tells.
#[derive(Debug)]
pub(super) struct CoreLook {
    pub core: CoreMetrics,
    pub storage: Counters,
    pub disks: Vec<DiskSnapshot>,
    pub shard: ShardSnapshot,
    pub reasons: ReasonSnapshot,
    pub requests: Vec<(ApiKey, ApiSnapshot)>,
    pub old_versions: OldClients,
    pub clients: BTreeMap<Software, u64>,
    pub directories: BTreeMap<PathBuf, Holdings>,
    pub partitions: Vec<PartitionLook>,
}

/// What a log directory holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holdings {
    pub partitions: u64,
    pub bytes: u64,
}

/// What is told of a partition.
#[derive(Debug)]
pub(super) struct PartitionLook {
    pub topic: Str,
    pub index: i32,
    pub bytes: u64,
    pub segments: u64,
    pub start_offset: i64,
    pub end_offset: i64,
    pub producers: u64,
    pub appended_bytes: u64,
    pub fetched_bytes: u64,
}

/// A log directory of the node.
#[derive(Debug)]
pub(super) struct DiskLook {
    pub path: PathBuf,
    pub failed: bool,
    /// None where the filesystem does not say.
    pub space: Option<Space>,
}

/// What the operating system says of the process; none of it where it does not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessLook {
    pub resident_bytes: Option<u64>,
    pub descriptors: Option<u64>,
    pub cpu_seconds: Option<f64>,
}

/// Asks every core.
pub(super) async fn all_cores(shard: &Rc<Shard>) -> Vec<CoreLook> {
    let asked = shard.cores().map(|core| {
        let look = |shard: &Rc<Shard>| std::future::ready(CoreLook::of(shard));
        shard.mesh().call(core, TaskClass::Network, look)
    });
    join_all(asked).await
}

impl CoreLook {
    fn of(shard: &Rc<Shard>) -> Self {
        let with_partitions = shard.config.runtime.partition_metrics;
        let mut partitions = Vec::new();
        let mut directories: BTreeMap<PathBuf, Holdings> = BTreeMap::new();
        for partition in shard.replicas.all() {
            let log = &partition.log;
            let directory = log.directory();
            let holds = directories
                .entry(directory.parent().map(Path::to_owned).unwrap_or_default())
                .or_default();
            holds.partitions += 1;
            holds.bytes += log.size_bytes();
            if with_partitions {
                partitions.push(PartitionLook {
                    topic: partition.topic.clone(),
                    index: partition.key.partition,
                    bytes: log.size_bytes(),
                    segments: log.segment_count() as u64,
                    start_offset: log.log_start_offset(),
                    end_offset: log.log_end_offset(),
                    producers: log.producer_count() as u64,
                    appended_bytes: partition.appended_bytes.get(),
                    fetched_bytes: partition.fetched_bytes.get(),
                });
            }
        }
        CoreLook {
            core: shard.core.metrics(),
            storage: shard.storage.counters(),
            disks: shard.storage.disks(),
            shard: shard.snapshot(),
            reasons: shard.metrics.by_reason(),
            requests: shard.metrics.requests.snapshot(),
            old_versions: shard.metrics.old_versions.all(),
            clients: shard.connections.by_software(),
            directories,
            partitions,
        }
    }
}

/// The log directories, also those that have failed.
pub(super) async fn disks(shard: &Rc<Shard>) -> Vec<DiskLook> {
    let failed: BTreeSet<PathBuf> = shard.failed_directories().await;
    let looks = shard.config.storage.log_dirs.iter().map(|path| {
        let failed = failed.contains(path);
        async move {
            // A dead disk may not answer.
            let space = match failed {
                true => None,
                false => dir::free_space(&shard.core, path).await.ok(),
            };
            let path = path.clone();
            DiskLook {
                path,
                failed,
                space,
            }
        }
    });
    join_all(looks).await
}

/// What the operating system says of this process.
pub(super) async fn process(shard: &Rc<Shard>) -> ProcessLook {
    shard
        .core
        .blocking(|| ProcessLook {
            resident_bytes: resident_bytes(),
            descriptors: std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| entries.count() as u64),
            cpu_seconds: cpu_seconds(),
        })
        .await
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Fields 14 and 15 of `/proc/self/stat`, in ticks of which Linux has 100 a second for every program.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let behind_name = stat.rsplit_once(") ")?.1;
    let mut fields = behind_name.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some((next()? + next()?) as f64 / 100.0)
}
