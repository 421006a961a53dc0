//! `ringmain doctor`: each thing that can be wrong is named, and nothing else is.
use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{
    ApiVersionsRequest, FindCoordinatorRequest, JoinGroupRequest, JoinGroupResponse,
    ProduceRequest, SyncGroupRequest,
};

use crate::batch::Batch;
use crate::client::{Connection, frame, with_length};
use crate::common::{PRODUCE, Topic, creatable, create, produce_as, text};
use crate::support::broker::{Broker, Program};
use crate::support::doctor::{examine, findings};
use crate::support::{clock, port};

fn made(connection: &mut Connection, name: &str) -> Topic {
    let answer = create(connection, creatable(name, 2), false);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

fn with_http(name: &str, settings: &[(&str, &str)]) -> (Broker, String) {
    let http = format!("127.0.0.1:{}", port::free());
    let mut all = vec![("ringmain.http.listener", http.as_str())];
    all.extend(settings);
    (Broker::start(name, &all), http)
}

#[test]
fn a_healthy_broker_has_nothing_wrong() {
    let (broker, _) = with_http("doctor-well", &[]);
    let mut connection = Connection::open(broker.port);
    let topic = made(&mut connection, "t");
    let records = Batch::of(clock::wall_clock_ms(), &["x"]).bytes();
    assert_eq!(
        produce_as(&mut connection, PRODUCE, &topic, -1, records).error_code,
        0
    );
    // The HTTP port is found by the broker's settings.
    let (code, said) = examine(&[&broker.bootstrap()]);
    assert_eq!((code, findings(&said)), (0, vec![]), "{said}");
    assert!(said.contains("Nothing is wrong."), "{said}");
    assert!(
        said.contains("no limit of memory, queues or connections"),
        "{said}"
    );
    assert!(said.contains("and answers there"), "{said}");
    // Without it the rest is examined, and it says what was not.
    let plain = Broker::start("doctor-plain", &[]);
    let (code, said) = examine(&[&plain.bootstrap()]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("set ringmain.http.listener"), "{said}");
}

#[test]
fn who_does_not_answer_is_named_in_one_line() {
    let address = format!("127.0.0.1:{}", port::free());
    let (code, said) = examine(&[&address]);
    assert_eq!(code, 1);
    assert!(
        said.contains(&address) && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn addresses_that_clients_cannot_use_are_named() {
    let other = port::free();
    let closed = port::free();
    let map = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT";
    let mut broker = Broker::prepare(
        "doctor-listeners",
        &[("listener.security.protocol.map", map)],
    );
    let (port, controller) = (broker.port, broker.controller_port);
    broker.set_override(
        "listeners",
        &format!(
            "PLAINTEXT://127.0.0.1:{port},OTHER://127.0.0.1:{other},CONTROLLER://127.0.0.1:{controller}"
        ),
    );
    broker.set_override(
        "advertised.listeners",
        &format!("PLAINTEXT://kafka.invalid:{port},OTHER://127.0.0.1:{closed}"),
    );
    broker.restart();
    let (code, said) = examine(&[&broker.bootstrap()]);
    assert_eq!(code, 1, "{said}");
    let found = findings(&said);
    assert_eq!(found.len(), 2, "{said}");
    assert!(
        found[0].contains("kafka.invalid") && found[0].contains("does not resolve"),
        "{said}"
    );
    assert!(
        found[1].contains("on OTHER") && found[1].contains(&format!("127.0.0.1:{closed}")),
        "{said}"
    );
    assert!(said.contains("set advertised.listeners"), "{said}");
}

fn join_request(member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"topics"));
    JoinGroupRequest::default()
        .with_group_id(text("workers").into())
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(60_000)
        .with_member_id(text(member))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

fn coordinator(connection: &mut Connection) {
    clock::wait_until("the coordinator", || {
        let request =
            FindCoordinatorRequest::default().with_coordinator_keys(vec![text("workers")]);
        connection.call(4, &request).coordinators[0].error_code == 0
    });
}

/// Asks for a member id, and again while the coordinator loads.
fn member_id(connection: &mut Connection) -> String {
    clock::wait_for("a member id", || {
        let first: JoinGroupResponse = connection.call(9, &join_request(""));
        (first.error_code == 79).then(|| first.member_id.to_string())
    })
}

#[test]
fn a_group_that_waits_for_a_member_is_named_with_it() {
    let (broker, http) = with_http("doctor-group", &[]);
    let mut settled = Connection::open(broker.port);
    coordinator(&mut settled);
    let first = member_id(&mut settled);
    let joined = settled.call(9, &join_request(&first));
    assert_eq!(joined.error_code, 0);
    let sync = SyncGroupRequest::default()
        .with_group_id(text("workers").into())
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")));
    assert_eq!(settled.call(5, &sync).error_code, 0);
    let (code, said) = examine(&[&broker.bootstrap()]);
    assert_eq!(code, 0, "a stable group is not stuck: {said}");
    // Another comes; the first one holds its place and does not join again.
    let mut second = Connection::open(broker.port);
    let other = member_id(&mut second);
    second.send(9, &join_request(&other));
    let stuck = |arguments: &[&str]| {
        let (code, said) = examine(arguments);
        assert_eq!(code, 1, "{said}");
        let found = findings(&said);
        assert_eq!(found.len(), 1, "{said}");
        assert!(
            found[0].contains("group workers is in PreparingRebalance"),
            "{said}"
        );
        found[0].to_owned()
    };
    clock::wait_until("the rebalance", || {
        let (code, _) = examine(&[&broker.bootstrap()]);
        code == 1
    });
    let told = stuck(&[&broker.bootstrap(), "--http", &http]);
    assert!(told.contains(&format!("member {first}")), "{told}");
    assert!(!told.contains(&other), "only who is waited for: {told}");
}

#[test]
fn clients_of_old_versions_are_named() {
    let (broker, _) = with_http("doctor-old", &[]);
    let mut connection = Connection::open(broker.port);
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("old-tool"))
        .with_client_software_version(text("0.9"));
    connection.call(3, &request);
    let topic = made(&mut connection, "t");
    let records = Batch::of(clock::wall_clock_ms(), &["x"]).bytes();
    assert_eq!(
        produce_as(&mut connection, 3, &topic, -1, records).error_code,
        0
    );
    let mut gone = Connection::open(broker.port);
    let mut request = frame(3, 7, &ProduceRequest::default())[4..].to_vec();
    // The same in version 2, which nobody serves since Kafka 4.
    request[3] = 2;
    gone.send_raw(&with_length(&request));
    gone.expect_closed("Produce version 2");
    let (code, said) = examine(&[&broker.bootstrap()]);
    assert_eq!(code, 1, "{said}");
    let found = findings(&said);
    assert_eq!(found.len(), 2, "{said}");
    assert!(
        found[0].contains("cannot work here") && found[0].contains("Produce version 2, 1 request"),
        "{said}"
    );
    assert!(
        found[1].contains("old-tool 0.9") && found[1].contains("Produce version 3, 1 request"),
        "{said}"
    );
}

#[test]
fn a_memory_limit_that_is_reached_is_named() {
    let settings = [
        ("queued.max.request.bytes", "4000000"),
        ("socket.request.max.bytes", "4000000"),
        ("ringmain.shards", "1"),
    ];
    let (broker, _) = with_http("doctor-memory", &settings);
    // Requests that say they are large, come half, and stop.
    let slow: Vec<Connection> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(broker.port);
            connection.send_raw(&1_000_000i32.to_be_bytes());
            connection.send_raw(&vec![0; 600_000]);
            connection
        })
        .collect();
    let found = clock::wait_for("the finding", || {
        let (code, said) = examine(&[&broker.bootstrap()]);
        (code == 1).then_some(said)
    });
    assert!(
        found.contains("the memory for requests is used up"),
        "{found}"
    );
    drop(slow);
}

