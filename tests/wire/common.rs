//! One broker for all of these tests, topics of each test's own, and requests in short.
use std::sync::OnceLock;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{FetchResponse, PartitionData};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, FetchRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::client::Connection;
use crate::support::broker::Broker;
use crate::support::clock;

pub const PRODUCE: i16 = 12;
/// The last version of Fetch that names topics, the next has their ids.
pub const FETCH: i16 = 12;
pub const NO_EPOCH: i32 = -1;

pub fn broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| {
        let settings = [
            ("auto.create.topics.enable", "true"),
            ("num.partitions", "2"),
            ("message.max.bytes", "6000000"),
        ];
        Broker::start("wire", &settings)
    })
}

pub fn connect() -> Connection {
    Connection::open(broker().port)
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A topic of one test.
#[derive(Clone)]
pub struct Topic {
    pub name: TopicName,
    pub id: Uuid,
}

impl Topic {
    pub fn new(name: &str) -> Self {
        Self::with(name, 1, &[])
    }

    pub fn with(name: &str, partitions: i32, configs: &[(&str, &str)]) -> Self {
        let topic = creatable(name, partitions).with_configs(
            configs
                .iter()
                .map(|(name, value)| config(name, value))
                .collect(),
        );
        let answer = create(&mut connect(), topic, false);
        assert_eq!(
            (answer.error_code, answer.error_message.clone()),
            (0, None),
            "topic {name}"
        );
        assert_ne!(answer.topic_id, Uuid::nil());
        let topic = Self {
            name: answer.name,
            id: answer.topic_id,
        };
        topic.wait_served(partitions);
        topic
    }

    /// Apache answers a creation before its partitions serve; `topics.rs` holds this broker to more.
    pub fn wait_served(&self, partitions: i32) {
        self.wait_served_by(&mut connect(), partitions);
    }

    pub fn wait_served_by(&self, connection: &mut Connection, partitions: i32) {
        let all: Vec<_> = (0..partitions)
            .map(|partition| (self, partition, 0))
            .collect();
        clock::wait_until("the new topic to be served", || {
            let answer = connection.call(13, &fetch_request(13, &all));
            let served = parts(&answer)
                .iter()
                .filter(|(_, code, _)| *code == 0)
                .count();
            served == all.len()
        });
    }

    /// A topic that is not there.
    pub fn missing(name: &str) -> Self {
        Self {
            name: text(name).into(),
            id: Uuid::from_u128(0x1234_5678_9abc_4def_8000_0000_0000_0001),
        }
    }
}

pub fn config(name: &str, value: &str) -> CreatableTopicConfig {
    CreatableTopicConfig::default()
        .with_name(text(name))
        .with_value(Some(text(value)))
}

pub fn creatable(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(text(name).into())
        .with_num_partitions(partitions)
        .with_replication_factor(1)
}

pub fn create(
    connection: &mut Connection,
    topic: CreatableTopic,
    validate_only: bool,
) -> kafka_protocol::messages::create_topics_response::CreatableTopicResult {
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000)
        .with_validate_only(validate_only);
    connection.call(7, &request).topics.remove(0)
}

pub fn produce_request(version: i16, topic: &Topic, acks: i16, records: Bytes) -> ProduceRequest {
    let mut data = TopicProduceData::default();
    if version < 13 {
        data.name = topic.name.clone();
    } else {
        data.topic_id = topic.id;
    }
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(records));
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![data.with_partition_data(vec![partition])])
}

/// Produces to partition 0 and returns its answer.
pub fn produce_as(
    connection: &mut Connection,
    version: i16,
    topic: &Topic,
    acks: i16,
    records: Bytes,
) -> PartitionProduceResponse {
    let mut answer = connection.call(version, &produce_request(version, topic, acks, records));
    answer.responses.remove(0).partition_responses.remove(0)
}

/// Produces to partition 0 with acks=all and returns the base offset.
pub fn produce(connection: &mut Connection, topic: &Topic, records: Bytes) -> i64 {
    let answer = produce_as(connection, PRODUCE, topic, -1, records);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.base_offset
}

pub fn fetch_request(version: i16, parts: &[(&Topic, i32, i64)]) -> FetchRequest {
    let topics = parts.iter().map(|(topic, partition, offset)| {
        let mut fetched = FetchTopic::default();
        if version < 13 {
            fetched.topic = topic.name.clone();
        } else {
            fetched.topic_id = topic.id;
        }
        let part = FetchPartition::default()
            .with_partition(*partition)
            .with_fetch_offset(*offset)
            .with_current_leader_epoch(NO_EPOCH)
            .with_partition_max_bytes(1 << 20);
        fetched.with_partitions(vec![part])
    });
    let mut request = FetchRequest::default()
        .with_max_wait_ms(0)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(topics.collect());
    if version < 15 {
        request.replica_id = BrokerId(-1);
    }
    request
}

pub fn fetch_as(
    connection: &mut Connection,
    version: i16,
    topic: &Topic,
    offset: i64,
) -> PartitionData {
    let mut answer = connection.call(version, &fetch_request(version, &[(topic, 0, offset)]));
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.responses.remove(0).partitions.remove(0)
}

pub fn fetch(connection: &mut Connection, topic: &Topic, offset: i64) -> PartitionData {
    fetch_as(connection, FETCH, topic, offset)
}

/// Partition, error and size of the records of every partition in an answer, in its order.
pub fn parts(answer: &FetchResponse) -> Vec<(i32, i16, usize)> {
    let of = |data: &PartitionData| {
        (
            data.partition_index,
            data.error_code,
            data.records.as_ref().map_or(0, Bytes::len),
        )
    };
    answer
        .responses
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(of))
        .collect()
}
