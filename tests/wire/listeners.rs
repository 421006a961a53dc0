//! Several listeners: whoever asks by one of them is sent to addresses of that one.
use kafka_protocol::messages::{DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest};

use crate::client::Connection;
use crate::common::text;
use crate::support::broker::Broker;
use crate::support::{clock, port};

type Address = (String, i32);

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
    assert_eq!(
        named(&mut Connection::open(inside)),
        [own.clone(), own.clone(), own]
    );
    let told = ("broker.example.org".to_owned(), 19092);
    assert_eq!(
        named(&mut Connection::open(outside)),
        [told.clone(), told.clone(), told]
    );
}