#[test]
fn a_door_that_is_shut_is_named() {
    let (broker, http) = with_http("doctor-door", &[("max.connections.per.ip", "3")]);
    let mut open: Vec<Connection> = (0..3).map(|_| Connection::open(broker.port)).collect();
    for connection in &mut open {
        connection.call(0, &ApiVersionsRequest::default());
    }
    let mut refused = Connection::open(broker.port);
    refused.expect_closed("a fourth connection");
    // The doctor is a fourth itself.
    let (code, said) = examine(&[&broker.bootstrap(), "--http", &http]);
    assert_eq!(code, 1, "{said}");
    drop(open);
    let settled = clock::wait_for("the door to open", || {
        let (code, said) = examine(&[&broker.bootstrap()]);
        (code == 0).then_some(said)
    });
    assert!(
        settled.contains("as many as it may have: ")
            && settled.contains("times since the start, not now"),
        "{settled}"
    );
}

/// Apache's broker tells the same to everybody, so its doctor needs no port of ours.
#[test]
fn an_apache_that_advertises_a_wrong_address_is_told_so() {
    let nobody = port::free();
    let advertised = format!("PLAINTEXT://127.0.0.1:{nobody}");
    let settings = [("advertised.listeners", advertised.as_str())];
    let mut broker = Broker::prepare_as(Program::Apache, "doctor-apache", &settings, &[]);
    broker.restart();
    let told = || examine(&[&broker.bootstrap()]);
    let (code, said) = clock::wait_for("it to be registered", || {
        Some(told()).filter(|(_, said)| said.contains("broker 1 on the listener"))
    });
    let found = findings(&said);
    assert_eq!((code, found.len()), (1, 1), "{said}");
    let wrong =
        format!("broker 1 on the listener that was asked is advertised as 127.0.0.1:{nobody}");
    assert!(found[0].starts_with(&wrong), "{said}");
    assert!(said.contains("set advertised.listeners"), "{said}");
}
