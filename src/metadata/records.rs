//! Between stored records and the values of the image.

use protocol::stored::{
    ConfigRecord, FeatureLevelRecord, MetadataRecord, PartitionRecord, ProducerIdsRecord,
    RegisterBrokerRecord, RegisterBrokerRecordBrokerEndpoint, RegisterBrokerRecordBrokerFeature,
    RegisterControllerRecord, RegisterControllerRecordControllerEndpoint,
    RegisterControllerRecordControllerFeature, TopicRecord,
};
use protocol::{Array, Str};

use super::broker::{BrokerRegistration, ControllerRegistration, Endpoint, SupportedFeature};
use super::image::{ELR_VERSION, Image, Topic};
use super::partition::{Partition, directory};

pub(super) fn broker(record: &RegisterBrokerRecord) -> BrokerRegistration {
    BrokerRegistration {
        id: record.broker_id,
        epoch: record.broker_epoch,
        incarnation_id: record.incarnation_id,
        endpoints: record
            .end_points
            .iter()
            .map(|it| endpoint(&it.name, &it.host, it.port, it.security_protocol))
            .collect(),
        features: record
            .features
            .iter()
            .map(|it| feature(&it.name, it.min_supported_version, it.max_supported_version))
            .collect(),
        rack: record.rack.as_ref().map(Str::detached),
        fenced: record.fenced,
        in_controlled_shutdown: record.in_controlled_shutdown,
        is_migrating_zk_broker: record.is_migrating_zk_broker,
        log_dirs: record.log_dirs.to_vec(),
        cordoned_log_dirs: record.cordoned_log_dirs.as_ref().map(Array::to_vec),
    }
}

pub(super) fn controller(record: &RegisterControllerRecord) -> ControllerRegistration {
    ControllerRegistration {
        id: record.controller_id,
        incarnation_id: record.incarnation_id,
        zk_migration_ready: record.zk_migration_ready,
        endpoints: record
            .end_points
            .iter()
            .map(|it| endpoint(&it.name, &it.host, it.port, it.security_protocol))
            .collect(),
        features: record
            .features
            .iter()
            .map(|it| feature(&it.name, it.min_supported_version, it.max_supported_version))
            .collect(),
    }
}

fn endpoint(name: &Str, host: &Str, port: u16, security_protocol: i16) -> Endpoint {
    Endpoint {
        name: name.detached(),
        host: host.detached(),
        port,
        security_protocol,
    }
}

fn feature(name: &Str, min: i16, max: i16) -> SupportedFeature {
    SupportedFeature {
        name: name.detached(),
        min,
        max,
    }
}

/// The record of a broker's registration.
#[must_use]
pub fn broker_record(broker: &BrokerRegistration) -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: broker.id,
        is_migrating_zk_broker: broker.is_migrating_zk_broker,
        incarnation_id: broker.incarnation_id,
        broker_epoch: broker.epoch,
        end_points: broker
            .endpoints
            .iter()
            .map(|it| RegisterBrokerRecordBrokerEndpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
                security_protocol: it.security_protocol,
            })
            .collect(),
        features: broker
            .features
            .iter()
            .map(|it| RegisterBrokerRecordBrokerFeature {
                name: it.name.clone(),
                min_supported_version: it.min,
                max_supported_version: it.max,
            })
            .collect(),
        rack: broker.rack.clone(),
        fenced: broker.fenced,
        in_controlled_shutdown: broker.in_controlled_shutdown,
        log_dirs: broker.log_dirs.clone().into(),
        cordoned_log_dirs: broker.cordoned_log_dirs.clone().map(Array::from),
    }
}

/// The record of a controller's registration.
#[must_use]
pub fn controller_record(controller: &ControllerRegistration) -> RegisterControllerRecord {
    RegisterControllerRecord {
        controller_id: controller.id,
        incarnation_id: controller.incarnation_id,
        zk_migration_ready: controller.zk_migration_ready,
        end_points: controller
            .endpoints
            .iter()
            .map(|it| RegisterControllerRecordControllerEndpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
                security_protocol: it.security_protocol,
            })
            .collect(),
        features: controller
            .features
            .iter()
            .map(|it| RegisterControllerRecordControllerFeature {
                name: it.name.clone(),
                min_supported_version: it.min,
                max_supported_version: it.max,
            })
            .collect(),
    }
}

pub(super) fn partition(record: &PartitionRecord) -> Partition {
    let boxed = |ids: &Option<Array<i32>>| ids.as_ref().map(Box::from).unwrap_or_default();
    // Before directories were known (metadata.version below 3.7-IV2) the list is empty.
    let directories = if record.directories.is_empty() {
        vec![directory::MIGRATING; record.replicas.len()].into()
    } else {
        (&record.directories).into()
    };
    Partition {
        replicas: (&record.replicas).into(),
        directories,
        isr: (&record.isr).into(),
        removing_replicas: (&record.removing_replicas).into(),
        adding_replicas: (&record.adding_replicas).into(),
        elr: boxed(&record.eligible_leader_replicas),
        last_known_elr: boxed(&record.last_known_elr),
        leader: record.leader,
        leader_epoch: record.leader_epoch,
        partition_epoch: record.partition_epoch,
        leader_recovery_state: record.leader_recovery_state,
    }
}

