//! The controller as a state machine: `decide` looks and changes nothing, `apply` changes.

use std::sync::Arc;

use protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::stored::{
    BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord, ProducerIdsRecord,
};
use protocol::{Array, ErrorCode, Str, Uuid};

use super::alter_configs::{self, AlterConfigs, ConfigOutcome};
use super::start::NodeRegistration;
use super::update_features::{self, UpdateFeatures};
use super::{
    create_partitions, create_topics, delete_topics, leadership, reassignments, unregister_broker,
};
use crate::config::Settings;
use crate::metadata::{
    ControlEntry, EntryError, Image, LogEntry, METADATA_VERSION, MINIMUM_METADATA_VERSION,
    MetadataVersion, Replay, VersionedRecord,
};

/// Producer ids in one block.
pub const PRODUCER_ID_BLOCK: i64 = 1000;

/// What the controller goes by besides the log.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// Id of this node, as broker and controller.
    pub node_id: i32,
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication: i16,
    /// `delete.topic.enable`.
    pub delete_topics: bool,
    /// What topic configurations are checked and described against.
    pub settings: Arc<Settings>,
    /// What this node registers as.
    pub node: NodeRegistration,
    /// Id of the directory of the metadata log.
    pub directory_id: Uuid,
}

/// What a decision may need from outside.
pub struct Surroundings<'a> {
    /// Random bits, for ids.
    pub random: &'a mut dyn FnMut() -> u64,
    /// Free bytes of the disk under a log directory of this node.
    pub free_bytes: &'a dyn Fn(Uuid) -> u64,
}

/// A topic that is created because somebody asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoTopic {
    pub name: Str,
    /// `None` for `num.partitions`.
    pub partitions: Option<i32>,
    /// `None` for `default.replication.factor`.
    pub replication: Option<i16>,
    pub configs: Vec<(Str, Str)>,
}

/// What the controller is asked to do.
#[derive(Clone, Debug)]
pub enum Command {
    CreateTopics(CreateTopicsRequest),
    /// Topics that exist already count as created: the first of many who ask creates it.
    AutoCreateTopics(Vec<AutoTopic>),
    /// With the version of the request, on which some codes depend.
    DeleteTopics(DeleteTopicsRequest, i16),
    CreatePartitions(CreatePartitionsRequest),
    AlterConfigs(AlterConfigs),
    AlterReassignments(AlterPartitionReassignmentsRequest),
    UpdateFeatures(UpdateFeatures),
    /// The broker with this id is forgotten.
    UnregisterBroker(i32),
    /// The next block of producer ids, for this broker.
    AllocateProducerIds,
    /// Says in which directories replicas of this node lie: (topic, partition, directory).
    AssignDirectories(Array<(Uuid, i32, Uuid)>),
    /// Log directories that failed: this node leads nothing in them any more.
    TakeDirectoriesOffline(Vec<Uuid>),
    /// This broker stops: it is fenced, so that its next incarnation may register at once.
    Shutdown,
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    CreateTopics(CreateTopicsResponse),
    /// Each topic asked for, with `None` (the code) if it exists now.
    AutoCreateTopics(Vec<(Str, ErrorCode)>),
    DeleteTopics(DeleteTopicsResponse),
    CreatePartitions(CreatePartitionsResponse),
    /// One for each resource, in the order of the request.
    AlterConfigs(Vec<ConfigOutcome>),
    AlterReassignments(AlterPartitionReassignmentsResponse),
    /// Done, or Kafka's code and text.
    UpdateFeatures(Result<(), (ErrorCode, Str)>),
    /// Done, or Kafka's code and text.
    UnregisterBroker(Result<(), (ErrorCode, Str)>),
    /// First id of a block of [`PRODUCER_ID_BLOCK`]; `None` when all ids are used up.
    ProducerIds(Option<i64>),
    Done,
}

