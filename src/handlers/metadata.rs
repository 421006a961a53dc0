//! Metadata: brokers, topics, partitions and their leaders, and topics created by asking for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::messages::{
    MetadataRequest, MetadataRequestMetadataRequestTopic as MetadataRequestTopic, MetadataResponse,
    MetadataResponseMetadataResponseBroker as MetadataResponseBroker,
    MetadataResponseMetadataResponsePartition as MetadataResponsePartition,
    MetadataResponseMetadataResponseTopic as MetadataResponseTopic,
};
use protocol::{Array, ErrorCode, Str, Uuid};

use super::api::{Call, Handler};
use super::operations;
use crate::metadata::{Image, NO_LEADER, Partition, Topic, is_internal, topic_name_problem};
use crate::shard::auto_create;

/// The handler.
pub struct Metadata;

impl Handler for Metadata {
    type Request = MetadataRequest;

    async fn handle(call: Call, request: MetadataRequest) -> MetadataResponse {
        if let Some(refused) = refuse_names(&call, &request) {
            return refused;
        }
        let wanted = wanted(&call, &request);
        let created = create_missing(&call, &request, &wanted).await;
        let image = call.shard.image();
        let topics = match wanted {
            Wanted::All => image
                .topics()
                .map(|topic| describe(&call, &image, topic))
                .collect(),
            Wanted::Ids(ids) => ids.iter().map(|id| by_id(&call, &image, *id)).collect(),
            Wanted::Names(names) => names
                .iter()
                .map(|name| by_name(&call, &image, name, &created))
                .collect(),
        };
        answer(&call, &image, &request, topics)
    }
}

enum Wanted {
    All,
    Names(BTreeSet<Str>),
    Ids(BTreeSet<Uuid>),
}

/// Topic ids, and names left out, are understood from v12 on; a topic must have one of them then.
fn refuse_names(call: &Call, request: &MetadataRequest) -> Option<MetadataResponse> {
    let topics = request.topics.as_ref()?;
    let by_id = |topic: &MetadataRequestTopic| !topic.topic_id.is_zero();
    let nameless = topics.iter().any(|topic| topic.name.is_none());
    let error = match call.version() {
        ..12 if nameless || topics.iter().any(by_id) => ErrorCode::InvalidRequest,
        // Kafka's way to say so.
        12.. if nameless && !topics.iter().any(by_id) => ErrorCode::UnknownServerError,
        _ => return None,
    };
    let topics = topics
        .iter()
        .map(|topic| MetadataResponseTopic {
            error_code: error.code(),
            name: Some(topic.name.clone().unwrap_or_default()),
            topic_id: topic.topic_id,
            ..Default::default()
        })
        .collect();
    Some(MetadataResponse {
        topics,
        error_code: error.code(),
        ..Default::default()
    })
}

fn wanted(call: &Call, request: &MetadataRequest) -> Wanted {
    let Some(topics) = &request.topics else {
        return Wanted::All;
    };
    if topics.is_empty() && call.version() == 0 {
        return Wanted::All;
    }
    let ids: BTreeSet<Uuid> = topics
        .iter()
        .map(|topic| topic.topic_id)
        .filter(|id| !id.is_zero())
        .collect();
    if !ids.is_empty() {
        return Wanted::Ids(ids);
    }
    Wanted::Names(
        topics
            .iter()
            .filter_map(|topic| topic.name.clone())
            .collect(),
    )
}

/// Creates the topics that are asked for by name and do not exist, where both sides allow it.
/// Returns the reason of those that could not be created.
async fn create_missing(
    call: &Call,
    request: &MetadataRequest,
    wanted: &Wanted,
) -> Vec<(Str, ErrorCode)> {
    let allowed = call.version() < 4 || request.allow_auto_topic_creation;
    let Wanted::Names(names) = wanted else {
        return Vec::new();
    };
    if !allowed || !call.shard.config.topics.auto_create {
        return Vec::new();
    }
    let image = call.shard.image();
    let missing: Vec<Str> = names
        .iter()
        .filter(|name| image.topic_by_name(name).is_none() && topic_name_problem(name).is_none())
        .cloned()
        .collect();
    if missing.is_empty() {
        Vec::new()
    } else {
        auto_create(&call.shard, missing).await
    }
}

