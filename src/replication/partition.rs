//! One partition on the core that owns it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use planted::Bug;
use protocol::{Str, Uuid};
use storage::{Log, StorageError};
use tracing::error;

use super::settings::PartitionSettings;
use super::waiters::WaitList;

/// Names a partition for its whole life: the topic id changes when a topic is created anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    /// Topic id.
    pub topic_id: Uuid,
    /// Partition index.
    pub partition: i32,
}

/// A partition that is led here.
pub struct Partition {
    /// Its key.
    pub key: PartitionKey,
    /// Name of the topic.
    pub topic: Str,
    /// Its log.
    pub log: Log,
    leader_epoch: Cell<i32>,
    settings: RefCell<Rc<PartitionSettings>>,
    /// Long polls that wait for it.
    pub waiters: WaitList,
    /// Bytes of batches appended since the start.
    pub appended_bytes: Cell<u64>,
    /// Bytes of records read for fetches since the start.
    pub fetched_bytes: Cell<u64>,
    replica_count: Cell<u32>,
    deleted: Cell<bool>,
    /// Damaged places that readers came upon and that were told.
    damages_told: RefCell<BTreeSet<(PathBuf, u64)>>,
}

/// So many damaged places of a partition are told; a reader that asks again and again fills no log.
const DAMAGES_TOLD_MAX: usize = 32;

/// What a request's leader epoch says about the client's view (KIP-320).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderCheck {
    /// The client knows the present leader, or does not say.
    Current,
    /// The client's epoch is older (FENCED_LEADER_EPOCH).
    Fenced,
    /// The client's epoch is newer than what this broker knows (UNKNOWN_LEADER_EPOCH).
    Unknown,
}

impl Partition {
    /// A partition that this broker leads in `leader_epoch`.
    pub fn new(
        key: PartitionKey,
        topic: Str,
        log: Log,
        leader_epoch: i32,
        settings: Rc<PartitionSettings>,
    ) -> Self {
        Partition {
            key,
            topic,
            log,
            leader_epoch: Cell::new(leader_epoch),
            settings: RefCell::new(settings),
            waiters: WaitList::default(),
            appended_bytes: Cell::new(0),
            fetched_bytes: Cell::new(0),
            replica_count: Cell::new(1),
            deleted: Cell::new(false),
            damages_told: RefCell::default(),
        }
    }

    /// The epoch in which this broker leads.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.get()
    }

    /// Takes over a newer leader epoch; parked requests look again.
    pub fn lead(&self, leader_epoch: i32) {
        if leader_epoch > self.leader_epoch.get() {
            self.leader_epoch.set(leader_epoch);
            self.log.assign_epoch(leader_epoch);
            self.waiters.fire_all();
        }
    }

    /// Replicas that have to have a record before acks=all is answered: `min.insync.replicas`, and
    /// never more than there are replicas.
    pub fn effective_min_in_sync(&self) -> u32 {
        self.settings
            .borrow()
            .min_insync_replicas
            .min(self.replica_count.get())
    }

    /// Replicas in sync: this one, until replication is there.
    pub fn in_sync_replicas(&self) -> u32 {
        1
    }

    /// Notes how many replicas the partition has by its metadata.
    pub fn set_replica_count(&self, count: u32) {
        self.replica_count.set(count);
    }

    /// The settings now.
    pub fn settings(&self) -> Rc<PartitionSettings> {
        self.settings.borrow().clone()
    }

    /// New settings, from the next batch on.
    pub fn set_settings(&self, settings: Rc<PartitionSettings>) {
        self.log.set_config(Rc::new(settings.log.clone()));
        *self.settings.borrow_mut() = settings;
    }

    /// Offset below which every in-sync replica has every record.
    pub fn high_watermark(&self) -> i64 {
        if planted::here(Bug::WatermarkAboveWritten) {
            return self.log.next_offset();
        }
        self.log.log_end_offset()
    }

    /// Offset below which no transaction is open.
    pub fn last_stable_offset(&self) -> i64 {
        self.high_watermark()
    }

    /// Compares the epoch a client names (-1 for none) with ours.
    pub fn check_epoch(&self, named: i32) -> LeaderCheck {
        match named {
            -1 => LeaderCheck::Current,
            epoch if epoch < self.leader_epoch() && !planted::here(Bug::DroppedEpochCheck) => {
                LeaderCheck::Fenced
            }
            epoch if epoch > self.leader_epoch() => LeaderCheck::Unknown,
            _ => LeaderCheck::Current,
        }
    }

    /// Tells of a damaged batch that a reader of this offset came upon, once.
    pub fn tell_damage(&self, failure: &StorageError, offset: i64) {
        let StorageError::Corrupt { file, at, .. } = failure else {
            return;
        };
        let mut told = self.damages_told.borrow_mut();
        if told.len() < DAMAGES_TOLD_MAX && told.insert((file.clone(), *at)) {
            error!(
                partition = %self.log.partition(), offset, %failure,
                "a damaged batch cannot be served; those before and behind it can: let consumers go on behind it, \
                 or delete the records up to there (DeleteRecords)"
            );
        }
    }

    /// The topic is going away: parked requests look again and find nothing.
    pub fn mark_deleted(&self) {
        self.deleted.set(true);
        self.waiters.fire_all();
    }

    /// Whether the topic is going away.
    pub fn is_deleted(&self) -> bool {
        self.deleted.get()
    }
}