/// What follows from a command. The reply may leave when the records are durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// In order; empty if nothing changes.
    pub records: Array<VersionedRecord>,
    /// What the quorum has to know, behind the records; a batch of its own.
    pub control: Vec<ControlEntry>,
    pub reply: Reply,
}

/// The state of the controller: the replayed log, and the epoch it leads in.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) settings: Arc<ControllerSettings>,
    /// Epoch of the quorum in which this node leads.
    pub(super) quorum_epoch: i32,
    pub(super) replay: Replay,
}

impl Machine {
    /// A controller that leads in `quorum_epoch`, behind a replayed log.
    #[must_use]
    pub fn new(settings: Arc<ControllerSettings>, quorum_epoch: i32, replay: Replay) -> Self {
        Self {
            settings,
            quorum_epoch,
            replay,
        }
    }

    /// The image to read.
    #[must_use]
    pub fn image(&self) -> &Image {
        self.replay.image()
    }

    /// The log as far as it was replayed.
    #[must_use]
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Epoch of the quorum in which this node leads.
    #[must_use]
    pub fn quorum_epoch(&self) -> i32 {
        self.quorum_epoch
    }

    /// Decides about a command. A refusal has no records for what was refused.
    #[must_use]
    pub fn decide(&self, command: &Command, around: &mut Surroundings<'_>) -> Decision {
        let decided = match command {
            Command::CreateTopics(request) => create_topics::decide(self, request, around),
            Command::AutoCreateTopics(topics) => {
                create_topics::decide_automatic(self, topics, around)
            }
            Command::DeleteTopics(request, version) => {
                delete_topics::decide(self, request, *version)
            }
            Command::CreatePartitions(request) => create_partitions::decide(self, request, around),
            Command::AlterConfigs(request) => alter_configs::decide(self, request),
            Command::AlterReassignments(request) => reassignments::decide(self, request),
            Command::UpdateFeatures(request) => update_features::decide(self, request, around),
            Command::UnregisterBroker(id) => unregister_broker::decide(self, *id),
            Command::AllocateProducerIds => self.allocate_producer_ids(),
            Command::AssignDirectories(assignments) => self.assign_directories(assignments),
            Command::TakeDirectoriesOffline(directories) => self.directories_offline(directories),
            Command::Shutdown => self.shutdown(),
        };
        let mut version = self.metadata_version();
        let versioned = |record: MetadataRecord| {
            if let MetadataRecord::FeatureLevel(it) = &record
                && it.name == METADATA_VERSION
            {
                // What follows in the same batch is written as the new level has it.
                version = MetadataVersion(it.feature_level);
            }
            version.versioned(record)
        };
        let records = decided.records.into_iter().map(versioned).collect();
        Decision {
            records,
            control: decided.control,
            reply: decided.reply,
        }
    }

