//! Opening and closing the partitions that one core owns.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::{Array, Str};
use shards::TaskClass;
use storage::{Log, OpenOptions, RecoveryReport, Shutdown, StorageError, TopicPartition};
use tracing::{error, info, warn};

use crate::metadata::OFFSETS_TOPIC;
use crate::replication::{Partition, PartitionKey, PartitionSettings};
use crate::shard::Shard;

/// Logs of one core that are opened at the same time.
const OPENING: usize = 16;
/// How often a full disk is asked again for the space to open a partition.
const FULL_DISK_RETRY: Duration = Duration::from_secs(2);

/// One partition to open on its owner core.
#[derive(Clone, Debug)]
pub struct OpenJob {
    /// Key of the partition.
    pub key: PartitionKey,
    /// Name of the topic.
    pub topic: Str,
    /// The log directory that holds it, or will.
    pub log_directory: PathBuf,
    /// Epoch in which this broker leads it.
    pub leader_epoch: i32,
    /// Replicas by its metadata.
    pub replica_count: u32,
    /// Settings, shared by all partitions of the topic.
    pub settings: Arc<PartitionSettings>,
    /// Whether the partition's directory was seen to say this topic id.
    pub topic_id_seen: bool,
    /// How the directory was left.
    pub shutdown: Shutdown,
    /// From the checkpoint.
    pub log_start_offset: i64,
}

/// Opens partitions on this core, some at a time. One that cannot be opened is offline, with the
/// reason in the log; the others go on. Returns how many are offline.
pub async fn open_all(shard: Rc<Shard>, jobs: Array<OpenJob>) -> usize {
    let mut offline = 0;
    let mut waiting = jobs.into_iter();
    let mut opening = FuturesUnordered::new();
    loop {
        while opening.len() < OPENING {
            match waiting.next() {
                Some(job) => opening.push(open(&shard, job)),
                None => break,
            }
        }
        match opening.next().await {
            Some(true) => {}
            Some(false) => offline += 1,
            None => return offline,
        }
    }
}

async fn open(shard: &Rc<Shard>, job: OpenJob) -> bool {
    match open_log(shard, &job).await {
        Ok(log) => {
            serve(shard, job, log);
            true
        }
        Err(failure) => {
            let name = TopicPartition::new(&*job.topic, job.key.partition);
            error!(partition = %name, %failure, "a partition is offline");
            let full = matches!(failure, StorageError::Full { .. });
            set_offline(shard, &job, &failure);
            if full {
                let opened = open_when_there_is_space(shard.clone(), job);
                drop(shard.core.spawn(TaskClass::Background, "open", opened));
            }
            false
        }
    }
}

/// Tries a partition again that a full disk kept from being opened, until it is open or gone.
async fn open_when_there_is_space(shard: Rc<Shard>, job: OpenJob) {
    loop {
        shard.core.sleep(FULL_DISK_RETRY).await;
        if shard.stopping.is_raised() || !shard.replicas.is_offline(&job.key) {
            return;
        }
        match open_log(&shard, &job).await {
            Ok(log) if shard.replicas.is_offline(&job.key) => {
                info!(partition = %log.partition(), "a partition is back: there is space again");
                return serve(&shard, job, log);
            }
            // Its topic was deleted meanwhile, and its directory with it.
            Ok(_) => return,
            Err(StorageError::Full { .. }) => {}
            Err(failure) => {
                error!(%failure, "a partition stays offline");
                return set_offline(&shard, &job, &failure);
            }
        }
    }
}

fn set_offline(shard: &Shard, job: &OpenJob, failure: &StorageError) {
    let name = TopicPartition::new(&*job.topic, job.key.partition);
    let offline = StorageError::Offline {
        path: job.log_directory.join(name.directory_name()),
        reason: failure.to_string(),
    };
    let lies = Some((job.log_directory.clone(), name));
    shard.replicas.set_offline(job.key, offline, lies);
}

async fn open_log(shard: &Rc<Shard>, job: &OpenJob) -> Result<Log, StorageError> {
    let name = TopicPartition::new(&*job.topic, job.key.partition);
    let options = OpenOptions {
        partition: name.clone(),
        topic_id: Some(job.key.topic_id),
        topic_id_seen: job.topic_id_seen,
        config: Rc::new(job.settings.log.clone()),
        shutdown: job.shutdown,
        log_start_offset: job.log_start_offset,
    };
    let (log, report) = Log::open(&shard.storage, &job.log_directory, options).await?;
    tell(&name, &report);
    Ok(log)
}

/// From now on requests find the partition.
fn serve(shard: &Rc<Shard>, job: OpenJob, log: Log) {
    log.assign_epoch(job.leader_epoch);
    let settings = Rc::new(PartitionSettings::clone(&job.settings));
    let partition = Rc::new(Partition::new(
        job.key,
        job.topic,
        log,
        job.leader_epoch,
        settings,
    ));
    partition.set_replica_count(job.replica_count);
    shard.replicas.insert(partition.clone());
    if &*partition.topic == OFFSETS_TOPIC {
        shard.lead_groups(&partition);
    }
}

