//! What the log directories hold when the broker starts: partitions, checkpoints, clean markers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use protocol::{Array, Uuid};
use shards::io::dir::FileLock;
use shards::{Core, TaskClass};
use storage::disk::{self, Checkpoint};
use storage::journal::JournalReport;
use storage::{DirectoryKind, Shutdown, StorageError, TopicPartition};
use tracing::{error, info, warn};

use super::ServeError;
use super::hosted::OpenJob;
use super::listeners::{TEARDOWN, TEARDOWN_STEP};
use crate::metadata::Image;
use crate::replication::PartitionKey;

/// The partition of the metadata log: it lies in a log directory and is no topic.
pub const METADATA_PARTITION: &str = "__cluster_metadata-0";
/// Partition directories that one thread of the pool looks into, one after another.
const PORTION: usize = 32;
/// How many such portions are read at the same time: as many as the pool has threads.
const PORTIONS_AT_ONCE: usize = 16;

/// One usable log directory.
pub struct LogDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// `directory.id`.
    pub id: Uuid,
    /// Whether the broker before stopped cleanly.
    pub clean: bool,
    recovery_points: BTreeMap<TopicPartition, i64>,
    log_starts: BTreeMap<TopicPartition, i64>,
    partitions: BTreeMap<TopicPartition, Option<Uuid>>,
    /// Kept until the process ends: nobody else may use the directory.
    _lock: FileLock,
}

impl LogDirectory {
    /// Locks a directory and reads what a start needs to know.
    ///
    /// # Errors
    /// The lock is held by another broker, or the directory cannot be read.
    pub async fn open(core: &Core, path: &Path, id: Uuid) -> Result<Self, ServeError> {
        let lock = lock_patiently(core, path).await?;
        let clean = disk::read_clean_marker(core, path).await?.is_some();
        tell_journals(path, &storage::journal::replay(core, path, clean).await?);
        // From here on a crash has to be recovered from.
        disk::remove_clean_marker(core, path).await?;
        let recovery_points = read(core, path, Checkpoint::RecoveryPoint).await;
        let log_starts = read(core, path, Checkpoint::LogStartOffset).await;
        let mut strays = Vec::new();
        let found = disk::list(core, path).await?;
        let found = found.filter_map(|directory| match directory.kind {
            DirectoryKind::Partition(name) if name.directory_name() != METADATA_PARTITION => {
                Some((directory.path, name))
            }
            DirectoryKind::Deleted => {
                remove_later(core, directory.path);
                None
            }
            DirectoryKind::Stray => {
                strays.push(directory.path);
                None
            }
            DirectoryKind::Partition(_) | DirectoryKind::Future(_) | DirectoryKind::Other => None,
        });
        let partitions = whose_they_are(core, found).await;
        tell_strays(path, &strays);
        Ok(LogDirectory {
            path: path.to_path_buf(),
            id,
            clean,
            recovery_points,
            log_starts,
            partitions,
            _lock: lock,
        })
    }

    /// Partition directories found.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// How a partition of this directory is to be opened.
    fn shutdown(&self, name: &TopicPartition) -> Shutdown {
        match self.clean {
            true => Shutdown::Clean,
            false => Shutdown::Unclean {
                recovery_point: self.recovery_points.get(name).copied().unwrap_or(0),
            },
        }
    }

    /// Completes a job for a partition that this directory holds, or will hold.
    pub fn place(&self, job: &mut OpenJob) {
        let name = TopicPartition::new(&*job.topic, job.key.partition);
        job.log_directory = self.path.clone();
        let says = self.partitions.get(&name).copied().flatten();
        job.topic_id_seen = says == Some(job.key.topic_id);
        job.shutdown = self.shutdown(&name);
        job.log_start_offset = self.log_starts.get(&name).copied().unwrap_or(0);
    }
}

/// The topic id that each partition directory says, if it does. On a disk that has to be waited for, so many are read at once
/// that the waiting times overlap.
async fn whose_they_are(
    core: &Core,
    found: impl Iterator<Item = (PathBuf, TopicPartition)>,
) -> BTreeMap<TopicPartition, Option<Uuid>> {
    let mut reading = pin!(in_portions(found, |portion| read_portion(core, portion)));
    let mut partitions = BTreeMap::new();
    while let Some(portion) = reading.next().await {
        for (name, topic_id) in portion {
            partitions.insert(name, topic_id);
        }
    }
    partitions
}

