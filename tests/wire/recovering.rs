//! Starts after crashes, and crashes of such starts: with many partitions the broker is soon there, with all that it said it
//! had.
use std::time::Duration;

use kafka_protocol::messages::fetch_request::FetchPartition;

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{FETCH, PRODUCE, Topic, creatable, create, fetch_request, produce_request};
use crate::support::broker::Broker;
use crate::support::commands::ringmain;
use crate::support::scrape::{get, try_get};
use crate::support::{clock, port};

const PARTITIONS: i32 = 400;

fn produce_to_all(connection: &mut Connection, topic: &Topic) {
    produce_to_first(connection, topic, PARTITIONS);
}

fn produce_to_first(connection: &mut Connection, topic: &Topic, partitions: i32) {
    let records = Batch::of(clock::wall_clock_ms(), &["kept"]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, records);
    let one = request.topic_data[0].partition_data.remove(0);
    request.topic_data[0].partition_data = (0..partitions)
        .map(|partition| one.clone().with_index(partition))
        .collect();
    let answer = connection.call(PRODUCE, &request);
    let parts = &answer.responses[0].partition_responses;
    assert!(parts.iter().all(|part| part.error_code == 0));
}

/// Batches in each partition.
fn counts(connection: &mut Connection, topic: &Topic) -> Vec<usize> {
    counts_of(connection, topic, PARTITIONS)
}

fn counts_of(connection: &mut Connection, topic: &Topic, partitions: i32) -> Vec<usize> {
    let mut request = fetch_request(FETCH, &[(topic, 0, 0)]);
    let one: FetchPartition = request.topics[0].partitions.remove(0);
    request.topics[0].partitions = (0..partitions)
        .map(|partition| one.clone().with_partition(partition))
        .collect();
    let answer = connection.call(FETCH, &request);
    let held = answer.responses[0].partitions.iter().map(|data| {
        assert_eq!(data.error_code, 0, "partition {}", data.partition_index);
        batch::read(data.records.clone().unwrap_or_default()).len()
    });
    held.collect()
}

#[test]
fn a_second_crash_in_the_middle_of_recovery_loses_nothing() {
    let mut broker = Broker::start("recovering", &[]);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", PARTITIONS), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let written = 3;
    for _ in 0..written {
        produce_to_all(&mut connection, &topic);
    }
    broker.kill();
    // Each start is killed a little later: before it reads, while it recovers, while it begins to serve.
    for patience in [0, 10, 20, 40, 80, 160, 320] {
        broker.spawn();
        let end = clock::now() + Duration::from_millis(patience);
        clock::wait_until("the moment of the crash", || clock::now() >= end);
        broker.kill();
    }
    let start = clock::now();
    broker.restart();
    println!("recovered {PARTITIONS} partitions in {:?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    let mut connection = Connection::open(broker.port);
    let found = counts(&mut connection, &topic);
    assert_eq!(
        found,
        vec![written; usize::try_from(PARTITIONS).expect("few")]
    );
    produce_to_all(&mut connection, &topic);
    assert_eq!(broker.stop().code(), Some(0));
}

/// Alive at once, and telling how far it is: who only looks whether it lives does not kill it again.
/// `RINGMAIN_TEST_PARTITIONS=10000` makes them so many.
#[test]
fn thousands_of_partitions_recover_soon_while_the_broker_says_that_it_lives() {
    let partitions: i32 = std::env::var("RINGMAIN_TEST_PARTITIONS")
        .map_or(2000, |given| given.parse().expect("a number"));
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [("ringmain.http.listener", listener.as_str())];
    let mut broker = Broker::start("recovering-many", &settings);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", partitions), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    produce_to_first(&mut connection, &topic, partitions);
    broker.kill();
    let start = clock::now();
    broker.spawn();
    let limit = Duration::from_secs(10);
    let answer = clock::wait_within(limit, "the broker to be alive", || {
        try_get(http, "/healthz").ok()
    });
    assert_eq!(answer, (200, "alive\n".to_owned()));
    let alive = start.elapsed();
    let mut told = 0;
    clock::wait_within(Duration::from_secs(60), "all partitions", || {
        let (status, text) = get(http, "/readyz");
        let progress = text.starts_with("starting: ");
        assert!(
            status == 200 || (status == 503 && progress),
            "{status} {text}"
        );
        told += usize::from(progress);
        (status == 200).then_some(())
    });
    let ready = start.elapsed();
    println!(
        "{partitions} partitions: alive in {alive:?}, ready in {ready:?}, told {told} times how far"
    );
    assert!(alive < Duration::from_secs(2), "{alive:?}");
    let mut connection = Connection::open(broker.port);
    let found = counts_of(&mut connection, &topic, partitions);
    assert_eq!(
        found.iter().sum::<usize>(),
        found.len(),
        "one batch in each"
    );
    assert_eq!(broker.stop().code(), Some(0));
}

#[test]
fn recover_leaves_alone_what_is_in_use_or_no_log_directory() {
    let mut broker = Broker::start("recover", &[]);
    let data = broker.data();
    let path = data.to_str().expect("UTF-8");
    let in_use = ringmain(&["recover", path]);
    assert_eq!(in_use.code, 1, "{in_use:?}");
    assert!(in_use.err.contains("stop it first"), "{in_use:?}");
    assert!(broker.stop().success());
    let stopped = ringmain(&["recover", path]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.out.contains("nothing to do"), "{stopped:?}");
    let other = data.parent().expect("a folder of the test").join("other");
    std::fs::create_dir_all(&other).expect("a folder");
    let foreign = ringmain(&["recover", other.to_str().expect("UTF-8")]);
    assert_eq!(foreign.code, 1, "{foreign:?}");
    assert!(foreign.err.contains("no log directory"), "{foreign:?}");
    let left = std::fs::read_dir(&other).expect("a folder").count();
    assert_eq!(left, 0, "it left nothing there");
}
