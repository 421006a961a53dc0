//! Topics: created, described, grown, deleted and created again; Metadata of every version.
use std::collections::BTreeSet;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{MetadataResponse, MetadataResponseTopic};
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, MetadataRequest, TopicName,
};

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{
    PRODUCE, Topic, broker, config, connect, creatable, create, fetch_as, produce, produce_as, text,
};
use crate::support::clock;

fn some() -> bytes::Bytes {
    Batch::of(clock::wall_clock_ms(), &["value"]).bytes()
}

fn metadata(
    connection: &mut Connection,
    version: i16,
    names: Option<&[&str]>,
    auto_create: bool,
) -> MetadataResponse {
    let named = |name: &&str| MetadataRequestTopic::default().with_name(Some(text(name).into()));
    let topics = names.map(|names| names.iter().map(named).collect());
    connection.call(
        version,
        &MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(auto_create),
    )
}

fn described(connection: &mut Connection, name: &str) -> MetadataResponseTopic {
    metadata(connection, 12, Some(&[name]), false)
        .topics
        .remove(0)
}

fn delete(connection: &mut Connection, topic: &Topic) -> i16 {
    let state = DeleteTopicState::default().with_name(Some(topic.name.clone()));
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    connection.call(6, &request).responses.remove(0).error_code
}

#[test]
fn metadata_names_this_broker_as_it_advertises() {
    let answer = metadata(&mut connect(), 12, Some(&[]), false);
    let brokers: Vec<_> = answer
        .brokers
        .iter()
        .map(|broker| (broker.node_id.0, broker.host.to_string(), broker.port))
        .collect();
    assert_eq!(
        brokers,
        [(1, "127.0.0.1".to_owned(), i32::from(broker().port))]
    );
    assert_eq!(answer.controller_id, BrokerId(1));
    assert_eq!(answer.cluster_id.as_deref(), Some("MkU3OEVBNTcwNTJENDM2Qg"));
    assert_eq!(answer.topics, [], "an empty list of topics is none");
    let cluster = connect().call(1, &DescribeClusterRequest::default());
    assert_eq!((cluster.error_code, cluster.brokers.len()), (0, 1));
    assert_eq!(cluster.brokers[0].port, i32::from(broker().port));
}

#[test]
fn metadata_describes_a_topic_in_every_version() {
    let topic = Topic::with("metadata-versions", 3, &[]);
    let mut connection = connect();
    for version in 0..=13 {
        let answer = metadata(&mut connection, version, Some(&["metadata-versions"]), true);
        let found = &answer.topics[0];
        assert_eq!(
            (found.error_code, found.name.as_ref(), found.is_internal),
            (0, Some(&topic.name), false)
        );
        if version >= 10 {
            assert_eq!(found.topic_id, topic.id);
        }
        let mut parts = found.partitions.clone();
        parts.sort_by_key(|part| part.partition_index);
        for (index, part) in (0..).zip(&parts) {
            assert_eq!(
                (part.error_code, part.partition_index, part.leader_id),
                (0, index, BrokerId(1))
            );
            assert_eq!(
                (&part.replica_nodes, &part.isr_nodes),
                (&vec![BrokerId(1)], &vec![BrokerId(1)])
            );
            assert!(part.offline_replicas.is_empty());
            assert_eq!(
                part.leader_epoch,
                if version < 7 { -1 } else { 0 },
                "version {version}"
            );
        }
        assert_eq!(parts.len(), 3);
        assert_eq!(found.topic_authorized_operations, i32::MIN, "not asked for");
    }
}

#[test]
fn all_topics_are_asked_for_by_null_or_at_first_by_an_empty_list() {
    let topic = Topic::new("metadata-all");
    let mut connection = connect();
    let holds = |answer: &MetadataResponse| {
        answer
            .topics
            .iter()
            .any(|found| found.name.as_ref() == Some(&topic.name))
    };
    assert!(holds(&metadata(&mut connection, 0, Some(&[]), true)));
    for version in 1..=13 {
        assert!(
            holds(&metadata(&mut connection, version, None, true)),
            "version {version}"
        );
        assert_eq!(
            metadata(&mut connection, version, Some(&[]), true)
                .topics
                .len(),
            0,
            "version {version}"
        );
    }
}

