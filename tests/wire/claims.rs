//! Clients that claim large requests and do not send them: what they hold is no more than what they sent, and nobody
//! waits for them for long.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{FETCH, PRODUCE, Topic, config, creatable, create, fetch_as, produce_request};
use crate::support::broker::Broker;
use crate::support::clock;

/// `socket.request.max.bytes`, as it is where nobody sets it.
const CLAIM: i32 = 104_857_600;
const MIB: usize = 1 << 20;

/// A broker of two cores that may queue so many bytes of requests, on both together.
fn broker(name: &str, queued: &str, largest: &str) -> Broker {
    Broker::start(
        name,
        &[
            ("queued.max.request.bytes", queued),
            ("socket.request.max.bytes", largest),
            ("ringmain.shards", "2"),
        ],
    )
}

/// A topic of this broker's, made over a connection that stays.
fn topic(connection: &mut Connection, name: &str) -> Topic {
    let topic = creatable(name, 1).with_configs(vec![config("max.message.bytes", "4000000")]);
    let answer = create(connection, topic, false);
    assert_eq!(answer.error_code, 0);
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

/// A connection that announces a request and sends its first bytes.
fn claim(broker: &Broker, length: i32, sent: usize) -> Connection {
    let mut connection = Connection::open(broker.port);
    let mut bytes = BytesMut::with_capacity(4 + sent);
    bytes.put_i32(length);
    bytes.put_bytes(0, sent);
    connection.send_raw(&bytes);
    connection
}

/// Produces a value of that size and fetches it; how long both took.
fn round(connection: &mut Connection, topic: &Topic, value: &Bytes) -> Duration {
    let start = clock::now();
    let records = Batch::new(vec![(clock::wall_clock_ms(), None, value.clone())]).bytes();
    let request = produce_request(PRODUCE, topic, -1, records);
    let answer = connection.call(PRODUCE, &request);
    let answer = &answer.responses[0].partition_responses[0];
    assert_eq!(answer.error_code, 0);
    let fetched = fetch_as(connection, FETCH, topic, answer.base_offset);
    assert!(
        fetched
            .records
            .is_some_and(|records| records.len() > value.len())
    );
    start.elapsed()
}

fn slowest(rounds: usize, connection: &mut Connection, topic: &Topic, value: &Bytes) -> Duration {
    let spans = (0..rounds).map(|_| round(connection, topic, value));
    spans.max().expect("rounds")
}

#[test]
fn claims_of_large_requests_hold_no_memory_from_others() {
    let broker = broker("claims", "268435456", "104857600");
    let mut client = Connection::open(broker.port);
    let topic = topic(&mut client, "claimed");
    let value = Bytes::from(vec![b'v'; 500 * 1024]);
    let alone = slowest(50, &mut client, &topic, &value);
    let resident = broker.resident_kib().expect("it runs");

    let claims: Vec<Connection> = (0..50).map(|_| claim(&broker, CLAIM, 1)).collect();
    // Connections go to the cores in turn: these are on each of them.
    let mut others: Vec<Connection> = (0..4).map(|_| Connection::open(broker.port)).collect();
    let mut beside = slowest(50, &mut client, &topic, &value);
    for other in &mut others {
        beside = beside.max(slowest(10, other, &topic, &value));
    }
    println!("slowest round: {alone:?} alone, {beside:?} beside 50 claims");
    assert!(
        beside < alone * 4 + Duration::from_millis(500),
        "{beside:?}, alone {alone:?}"
    );
    let grown = broker
        .resident_kib()
        .expect("it runs")
        .saturating_sub(resident);
    assert!(grown < 64 * 1024, "{grown} KiB more than before");
    drop(claims);
}

/// Even those who did send much, and then stop, end when others wait.
#[test]
fn requests_that_stop_half_way_are_given_up_when_others_wait() {
    let broker = broker("half-way", "67108864", "33554432");
    let mut client = Connection::open(broker.port);
    let topic = topic(&mut client, "claimed");
    let small = Bytes::from_static(b"small");
    let large = Bytes::from(vec![b'v'; 2 * MIB]);
    round(&mut client, &topic, &large);

    // Each gets memory for four times as much: together more than all that requests may hold.
    let mut claims: Vec<Connection> = (0..30)
        .map(|_| claim(&broker, 32 << 20, MIB + MIB / 8))
        .collect();
    let mut others: Vec<Connection> = (0..4).map(|_| Connection::open(broker.port)).collect();
    for other in &mut others {
        let span = slowest(20, other, &topic, &small);
        assert!(
            span < Duration::from_secs(2),
            "small requests go on: {span:?}"
        );
    }
    for other in &mut others {
        let span = round(other, &topic, &large);
        println!("a large request beside those that stopped: {span:?}");
        assert!(span < Duration::from_secs(20), "{span:?}");
    }
    for connection in &mut claims {
        connection.try_send_raw(&[0; 1]);
    }
    let log = broker.log();
    assert!(log.contains("others wait for memory"), "{log}");
}