async fn read_portion(
    core: &Core,
    portion: Vec<(PathBuf, TopicPartition)>,
) -> impl Iterator<Item = (TopicPartition, Option<Uuid>)> {
    let directories = portion.iter().map(|(path, _)| path.as_path());
    let topics = disk::read_topic_ids(core, directories).await;
    let topics = topics.into_iter().map(|topic| {
        topic.unwrap_or_else(|failure| {
            warn!(%failure, "a partition directory does not say whose it is");
            None
        })
    });
    portion.into_iter().map(|(_, name)| name).zip(topics)
}

/// Does something with all that an iterator gives, some portions at a time. The answers keep the order.
fn in_portions<T, F: Future>(
    items: impl Iterator<Item = T>,
    work: impl FnMut(Vec<T>) -> F,
) -> impl Stream<Item = F::Output> {
    let portions = stream::iter(Portions(items));
    portions.map(work).buffered(PORTIONS_AT_ONCE)
}

/// What an iterator gives, in portions.
struct Portions<I>(I);

impl<I: Iterator> Iterator for Portions<I> {
    type Item = Vec<I::Item>;

    fn next(&mut self) -> Option<Self::Item> {
        let portion: Vec<I::Item> = self.0.by_ref().take(PORTION).collect();
        (!portion.is_empty()).then_some(portion)
    }
}

/// What the journals that a crash left held.
fn tell_journals(directory: &Path, report: &JournalReport) {
    if report.journals > 0 {
        info!(
            directory = %directory.display(), journals = report.journals, entries = report.entries,
            bytes = report.bytes, missing_in_segments = report.written_bytes, of_deleted = report.gone,
            "put the journals' records back into their segments"
        );
    }
    for place in &report.conflicts {
        warn!(
            segment = %place,
            "another broker went on with this partition after the crash: what the journal has of it was left out; \
             next time run `ringmain recover` before another broker opens the directory"
        );
    }
    for journal in &report.set_aside {
        warn!(
            journal = %journal.display(),
            "a journal is older than the last clean stop of its directory, by another broker: it was set aside unread; \
             remove it once nobody misses records"
        );
    }
    for journal in &report.damaged {
        error!(
            journal = %journal.display(),
            "the first block of a journal is damaged: it was set aside unread, and what had not reached its segments from there is \
             missing; look after the disk, and restore such records from where they came"
        );
    }
}

/// What earlier starts set aside and nobody has looked at since.
fn tell_strays(directory: &Path, strays: &[PathBuf]) {
    if let Some(first) = strays.first() {
        warn!(
            directory = %directory.display(), count = strays.len(), first = %first.display(),
            "partitions that the metadata did not know at an earlier start still lie here as -stray; they take space and \
             are never read: move them out of the log directory once you know that nobody needs them"
        );
    }
}

