//! Disks that fail while the broker runs: news from all cores, gathered on core 0.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use shards::sync::Event;
use shards::{CoreId, TaskClass};
use storage::LogFailure;
use tracing::{error, warn};

use super::{Shard, Stopping};

/// The core that decides about directories.
const DECIDING_CORE: CoreId = CoreId(0);

/// Log directories in which a log failed, until somebody looks at them.
#[derive(Default)]
pub struct DiskFailures {
    waiting: RefCell<BTreeMap<PathBuf, LogFailure>>,
    news: Event,
    failed: RefCell<BTreeSet<PathBuf>>,
    fatal: RefCell<Option<String>>,
    over: Stopping,
}

impl DiskFailures {
    /// One failure of each directory is enough: the others say the same.
    fn add(&self, failure: LogFailure) {
        let directory = failure.log_directory.clone();
        self.waiting
            .borrow_mut()
            .entry(directory)
            .or_insert(failure);
        self.news.notify_all();
    }

    /// The next failure that nobody has looked at.
    pub async fn next(&self) -> LogFailure {
        loop {
            let first = self.waiting.borrow_mut().pop_first();
            match first {
                Some((_, failure)) => return failure,
                None => self.news.wait().await,
            }
        }
    }

    /// A log directory is offline until the next start.
    pub fn set_failed(&self, directory: PathBuf) {
        self.failed.borrow_mut().insert(directory);
    }

    /// The log directories that are offline.
    pub fn failed(&self) -> BTreeSet<PathBuf> {
        self.failed.borrow().clone()
    }

    /// Without these disks the broker cannot go on.
    pub fn give_up(&self, reason: String) {
        self.fatal.borrow_mut().get_or_insert(reason);
        self.over.raise();
    }

    /// Waits until the broker cannot go on.
    pub async fn given_up(&self) {
        self.over.wait().await;
    }

    /// Why the broker could not go on, if it could not.
    pub fn fatal(&self) -> Option<String> {
        self.fatal.borrow().clone()
    }
}

impl Shard {
    /// The log directories that are offline, as core 0 knows them.
    pub async fn failed_directories(&self) -> BTreeSet<PathBuf> {
        let there = |shard: &Rc<Shard>| std::future::ready(shard.disk_failures.failed());
        self.mesh()
            .call(DECIDING_CORE, TaskClass::Background, there)
            .await
    }

    /// From now on core 0 learns of every log of this core that its disk failed.
    pub(super) fn watch_disks(self: &Rc<Self>) {
        let shard: Weak<Shard> = Rc::downgrade(self);
        self.storage.watch_failures(move |failure| {
            if let Some(shard) = shard.upgrade() {
                shard.log_failed(failure);
            }
        });
        self.storage.watch_journals(|failure| {
            warn!(
                directory = %failure.log_directory.display(), reason = %failure.reason,
                "small appends have no journal there until the next start and go to their segments one by one, which is slower; \
                 nothing is lost"
            );
        });
    }

    fn log_failed(self: &Rc<Self>, failure: LogFailure) {
        error!(partition = %failure.partition, reason = %failure.reason, "a partition is offline");
        self.stand_down();
        self.mesh()
            .post(DECIDING_CORE, TaskClass::Background, |shard: &Rc<Shard>| {
                shard.disk_failures.add(failure);
                std::future::ready(())
            });
    }

    /// Whoever waits for a partition that has gone offline looks again, and its groups are told to
    /// find another coordinator.
    pub fn stand_down(&self) {
        for partition in self.replicas.all() {
            if partition.log.offline_reason().is_none() {
                continue;
            }
            partition.waiters.fire_all();
            if &*partition.topic == crate::metadata::OFFSETS_TOPIC {
                self.groups.resign(partition.key.partition);
            }
        }
    }
}
