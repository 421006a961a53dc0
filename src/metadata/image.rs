//! The cluster as of one offset of the metadata log: an immutable value with structural sharing.
//!
//! Cloning costs a few pointers and a change costs what changed, so every commit makes a new
//! `Arc<Image>` that all cores read without locks. `apply.rs` is the only place that changes one.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use protocol::{Str, Uuid};

use super::broker::{BrokerRegistration, ControllerRegistration};
use super::configs::Configs;
use super::kept::KeptRecords;
use super::partition::Partition;
use super::partitions::Partitions;
use super::retired::RetiredEpochs;

/// The feature that says which records may stand in the metadata log (KIP-778).
pub const METADATA_VERSION: &str = "metadata.version";
/// The feature of eligible leader replicas (KIP-966).
pub const ELR_VERSION: &str = "eligible.leader.replicas.version";

/// Where in the metadata log an image stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Offset of the last record applied; -1 for the empty image.
    pub offset: i64,
    /// Quorum leader epoch of that record; -1 for the empty image.
    pub epoch: i32,
    /// Append time of that record's batch, unix ms; -1 for the empty image.
    pub timestamp_ms: i64,
}

impl Default for Provenance {
    fn default() -> Self {
        Self {
            offset: -1,
            epoch: -1,
            timestamp_ms: -1,
        }
    }
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Never reused, also when the name is.
    pub id: Uuid,
    pub name: Str,
    pub partitions: Partitions,
}

/// Finalized feature levels (KIP-584). A level of 0 is the same as no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    levels: OrdMap<Str, i16>,
    /// Offset of the last record that changed a level: grows with each change, -1 before the first.
    pub changed_at: i64,
}

impl Features {
    /// Finalized level of a feature; 0 when it was never finalized.
    #[must_use]
    pub fn level(&self, name: &str) -> i16 {
        self.levels.get(name).copied().unwrap_or(0)
    }

    /// Level of `metadata.version`; `None` in a log without bootstrap records.
    #[must_use]
    pub fn metadata_version(&self) -> Option<i16> {
        self.levels.get(METADATA_VERSION).copied()
    }

    /// All features with a level above 0, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Str, i16)> {
        self.levels.iter().map(|(name, &level)| (name, level))
    }

    pub(super) fn set(&mut self, name: &Str, level: i16, offset: i64) {
        if level == 0 {
            self.levels.remove(name);
        } else {
            self.levels.insert(name.detached(), level);
        }
        self.changed_at = offset;
    }
}

/// Which producer ids the controller has handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIds {
    /// First id of the next block; -1 before the first block.
    pub next_id: i64,
}

impl Default for ProducerIds {
    fn default() -> Self {
        Self { next_id: -1 }
    }
}

/// The cluster as of [`Provenance`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    pub provenance: Provenance,
    pub features: Features,
    /// Level of `kraft.version`, which control records say: 1 where the voters stand in the log (KIP-853).
    pub kraft_version: i16,
    pub configs: Configs,
    pub producer_ids: ProducerIds,
    /// Quotas, ACLs, SCRAM credentials and delegation tokens: kept for snapshots, not acted on.
    pub kept: KeptRecords,
    /// Records of types or versions that are not known here. They stay in the log; an image that
    /// has seen any is never written as a snapshot, which would lose them.
    pub unknown_records: u64,
    pub(super) topics: OrdMap<Uuid, Arc<Topic>>,
    pub(super) topic_ids: OrdMap<Str, Uuid>,
    /// (name with `.` as `_`, name) of all topics whose name holds either.
    pub(super) collisions: OrdSet<(Str, Str)>,
    pub(super) brokers: OrdMap<i32, Arc<BrokerRegistration>>,
    pub(super) controllers: OrdMap<i32, Arc<ControllerRegistration>>,
    pub(super) directory_replicas: OrdMap<Uuid, u32>,
    pub(super) partition_count: usize,
    pub(super) retired: RetiredEpochs,
}

impl Image {
    /// Topic by id.
    #[must_use]
    pub fn topic(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    /// Topic by name.
    #[must_use]
    pub fn topic_by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    /// Id of the topic with this name.
    #[must_use]
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.topic_ids.get(name).copied()
    }

    /// All topics, in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topic_ids.values().filter_map(|id| self.topics.get(id))
    }

    /// How many topics there are.
    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// How many partitions all topics have together.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// Partition by topic id and index.
    #[must_use]
    pub fn partition(&self, topic: Uuid, index: i32) -> Option<&Arc<Partition>> {
        self.topic(topic)?.partitions.get(index)
    }

    /// An existing topic whose name differs from `name` at most in `.` against `_`: its metric
    /// names would be the same.
    #[must_use]
    pub fn colliding_topic(&self, name: &str) -> Option<&Str> {
        if !has_collision_characters(name) {
            return None;
        }
        let unified = Str::from(unify_collision_characters(name));
        let from = (unified.clone(), Str::default());
        self.collisions
            .range(from..)
            .next()
            .filter(|(key, _)| *key == unified)
            .map(|(_, it)| it)
    }

    /// Registration of a broker, fenced or not.
    #[must_use]
    pub fn broker(&self, id: i32) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&id)
    }

    /// All registered brokers, by id.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<BrokerRegistration>> {
        self.brokers.values()
    }

    /// Registration of a controller.
    #[must_use]
    pub fn controller(&self, id: i32) -> Option<&Arc<ControllerRegistration>> {
        self.controllers.get(&id)
    }

    /// All registered controllers, by id.
    pub fn controllers(&self) -> impl Iterator<Item = &Arc<ControllerRegistration>> {
        self.controllers.values()
    }

    /// Replicas assigned to a log directory.
    #[must_use]
    pub fn replicas_in_directory(&self, directory: Uuid) -> u32 {
        self.directory_replicas
            .get(&directory)
            .copied()
            .unwrap_or(0)
    }

    /// Lowest leader epoch that a new topic with this name may start with: clients that know
    /// topics by name must never see the epoch of a name go back when it is created again.
    ///
    /// `quorum_epoch` is the epoch of the controller that creates it.
    #[must_use]
    pub fn first_leader_epoch(&self, name: &str, quorum_epoch: i32) -> i32 {
        self.retired.first_epoch(name, quorum_epoch)
    }

    /// True if the broker is registered, not fenced and not shutting down.
    #[must_use]
    pub fn is_active(&self, broker: i32) -> bool {
        self.broker(broker)
            .is_some_and(|it| !it.fenced && !it.in_controlled_shutdown)
    }
}

/// True if a name holds a character that becomes `_` in the name of a metric.
pub(super) fn has_collision_characters(name: &str) -> bool {
    name.contains(['.', '_'])
}

/// The name with `.` written as `_`.
pub(super) fn unify_collision_characters(name: &str) -> String {
    name.replace('.', "_")
}
