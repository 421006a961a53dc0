//! What the logs of one core share: memory budgets, open files, counters and the task that lets idle logs rest.

use crate::cache::{BatchCache, FileCache, IndexCache, Logs};
use crate::disk_metrics::{DiskCounters, DiskSnapshot};
use crate::error::StorageError;
use crate::journal::{Journal, JournalFailure};
use crate::log::{Cached, LogInner};
use crate::metrics::Counters;
use crate::names::TopicPartition;
use shards::{Core, TaskClass};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Budgets of one core. All are hard limits except that every log being written keeps its last block in memory.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Bytes of recent batches kept for readers.
    pub cache_bytes: usize,
    /// Bytes of sealed segments' indexes.
    pub index_cache_bytes: usize,
    /// Files held open for reading.
    pub open_read_files: usize,
    /// A log without appends for this long gives back its files and space.
    pub idle_after: Duration,
    /// A file is extended ahead of the writes by at most this much.
    pub extend_bytes_max: u32,
    /// `producer.id.expiration.check.interval.ms`: how often idle producers are looked for.
    pub producer_check_interval: Duration,
    /// Idempotent producers that all logs of the core together remember.
    pub producers_max: usize,
    /// Bytes of the journal on each disk, less where the disk has little space; 0 for none.
    pub journal_bytes: u64,
}

impl Default for StorageOptions {
    fn default() -> StorageOptions {
        StorageOptions {
            cache_bytes: 64 << 20,
            index_cache_bytes: 16 << 20,
            open_read_files: 256,
            idle_after: Duration::from_secs(10),
            extend_bytes_max: 16 << 20,
            producer_check_interval: Duration::from_secs(600),
            producers_max: 1_000_000,
            journal_bytes: 32 << 20,
        }
    }
}

/// A log that its disk failed: it is offline from now on.
#[derive(Debug, Clone)]
pub struct LogFailure {
    pub partition: TopicPartition,
    /// The directory that holds the log's own.
    pub log_directory: PathBuf,
    pub reason: String,
}

type FailureWatch = Rc<dyn Fn(LogFailure)>;
type JournalWatch = Rc<dyn Fn(JournalFailure)>;

/// Bytes of the cache that are given back in one turn.
const FREED_AT_ONCE: usize = 1 << 20;
/// The storage of one core. Clones are handles to the same.
#[derive(Clone)]
pub struct Storage(pub(crate) Rc<StorageInner>);

pub(crate) struct StorageInner {
    pub core: Core,
    pub options: StorageOptions,
    pub cache: RefCell<BatchCache>,
    pub indexes: RefCell<IndexCache>,
    pub files: RefCell<FileCache>,
    pub counters: RefCell<Counters>,
    /// By log directory.
    disks: RefCell<BTreeMap<PathBuf, Rc<DiskCounters>>>,
    /// By log directory.
    journals: RefCell<BTreeMap<PathBuf, Rc<Journal>>>,
    /// Logs with something to give back or to flush; the housekeeping task looks at no others.
    busy: RefCell<Vec<Weak<LogInner>>>,
    housekeeping: Cell<bool>,
    /// Every log of the core.
    pub logs: RefCell<Logs>,
    expiring: Cell<bool>,
    next_log_id: Cell<u64>,
    failure_watch: RefCell<Option<FailureWatch>>,
    journal_watch: RefCell<Option<JournalWatch>>,
    /// Producers in all logs, as far as these have told.
    producers: Cell<usize>,
}

const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(1);
const TICKS_AT_ONCE: usize = 32;

impl Storage {
    pub fn new(core: Core, options: StorageOptions) -> Storage {
        Storage(Rc::new(StorageInner {
            cache: RefCell::new(BatchCache::new(options.cache_bytes)),
            indexes: RefCell::new(IndexCache::new(options.index_cache_bytes)),
            files: RefCell::new(FileCache::new(options.open_read_files)),
            counters: RefCell::new(Counters::default()),
            disks: RefCell::default(),
            journals: RefCell::default(),
            busy: RefCell::new(Vec::new()),
            housekeeping: Cell::new(false),
            logs: RefCell::default(),
            expiring: Cell::new(false),
            next_log_id: Cell::new(0),
            failure_watch: RefCell::default(),
            journal_watch: RefCell::default(),
            producers: Cell::new(0),
            core,
            options,
        }))
    }

    pub fn core(&self) -> &Core {
        &self.0.core
    }

