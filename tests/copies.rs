//! Serving a fetch copies no record bytes, whichever core owns the partition and wherever the bytes lie.
//!
//! A copy needs memory to go to. So the broker runs inside this process, whose allocator counts, and what is
//! allocated while records are served must be next to nothing beside the records. Alone in its binary, and one
//! test, since the count is of the whole process.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/batch.rs"]
#[allow(dead_code, reason = "only a plain batch is needed here")]
mod batch;
#[path = "wire/client.rs"]
#[allow(dead_code, reason = "answers are read here without allocating")]
mod client;

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;

use batch::Batch;
use bytes::Bytes;
use client::{Connection, frame};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, FetchRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::broker::Broker;
use support::{clock, driver};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PARTITIONS: i32 = 4;
/// Batches in each partition, for either way of serving them.
const BATCHES: i64 = 24;
/// Batches of a partition in one answer.
const AT_ONCE: usize = 6;
const VALUE_BYTES: usize = 700_000;
/// At most one byte for so many served may be allocated: for frames, tasks, and to find batches in files.
const SERVED_PER_ALLOCATED: usize = 20;

#[test]
fn a_fetch_copies_no_record_bytes() {
    let settings = [("ringmain.shards", "2"), ("ringmain.pin", "false")];
    let mut broker = Broker::start("copies", &settings);
    let mut connection = Connection::open(broker.port);
    create(&mut connection);
    produce(&mut connection);
    drop(connection);
    assert!(broker.stop().success());

    serve_inside(&broker);
    let mut stream = clock::wait_for("the broker inside this process", || {
        TcpStream::connect(("127.0.0.1", broker.port)).ok()
    });
    let files = measure(&mut stream, 0);
    println!("from files: {files:?}");
    produce(&mut Connection::open(broker.port));
    let memory = measure(&mut stream, BATCHES);
    println!("from memory: {memory:?}");
    for (place, served) in [("files", files), ("memory", memory)] {
        assert!(
            served.allocated * SERVED_PER_ALLOCATED < served.bytes,
            "{place}: {served:?}"
        );
    }
}

/// The broker on two cores of its own; it ends with the process.
fn serve_inside(broker: &Broker) {
    let line = [
        "ringmain".into(),
        "serve".into(),
        broker.properties().into(),
    ];
    driver::spawn(move || {
        broker::cli::run_with(line, &mut std::io::sink()).expect("the broker starts");
    });
}

fn topic() -> TopicName {
    StrBytes::from_static_str("copied").into()
}

fn create(connection: &mut Connection) {
    let topic = CreatableTopic::default()
        .with_name(topic())
        .with_num_partitions(PARTITIONS)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let answer = connection.call(7, &request);
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
}

/// One large record a batch, to each partition in turn.
fn produce(connection: &mut Connection) {
    let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
    let records = Batch::new(vec![(clock::wall_clock_ms(), None, value)]).bytes();
    for partition in (0..PARTITIONS)
        .cycle()
        .take((BATCHES * i64::from(PARTITIONS)) as usize)
    {
        let data = PartitionProduceData::default()
            .with_index(partition)
            .with_records(Some(records.clone()));
        let data = TopicProduceData::default()
            .with_name(topic())
            .with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![data]);
        let answer = connection.call(12, &request);
        let answer = &answer.responses[0].partition_responses[0];
        assert_eq!(answer.error_code, 0, "{answer:?}");
    }
}

/// What reading took.
#[derive(Debug, Clone, Copy)]
struct Served {
    bytes: usize,
    allocated: usize,
}

/// Reads `BATCHES` batches of every partition from `first` on, and counts from the second answer on: with the first a core takes the
/// memory into which it reads what is in no cache, and which it uses again for everything after it.
fn measure(stream: &mut TcpStream, first: i64) -> Served {
    let requests: Vec<Bytes> = (first..first + BATCHES)
        .step_by(AT_ONCE)
        .map(|offset| frame(12, 7, &request(offset)))
        .collect();
    let expected = AT_ONCE * VALUE_BYTES * PARTITIONS as usize;
    let mut buffer = vec![0; expected + (64 << 10)];
    let mut region = Region::new(ALLOCATOR);
    let mut bytes = 0;
    for (answers, request) in requests.iter().enumerate() {
        stream.write_all(request).expect("the broker takes bytes");
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("an answer");
        let length = i32::from_be_bytes(length) as usize;
        assert!(
            (expected..buffer.len()).contains(&length),
            "so many batches of each partition, not {length} bytes"
        );
        stream
            .read_exact(&mut buffer[..length])
            .expect("a whole answer");
        if answers == 0 {
            region.reset();
        } else {
            bytes += length;
        }
    }
    let change = region.change();
    let allocated = change.bytes_allocated + change.bytes_reallocated.max(0) as usize;
    Served { bytes, allocated }
}

/// Batches of each partition from that offset on.
fn request(offset: i64) -> FetchRequest {
    let partitions = (0..PARTITIONS).map(|partition| {
        FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes((AT_ONCE * (VALUE_BYTES + 1000)) as i32)
    });
    let topic = FetchTopic::default()
        .with_topic(topic())
        .with_partitions(partitions.collect());
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(10_000)
        .with_min_bytes(1)
        .with_max_bytes(i32::MAX)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}
