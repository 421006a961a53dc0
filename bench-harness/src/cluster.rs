//! The target as a cluster: who leads what, and the topics of a run.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, InitProducerIdRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::batches::Producer;
use crate::connection::Connection;
use crate::scenario::Topic;

/// Kafka's TOPIC_ALREADY_EXISTS and UNKNOWN_TOPIC_OR_PARTITION.
const TOPIC_ALREADY_EXISTS: i16 = 36;
const UNKNOWN_TOPIC: i16 = 3;

/// A topic whose partitions all have leaders.
#[derive(Clone, Debug)]
pub struct Placed {
    pub topic: String,
    /// `host:port` of each leader with the partitions that it leads.
    pub leaders: Vec<(String, Vec<i32>)>,
}

impl Placed {
    pub fn partitions(&self) -> usize {
        self.leaders
            .iter()
            .map(|(_, partitions)| partitions.len())
            .sum()
    }
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// Creates the topic and waits until every partition has a leader.
pub async fn create(address: &str, name: &str, topic: &Topic) -> Result<Placed> {
    let mut connection = Connection::open(address).await?;
    let configs = topic.config.iter().map(|(key, value)| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_string(key.clone()))
            .with_value(Some(StrBytes::from_string(value.clone())))
    });
    let creatable = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(i32::try_from(topic.partitions)?)
        .with_replication_factor(i16::try_from(topic.replication)?)
        .with_configs(configs.collect());
    let request = CreateTopicsRequest::default()
        .with_topics(vec![creatable])
        .with_timeout_ms(60_000);
    let answer = connection.call(&request).await?;
    let created = answer.topics.first().context("no answer for the topic")?;
    ensure!(
        created.error_code == 0 || created.error_code == TOPIC_ALREADY_EXISTS,
        "cannot create topic {name}: error {} {}",
        created.error_code,
        created
            .error_message
            .as_ref()
            .map_or("", |message| message.as_str())
    );
    for _ in 0..600 {
        if let Some(placed) = place(&mut connection, name, topic.partitions as usize).await? {
            return Ok(placed);
        }
        glommio::timer::sleep(Duration::from_millis(50)).await;
    }
    bail!(
        "topic {name} has no leaders for all of its {} partitions after 30 s",
        topic.partitions
    )
}

async fn place(
    connection: &mut Connection,
    name: &str,
    partitions: usize,
) -> Result<Option<Placed>> {
    let wanted = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let answer = connection
        .call(&MetadataRequest::default().with_topics(Some(vec![wanted])))
        .await?;
    let addresses: HashMap<i32, String> = answer
        .brokers
        .iter()
        .map(|broker| {
            (
                broker.node_id.0,
                format!("{}:{}", broker.host.as_str(), broker.port),
            )
        })
        .collect();
    let Some(topic) = answer.topics.first().filter(|topic| topic.error_code == 0) else {
        return Ok(None);
    };
    let mut leaders: Vec<(String, Vec<i32>)> = Vec::new();
    let mut found = 0;
    for partition in &topic.partitions {
        let Some(address) = addresses
            .get(&partition.leader_id.0)
            .filter(|_| partition.error_code == 0)
        else {
            continue;
        };
        found += 1;
        match leaders.iter_mut().find(|(known, _)| known == address) {
            Some((_, led)) => led.push(partition.partition_index),
            None => leaders.push((address.clone(), vec![partition.partition_index])),
        }
    }
    Ok((found == partitions).then(|| Placed {
        topic: name.to_owned(),
        leaders,
    }))
}

pub async fn delete(address: &str, name: &str) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let version = connection.versions.of::<DeleteTopicsRequest>()?;
    let request = DeleteTopicsRequest::default().with_timeout_ms(60_000);
    let request = if version >= 6 {
        let state = kafka_protocol::messages::delete_topics_request::DeleteTopicState::default();
        request.with_topics(vec![state.with_name(Some(topic_name(name)))])
    } else {
        request.with_topic_names(vec![topic_name(name)])
    };
    let answer = connection.call(&request).await?;
    let error = answer
        .responses
        .first()
        .map_or(0, |deleted| deleted.error_code);
    ensure!(
        error == 0 || error == UNKNOWN_TOPIC,
        "cannot delete topic {name}: error {error}"
    );
    Ok(())
}

/// A producer id of the broker's choice.
pub async fn producer_id(connection: &mut Connection) -> Result<Producer> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000);
    let answer = connection.call(&request).await?;
    if answer.error_code != 0 {
        return Err(anyhow!("no producer id: error {}", answer.error_code));
    }
    Ok(Producer {
        id: answer.producer_id.0,
        epoch: answer.producer_epoch,
    })
}