    /// A copy of the core's counters, with the gauges filled in.
    pub fn counters(&self) -> Counters {
        let mut counters = *self.0.counters.borrow();
        counters.cache_bytes = self.0.cache.borrow().used() as u64;
        counters.index_cache_bytes = self.0.indexes.borrow().used() as u64;
        counters.open_read_files = self.0.files.borrow().len() as u64;
        counters.busy_logs = self.0.busy.borrow().len() as u64;
        let journals = self.0.journals.borrow();
        counters.journal_used_bytes = journals.values().map(|journal| journal.used()).sum();
        counters
    }

    /// What this core did with each log directory in which it has a log.
    pub fn disks(&self) -> Vec<DiskSnapshot> {
        let disks = self.0.disks.borrow();
        disks
            .iter()
            .map(|(directory, counters)| counters.snapshot(directory.clone()))
            .collect()
    }

    /// The counters of a log directory.
    pub(crate) fn disk(&self, log_directory: &Path) -> Rc<DiskCounters> {
        let mut disks = self.0.disks.borrow_mut();
        if let Some(counters) = disks.get(log_directory) {
            return counters.clone();
        }
        let counters = Rc::<DiskCounters>::default();
        disks.insert(log_directory.to_path_buf(), counters.clone());
        counters
    }

    /// The journal of a log directory, unless there is none.
    pub(crate) fn journal(&self, log_directory: &Path) -> Option<Rc<Journal>> {
        if self.0.options.journal_bytes == 0 {
            return None;
        }
        let disk = self.disk(log_directory);
        let mut journals = self.0.journals.borrow_mut();
        if let Some(journal) = journals.get(log_directory) {
            return Some(journal.clone());
        }
        let journal = Journal::new(log_directory, self.0.core.id().index(), disk);
        let journal = Rc::new(journal);
        journals.insert(log_directory.to_path_buf(), journal.clone());
        Some(journal)
    }

    /// Removes the journals that no log needs any more: in a clean stop, when every log is closed. Answers what failed:
    /// those directories must not get the clean marker.
    pub async fn close_journals(&self) -> Vec<StorageError> {
        let journals: Vec<_> = self.0.journals.borrow().values().cloned().collect();
        let mut failed = Vec::new();
        for journal in journals {
            failed.extend(journal.close(self).await.err());
        }
        failed
    }

    /// Who is told of every journal that could not be made, or failed.
    pub fn watch_journals(&self, watch: impl Fn(JournalFailure) + 'static) {
        *self.0.journal_watch.borrow_mut() = Some(Rc::new(watch));
    }

    pub(crate) fn tell_journal_failure(&self, failure: JournalFailure) {
        let watch = self.0.journal_watch.borrow().clone();
        if let Some(watch) = watch {
            watch(failure);
        }
    }

    /// Who is told of every log that goes offline because of an I/O error or of damage.
    pub fn watch_failures(&self, watch: impl Fn(LogFailure) + 'static) {
        *self.0.failure_watch.borrow_mut() = Some(Rc::new(watch));
    }

    pub(crate) fn tell_failure(&self, failure: LogFailure) {
        let watch = self.0.failure_watch.borrow().clone();
        if let Some(watch) = watch {
            watch(failure);
        }
    }

    pub(crate) fn count(&self, f: impl FnOnce(&mut Counters)) {
        f(&mut self.0.counters.borrow_mut());
    }

    pub(crate) fn next_log_id(&self) -> u64 {
        let id = self.0.next_log_id.get();
        self.0.next_log_id.set(id + 1);
        id
    }

    /// Makes a new log known.
    pub(crate) fn register(&self, log: &Rc<LogInner>) {
        self.0.logs.borrow_mut().insert(log.id, Rc::downgrade(log));
        if !self.0.expiring.replace(true) {
            let storage = self.clone();
            drop(
                self.0
                    .core
                    .spawn(TaskClass::Background, "producer-expiry", async move {
                        storage.expire_producers().await;
                    }),
            );
        }
    }

    /// Lets the logs forget idle producers from time to time, until no log is left.
    async fn expire_producers(&self) {
        loop {
            self.0
                .core
                .sleep(self.0.options.producer_check_interval)
                .await;
            let logs: Vec<_> = self.0.logs.borrow().values().cloned().collect();
            for (at, log) in logs.iter().filter_map(Weak::upgrade).enumerate() {
                log.expire_producers();
                if at % 256 == 255 {
                    self.0.core.yield_now().await;
                }
            }
            if self.0.logs.borrow().is_empty() {
                self.0.expiring.set(false);
                return;
            }
        }
    }

