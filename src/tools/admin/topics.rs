use std::collections::BTreeMap;

use protocol::messages::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition as DescribedPartition,
    MetadataRequest, MetadataRequestMetadataRequestTopic,
    MetadataResponseMetadataResponseTopic as MetadataTopic,
};
use protocol::{Array, Str, Uuid};

use crate::tools::client::{Client, ClientError, Node};

/// A topic as the cluster describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicInfo {
    pub name: Str,
    pub id: Uuid,
    pub internal: bool,
    /// By number.
    pub partitions: Vec<PartitionInfo>,
}

/// One of its partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionInfo {
    pub number: i32,
    pub leader: Option<i32>,
    pub replicas: Vec<i32>,
    pub in_sync: Vec<i32>,
    /// Replicas that may still lead though they are not in sync. Not known of brokers before 4.0.
    pub eligible: Option<Vec<i32>>,
    pub last_known_eligible: Option<Vec<i32>>,
}

/// All topics, by name, without their partitions.
pub fn list_topics(client: &mut Client) -> Result<Vec<TopicInfo>, ClientError> {
    let response = client.retrying(|client| client.metadata(None))?;
    let mut topics: Vec<TopicInfo> = response.topics.into_iter().map(of_metadata).collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(topics)
}

/// These topics by name; the first that cannot be described is the error. `limit` is how many partitions one answer may hold.
pub fn describe_topics(
    client: &mut Client,
    names: &[Str],
    limit: i32,
) -> Result<Vec<TopicInfo>, ClientError> {
    let newest = client
        .connection(Node::Any)?
        .version::<DescribeTopicPartitionsRequest>();
    if newest.is_ok() {
        return client.retrying(|client| describe_in_pieces(client, names, limit));
    }
    client.retrying(|client| {
        let response = client.metadata(Some(names))?;
        checked(response.topics)
    })
}

/// These topics by id.
pub fn describe_topics_by_id(
    client: &mut Client,
    ids: &[Uuid],
) -> Result<Vec<TopicInfo>, ClientError> {
    let topic = |&topic_id: &Uuid| MetadataRequestMetadataRequestTopic {
        topic_id,
        name: None,
    };
    let request = MetadataRequest {
        topics: Some(ids.iter().map(topic).collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    client.retrying(|client| checked(client.send_metadata(&request)?.topics))
}

/// The answer comes in pieces where there are many partitions; a cursor says where the next begins.
fn describe_in_pieces(
    client: &mut Client,
    names: &[Str],
    limit: i32,
) -> Result<Vec<TopicInfo>, ClientError> {
    let mut found: BTreeMap<Str, TopicInfo> = BTreeMap::new();
    let mut names = names.to_vec();
    names.sort();
    let mut cursor = None;
    loop {
        let named = |name: &Str| DescribeTopicPartitionsRequestTopicRequest { name: name.clone() };
        let request = DescribeTopicPartitionsRequest {
            topics: names.iter().map(named).collect(),
            response_partition_limit: limit,
            cursor: cursor.take(),
        };
        let response = client.send(Node::Any, &request)?;
        for topic in response.topics {
            ClientError::check(topic.error_code, None)?;
            let name = topic.name.unwrap_or_default();
            let info = found.entry(name.clone()).or_insert_with(|| TopicInfo {
                name,
                id: topic.topic_id,
                internal: topic.is_internal,
                partitions: Vec::new(),
            });
            info.partitions
                .extend(topic.partitions.into_iter().map(of_description));
        }
        let Some(next) = response.next_cursor else {
            break;
        };
        names.retain(|name| *name >= next.topic_name);
        cursor = Some(DescribeTopicPartitionsRequestCursor {
            topic_name: next.topic_name,
            partition_index: next.partition_index,
        });
    }
    Ok(found.into_values().map(in_order).collect())
}

fn in_order(mut topic: TopicInfo) -> TopicInfo {
    topic.partitions.sort_by_key(|partition| partition.number);
    topic
}

fn checked(topics: Array<MetadataTopic>) -> Result<Vec<TopicInfo>, ClientError> {
    for topic in &topics {
        ClientError::check(topic.error_code, None)?;
    }
    let mut topics: Vec<TopicInfo> = topics.into_iter().map(of_metadata).collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(topics)
}

fn of_metadata(topic: MetadataTopic) -> TopicInfo {
    let partition =
        |partition: protocol::messages::MetadataResponseMetadataResponsePartition| PartitionInfo {
            number: partition.partition_index,
            leader: leader(partition.leader_id),
            replicas: partition.replica_nodes.into(),
            in_sync: partition.isr_nodes.into(),
            eligible: None,
            last_known_eligible: None,
        };
    in_order(TopicInfo {
        name: topic.name.unwrap_or_default(),
        id: topic.topic_id,
        internal: topic.is_internal,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    })
}

fn of_description(partition: DescribedPartition) -> PartitionInfo {
    PartitionInfo {
        number: partition.partition_index,
        leader: leader(partition.leader_id),
        replicas: partition.replica_nodes.into(),
        in_sync: partition.isr_nodes.into(),
        eligible: Some(
            partition
                .eligible_leader_replicas
                .unwrap_or_default()
                .into(),
        ),
        last_known_eligible: Some(partition.last_known_elr.unwrap_or_default().into()),
    }
}

fn leader(id: i32) -> Option<i32> {
    (id >= 0).then_some(id)
}