/// Locks, and while the lock is held tries again for as long as a killed process may hold it.
async fn lock_patiently(core: &Core, path: &Path) -> Result<FileLock, ServeError> {
    let mut left = TEARDOWN;
    loop {
        match disk::lock(core, path).await {
            Err(StorageError::Io { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
                if left.is_zero() {
                    return Err(ServeError::Locked {
                        directory: path.to_path_buf(),
                    });
                }
                core.sleep(TEARDOWN_STEP).await;
                left = left.saturating_sub(TEARDOWN_STEP);
            }
            result => return Ok(result?),
        }
    }
}

/// A checkpoint that cannot be read costs a longer recovery, not the start.
async fn read(core: &Core, path: &Path, kind: Checkpoint) -> BTreeMap<TopicPartition, i64> {
    match disk::read_checkpoint(core, path, kind).await {
        Ok(entries) => entries,
        Err(failure) => {
            warn!(%failure, "a checkpoint cannot be read; recovery starts from the beginning");
            BTreeMap::new()
        }
    }
}

fn remove_later(core: &Core, path: PathBuf) {
    let task = {
        let core = core.clone();
        async move {
            if let Err(failure) = disk::remove_deleted(&core, &path).await {
                warn!(%failure, "a deleted partition could not be removed from disk");
            }
        }
    };
    drop(core.spawn(TaskClass::Background, "remove-deleted", task));
}

/// Which directory holds each partition of the image; directories of partitions that the metadata
/// does not know are set aside as `-stray`, never deleted.
pub async fn settle(
    core: &Core,
    directories: &mut [LogDirectory],
    image: &Image,
    node: i32,
) -> BTreeMap<PartitionKey, usize> {
    let mut held: BTreeMap<PartitionKey, usize> = BTreeMap::new();
    let mut strays: BTreeSet<(usize, TopicPartition)> = BTreeSet::new();
    for (index, directory) in directories.iter().enumerate() {
        for (name, topic_id) in &directory.partitions {
            let key = known(image, node, name, *topic_id);
            let Some(key) = key else {
                strays.insert((index, name.clone()));
                continue;
            };
            let assigned = image
                .partition(key.topic_id, key.partition)
                .and_then(|partition| partition.directory_of(node));
            match held.get(&key).copied() {
                None => {
                    held.insert(key, index);
                }
                // Two directories claim one partition: the one that the metadata names has it.
                Some(_) if assigned == Some(directory.id) => {
                    let other = held.insert(key, index);
                    strays.extend(other.map(|other| (other, name.clone())));
                }
                Some(_) => {
                    strays.insert((index, name.clone()));
                }
            }
        }
    }
    for (index, name) in strays {
        let directory = &mut directories[index];
        directory.partitions.remove(&name);
        set_aside(core, &directory.path, &name).await;
    }
    held
}

fn known(
    image: &Image,
    node: i32,
    name: &TopicPartition,
    topic_id: Option<Uuid>,
) -> Option<PartitionKey> {
    let by_name = image.topic_id(&name.topic)?;
    if topic_id.is_some_and(|id| id != by_name) {
        return None;
    }
    let partition = image.partition(by_name, name.partition)?;
    partition.replicas.contains(&node).then_some(PartitionKey {
        topic_id: by_name,
        partition: name.partition,
    })
}

async fn set_aside(core: &Core, directory: &Path, name: &TopicPartition) {
    match disk::set_stray(core, directory, name).await {
        Ok(renamed) => warn!(
            partition = %name, directory = %renamed.display(),
            "the metadata does not know this partition; it was set aside: move it out of the log \
             directory once you know that nobody needs it"
        ),
        Err(failure) => warn!(partition = %name, %failure, "a stray partition cannot be set aside"),
    }
}

/// Tells of partitions that were there when the broker stopped cleanly, and lie nowhere now.
pub fn tell_gone(partitions: &Array<TopicPartition>) {
    if let Some(first) = partitions.first() {
        error!(
            count = partitions.len(), %first,
            "partitions that were here when the broker stopped are gone from the log directories: somebody moved or removed \
             them, and they begin empty now; to have their records back, stop the broker and put their directories in \
             place of the new ones"
        );
    }
}

/// Tells what was found, in one line.
pub fn tell(directories: &[LogDirectory]) {
    for directory in directories {
        info!(
            directory = %directory.path.display(), partitions = directory.partition_count(),
            clean = directory.clean || directory.partition_count() == 0, "log directory"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn portions_overlap_keep_their_order_and_are_bounded() {
        let (under_way, most) = (Cell::new(0), Cell::new(0));
        let work = |portion: Vec<usize>| {
            let (under_way, most) = (&under_way, &most);
            async move {
                assert!(portion.len() <= PORTION);
                under_way.set(under_way.get() + 1);
                most.set(most.get().max(under_way.get()));
                // Later ones are ready before earlier ones.
                for _ in 0..PORTIONS_AT_ONCE - portion[0] / PORTION % PORTIONS_AT_ONCE {
                    yield_once().await;
                }
                under_way.set(under_way.get() - 1);
                portion
            }
        };
        let mut all = pin!(in_portions(0..1000, work).collect::<Vec<_>>());
        let mut context = Context::from_waker(Waker::noop());
        let portions = loop {
            if let Poll::Ready(portions) = all.as_mut().poll(&mut context) {
                break portions;
            }
        };
        assert_eq!(portions.concat(), (0..1000).collect::<Vec<_>>());
        assert_eq!(most.get(), PORTIONS_AT_ONCE);
    }

    async fn yield_once() {
        let mut yielded = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            match std::mem::replace(&mut yielded, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}