    /// Applies one entry that is in the log, or about to be.
    ///
    /// # Errors
    /// It contradicts the state, which is then unchanged.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), EntryError> {
        self.replay.apply(entry)
    }

    /// Level of `metadata.version`, the lowest there is before the first one is finalized.
    #[must_use]
    pub fn metadata_version(&self) -> MetadataVersion {
        let level = self.latest().features.metadata_version();
        MetadataVersion(level.unwrap_or(MINIMUM_METADATA_VERSION))
    }

    /// The image that decisions are made against.
    pub(super) fn latest(&self) -> &Image {
        self.replay.latest()
    }

    /// The settings of this node: the file's, and over them what the metadata sets.
    pub(super) fn node_settings(&self) -> Arc<Settings> {
        let dynamic = self.latest().configs.dynamic_settings(self.node_id());
        self.settings.settings.under(dynamic)
    }

    pub(super) fn node_id(&self) -> i32 {
        self.settings.node_id
    }

    fn allocate_producer_ids(&self) -> Decided {
        let first = self.latest().producer_ids.next_id.max(0);
        let Some(next_producer_id) = first.checked_add(PRODUCER_ID_BLOCK) else {
            return Decided::reply(Reply::ProducerIds(None));
        };
        let record = ProducerIdsRecord {
            broker_id: self.node_id(),
            broker_epoch: self.broker_epoch().unwrap_or(-1),
            next_producer_id,
        };
        Decided::with([record.into()].into(), Reply::ProducerIds(Some(first)))
    }

    fn broker_epoch(&self) -> Option<i64> {
        self.latest()
            .broker(self.node_id())
            .map(|broker| broker.epoch)
    }

    /// Directories of replicas that lie on this node and are said to lie elsewhere.
    fn assign_directories(&self, assignments: &Array<(Uuid, i32, Uuid)>) -> Decided {
        let image = self.latest();
        let mut records = Array::new();
        for &(topic, index, directory) in assignments {
            let Some(partition) = image.partition(topic, index) else {
                continue;
            };
            let own = partition
                .replicas
                .iter()
                .position(|&replica| replica == self.node_id());
            let Some(position) = own else { continue };
            let mut directories = partition.directories.to_vec();
            if directories[position] == directory {
                continue;
            }
            directories[position] = directory;
            // Its directory was not there when leaders were chosen; this one is.
            let leader = leadership::vacancy(partition, self.node_id());
            let mut change = PartitionChangeRecord {
                partition_id: index,
                topic_id: topic,
                directories: Some(directories.into()),
                ..Default::default()
            };
            if let Some(leader) = leader {
                change.leader = leader;
            }
            records.push(change.into());
        }
        Decided::with(records, Reply::Done)
    }

    fn directories_offline(&self, failed: &[Uuid]) -> Decided {
        let (image, node) = (self.latest(), self.node_id());
        let Some(broker) = image.broker(node) else {
            return Decided::reply(Reply::Done);
        };
        let (gone, left): (Vec<Uuid>, Vec<Uuid>) = broker
            .log_dirs
            .iter()
            .partition(|directory| failed.contains(directory));
        if gone.is_empty() {
            return Decided::reply(Reply::Done);
        }
        let mut records = leadership::give_up_directories(image, node, &gone);
        // An empty list in the record would mean "no change": a node without directories stops.
        if !left.is_empty() {
            let change = BrokerRegistrationChangeRecord {
                broker_id: node,
                broker_epoch: broker.epoch,
                log_dirs: left.into(),
                ..Default::default()
            };
            records.push(change.into());
        }
        Decided::with(records, Reply::Done)
    }

    /// As Apache's controller ends a controlled shutdown, without taking leadership away partition
    /// by partition: nobody else could lead, and the next start raises every leader epoch anyway.
    fn shutdown(&self) -> Decided {
        let mut decided = Decided::reply(Reply::Done);
        let Some(broker) = self.latest().broker(self.node_id()) else {
            return decided;
        };
        let change = |fenced, in_controlled_shutdown| {
            MetadataRecord::from(BrokerRegistrationChangeRecord {
                broker_id: broker.id,
                broker_epoch: broker.epoch,
                fenced,
                in_controlled_shutdown,
                ..Default::default()
            })
        };
        if !broker.in_controlled_shutdown {
            decided.records.push(change(0, 1));
        }
        if !broker.fenced {
            decided.records.push(change(1, 0));
        }
        decided
    }
}

/// A decision before its records have versions.
pub(super) struct Decided {
    pub records: Array<MetadataRecord>,
    pub control: Vec<ControlEntry>,
    pub reply: Reply,
}

impl Decided {
    pub fn reply(reply: Reply) -> Self {
        Self {
            records: Array::new(),
            control: Vec::new(),
            reply,
        }
    }

    /// Records, and a reply when they are durable.
    pub fn with(records: Array<MetadataRecord>, reply: Reply) -> Self {
        Self {
            records,
            control: Vec::new(),
            reply,
        }
    }
}