/// What recovery did to a partition, where a person wants to know.
pub fn tell(name: &TopicPartition, report: &RecoveryReport) {
    for cut in report.truncations.iter().filter(|cut| !cut.only_zeros) {
        warn!(
            partition = %name, file = %cut.file.display(), at = cut.at, bytes = cut.bytes,
            why = %cut.why, "cut the end of a segment that was not written whole"
        );
    }
    let segments = report.removed_files.iter();
    let segments: Vec<_> = segments.filter(|name| name.ends_with(".log")).collect();
    if !segments.is_empty() {
        warn!(partition = %name, ?segments, "removed segments: behind the end of the log, below its start, or replaced");
    }
    for damage in &report.damages {
        error!(
            partition = %name, file = %damage.file.display(), at = damage.from,
            bytes = damage.to - damage.from, offset = damage.first_offset,
            next_offset = damage.next_offset, why = %damage.why,
            "a segment is damaged: the records at these offsets cannot be read, all others are kept: let consumers \
             go on at next_offset, or delete the records before it (DeleteRecords)"
        );
    }
    for repaired in &report.repaired {
        warn!(partition = %name, what = %repaired, "made a damaged file anew from the log");
    }
    if report.rebuilt_indexes > 0 && !report.created {
        info!(partition = %name, indexes = report.rebuilt_indexes, "rebuilt missing or wrong indexes");
    }
}

/// Deletes partitions whose topic is gone: they answer no more, and their directories are renamed
/// and then removed.
pub async fn delete_all(shard: Rc<Shard>, keys: Array<PartitionKey>) {
    for key in keys {
        let unopened = shard.replicas.unopened(&key);
        let Some(partition) = shard.replicas.remove(&key) else {
            if let Some((directory, name)) = unopened {
                delete_unopened(&shard, &directory, &name).await;
            }
            continue;
        };
        if &*partition.topic == OFFSETS_TOPIC {
            shard.groups.resign(key.partition);
        }
        match partition.log.delete().await {
            Ok(renamed) => {
                let delay = partition.settings().log.file_delete_delay_ms;
                remove_later(&shard, renamed, u64::try_from(delay).unwrap_or(0));
            }
            Err(failure) => warn!(%failure, "a deleted partition could not be set aside"),
        }
    }
}

/// The same for one that could not be opened.
async fn delete_unopened(shard: &Rc<Shard>, log_directory: &Path, name: &TopicPartition) {
    match storage::disk::set_deleted(&shard.core, log_directory, name).await {
        Ok(renamed) => remove_later(shard, renamed, 0),
        Err(failure) => warn!(%failure, "a deleted partition could not be set aside"),
    }
}

fn remove_later(shard: &Rc<Shard>, directory: PathBuf, delay_ms: u64) {
    let core = shard.core.clone();
    let remove = async move {
        core.sleep(Duration::from_millis(delay_ms)).await;
        if let Err(failure) = storage::disk::remove_deleted(&core, &directory).await {
            warn!(%failure, "a deleted partition could not be removed from disk");
        }
    };
    drop(
        shard
            .core
            .spawn(TaskClass::Background, "remove-deleted", remove),
    );
}

/// What a log says about itself when the broker stops.
#[derive(Clone, Debug)]
pub struct ClosedLog {
    /// The partition.
    pub partition: TopicPartition,
    /// Its log directory.
    pub log_directory: PathBuf,
    /// Everything below is durable.
    pub recovery_point: i64,
    /// First offset.
    pub log_start_offset: i64,
    /// High watermark.
    pub high_watermark: i64,
    /// Whether the directory is as a clean stop must leave it.
    pub clean: bool,
}

/// The state of every log of this core, as the checkpoints have it.
pub fn describe_all(shard: &Shard) -> Array<ClosedLog> {
    shard
        .replicas
        .all()
        .iter()
        .map(|partition| describe(partition, true))
        .collect()
}

/// The log directory of every partition of this core.
pub fn where_they_lie(shard: &Shard) -> Array<(PartitionKey, PathBuf)> {
    let partitions = shard.replicas.all();
    partitions
        .iter()
        .map(|partition| (partition.key, log_directory(&partition.log)))
        .collect()
}

/// Leaves every log of this core as a clean stop must.
pub async fn close_all(shard: Rc<Shard>) -> Array<ClosedLog> {
    shard.groups.resign_all();
    let mut closing = FuturesUnordered::new();
    let mut waiting = shard.replicas.all().into_iter();
    let mut closed = Array::new();
    loop {
        while closing.len() < OPENING {
            match waiting.next() {
                Some(partition) => closing.push(close(partition)),
                None => break,
            }
        }
        match closing.next().await {
            Some(log) => closed.push(log),
            None => {
                close_journals(&shard, &mut closed).await;
                return closed;
            }
        }
    }
}

/// Removes the journals, now that no log needs them. Where one stays, its directory is not clean.
async fn close_journals(shard: &Shard, closed: &mut Array<ClosedLog>) {
    for failure in shard.storage.close_journals().await {
        error!(%failure, "a journal could not be removed; its directory is recovered at the next start");
        for log in closed.iter_mut() {
            log.clean &= !failure.path().starts_with(&log.log_directory);
        }
    }
}

async fn close(partition: Rc<Partition>) -> ClosedLog {
    let clean = match partition.log.close().await {
        Ok(()) => true,
        Err(failure) => {
            error!(%failure, "a log could not be closed cleanly; it is recovered at the next start");
            false
        }
    };
    describe(&partition, clean)
}

fn log_directory(log: &Log) -> PathBuf {
    let directory = log.directory();
    directory.parent().map(PathBuf::from).unwrap_or_default()
}

fn describe(partition: &Partition, clean: bool) -> ClosedLog {
    let log = &partition.log;
    ClosedLog {
        partition: log.partition().clone(),
        log_directory: log_directory(log),
        recovery_point: log.recovery_point(),
        log_start_offset: log.log_start_offset(),
        high_watermark: partition.high_watermark(),
        clean,
    }
}
