//! Several listeners: whoever asks by one of them is sent to addresses of that one.
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, DescribeClusterRequest, FindCoordinatorRequest,
    IncrementalAlterConfigsRequest, MetadataRequest,
};

use crate::client::Connection;
use crate::common::{Topic, creatable, create, fetch_request, text};
use crate::support::broker::Broker;
use crate::support::{clock, port};

type Address = (String, i32);

/// The leader as an answer of Fetch to a client with an old leader epoch names it (KIP-951).
fn leader_named(connection: &mut Connection, topic: &Topic) -> Address {
    const FENCED_LEADER_EPOCH: i16 = 74;
    let mut request = fetch_request(16, &[(topic, 0, 0)]);
    request.topics[0].partitions[0].current_leader_epoch = 0;
    let answer = connection.call(16, &request);
    assert_eq!(
        answer.responses[0].partitions[0].error_code,
        FENCED_LEADER_EPOCH
    );
    assert_eq!(answer.node_endpoints.len(), 1);
    let node = &answer.node_endpoints[0];
    (node.host.to_string(), node.port)
}

/// This node, as Metadata, FindCoordinator and DescribeCluster name it.
fn named(connection: &mut Connection) -> [Address; 3] {
    let metadata = MetadataRequest::default().with_topics(Some(Vec::new()));
    let metadata = connection.call(9, &metadata).brokers.remove(0);
    let coordinator = clock::wait_for("a coordinator", || {
        let request = FindCoordinatorRequest::default()
            .with_key_type(0)
            .with_coordinator_keys(vec![text("group")]);
        let found = connection.call(4, &request).coordinators.remove(0);
        (found.error_code == 0).then_some(found)
    });
    let cluster = DescribeClusterRequest::default().with_endpoint_type(1);
    let cluster = connection.call(1, &cluster).brokers.remove(0);
    [
        (metadata.host.to_string(), metadata.port),
        (coordinator.host.to_string(), coordinator.port),
        (cluster.host.to_string(), cluster.port),
    ]
}

#[test]
fn every_answer_names_this_node_by_the_listener_that_was_asked() {
    let (inside, outside, controller) = (port::free(), port::free(), port::free());
    let listeners = format!(
        "INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside},CONTROLLER://127.0.0.1:{controller}"
    );
    let advertised = format!("INSIDE://127.0.0.1:{inside},OUTSIDE://broker.example.org:19092");
    let voters = format!("1@127.0.0.1:{controller}");
    let settings = [
        ("listeners", listeners.as_str()),
        ("advertised.listeners", advertised.as_str()),
        ("inter.broker.listener.name", "INSIDE"),
        ("controller.quorum.voters", voters.as_str()),
        (
            "listener.security.protocol.map",
            "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        ),
    ];
    let mut broker = Broker::prepare("listeners", &settings);
    broker.port = inside;
    broker.restart();
    let own = ("127.0.0.1".to_owned(), i32::from(inside));
    let topic = create(&mut Connection::open(inside), creatable("t", 1), false);
    let topic = Topic {
        name: topic.name,
        id: topic.topic_id,
    };
    // With the next start its leader epoch is above 0.
    assert!(broker.stop().success());
    broker.restart();
    assert_eq!(
        named(&mut Connection::open(inside)),
        [own.clone(), own.clone(), own.clone()]
    );
    assert_eq!(leader_named(&mut Connection::open(inside), &topic), own);
    let told = ("broker.example.org".to_owned(), 19092);
    assert_eq!(
        named(&mut Connection::open(outside)),
        [told.clone(), told.clone(), told.clone()]
    );
    assert_eq!(leader_named(&mut Connection::open(outside), &topic), told);
}

/// Sets or takes away settings of this broker; the code and text of a refusal.
fn alter(connection: &mut Connection, settings: &[(&str, Option<&str>)]) -> (i16, String) {
    const BROKER: i8 = 4;
    let configs = settings.iter().map(|(key, value)| {
        AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(i8::from(value.is_none()))
            .with_value(value.map(text))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(BROKER)
        .with_resource_name(text("1"))
        .with_configs(configs.collect());
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = connection.call(1, &request).responses.remove(0);
    let message = answer.error_message.map(|text| text.to_string());
    (answer.error_code, message.unwrap_or_default())
}

/// Whether a listener answers there.
fn answers(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn listeners_open_and_close_while_the_broker_runs() {
    const INVALID_REQUEST: i16 = 42;
    let mut broker = Broker::start("dynamic-listeners", &[("ringmain.shards", "2")]);
    let (client, controller, extra) = (broker.port, broker.controller_port, port::free());
    let own = format!("PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}");
    let more = format!("{own},EXTRA://127.0.0.1:{extra}");
    let map = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTRA:PLAINTEXT";
    let protocols = ("listener.security.protocol.map", Some(map));
    let mut connection = Connection::open(client);
    let (code, message) = alter(&mut connection, &[("listeners", Some(&more))]);
    assert_eq!(code, INVALID_REQUEST);
    assert!(
        message.ends_with("No security protocol defined for listener EXTRA"),
        "{message}"
    );
    let without_own = format!("CONTROLLER://127.0.0.1:{controller},EXTRA://127.0.0.1:{extra}");
    let (code, message) = alter(
        &mut connection,
        &[protocols, ("listeners", Some(&without_own))],
    );
    assert_eq!(code, INVALID_REQUEST);
    assert!(
        message.contains("a subset of the ones defined in listeners"),
        "{message}"
    );
    assert!(!answers(extra));

    let opened = alter(&mut connection, &[protocols, ("listeners", Some(&more))]);
    assert_eq!(opened, (0, String::new()));
    let mut by_extra = Connection::open(extra);
    let versions = |connection: &mut Connection| {
        connection
            .call(0, &ApiVersionsRequest::default())
            .error_code
    };
    assert_eq!(versions(&mut by_extra), 0);
    // Nobody can be sent to a node by a listener that it does not advertise.
    let metadata = MetadataRequest::default().with_topics(Some(Vec::new()));
    assert!(by_extra.call(9, &metadata).brokers.is_empty());

    assert!(broker.stop().success());
    broker.restart();
    clock::wait_until("the listener is open again", || answers(extra));
    let mut connection = Connection::open(client);
    let mut by_extra = Connection::open(extra);
    assert_eq!(versions(&mut by_extra), 0);
    assert_eq!(
        alter(&mut connection, &[("listeners", None)]),
        (0, String::new())
    );
    clock::wait_until("the listener is closed", || !answers(extra));
    by_extra.expect_closed("a connection of a listener that is gone");
    assert_eq!(versions(&mut connection), 0, "the other ones stay");
}
