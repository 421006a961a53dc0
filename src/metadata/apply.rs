//! `Image::apply`: the only mutation of cluster state, the same live and on replay.

use std::sync::Arc;

use imbl::OrdMap;
use protocol::stored::{
    BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord,
    ProducerIdsRecord, TopicRecord,
};
use protocol::{Array, Str, Uuid};

use super::broker::BrokerRegistration;
use super::configs::ResourceType;
use super::image::{Image, Topic, has_collision_characters, unify_collision_characters};
use super::kept::KeptKey;
use super::partition::{Partition, directory};
use super::partitions::Partitions;
use super::records;

/// A record that contradicts the image: the log is damaged, or written by something unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// The record names a topic id that no `TopicRecord` introduced.
    UnknownTopic { topic: Uuid },
    /// The record changes a partition that no `PartitionRecord` introduced.
    UnknownPartition { topic: Uuid, partition: i32 },
    /// The record changes a broker that is not registered.
    UnknownBroker { broker: i32 },
    /// The record belongs to an incarnation of a broker that is not the registered one.
    WrongBrokerEpoch {
        broker: i32,
        registered: i64,
        record: i64,
    },
    /// The record removes a controller that is not registered.
    UnknownController { controller: i32 },
    /// The topic exists already, by id or by name.
    DuplicateTopic { name: Str },
    /// Replicas and directories of a partition differ in number.
    DirectoryCount {
        topic: Uuid,
        partition: i32,
        replicas: usize,
        directories: usize,
    },
    /// Producer ids would be handed out twice.
    ProducerIdsGoBack { next: i64, record: i64 },
    /// A transaction record where none may stand.
    Transaction { what: &'static str },
}

impl std::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownTopic { topic } => write!(f, "topic {topic} is not known"),
            Self::UnknownPartition { topic, partition } => {
                write!(f, "partition {partition} of topic {topic} is not known")
            }
            Self::UnknownBroker { broker } => write!(f, "broker {broker} is not registered"),
            Self::WrongBrokerEpoch {
                broker,
                registered,
                record,
            } => write!(
                f,
                "broker {broker} is registered with epoch {registered}, the record says {record}"
            ),
            Self::UnknownController { controller } => {
                write!(f, "controller {controller} is not registered")
            }
            Self::DuplicateTopic { name } => write!(f, "topic '{name}' exists already"),
            Self::DirectoryCount {
                topic,
                partition,
                replicas,
                directories,
            } => write!(
                f,
                "partition {partition} of topic {topic} has {replicas} replica(s) \
                 but {directories} directories"
            ),
            Self::ProducerIdsGoBack { next, record } => {
                write!(
                    f,
                    "next producer id {record} is below {next}, which was handed out"
                )
            }
            Self::Transaction { what } => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for ApplyError {}