/// The record of a partition as it stands.
///
/// Eligible leader replicas are written only while that feature is on, as Apache does.
#[must_use]
pub fn partition_record(
    topic: protocol::Uuid,
    index: i32,
    partition: &Partition,
    elr_enabled: bool,
) -> PartitionRecord {
    let elr = |ids: &[i32]| (elr_enabled && !ids.is_empty()).then(|| ids.into());
    PartitionRecord {
        partition_id: index,
        topic_id: topic,
        replicas: partition.replicas[..].into(),
        isr: partition.isr[..].into(),
        removing_replicas: partition.removing_replicas[..].into(),
        adding_replicas: partition.adding_replicas[..].into(),
        leader: partition.leader,
        leader_recovery_state: partition.leader_recovery_state,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        directories: partition.directories[..].into(),
        eligible_leader_replicas: elr(&partition.elr),
        last_known_elr: elr(&partition.last_known_elr),
    }
}

/// Calls `write` for each record of a snapshot of `image`, in the order in which Apache writes
/// them: features (`metadata.version` first), brokers, controllers, topics, configs, quotas,
/// producer ids, ACLs, SCRAM credentials, delegation tokens.
pub fn snapshot_records(image: &Image, mut write: impl FnMut(MetadataRecord)) {
    let level = |name: &Str, feature_level| {
        MetadataRecord::FeatureLevel(FeatureLevelRecord {
            name: name.clone(),
            feature_level,
        })
    };
    let first = Str::from_static(super::image::METADATA_VERSION);
    if let Some(version) = image.features.metadata_version() {
        write(level(&first, version));
    }
    for (name, feature_level) in image.features.iter().filter(|(name, _)| **name != first) {
        write(level(name, feature_level));
    }
    for broker in image.brokers() {
        write(MetadataRecord::RegisterBroker(broker_record(broker)));
    }
    for controller in image.controllers() {
        write(MetadataRecord::RegisterController(controller_record(
            controller,
        )));
    }
    let elr_enabled = image.features.level(ELR_VERSION) > 0;
    for topic in image.topics() {
        topic_records(topic, elr_enabled, &mut write);
    }
    for (kind, resource_name, values) in image.configs.iter() {
        for (name, value) in values {
            write(MetadataRecord::Config(ConfigRecord {
                resource_type: kind.0,
                resource_name: resource_name.clone(),
                name: name.clone(),
                value: Some(value.clone()),
            }));
        }
    }
    kept_records(image, &mut write);
}

fn topic_records(topic: &Topic, elr_enabled: bool, write: &mut impl FnMut(MetadataRecord)) {
    write(MetadataRecord::Topic(TopicRecord {
        name: topic.name.clone(),
        topic_id: topic.id,
    }));
    for (index, partition) in topic.partitions.iter() {
        let record = partition_record(topic.id, index, partition, elr_enabled);
        write(MetadataRecord::Partition(record));
    }
}

fn kept_records(image: &Image, write: &mut impl FnMut(MetadataRecord)) {
    let quota = |record: &MetadataRecord| matches!(record, MetadataRecord::ClientQuota(_));
    for (_, record) in image.kept.iter().filter(|(_, record)| quota(record)) {
        write(record.clone());
    }
    if image.producer_ids.next_id >= 0 {
        write(MetadataRecord::ProducerIds(ProducerIdsRecord {
            broker_id: -1,
            broker_epoch: -1,
            next_producer_id: image.producer_ids.next_id,
        }));
    }
    for (_, record) in image.kept.iter().filter(|(_, record)| !quota(record)) {
        write(record.clone());
    }
}

/// A copy of a kept record that holds no slice of the batch it was read from.
pub(super) fn detached(record: &MetadataRecord) -> MetadataRecord {
    let mut record = record.clone();
    match &mut record {
        MetadataRecord::ClientQuota(it) => {
            it.key = it.key.detached();
            for part in &mut it.entity {
                part.entity_type = part.entity_type.detached();
                part.entity_name = part.entity_name.as_ref().map(Str::detached);
            }
        }
        MetadataRecord::AccessControlEntry(it) => {
            it.resource_name = it.resource_name.detached();
            it.principal = it.principal.detached();
            it.host = it.host.detached();
        }
        MetadataRecord::UserScramCredential(it) => {
            it.name = it.name.detached();
            for bytes in [&mut it.salt, &mut it.stored_key, &mut it.server_key] {
                *bytes = bytes::Bytes::copy_from_slice(bytes);
            }
        }
        MetadataRecord::DelegationToken(it) => {
            it.owner = it.owner.detached();
            it.requester = it.requester.detached();
            it.renewers = it.renewers.iter().map(Str::detached).collect();
            it.token_id = it.token_id.detached();
        }
        _ => {}
    }
    record
}
