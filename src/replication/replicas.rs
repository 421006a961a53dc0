//! The table of the partitions that one core owns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use protocol::Array;
use protocol::records::compress::Scratch;
use shards::Core;
use storage::{StorageError, TopicPartition};

use super::partition::{Partition, PartitionKey};
use super::waiters::WaitersByName;

/// Why a partition is not served by this core.
#[derive(Clone, Debug)]
pub enum Missing {
    /// It is not here, or no longer.
    NotLeader,
    /// It is here and could not be opened.
    Offline(StorageError),
}

/// A partition that belongs here and could not be opened.
struct Unopened {
    error: StorageError,
    lies: Option<Lies>,
}

/// Where a partition lies: its log directory and its name there.
pub type Lies = (PathBuf, TopicPartition);

/// The partitions of one core.
pub struct Replicas {
    pub(super) core: Core,
    partitions: RefCell<BTreeMap<PartitionKey, Rc<Partition>>>,
    /// Partitions that belong here and could not be opened.
    offline: RefCell<BTreeMap<PartitionKey, Unopened>>,
    /// Long polls parked on this core's partitions.
    pub waiters: WaitersByName,
    /// Work space of the checks of compressed batches.
    pub(super) scratch: RefCell<Scratch>,
}

impl Replicas {
    /// An empty table.
    pub fn new(core: Core) -> Rc<Self> {
        Rc::new(Replicas {
            core,
            partitions: RefCell::new(BTreeMap::new()),
            offline: RefCell::new(BTreeMap::new()),
            waiters: WaitersByName::default(),
            scratch: RefCell::new(Scratch::default()),
        })
    }

    /// The partition, if this core owns it.
    pub fn get(&self, key: &PartitionKey) -> Option<Rc<Partition>> {
        self.partitions.borrow().get(key).cloned()
    }

    /// The partition, or why it is not served here.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn find(&self, key: &PartitionKey) -> Result<Rc<Partition>, Missing> {
        let Some(partition) = self.get(key) else {
            return Err(match self.offline.borrow().get(key) {
                Some(unopened) => Missing::Offline(unopened.error.clone()),
                None => Missing::NotLeader,
            });
        };
        match partition.log.check_online() {
            Ok(()) => Ok(partition),
            Err(error) => Err(Missing::Offline(error)),
        }
    }

    /// Notes that a partition of this core could not be opened, and where it lies, if it does anywhere.
    pub fn set_offline(&self, key: PartitionKey, error: StorageError, lies: Option<Lies>) {
        let unopened = Unopened { error, lies };
        self.offline.borrow_mut().insert(key, unopened);
    }

    /// Whether a partition belongs here and is not open.
    pub fn is_offline(&self, key: &PartitionKey) -> bool {
        self.offline.borrow().contains_key(key)
    }

    /// Where a partition lies that is not open.
    pub fn unopened(&self, key: &PartitionKey) -> Option<Lies> {
        self.offline.borrow().get(key)?.lies.clone()
    }

    /// What the partitions that could not be opened failed on.
    pub fn offline(&self) -> Vec<StorageError> {
        let offline = self.offline.borrow();
        offline
            .values()
            .map(|unopened| unopened.error.clone())
            .collect()
    }

    /// The partitions of this core that are not served, and why: not open, or their disk has failed.
    pub fn out_of_service(&self) -> Vec<(PartitionKey, String)> {
        let (partitions, offline) = (self.partitions.borrow(), self.offline.borrow());
        let failed = partitions
            .iter()
            .filter_map(|(key, partition)| Some((*key, partition.log.offline_reason()?)));
        let unopened = offline
            .iter()
            .map(|(key, unopened)| (*key, unopened.error.to_string()));
        failed.chain(unopened).collect()
    }

    /// Adds a partition.
    pub fn insert(&self, partition: Rc<Partition>) {
        self.offline.borrow_mut().remove(&partition.key);
        self.partitions
            .borrow_mut()
            .insert(partition.key, partition);
    }

    /// Takes a partition out; parked requests find it gone.
    pub fn remove(&self, key: &PartitionKey) -> Option<Rc<Partition>> {
        self.offline.borrow_mut().remove(key);
        let removed = self.partitions.borrow_mut().remove(key);
        if let Some(partition) = &removed {
            partition.mark_deleted();
        }
        removed
    }

    /// All partitions, in the order of their keys.
    pub fn all(&self) -> Array<Rc<Partition>> {
        self.partitions.borrow().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.partitions.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.partitions.borrow().is_empty()
    }
}