impl Image {
    /// Applies one record that stands at `offset`. Transaction records change nothing here, see
    /// [`super::replay::Replay`].
    ///
    /// # Errors
    /// The record contradicts the image, which is then unchanged.
    pub fn apply(&mut self, offset: i64, record: &MetadataRecord) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::RegisterBroker(record) => {
                self.brokers
                    .insert(record.broker_id, Arc::new(records::broker(record)));
            }
            MetadataRecord::UnregisterBroker(record) => {
                self.registered(record.broker_id, record.broker_epoch)?;
                self.brokers.remove(&record.broker_id);
            }
            MetadataRecord::BrokerRegistrationChange(record) => self.change_broker(record)?,
            MetadataRecord::FenceBroker(record) => self.fence(record.id, record.epoch, true)?,
            MetadataRecord::UnfenceBroker(record) => self.fence(record.id, record.epoch, false)?,
            MetadataRecord::RegisterController(record) => {
                let registration = Arc::new(records::controller(record));
                self.controllers.insert(record.controller_id, registration);
            }
            MetadataRecord::UnregisterController(record) => {
                let controller = record.controller_id;
                self.controllers
                    .remove(&controller)
                    .ok_or(ApplyError::UnknownController { controller })?;
            }
            MetadataRecord::Topic(record) => self.add_topic(record)?,
            MetadataRecord::RemoveTopic(record) => self.remove_topic(record.topic_id)?,
            MetadataRecord::Partition(record) => self.put_partition(record)?,
            MetadataRecord::PartitionChange(record) => self.change_partition(record)?,
            MetadataRecord::ClearElr(record) => self.clear_elr(&record.topic_name),
            MetadataRecord::Config(record) => self.configs.set(
                ResourceType(record.resource_type),
                &record.resource_name,
                &record.name,
                record.value.as_ref(),
            ),
            MetadataRecord::FeatureLevel(record) => {
                self.features
                    .set(&record.name, record.feature_level, offset);
            }
            MetadataRecord::ProducerIds(record) => self.advance_producer_ids(record)?,
            kept => self.keep(kept),
        }
        Ok(())
    }

    /// Quotas, ACLs, credentials, tokens; and the records that carry no state.
    fn keep(&mut self, record: &MetadataRecord) {
        let own = || records::detached(record);
        match record {
            MetadataRecord::ClientQuota(it) if it.remove => self.kept.remove(&KeptKey::quota(it)),
            MetadataRecord::ClientQuota(it) => self.kept.put(KeptKey::quota(it), own()),
            MetadataRecord::AccessControlEntry(it) => self.kept.put(KeptKey::Acl(it.id), own()),
            MetadataRecord::RemoveAccessControlEntry(it) => self.kept.remove(&KeptKey::Acl(it.id)),
            MetadataRecord::UserScramCredential(it) => {
                self.kept
                    .put(KeptKey::Scram(it.mechanism, it.name.detached()), own());
            }
            MetadataRecord::RemoveUserScramCredential(it) => {
                self.kept
                    .remove(&KeptKey::Scram(it.mechanism, it.name.clone()));
            }
            MetadataRecord::DelegationToken(it) => {
                self.kept
                    .put(KeptKey::DelegationToken(it.token_id.detached()), own());
            }
            MetadataRecord::RemoveDelegationToken(it) => {
                self.kept
                    .remove(&KeptKey::DelegationToken(it.token_id.clone()));
            }
            MetadataRecord::Unknown(_) => self.unknown_records += 1,
            _ => {}
        }
    }

    fn registered(&self, broker: i32, epoch: i64) -> Result<&BrokerRegistration, ApplyError> {
        let registration = self
            .broker(broker)
            .ok_or(ApplyError::UnknownBroker { broker })?;
        if registration.epoch != epoch {
            let registered = registration.epoch;
            return Err(ApplyError::WrongBrokerEpoch {
                broker,
                registered,
                record: epoch,
            });
        }
        Ok(registration)
    }

    fn fence(&mut self, broker: i32, epoch: i64, fenced: bool) -> Result<(), ApplyError> {
        let mut registration = self.registered(broker, epoch)?.clone();
        registration.fenced = fenced;
        self.brokers.insert(broker, Arc::new(registration));
        Ok(())
    }

    fn change_broker(&mut self, record: &BrokerRegistrationChangeRecord) -> Result<(), ApplyError> {
        let mut changed = self
            .registered(record.broker_id, record.broker_epoch)?
            .clone();
        // 1 sets, -1 clears, 0 leaves as it is; a shutdown is never taken back.
        match record.fenced {
            1 => changed.fenced = true,
            -1 => changed.fenced = false,
            _ => {}
        }
        if record.in_controlled_shutdown == 1 {
            changed.in_controlled_shutdown = true;
        }
        if !record.log_dirs.is_empty() {
            changed.log_dirs = record.log_dirs.to_vec();
        }
        if let Some(cordoned) = &record.cordoned_log_dirs {
            changed.cordoned_log_dirs = Some(cordoned.to_vec());
        }
        self.brokers.insert(record.broker_id, Arc::new(changed));
        Ok(())
    }

    fn add_topic(&mut self, record: &TopicRecord) -> Result<(), ApplyError> {
        if self.topic_ids.contains_key(&record.name) || self.topics.contains_key(&record.topic_id) {
            return Err(ApplyError::DuplicateTopic {
                name: record.name.detached(),
            });
        }
        let name = record.name.detached();
        if has_collision_characters(&name) {
            let unified = Str::from(unify_collision_characters(&name));
            self.collisions.insert((unified, name.clone()));
        }
        self.topic_ids.insert(name.clone(), record.topic_id);
        let topic = Topic {
            id: record.topic_id,
            name,
            partitions: Partitions::default(),
        };
        self.topics.insert(record.topic_id, Arc::new(topic));
        Ok(())
    }

    fn remove_topic(&mut self, id: Uuid) -> Result<(), ApplyError> {
        let topic = self
            .topics
            .remove(&id)
            .ok_or(ApplyError::UnknownTopic { topic: id })?;
        self.topic_ids.remove(&topic.name);
        if has_collision_characters(&topic.name) {
            let unified = Str::from(unify_collision_characters(&topic.name));
            self.collisions.remove(&(unified, topic.name.clone()));
        }
        self.configs.remove_topic(&topic.name);
        let mut highest = -1;
        for (_, partition) in topic.partitions.iter() {
            count(&mut self.directory_replicas, &partition.directories, false);
            highest = highest.max(partition.leader_epoch);
        }
        self.partition_count -= topic.partitions.len();
        self.retired.retire(&topic.name, highest);
        Ok(())
    }

    fn put_partition(&mut self, record: &PartitionRecord) -> Result<(), ApplyError> {
        let (topic, index) = (record.topic_id, record.partition_id);
        let unknown = ApplyError::UnknownPartition {
            topic,
            partition: index,
        };
        let position = usize::try_from(index).map_err(|_| unknown)?;
        if !self.topics.contains_key(&topic) {
            return Err(ApplyError::UnknownTopic { topic });
        }
        let partition = records::partition(record);
        check_directories(topic, index, &partition)?;
        self.store(topic, position, partition);
        Ok(())
    }

    fn change_partition(&mut self, record: &PartitionChangeRecord) -> Result<(), ApplyError> {
        let (topic, index) = (record.topic_id, record.partition_id);
        let unknown = ApplyError::UnknownPartition {
            topic,
            partition: index,
        };
        let position = usize::try_from(index).map_err(|_| unknown.clone())?;
        let entry = self
            .topics
            .get(&topic)
            .ok_or(ApplyError::UnknownTopic { topic })?;
        let partition = merge(entry.partitions.get(index).ok_or(unknown)?, record);
        check_directories(topic, index, &partition)?;
        self.store(topic, position, partition);
        Ok(())
    }

    /// Puts a partition into a topic that is known to exist, and keeps the counts.
    fn store(&mut self, topic: Uuid, position: usize, partition: Partition) {
        let Some(entry) = self.topics.get_mut(&topic) else {
            return;
        };
        let index = i32::try_from(position).unwrap_or(i32::MAX);
        match entry.partitions.get(index) {
            Some(old) => count(&mut self.directory_replicas, &old.directories, false),
            None => self.partition_count += 1,
        }
        count(&mut self.directory_replicas, &partition.directories, true);
        Arc::make_mut(entry).partitions.set(position, partition);
    }

    fn clear_elr(&mut self, topic_name: &Str) {
        let ids: Vec<Uuid> = if topic_name.is_empty() {
            self.topics.keys().copied().collect()
        } else {
            self.topic_id(topic_name).into_iter().collect()
        };
        for id in ids {
            let Some(topic) = self.topics.get(&id) else {
                continue;
            };
            let with_elr: Vec<(usize, Partition)> = topic
                .partitions
                .iter()
                .filter(|(_, it)| !it.elr.is_empty() || !it.last_known_elr.is_empty())
                .filter_map(|(index, it)| Some((usize::try_from(index).ok()?, (**it).clone())))
                .collect();
            for (position, mut partition) in with_elr {
                partition.elr = Box::default();
                partition.last_known_elr = Box::default();
                partition.partition_epoch += 1;
                self.store(id, position, partition);
            }
        }
    }

    fn advance_producer_ids(&mut self, record: &ProducerIdsRecord) -> Result<(), ApplyError> {
        let next = self.producer_ids.next_id;
        if record.next_producer_id <= next && next >= 0 {
            let record = record.next_producer_id;
            return Err(ApplyError::ProducerIdsGoBack { next, record });
        }
        self.producer_ids.next_id = record.next_producer_id;
        Ok(())
    }
}

