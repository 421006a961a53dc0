//! One partition replica on disk, owned by one core.
//!
//! Offsets are assigned at the call of [`Log::append`], in call order. One write is under way at a time; what arrives
//! meanwhile gathers and goes out in the next. Readers see the contiguous written prefix and nothing else.

mod ahead;
mod append;
mod close;
mod damage;
mod hold;
mod indexes;
pub(crate) mod journaled;
mod offsets;
mod open;
mod read;
mod recovery;
mod startup_files;
mod state;
mod trim;
mod truncate;
mod writing;

pub use append::{AppendTicket, WriteOutcome};
pub(crate) use close::{open_new_direct, sync_file};
pub use damage::Damage;
pub use offsets::TimestampOffset;
pub(crate) use open::METADATA_FILE;
pub use open::{OpenOptions, Shutdown};
pub use read::{Piece, ReadLimits, ReadResult};
pub use recovery::{RecoveryReport, Truncation};

use crate::config::LogConfig;
use crate::disk_metrics::DiskCounters;
use crate::epochs::EpochEntry;
use crate::error::StorageError;
use crate::journal::Journal;
use crate::names::TopicPartition;
use crate::producer::ProducerEntry;
use crate::storage::Storage;
use protocol::Uuid;
use shards::sync::Event;
pub(crate) use state::Cached;
use state::{State, Status};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// Handle to a log; clones share it. Stays on its core.
#[derive(Clone)]
pub struct Log(pub(crate) Rc<LogInner>);

pub(crate) struct LogInner {
    pub storage: Storage,
    /// Counters of the disk that it lies on.
    pub disk: Rc<DiskCounters>,
    /// The journal that its small appends go to.
    pub journal: Option<Rc<Journal>>,
    /// Names this log in the caches of its core.
    pub id: u64,
    pub partition: TopicPartition,
    pub topic_id: Option<Uuid>,
    pub state: RefCell<State>,
    /// The written prefix grew, or the log went offline.
    pub progress: Event,
    /// The writer stopped, or a hold ended.
    pub quiet: Event,
    /// Producers of this log that the core's storage has counted.
    pub counted_producers: Cell<usize>,
}

impl Log {
    pub fn partition(&self) -> &TopicPartition {
        &self.0.partition
    }

    pub fn topic_id(&self) -> Option<Uuid> {
        self.0.topic_id
    }

    pub fn directory(&self) -> PathBuf {
        self.0.state.borrow().directory.to_path_buf()
    }

    pub fn log_start_offset(&self) -> i64 {
        self.0.state.borrow().start_offset
    }

    /// End of the contiguous written prefix: what readers, followers and the high watermark may know of.
    pub fn log_end_offset(&self) -> i64 {
        self.0.state.borrow().end_offset
    }

    /// The offset the next append gets: batches under way included.
    pub fn next_offset(&self) -> i64 {
        self.0.state.borrow().next_offset
    }

    /// Everything below is durable, with its indexes, epochs and producers: recovery may start here.
    pub fn recovery_point(&self) -> i64 {
        self.0.state.borrow().recovery_point
    }

    /// Bytes of written batches in all segments.
    pub fn size_bytes(&self) -> u64 {
        let state = self.0.state.borrow();
        state
            .sealed
            .iter()
            .map(|segment| u64::from(segment.size))
            .sum::<u64>()
            + u64::from(state.active.plan.size)
    }

    pub fn segment_count(&self) -> usize {
        self.0.state.borrow().sealed.len() + 1
    }

    /// Notified whenever the written prefix grows, and when the log goes offline.
    pub fn progress(&self) -> &Event {
        &self.0.progress
    }

    pub fn config(&self) -> Rc<LogConfig> {
        self.0.state.borrow().config.clone()
    }

    /// New settings count from the next append on.
    pub fn set_config(&self, config: Rc<LogConfig>) {
        self.0.state.borrow_mut().config = config;
    }