    /// Takes note of how many producers a log remembers. With too many in all, the log with the most forgets those that
    /// are idle for longest, a tenth of all at once. Call without any log borrowed.
    pub(crate) fn count_producers(&self, before: usize, now: usize) {
        let all = (self.0.producers.get() + now).saturating_sub(before);
        self.0.producers.set(all);
        if all <= self.0.options.producers_max {
            return;
        }
        let logs: Vec<_> = self
            .0
            .logs
            .borrow()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        if let Some(largest) = logs.iter().max_by_key(|log| log.producer_count()) {
            let surplus = all - self.0.options.producers_max + self.0.options.producers_max / 10;
            largest.forget_producers(surplus);
        }
    }

    /// Puts a log under housekeeping until it is idle again.
    pub(crate) fn watch(&self, log: &Rc<LogInner>) {
        self.0.busy.borrow_mut().push(Rc::downgrade(log));
        self.wake_housekeeping();
    }

    /// Starts housekeeping where it rests; for read files too, which may be open while no log is busy.
    pub(crate) fn wake_housekeeping(&self) {
        if !self.0.housekeeping.replace(true) {
            let storage = self.clone();
            let keep = async move { storage.keep_house().await };
            let core = &self.0.core;
            drop(core.spawn(TaskClass::Background, "log-housekeeping", keep));
        }
    }

    /// Runs while any log is busy, so that an idle broker has no timer to wake for.
    async fn keep_house(&self) {
        loop {
            self.0.core.sleep(HOUSEKEEPING_INTERVAL).await;
            self.tick_all().await;
            self.0
                .files
                .borrow_mut()
                .close_unused(self.0.core.now(), self.0.options.idle_after);
            let mut busy = self.0.busy.borrow_mut();
            busy.retain(|log| log.upgrade().is_some_and(|log| log.is_watched()));
            if busy.is_empty() && self.0.files.borrow().is_empty() {
                self.0.housekeeping.set(false);
                return;
            }
        }
    }

    /// Ticks every busy log, several at a time: most of a rest is waiting for the disk, and syncs that wait together
    /// share a commit of the filesystem.
    async fn tick_all(&self) {
        let logs: Vec<Weak<LogInner>> = self.0.busy.borrow().clone();
        let due = logs
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|log| log.tick_due());
        let due: Rc<RefCell<Vec<Rc<LogInner>>>> = Rc::new(RefCell::new(due.collect()));
        let lanes: Vec<_> = (0..due.borrow().len().min(TICKS_AT_ONCE))
            .map(|_| {
                let due = due.clone();
                self.0
                    .core
                    .spawn(TaskClass::Background, "log-tick", async move {
                        loop {
                            let Some(log) = due.borrow_mut().pop() else {
                                return;
                            };
                            log.tick().await;
                        }
                    })
            })
            .collect();
        for lane in lanes {
            let _ = lane.await;
        }
    }

    /// Frees what a log kept for readers, a little at a time: giving a gigabyte back to the machine takes a tenth of a
    /// second. Its bytes count as kept until they are free.
    pub(crate) fn let_go(&self, mut cached: VecDeque<Cached>) {
        self.0.cache.borrow_mut().forget(cached.len(), 0);
        self.free_some(&mut cached);
        if cached.is_empty() {
            return;
        }
        let storage = self.clone();
        let core = &self.0.core;
        drop(
            core.spawn(TaskClass::Background, "cache-let-go", async move {
                while !cached.is_empty() {
                    storage.0.core.yield_now().await;
                    storage.free_some(&mut cached);
                }
            }),
        );
    }

    fn free_some(&self, cached: &mut VecDeque<Cached>) {
        let mut bytes = 0;
        while bytes < FREED_AT_ONCE
            && let Some(entry) = cached.pop_front()
        {
            bytes += entry.data.len();
        }
        self.0.cache.borrow_mut().forget(0, bytes);
    }

    /// Evicts until the cache is within its budget. Call without any log borrowed.
    pub(crate) fn shrink_cache(&self) {
        loop {
            let Some((log, entry)) = self.0.cache.borrow_mut().pop_over_budget() else {
                return;
            };
            let log = self.0.logs.borrow().get(&log).and_then(Weak::upgrade);
            let freed = log.map_or(0, |log| log.evict(entry));
            self.0.cache.borrow_mut().release(freed);
            if freed > 0 {
                self.count(|counters| counters.cache_evictions += 1);
            }
        }
    }
}
