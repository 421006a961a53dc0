//! What a controller's listener answers: the APIs of Apache's controller that are built, about the quorum's nodes.
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{
    ApiVersionsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeQuorumRequest,
    FetchRequest, IncrementalAlterConfigsRequest, UnregisterBrokerRequest, UpdateFeaturesRequest,
};

use crate::client::Connection;
use crate::common::text;
use crate::support::broker::Broker;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// What Apache 4.4 advertises there.
const APACHE: [i16; 42] = [
    1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 52,
    53, 54, 55, 56, 57, 58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82, 94,
];

#[test]
fn a_controllers_listener_serves_what_apaches_does() {
    let broker = Broker::start("controllers", &[]);
    let mut connection = Connection::open(broker.controller_port);
    let versions = connection.call(0, &ApiVersionsRequest::default());
    let served: Vec<i16> = versions.api_keys.iter().map(|api| api.api_key).collect();
    assert!(served.iter().all(|key| APACHE.contains(key)), "{served:?}");
    for needed in [18, 19, 20, 32, 33, 37, 43, 44, 45, 46, 50, 55, 57, 60, 64] {
        assert!(served.contains(&needed), "{needed}");
    }
    // The handler of clients must not answer where other nodes would follow the metadata log.
    assert!(!served.contains(&1), "Fetch");
    connection.send(12, &FetchRequest::default());
    connection.expect_closed("Fetch of a controller");
}

#[test]
fn nodes_are_told_by_the_kind_of_listener_that_was_asked() {
    const MISMATCHED_ENDPOINT_TYPE: i16 = 114;
    let broker = Broker::start("controllers-nodes", &[]);
    let ask = |port: u16, endpoint_type: i8| {
        let request = DescribeClusterRequest::default().with_endpoint_type(endpoint_type);
        Connection::open(port).call(1, &request)
    };
    for (port, kind, other) in [
        (broker.port, BROKERS, CONTROLLERS),
        (broker.controller_port, CONTROLLERS, BROKERS),
    ] {
        let answer = ask(port, kind);
        assert_eq!((answer.error_code, answer.endpoint_type), (0, kind));
        let nodes: Vec<_> = answer
            .brokers
            .iter()
            .map(|it| (it.broker_id.0, it.port))
            .collect();
        assert_eq!(nodes, [(1, i32::from(port))]);
        assert_eq!(answer.controller_id.0, 1);
        assert_eq!(ask(port, other).error_code, MISMATCHED_ENDPOINT_TYPE);
    }
    let partition = PartitionData::default().with_partition_index(0);
    let topic = TopicData::default()
        .with_topic_name(text("__cluster_metadata").into())
        .with_partitions(vec![partition]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    let quorum = Connection::open(broker.controller_port).call(2, &request);
    assert_eq!(quorum.topics[0].partitions[0].leader_id.0, 1);
    let listener = &quorum.nodes[0].listeners[0];
    assert_eq!(
        (&*listener.name, listener.port),
        ("CONTROLLER", broker.controller_port)
    );
}

#[test]
fn settings_are_described_and_changed_by_the_controller_too() {
    const BROKER: i8 = 4;
    const UNSUPPORTED_VERSION: i16 = 35;
    let broker = Broker::start("controllers-configs", &[]);
    let mut connection = Connection::open(broker.controller_port);
    let alter = |connection: &mut Connection, kind: i8, value: &str| {
        let config = AlterableConfig::default()
            .with_name(text("message.max.bytes"))
            .with_value(Some(text(value)));
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text("1"))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        let answer = connection.call(1, &request).responses.remove(0);
        (
            answer.error_code,
            answer.error_message.map(|text| text.to_string()),
        )
    };
    assert_eq!(alter(&mut connection, BROKER, "5000"), (0, None));
    let unknown = "Unknown resource type 3.".to_owned();
    assert_eq!(
        alter(&mut connection, 3, "1"),
        (UNSUPPORTED_VERSION, Some(unknown))
    );
    for port in [broker.controller_port, broker.port] {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(BROKER)
            .with_resource_name(text("1"))
            .with_configuration_keys(Some(vec![text("message.max.bytes")]));
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let result = Connection::open(port).call(4, &request).results.remove(0);
        assert_eq!(result.configs[0].value.as_deref(), Some("5000"));
    }
}

#[test]
fn a_new_level_is_told_by_every_listener_and_a_forgotten_broker_by_none() {
    let mut broker = Broker::start("controllers-features", &[]);
    let update = |level: i16, validate_only: bool| {
        let update = FeatureUpdateKey::default()
            .with_feature(text("metadata.version"))
            .with_max_version_level(level)
            .with_upgrade_type(1);
        UpdateFeaturesRequest::default()
            .with_timeout_ms(10_000)
            .with_feature_updates(vec![update])
            .with_validate_only(validate_only)
    };
    let told = |port: u16| {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(text("wire"))
            .with_client_software_version(text("1"));
        let answer = Connection::open(port).call(4, &request);
        let level = answer.finalized_features.iter();
        let level = level
            .map(|it| (it.name.to_string(), it.max_version_level))
            .collect::<Vec<_>>();
        (level, answer.finalized_features_epoch)
    };
    let mut connection = Connection::open(broker.controller_port);
    let before = told(broker.port);
    assert_eq!(before.0, [("metadata.version".to_owned(), 33)]);
    assert_eq!(connection.call(2, &update(33, true)).error_code, 0);
    assert_eq!(told(broker.port), before, "only checked");
    assert_eq!(connection.call(2, &update(33, false)).error_code, 0);
    let after = told(broker.port);
    assert_eq!(
        (&after.0, told(broker.controller_port)),
        (&before.0, after.clone())
    );
    assert!(after.1 > before.1, "the epoch grows with each change");
    let refused = connection.call(2, &update(34, false));
    assert_eq!(refused.error_code, 95);

    let forget = |connection: &mut Connection, id: i32| {
        let request = UnregisterBrokerRequest::default().with_broker_id(id.into());
        connection.call(0, &request).error_code
    };
    assert_eq!(forget(&mut connection, 7), 102);
    assert_eq!(forget(&mut connection, 1), 0);
    let brokers = |port: u16| {
        let request = DescribeClusterRequest::default().with_endpoint_type(BROKERS);
        Connection::open(port).call(1, &request).brokers.len()
    };
    assert_eq!(brokers(broker.port), 0);
    assert!(broker.stop().success());
    broker.restart();
    assert_eq!(brokers(broker.port), 1, "the next start registers it anew");
}
