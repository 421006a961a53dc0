//! Limits of connections: for all, for an address, and while the broker runs.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{ApiVersionsRequest, IncrementalAlterConfigsRequest};

use crate::client::Connection;
use crate::common::text;
use crate::support::broker::Broker;
use crate::support::clock;

fn set(connection: &mut Connection, key: &str, value: &str) {
    const BROKER: i8 = 4;
    let config = AlterableConfig::default()
        .with_name(text(key))
        .with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(BROKER)
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = connection.call(1, &request);
    assert_eq!(answer.responses[0].error_code, 0, "{answer:?}");
}

fn answers(connection: &mut Connection) {
    let answer = connection.call(2, &ApiVersionsRequest::default());
    assert_eq!(answer.error_code, 0);
}

/// Whether the broker ends a connection by itself.
fn is_refused(port: u16) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a limit can be set");
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let settings = [("max.connections.per.ip", "3"), ("ringmain.shards", "2")];
    let broker = Broker::start("per-address", &settings);
    let mut first = Connection::open(broker.port);
    answers(&mut first);
    let mut others: Vec<Connection> = (0..2).map(|_| Connection::open(broker.port)).collect();
    others.iter_mut().for_each(answers);
    assert!(is_refused(broker.port), "a fourth");
    answers(&mut first);
    // One that ends makes room for another.
    others.pop();
    clock::wait_until("room again", || {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).expect("an open port");
        let limit = Some(Duration::from_millis(300));
        stream.set_read_timeout(limit).expect("a limit can be set");
        // Served connections say nothing by themselves.
        !matches!(stream.read(&mut [0]), Ok(0))
    });
    set(
        &mut first,
        "max.connections.per.ip.overrides",
        "127.0.0.1:9",
    );
    let mut more: Vec<Connection> = (0..5).map(|_| Connection::open(broker.port)).collect();
    more.iter_mut().for_each(answers);
}

#[test]
fn beyond_the_limit_of_all_a_connection_waits_its_turn() {
    let broker = Broker::start("in-all", &[("max.connections", "2")]);
    let mut first = Connection::open(broker.port);
    answers(&mut first);
    let mut second = Connection::open(broker.port);
    answers(&mut second);
    // The kernel takes it, the broker does not yet.
    let mut third = Connection::open(broker.port);
    let number = third.send(2, &ApiVersionsRequest::default());
    answers(&mut first);
    drop(second);
    let answer = third.receive::<ApiVersionsRequest>(2, number);
    assert_eq!(answer.error_code, 0, "when another has ended");
}

/// So many as this process and the broker may have open.
fn raise_limit_of_descriptors() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
}

/// Ten thousand connections, one half silent, the other stopped in the middle of a request: each costs little, and who asks
/// is answered as before.
#[test]
fn ten_thousand_half_open_connections_cost_little_and_delay_nobody() {
    const COUNT: usize = 10_000;
    let count = COUNT.min(raise_limit_of_descriptors().saturating_sub(1000));
    let settings = [("ringmain.shards", "2")];
    let broker = Broker::start("half-open", &settings);
    let mut client = Connection::open(broker.port);
    answers(&mut client);
    let before = broker.resident_kib().expect("it runs");
    let half_open: Vec<TcpStream> = (0..count)
        .map(|number| {
            let mut stream =
                TcpStream::connect(("127.0.0.1", broker.port)).expect("the port is open");
            if number % 2 == 0 {
                let start = [0, 0, 3, 232, 0, 3];
                stream.write_all(&start).expect("the broker takes bytes");
            }
            stream
        })
        .collect();
    for _ in 0..200 {
        let begun = clock::now();
        answers(&mut client);
        // As long as a heartbeat may take on a machine where compilers run.
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
    let mut another = Connection::open(broker.port);
    answers(&mut another);
    let grown = (broker.resident_kib().expect("it runs")).saturating_sub(before);
    println!("{count} half-open connections: {grown} KiB");
    let each = grown * 1024 / count as u64;
    assert!(each < 16 * 1024, "{each} bytes for each");
    drop(half_open);
    answers(&mut client);
}