fn by_name(
    call: &Call,
    image: &Image,
    name: &Str,
    failures: &[(Str, ErrorCode)],
) -> MetadataResponseTopic {
    if let Some(topic) = image.topic_by_name(name) {
        return describe(call, image, topic);
    }
    let failure = failures
        .iter()
        .find(|(failed, _)| failed == name)
        .map(|(_, error)| *error);
    let error = match topic_name_problem(name) {
        Some(_) => ErrorCode::InvalidTopicException,
        None => failure.unwrap_or(ErrorCode::UnknownTopicOrPartition),
    };
    MetadataResponseTopic {
        error_code: error.code(),
        name: Some(name.clone()),
        is_internal: is_internal(name),
        ..Default::default()
    }
}

fn by_id(call: &Call, image: &Image, id: Uuid) -> MetadataResponseTopic {
    match image.topic(id) {
        Some(topic) => describe(call, image, topic),
        None => MetadataResponseTopic {
            error_code: ErrorCode::UnknownTopicId.code(),
            name: (call.version() < 12).then(Str::default),
            topic_id: id,
            ..Default::default()
        },
    }
}

fn describe(call: &Call, image: &Image, topic: &Arc<Topic>) -> MetadataResponseTopic {
    let partitions = topic
        .partitions
        .iter()
        .map(|(index, partition)| describe_partition(call, image, index, partition))
        .collect();
    MetadataResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions,
        ..Default::default()
    }
}

/// A partition as the caller's listener sees it.
pub(super) fn describe_partition(
    call: &Call,
    image: &Image,
    index: i32,
    partition: &Partition,
) -> MetadataResponsePartition {
    let listener = call.shard.listener_name(call.caller.listener);
    let reachable = |id: i32| image.is_active(id) && endpoint_known(image, id, listener);
    let error = match partition.leader {
        NO_LEADER => ErrorCode::LeaderNotAvailable,
        leader if reachable(leader) => ErrorCode::None,
        _ if call.version() >= 6 => ErrorCode::ListenerNotFound,
        _ => ErrorCode::LeaderNotAvailable,
    };
    let offline = partition
        .replicas
        .iter()
        .copied()
        .filter(|id| !reachable(*id) || !in_online_directory(image, partition, *id))
        .collect();
    MetadataResponsePartition {
        error_code: error.code(),
        partition_index: index,
        leader_id: if error == ErrorCode::None {
            partition.leader
        } else {
            NO_LEADER
        },
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replicas[..].into(),
        isr_nodes: partition.isr[..].into(),
        offline_replicas: offline,
    }
}

fn in_online_directory(image: &Image, partition: &Partition, id: i32) -> bool {
    let directory = partition.directory_of(id);
    image
        .broker(id)
        .is_some_and(|broker| directory.is_some_and(|directory| broker.has_online(directory)))
}

fn endpoint_known(image: &Image, id: i32, listener: &str) -> bool {
    image
        .broker(id)
        .is_some_and(|broker| broker.endpoint(listener).is_some())
}

fn answer(
    call: &Call,
    image: &Image,
    request: &MetadataRequest,
    mut topics: Array<MetadataResponseTopic>,
) -> MetadataResponse {
    if request.include_topic_authorized_operations {
        for topic in topics.iter_mut().filter(|topic| topic.error_code == 0) {
            topic.topic_authorized_operations = operations::TOPIC;
        }
    }
    let mut response = MetadataResponse {
        brokers: brokers(call, image),
        cluster_id: Some(call.shard.cluster_id.clone()),
        controller_id: call.shard.config.node_id,
        topics,
        ..Default::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = operations::CLUSTER;
    }
    response
}

/// The brokers that can be reached by the listener that was asked.
fn brokers(call: &Call, image: &Image) -> Array<MetadataResponseBroker> {
    let listener = call.shard.listener_name(call.caller.listener);
    image
        .brokers()
        .filter(|broker| image.is_active(broker.id))
        .filter_map(|broker| broker.endpoint(listener).map(|endpoint| (broker, endpoint)))
        .map(|(broker, endpoint)| MetadataResponseBroker {
            node_id: broker.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            rack: broker.rack.clone(),
        })
        .collect()
}