#[test]
fn a_topic_is_found_by_its_id() {
    let topic = Topic::new("metadata-by-id");
    let ask = |id| {
        let asked = MetadataRequestTopic::default()
            .with_topic_id(id)
            .with_name(None);
        let request = MetadataRequest::default()
            .with_topics(Some(vec![asked]))
            .with_allow_auto_topic_creation(false);
        connect().call(12, &request).topics.remove(0)
    };
    let found = ask(topic.id);
    assert_eq!((found.error_code, found.name), (0, Some(topic.name)));
    let missing = ask(Topic::missing("x").id);
    assert_eq!(
        (missing.error_code, missing.name),
        (100, None),
        "UNKNOWN_TOPIC_ID"
    );
}

#[test]
fn asking_for_a_topic_creates_it_where_that_is_allowed() {
    let mut connection = connect();
    let ask = |connection: &mut Connection, version, name: &str, allowed| {
        metadata(connection, version, Some(&[name]), allowed)
            .topics
            .remove(0)
    };
    assert_eq!(
        ask(&mut connection, 4, "auto-forbidden", false).error_code,
        3
    );
    assert_eq!(
        described(&mut connection, "auto-forbidden").error_code,
        3,
        "and it stays away"
    );
    assert_eq!(
        ask(&mut connection, 9, "auto/invalid", true).error_code,
        17,
        "INVALID_TOPIC_EXCEPTION"
    );
    for (version, name) in [(0, "auto-0"), (3, "auto-3"), (4, "auto-4"), (12, "auto-12")] {
        let first = ask(&mut connection, version, name, true).error_code;
        assert!([0, 3, 5].contains(&first), "error {first}: there, or soon");
        clock::wait_until("a topic created by asking", || {
            described(&mut connection, name).error_code == 0
        });
        let found = described(&mut connection, name);
        assert_eq!(found.partitions.len(), 2, "num.partitions");
        let topic = Topic {
            name: found.name.expect("a name"),
            id: found.topic_id,
        };
        topic.wait_served(2);
        assert_eq!(produce(&mut connection, &topic, some()), 0);
    }
}

#[test]
fn many_who_ask_at_once_create_one_topic() {
    let ask = |_| {
        crate::support::driver::spawn(|| {
            let mut connection = connect();
            clock::wait_for("the topic", || {
                let found = metadata(&mut connection, 12, Some(&["auto-race"]), true)
                    .topics
                    .remove(0);
                (found.error_code == 0).then_some(found.topic_id)
            })
        })
    };
    let threads: Vec<_> = (0..8).map(ask).collect();
    let ids: BTreeSet<_> = threads
        .into_iter()
        .map(|thread| thread.join().expect("an id"))
        .collect();
    assert_eq!(ids.len(), 1);
}

