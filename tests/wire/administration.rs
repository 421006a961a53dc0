//! What administrators ask: settings that change while the broker runs, records deleted by offset, pages of topics,
//! directories. A broker of their own, since its settings change.
use bytes::Bytes;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::describe_topic_partitions_response::DescribeTopicPartitionsResponse;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{
    DeleteRecordsRequest, DescribeConfigsRequest, DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest,
};

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{
    FETCH, PRODUCE, Topic, config, creatable, create, fetch_request, produce_as, text,
};
use crate::support::broker::Broker;
use crate::support::clock;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;

fn topic(
    connection: &mut Connection,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> Topic {
    let configs = configs.iter().map(|(key, value)| config(key, value));
    let asked = creatable(name, partitions).with_configs(configs.collect());
    let answer = create(connection, asked, false);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

fn alter(connection: &mut Connection, kind: i8, name: &str, key: &str, value: Option<&str>) {
    let config = AlterableConfig::default()
        .with_name(text(key))
        .with_config_operation(if value.is_some() { SET } else { DELETE })
        .with_value(value.map(text));
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = connection.call(1, &request).responses.remove(0);
    assert_eq!((answer.error_code, answer.error_message), (0, None));
}

/// A setting and the number of its source.
fn described(connection: &mut Connection, kind: i8, name: &str, key: &str) -> (String, i8) {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(Some(vec![text(key)]));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let config = connection
        .call(4, &request)
        .results
        .remove(0)
        .configs
        .remove(0);
    (
        config
            .value
            .map(|value| value.to_string())
            .unwrap_or_default(),
        config.config_source,
    )
}

fn sized(bytes: usize) -> Bytes {
    Batch::of(clock::wall_clock_ms(), &["x".repeat(bytes).as_str()]).bytes()
}

#[test]
fn settings_take_effect_without_a_restart_and_stay_over_one() {
    const TOO_LARGE: i16 = 10;
    let mut broker = Broker::start("dynamic-settings", &[("ringmain.shards", "2")]);
    let mut connection = Connection::open(broker.port);
    let plain = topic(&mut connection, "plain", 2, &[]);
    let own = topic(&mut connection, "own", 2, &[("max.message.bytes", "5000")]);
    let produced = |connection: &mut Connection, topic: &Topic| {
        produce_as(connection, PRODUCE, topic, -1, sized(2000)).error_code
    };
    assert_eq!(produced(&mut connection, &plain), 0);
    alter(
        &mut connection,
        BROKER,
        "",
        "message.max.bytes",
        Some("1000"),
    );
    assert_eq!(produced(&mut connection, &plain), TOO_LARGE);
    assert_eq!(
        produced(&mut connection, &own),
        0,
        "its own setting is stronger"
    );
    let of_plain =
        |connection: &mut Connection| described(connection, TOPIC, "plain", "max.message.bytes");
    assert_eq!(of_plain(&mut connection), ("1000".into(), 3));
    alter(
        &mut connection,
        BROKER,
        "1",
        "message.max.bytes",
        Some("3000"),
    );
    assert_eq!(produced(&mut connection, &plain), 0);
    assert_eq!(of_plain(&mut connection), ("3000".into(), 2));
    alter(
        &mut connection,
        TOPIC,
        "plain",
        "max.message.bytes",
        Some("500"),
    );
    assert_eq!(produced(&mut connection, &plain), TOO_LARGE);
    assert_eq!(of_plain(&mut connection), ("500".into(), 1));

    assert!(broker.stop().success());
    broker.restart();
    let mut connection = Connection::open(broker.port);
    assert_eq!(produced(&mut connection, &plain), TOO_LARGE);
    alter(&mut connection, TOPIC, "plain", "max.message.bytes", None);
    assert_eq!(produced(&mut connection, &plain), 0);
    let of_broker = described(&mut connection, BROKER, "1", "message.max.bytes");
    assert_eq!(of_broker, ("3000".into(), 2));
    alter(&mut connection, BROKER, "1", "message.max.bytes", None);
    assert_eq!(
        produced(&mut connection, &plain),
        TOO_LARGE,
        "the cluster's again"
    );
}

#[test]
fn records_below_an_offset_go_and_stay_away() {
    const OUT_OF_RANGE: i16 = 1;
    const UNKNOWN: i16 = 3;
    const INVALID_TOPIC: i16 = 17;
    const POLICY: i16 = 44;
    let mut broker = Broker::start("delete-records", &[("ringmain.shards", "2")]);
    let mut connection = Connection::open(broker.port);
    let delete = |connection: &mut Connection, name: &str, partition: i32, offset: i64| {
        let partition = DeleteRecordsPartition::default()
            .with_partition_index(partition)
            .with_offset(offset);
        let topic = DeleteRecordsTopic::default()
            .with_name(text(name).into())
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000);
        let answer = connection
            .call(2, &request)
            .topics
            .remove(0)
            .partitions
            .remove(0);
        (answer.error_code, answer.low_watermark)
    };
    let some = topic(&mut connection, "some", 1, &[]);
    topic(&mut connection, "kept", 1, &[("cleanup.policy", "compact")]);
    for _ in 0..10 {
        produce_as(&mut connection, PRODUCE, &some, -1, sized(10));
    }
    let start_seen = |connection: &mut Connection, offset: i64| {
        let mut answer = connection.call(FETCH, &fetch_request(FETCH, &[(&some, 0, offset)]));
        let data = answer.responses.remove(0).partitions.remove(0);
        (data.error_code, data.log_start_offset)
    };
    assert_eq!(delete(&mut connection, "some", 0, 4), (0, 4));
    assert_eq!(delete(&mut connection, "some", 0, 2), (0, 4), "never back");
    assert_eq!(start_seen(&mut connection, 4), (0, 4));
    assert_eq!(start_seen(&mut connection, 3).0, OUT_OF_RANGE);
    assert_eq!(delete(&mut connection, "some", 0, 11), (OUT_OF_RANGE, -1));
    assert_eq!(delete(&mut connection, "some", 0, -2), (OUT_OF_RANGE, -1));
    assert_eq!(delete(&mut connection, "some", 7, 0), (UNKNOWN, -1));
    assert_eq!(delete(&mut connection, "none", 0, 0), (UNKNOWN, -1));
    assert_eq!(delete(&mut connection, "kept", 0, 0), (POLICY, -1));
    topic(&mut connection, "__consumer_offsets", 1, &[]);
    assert_eq!(
        delete(&mut connection, "__consumer_offsets", 0, 0),
        (INVALID_TOPIC, -1)
    );
    assert!(broker.stop().success());
    broker.restart();
    let mut connection = Connection::open(broker.port);
    assert_eq!(start_seen(&mut connection, 4), (0, 4), "over a restart");
    assert_eq!(
        delete(&mut connection, "some", 0, -1),
        (0, 10),
        "everything"
    );
    assert_eq!(start_seen(&mut connection, 10), (0, 10));
}

fn page_of(
    connection: &mut Connection,
    names: &[&str],
    limit: i32,
    cursor: Option<(&str, i32)>,
) -> DescribeTopicPartitionsResponse {
    let named = |name: &&str| TopicRequest::default().with_name(text(name).into());
    let cursor = cursor.map(|(name, index)| {
        Cursor::default()
            .with_topic_name(text(name).into())
            .with_partition_index(index)
    });
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(names.iter().map(named).collect())
        .with_response_partition_limit(limit)
        .with_cursor(cursor);
    connection.call(0, &request)
}

#[test]
fn topics_come_page_by_page() {
    const INVALID_REQUEST: i16 = 42;
    let broker = Broker::start("pages", &[("ringmain.shards", "2")]);
    let mut connection = Connection::open(broker.port);
    let topics: Vec<Topic> = ["a", "b", "c"]
        .map(|name| topic(&mut connection, name, 3, &[]))
        .into();
    let shape = |answer: &DescribeTopicPartitionsResponse| {
        let topics: Vec<(String, usize)> = answer
            .topics
            .iter()
            .map(|it| {
                (
                    it.name
                        .as_ref()
                        .map(|name| name.to_string())
                        .unwrap_or_default(),
                    it.partitions.len(),
                )
            })
            .collect();
        let next = answer.next_cursor.as_ref();
        (
            topics,
            next.map(|it| (it.topic_name.to_string(), it.partition_index)),
        )
    };
    let page = page_of(&mut connection, &[], 4, None);
    let expected = (
        vec![("a".into(), 3), ("b".into(), 1)],
        Some(("b".into(), 1)),
    );
    assert_eq!(shape(&page), expected);
    assert_eq!(page.topics[0].topic_id, topics[0].id);
    assert_eq!(
        page.topics[0].partitions[2].eligible_leader_replicas,
        Some(Vec::new())
    );
    let page = page_of(&mut connection, &[], 5, Some(("b", 1)));
    assert_eq!(shape(&page), (vec![("b".into(), 2), ("c".into(), 3)], None));
    let page = page_of(&mut connection, &["zz", "c"], 0, None);
    assert_eq!(shape(&page), (vec![("c".into(), 1)], Some(("c".into(), 1))));
    let page = page_of(&mut connection, &["zz", "c"], 10, None);
    assert_eq!(
        shape(&page),
        (vec![("c".into(), 3), ("zz".into(), 0)], None)
    );
    assert_eq!(page.topics[1].error_code, 3);
    assert_eq!(
        page.topics[1].topic_authorized_operations, page.topics[0].topic_authorized_operations,
        "nobody may not see what is not there"
    );
    let page = page_of(&mut connection, &["zz", "c"], 3, None);
    assert_eq!(
        shape(&page),
        (vec![("c".into(), 3)], Some(("zz".into(), 0))),
        "what is not there has no room either on a page that is full"
    );
    for cursor in [("b", 0), ("a", -1)] {
        let page = page_of(&mut connection, &["a"], 10, Some(cursor));
        assert_eq!(page.topics[0].error_code, INVALID_REQUEST);
    }
}

#[test]
fn log_directories_tell_what_they_hold() {
    let broker = Broker::start("directories", &[("ringmain.shards", "2")]);
    let mut connection = Connection::open(broker.port);
    let topics = ["a", "b", "c"].map(|name| topic(&mut connection, name, 3, &[]));
    produce_as(&mut connection, PRODUCE, &topics[0], -1, sized(1000));
    let answer = connection.call(4, &DescribeLogDirsRequest::default().with_topics(None));
    assert_eq!(answer.results.len(), 1);
    let directory = &answer.results[0];
    assert_eq!(&*directory.log_dir, broker.data().display().to_string());
    assert!(directory.total_bytes > directory.usable_bytes && directory.usable_bytes > 0);
    assert_eq!(directory.topics.len(), 3);
    let size = |topic: usize, partition: usize| {
        directory.topics[topic].partitions[partition].partition_size
    };
    assert!(size(0, 0) > 1000 && size(0, 1) == 0 && size(1, 0) == 0);
}

#[test]
fn what_can_be_configured_is_listed() {
    let broker = Broker::start("config-resources", &[]);
    let mut connection = Connection::open(broker.port);
    for name in ["a", "b", "c"] {
        topic(&mut connection, name, 3, &[]);
    }
    let listed = |connection: &mut Connection, kinds: &[i8]| {
        let request = ListConfigResourcesRequest::default().with_resource_types(kinds.to_vec());
        let answer = connection.call(1, &request);
        let names: Vec<(i8, String)> = answer
            .config_resources
            .iter()
            .map(|it| (it.resource_type, it.resource_name.to_string()))
            .collect();
        (answer.error_code, names)
    };
    let everything = [(8, "1"), (4, "1"), (2, "a"), (2, "b"), (2, "c")]
        .map(|(kind, name)| (kind, name.to_owned()));
    assert_eq!(listed(&mut connection, &[]), (0, everything.to_vec()));
    assert_eq!(
        listed(&mut connection, &[4]),
        (0, vec![(4, "1".to_owned())])
    );
    assert_eq!(listed(&mut connection, &[3]).0, 35);
}