fn check_directories(topic: Uuid, index: i32, partition: &Partition) -> Result<(), ApplyError> {
    let (replicas, directories) = (partition.replicas.len(), partition.directories.len());
    if replicas == directories {
        return Ok(());
    }
    Err(ApplyError::DirectoryCount {
        topic,
        partition: index,
        replicas,
        directories,
    })
}

fn count(counts: &mut OrdMap<Uuid, u32>, directories: &[Uuid], more: bool) {
    for &id in directories.iter().filter(|&&id| directory::is_assigned(id)) {
        let before = counts.get(&id).copied().unwrap_or(0);
        match if more {
            before + 1
        } else {
            before.saturating_sub(1)
        } {
            0 => drop(counts.remove(&id)),
            after => drop(counts.insert(id, after)),
        }
    }
}

/// The partition after a change: null fields stay, a named leader raises the leader epoch even if
/// it is the same one, every change raises the partition epoch.
pub(super) fn merge(partition: &Partition, change: &PartitionChangeRecord) -> Partition {
    /// Leader of a change that leaves the leader alone.
    const NO_LEADER_CHANGE: i32 = -2;

    let ids = |new: &Option<Array<i32>>, old: &[i32]| -> Box<[i32]> {
        new.as_ref().map_or_else(|| old.into(), Box::from)
    };
    let replicas = ids(&change.replicas, &partition.replicas);
    let directories = match &change.directories {
        Some(directories) => directories.into(),
        None if replicas.len() == partition.directories.len() => partition.directories.clone(),
        None => vec![directory::MIGRATING; replicas.len()].into(),
    };
    let (leader, leader_epoch) = if change.leader == NO_LEADER_CHANGE {
        (partition.leader, partition.leader_epoch)
    } else {
        (change.leader, partition.leader_epoch + 1)
    };
    Partition {
        replicas,
        directories,
        isr: ids(&change.isr, &partition.isr),
        removing_replicas: ids(&change.removing_replicas, &partition.removing_replicas),
        adding_replicas: ids(&change.adding_replicas, &partition.adding_replicas),
        elr: ids(&change.eligible_leader_replicas, &partition.elr),
        last_known_elr: ids(&change.last_known_elr, &partition.last_known_elr),
        leader,
        leader_epoch,
        partition_epoch: partition.partition_epoch + 1,
        leader_recovery_state: match change.leader_recovery_state {
            -1 => partition.leader_recovery_state,
            state => state,
        },
    }
}