#[test]
#[allow(clippy::too_many_lines, reason = "one long table")]
fn what_cannot_be_created_is_refused() {
    Topic::new("create-exists");
    let mut connection = connect();
    let long = "x".repeat(250);
    let sound = || creatable("create-refused", 1);
    let assigned = |index: i32, brokers: &[i32]| {
        let assignment = CreatableReplicaAssignment::default().with_partition_index(index);
        assignment.with_broker_ids(brokers.iter().map(|id| BrokerId(*id)).collect())
    };
    let by_hand = |list| {
        sound()
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(list)
    };
    for (topic, wanted, what) in [
        (creatable("create-exists", 1), 36, "one that exists"),
        (creatable("", 1), 17, "no name"),
        (creatable("..", 1), 17, "a name of dots"),
        (creatable("a/b", 1), 17, "a name with a slash"),
        (creatable(&long, 1), 17, "a name too long"),
        (creatable("create.exists_", 0), 37, "no partitions"),
        (creatable("create-refused", -2), 37, "minus two partitions"),
        (
            sound().with_replication_factor(3),
            38,
            "more replicas than brokers",
        ),
        (sound().with_replication_factor(0), 38, "no replicas"),
        (
            sound().with_configs(vec![config("no.such.key", "1")]),
            40,
            "an unknown setting",
        ),
        (
            sound().with_configs(vec![config("retention.ms", "soon")]),
            40,
            "a setting that is no number",
        ),
        (
            sound().with_configs(vec![config("cleanup.policy", "burn")]),
            40,
            "a setting that is no choice",
        ),
        (
            by_hand(vec![assigned(0, &[1]), assigned(2, &[1])]),
            39,
            "a hole in the assignment",
        ),
        (
            by_hand(vec![assigned(0, &[9])]),
            39,
            "a broker that is not there",
        ),
        (by_hand(vec![assigned(0, &[1, 1])]), 39, "a broker twice"),
        (
            sound().with_assignments(vec![assigned(0, &[1])]),
            42,
            "an assignment and a count",
        ),
    ] {
        let answer = create(&mut connection, topic, false);
        assert_eq!(
            answer.error_code, wanted,
            "{what}: {:?}",
            answer.error_message
        );
        assert!(
            answer
                .error_message
                .is_some_and(|message| !message.is_empty()),
            "{what}: words for people"
        );
    }
    assert_eq!(
        described(&mut connection, "create-refused").error_code,
        3,
        "nothing was created"
    );
    assert_eq!(
        create(&mut connection, creatable("create_exists", 1), false).error_code,
        0
    );
    assert_eq!(
        create(&mut connection, creatable("create.exists", 1), false).error_code,
        17,
        "a name that collides"
    );
}

#[test]
fn a_trial_creates_nothing() {
    let mut connection = connect();
    assert_eq!(
        create(&mut connection, creatable("create-trial", 4), true).error_code,
        0
    );
    assert_eq!(described(&mut connection, "create-trial").error_code, 3);
}

#[test]
fn the_defaults_of_the_broker_fill_what_is_left_open() {
    let mut connection = connect();
    let answer = create(
        &mut connection,
        creatable("create-defaults", -1).with_replication_factor(-1),
        false,
    );
    assert_eq!(
        (
            answer.error_code,
            answer.num_partitions,
            answer.replication_factor
        ),
        (0, 2, 1)
    );
    let configs = answer.configs.expect("version 5 and later tell");
    assert!(configs.iter().any(
        |config| &*config.name == "cleanup.policy" && config.value.as_deref() == Some("delete")
    ));
}

fn grow(connection: &mut Connection, name: &TopicName, count: i32) -> i16 {
    let topic = CreatePartitionsTopic::default()
        .with_name(name.clone())
        .with_count(count)
        .with_assignments(None);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    connection.call(3, &request).results.remove(0).error_code
}

#[test]
fn a_topic_can_grow_but_not_shrink() {
    let topic = Topic::with("grow", 2, &[]);
    let mut connection = connect();
    assert_eq!(produce(&mut connection, &topic, some()), 0);
    assert_eq!(grow(&mut connection, &topic.name, 5), 0);
    assert_eq!(described(&mut connection, "grow").partitions.len(), 5);
    let mut request = crate::common::produce_request(PRODUCE, &topic, -1, some());
    request.topic_data[0].partition_data[0].index = 4;
    let answer = connection.call(PRODUCE, &request);
    assert_eq!(
        answer.responses[0].partition_responses[0].error_code, 0,
        "the new one takes records at once"
    );
    for (count, what) in [(5, "as many"), (3, "fewer"), (0, "none")] {
        assert_eq!(
            grow(&mut connection, &topic.name, count),
            37,
            "INVALID_PARTITIONS for {what}"
        );
    }
    assert_eq!(grow(&mut connection, &text("grow-missing").into(), 3), 3);
    assert_eq!(
        crate::common::fetch(&mut connection, &topic, 0).high_watermark,
        1,
        "what was there stays"
    );
}