    /// Why the log is offline, if it is.
    pub fn offline_reason(&self) -> Option<String> {
        match &self.0.state.borrow().status {
            Status::Open => None,
            Status::Offline { reason } => Some(reason.to_string()),
        }
    }

    /// Whether the log is in service.
    ///
    /// # Errors
    /// `Offline`, with the reason.
    pub fn check_online(&self) -> Result<(), StorageError> {
        self.0.check_open()
    }

    /// Takes the log offline: its disk failed elsewhere. Appends under way fail, files are closed.
    pub fn take_offline(&self, reason: &str) {
        self.0.go_offline(reason);
    }

    pub fn latest_epoch(&self) -> Option<EpochEntry> {
        self.0.state.borrow().epochs.latest()
    }

    pub fn epochs(&self) -> Vec<EpochEntry> {
        self.0.state.borrow().epochs.entries().to_vec()
    }

    pub fn epoch_for(&self, offset: i64) -> Option<i32> {
        self.0.state.borrow().epochs.epoch_for(offset)
    }

    /// Notes that a new leader starts at the present end (Kafka does so when a replica becomes leader). It goes to the
    /// checkpoint file with the first batch of that epoch: an epoch that never wrote is superseded by the next one.
    pub fn assign_epoch(&self, epoch: i32) {
        let mut state = self.0.state.borrow_mut();
        let at = state.next_offset;
        state.epochs.assign(epoch, at);
    }

    /// OffsetForLeaderEpoch: `(epoch, end offset)`, `(-1, -1)` where unknown.
    pub fn end_offset_for(&self, epoch: i32) -> (i32, i64) {
        let state = self.0.state.borrow();
        state.epochs.end_offset_for(epoch, state.end_offset)
    }

    /// Producers remembered, batches under way included (DescribeProducers).
    pub fn producers(&self) -> Vec<(i64, ProducerEntry)> {
        self.0
            .state
            .borrow()
            .producers
            .iter()
            .map(|(id, entry)| (id, *entry))
            .collect()
    }

    pub fn producer_count(&self) -> usize {
        self.0.state.borrow().producers.len()
    }

    /// First offset of the oldest open transaction.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        self.0.state.borrow().producers.first_unstable_offset()
    }

    /// True while the log holds files open or has something to flush.
    pub fn is_busy(&self) -> bool {
        self.0.is_watched()
    }

    /// One step of housekeeping: rest when idle, flush when `flush.ms` is due. The core's storage calls this every
    /// second for busy logs; calling it as well is harmless.
    pub async fn idle_tick(&self) {
        self.0.tick().await;
    }
}

impl LogInner {
    /// Puts the log under housekeeping, once.
    pub fn ensure_watched(self: &Rc<Self>) {
        let fresh = !std::mem::replace(&mut self.state.borrow_mut().watched, true);
        if fresh {
            self.storage.watch(self);
        }
    }

    /// Forgets producers idle for longer than `producer.id.expiration.ms`.
    pub fn expire_producers(&self) {
        let now_ms = self.storage.core().wall_clock_ms();
        let mut state = self.state.borrow_mut();
        if !state.producers.is_empty() {
            let expiration = state.config.producer_id_expiration_ms;
            state.producers.remove_expired(now_ms, expiration);
        }
        drop(state);
        self.count_producers();
    }

    pub fn producer_count(&self) -> usize {
        self.state.borrow().producers.len()
    }

    /// Forgets the longest idle producers.
    pub fn forget_producers(&self, count: usize) {
        self.state.borrow_mut().producers.forget_idle(count);
        self.count_producers();
    }

    /// Tells the core's storage how many producers are remembered here.
    pub fn count_producers(&self) {
        let now = self.producer_count();
        let before = self.counted_producers.replace(now);
        if before != now {
            self.storage.count_producers(before, now);
        }
    }

    pub fn is_watched(&self) -> bool {
        self.state.borrow().watched
    }

    pub fn check_open(&self) -> Result<(), StorageError> {
        self.state.borrow().check_open()
    }
}
