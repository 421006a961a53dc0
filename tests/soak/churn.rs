//! Topics that come, are written and read back, and go; settings that change.
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{DeleteTopicsRequest, IncrementalAlterConfigsRequest};

use crate::Until;
use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{
    FETCH, PRODUCE, Topic, config, creatable, create, fetch_request, produce_request, text,
};
use crate::support::clock;
use crate::support::random::Random;

const PARTITIONS: i32 = 4;
const TOPIC_RESOURCE: i8 = 2;
const BROKER_RESOURCE: i8 = 4;

fn alter(connection: &mut Connection, kind: i8, name: &str, key: &str, value: &str) -> i16 {
    let config = AlterableConfig::default()
        .with_name(text(key))
        .with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    connection.call(1, &request).responses[0].error_code
}

/// How many topics and records that were.
pub fn run(port: u16, number: u64, until: Until) -> (usize, usize) {
    let (mut topics, mut records) = (0, 0);
    let mut random = Random::new(number);
    while until.goes_on() {
        // A new connection for each, as tools have.
        let mut connection = Connection::open(port);
        let name = format!("churn-{number}-{}", topics % 5);
        let soon = config("file.delete.delay.ms", "200");
        let wanted = creatable(&name, PARTITIONS).with_configs(vec![soon]);
        let answer = create(&mut connection, wanted, false);
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let topic = Topic {
            name: answer.name,
            id: answer.topic_id,
        };
        let rounds = random.between(1, 40);
        for round in 0..rounds {
            let partition = i32::try_from(random.between(0, 4)).expect("small");
            records += written_and_read(&mut connection, &topic, partition, round, &mut random);
            if round % 8 == 3 {
                let bytes = ["1048576", "2097152"][round % 2];
                let code = alter(
                    &mut connection,
                    TOPIC_RESOURCE,
                    &name,
                    "segment.bytes",
                    bytes,
                );
                assert_eq!(code, 0);
            }
        }
        let state = DeleteTopicState::default().with_name(Some(topic.name.clone()));
        let request = DeleteTopicsRequest::default()
            .with_topics(vec![state])
            .with_timeout_ms(30_000);
        assert_eq!(connection.call(6, &request).responses[0].error_code, 0);
        topics += 1;
    }
    (topics, records)
}

/// Writes a batch and reads it back, byte for byte but for what the broker sets.
fn written_and_read(
    connection: &mut Connection,
    topic: &Topic,
    partition: i32,
    round: usize,
    random: &mut Random,
) -> usize {
    let value = format!("{round}:{}", "x".repeat(random.between(1, 60_000)));
    let written = Batch::of(clock::wall_clock_ms(), &[value.as_str()]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, written.clone());
    request.topic_data[0].partition_data[0].index = partition;
    let answer = connection.call(PRODUCE, &request);
    let produced = &answer.responses[0].partition_responses[0];
    assert_eq!(produced.error_code, 0, "{produced:?}");
    let fetch = fetch_request(FETCH, &[(topic, partition, produced.base_offset)]);
    let answer = connection.call(FETCH, &fetch);
    let data = &answer.responses[0].partitions[0];
    assert_eq!(data.error_code, 0);
    let read = data.records.clone().unwrap_or_default();
    let heads = batch::read(read.clone());
    assert_eq!(heads.len(), 1, "one batch at {}", produced.base_offset);
    assert_eq!(heads[0].last_offset, produced.base_offset);
    // Behind base offset, length, leader epoch, magic and checksum comes what the client wrote.
    assert_eq!(
        read[21..],
        written[21..],
        "{} {partition}",
        topic.name.as_str()
    );
    1
}

/// How often the broker's settings changed.
pub fn change_settings(port: u16, until: Until) -> usize {
    let mut connection = Connection::open(port);
    let mut changes = 0;
    while until.goes_on() {
        let (key, value) = [
            ("max.connections.per.ip", "100000"),
            ("max.connections.per.ip", "200000"),
            ("message.max.bytes", "2000000"),
            ("message.max.bytes", "1048588"),
        ][changes % 4];
        assert_eq!(alter(&mut connection, BROKER_RESOURCE, "", key, value), 0);
        changes += 1;
        clock::pause(std::time::Duration::from_millis(300));
    }
    changes
}