#[test]
fn the_settings_of_a_topic_can_be_read() {
    let topic = Topic::with(
        "configs",
        1,
        &[
            ("retention.ms", "12345678"),
            ("cleanup.policy", "compact,delete"),
        ],
    );
    let ask = |kind: i8, name: &str, keys: Option<&[&str]>| {
        let keys = keys.map(|keys| keys.iter().map(|key| text(key)).collect());
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name));
        let request = DescribeConfigsRequest::default()
            .with_resources(vec![resource.with_configuration_keys(keys)]);
        connect()
            .call(4, &request.with_include_synonyms(true))
            .results
            .remove(0)
    };
    let found = ask(2, &topic.name, None);
    let value = |name: &str| {
        let config = found.configs.iter().find(|config| &*config.name == name);
        let config = config.unwrap_or_else(|| panic!("no {name}"));
        (
            config.value.as_deref().map(str::to_owned),
            config.config_source,
        )
    };
    assert_eq!(
        value("retention.ms"),
        (Some("12345678".to_owned()), 1),
        "of the topic itself"
    );
    assert_eq!(
        value("cleanup.policy"),
        (Some("compact,delete".to_owned()), 1)
    );
    assert_eq!(
        value("segment.bytes"),
        (Some("1073741824".to_owned()), 5),
        "the default"
    );
    assert_eq!(
        value("max.message.bytes"),
        (Some("6000000".to_owned()), 4),
        "from the broker's file"
    );
    let one = ask(2, &topic.name, Some(&["retention.ms"]));
    assert_eq!(one.configs.len(), 1);
    assert_eq!(ask(2, "configs-missing", None).error_code, 3);
    let own = ask(4, "1", None);
    assert_eq!(own.error_code, 0);
    assert!(
        own.configs
            .iter()
            .any(|config| &*config.name == "log.dirs" && config.read_only)
    );
}

#[test]
fn a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_another() {
    let mut connection = connect();
    let old = Topic::new("again");
    for _ in 0..3 {
        produce(&mut connection, &old, some());
    }
    assert_eq!(delete(&mut connection, &old), 0);
    assert_eq!(delete(&mut connection, &old), 3, "once");
    clock::wait_until("its end", || {
        described(&mut connection, "again").error_code == 3
    });
    let new = Topic::new("again");
    assert_ne!(new.id, old.id);
    assert_eq!(
        produce_as(&mut connection, 13, &old, -1, some()).error_code,
        100,
        "UNKNOWN_TOPIC_ID of the old"
    );
    assert_eq!(fetch_as(&mut connection, 13, &old, 0).error_code, 100);
    assert_eq!(
        produce(&mut connection, &new, some()),
        0,
        "the new one begins at 0"
    );
    assert_eq!(fetch_as(&mut connection, 13, &new, 0).high_watermark, 1);
}

#[test]
fn deleted_and_created_again_and_again() {
    let mut connection = connect();
    let mut ids = BTreeSet::new();
    for _ in 0..25 {
        let topic = Topic::with("over-and-over", 2, &[]);
        assert!(ids.insert(topic.id), "an id of its own each time");
        assert_eq!(produce(&mut connection, &topic, some()), 0);
        let found = described(&mut connection, "over-and-over");
        assert_eq!((found.error_code, found.topic_id), (0, topic.id));
        assert_eq!(delete(&mut connection, &topic), 0);
    }
}

#[test]
fn a_topic_can_be_deleted_by_its_id() {
    let topic = Topic::new("delete-by-id");
    let mut connection = connect();
    let ask = |connection: &mut Connection, id| {
        let state = DeleteTopicState::default()
            .with_name(None)
            .with_topic_id(id);
        let request = DeleteTopicsRequest::default()
            .with_topics(vec![state])
            .with_timeout_ms(30_000);
        connection.call(6, &request).responses.remove(0)
    };
    let answer = ask(&mut connection, topic.id);
    assert_eq!((answer.error_code, answer.name), (0, Some(topic.name)));
    assert_eq!(ask(&mut connection, topic.id).error_code, 100);
}
