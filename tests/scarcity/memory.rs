//! A broker in a control group with little memory: it starts, takes its budgets from the group and not from the machine, and
//! no client makes it grow beyond.
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{CreateTopicsRequest, FetchRequest, ProduceRequest};

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{FETCH, PRODUCE, Topic, creatable, produce_request};
use crate::support::broker::Broker;
use crate::support::clock;
use crate::support::control_group::ControlGroup;
use crate::support::driver::spawn;

const MIB: u64 = 1 << 20;
const PARTITIONS: i32 = 150;
const READERS: usize = 5;

fn start_in(group: &ControlGroup, name: &str, settings: &[(&str, &str)]) -> Broker {
    let mut broker = Broker::prepare(name, settings);
    broker.set_group(&group.path);
    broker.restart();
    broker
}

fn group(name: &str, bytes: u64) -> Option<ControlGroup> {
    let group = ControlGroup::of_memory(name, bytes);
    if group.is_none() {
        println!("skipped: no control group can be made");
    }
    group
}

fn made(connection: &mut Connection, topic: CreatableTopic) -> Topic {
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let answer = connection.call(7, &request).topics.remove(0);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

fn produce(connection: &mut Connection, topic: &Topic, partition: i32, value: &Bytes) {
    let records = Batch::new(vec![(clock::wall_clock_ms(), None, value.clone())]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, records);
    request.topic_data[0].partition_data[0].index = partition;
    let answer = connection.call(PRODUCE, &request);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn any_amount_of_memory_from_small_on_is_enough_to_start_and_serve() {
    for mib in [96, 256, 333] {
        let name = format!("memory-{mib}");
        let Some(group) = group(&name, mib * MIB) else {
            return;
        };
        let mut broker = start_in(&group, &name, &[("ringmain.shards", "1")]);
        let mut connection = Connection::open(broker.port);
        let topic = made(&mut connection, creatable("t", 1));
        for _ in 0..100 {
            produce(&mut connection, &topic, 0, &vec![b'v'; 900_000].into());
        }
        let highest = broker.highest_resident_kib().expect("it runs") / 1024;
        println!("{mib} MiB: {highest} MiB at most");
        assert!(highest < mib / 2, "{highest} MiB of {mib}");
        assert_eq!(broker.stop().code(), Some(0));
    }
}

/// All partitions, each from an offset, with no limit that a client could name.
fn everything(topic: &Topic, offsets: &[i64]) -> FetchRequest {
    let parts = offsets.iter().zip(0..).map(|(offset, partition)| {
        FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(*offset)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes(i32::MAX)
    });
    let fetched = FetchTopic::default()
        .with_topic(topic.name.clone())
        .with_partitions(parts.collect());
    FetchRequest::default()
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(i32::MAX)
        .with_session_epoch(-1)
        .with_topics(vec![fetched])
}

/// Reads every partition to its only batch, partitions with nothing yet first; how many answers that took.
fn read_all(port: u16, topic: &Topic) -> usize {
    let mut connection = Connection::open(port);
    let mut offsets = vec![0; usize::try_from(PARTITIONS).expect("a small number")];
    let mut answers = 0;
    while offsets.contains(&0) {
        let answer = connection.call(FETCH, &everything(topic, &offsets));
        answers += 1;
        for data in &answer.responses[0].partitions {
            assert_eq!(data.error_code, 0);
            let heads = batch::read(data.records.clone().unwrap_or_default());
            if let Some(last) = heads.last() {
                let partition = usize::try_from(data.partition_index).expect("an index");
                offsets[partition] = last.last_offset + 1;
            }
        }
    }
    answers
}

#[test]
fn readers_of_large_partitions_cannot_exhaust_the_memory() {
    let Some(group) = group("memory-readers", 128 * MIB) else {
        return;
    };
    let settings = [
        ("message.max.bytes", "2000000"),
        ("fetch.max.bytes", "2147483647"),
    ];
    let mut broker = start_in(&group, "memory-readers", &settings);
    let mut connection = Connection::open(broker.port);
    let topic = made(&mut connection, creatable("t", PARTITIONS));
    let value = Bytes::from(vec![b'v'; 1 << 20]);
    for partition in 0..PARTITIONS {
        produce(&mut connection, &topic, partition, &value);
    }
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (port, topic) = (broker.port, topic.clone());
            spawn(move || read_all(port, &topic))
        })
        .collect();
    let limit = Duration::from_secs(100);
    clock::wait_within(limit, "all readers", || {
        assert!(broker.process().ended().is_none(), "it was killed");
        readers.iter().all(|it| it.is_finished()).then_some(())
    });
    let answers: Vec<usize> = readers
        .into_iter()
        .map(|reader| reader.join().expect("a reader"))
        .collect();
    let highest = broker.highest_resident_kib().expect("it runs") / 1024;
    println!("{READERS} readers of {PARTITIONS} MiB: {highest} MiB at most, answers {answers:?}");
    assert!(highest < 96, "{highest} MiB of 128");
    assert_eq!(broker.stop().code(), Some(0));
}

/// One producer after the other, as programs that open one for each request: what is remembered of them has an end, in
/// memory and for the next start. `RINGMAIN_TEST_PRODUCERS=2000000` makes them so many.
#[test]
fn producers_without_number_take_neither_memory_nor_time() {
    const UNDER_WAY: usize = 64;
    let producers: i64 = std::env::var("RINGMAIN_TEST_PRODUCERS")
        .map_or(30_000, |given| given.parse().expect("a number"));
    let Some(group) = group("memory-producers", 128 * MIB) else {
        return;
    };
    let mut broker = start_in(&group, "memory-producers", &[("ringmain.shards", "1")]);
    let mut connection = Connection::open(broker.port);
    let topic = made(&mut connection, creatable("t", 1));
    let now = clock::wall_clock_ms();
    let by = |producer, sequence| {
        let records = Batch::of(now, &["x"]).by(producer, 0, sequence).bytes();
        produce_request(PRODUCE, &topic, -1, records)
    };
    let mut under_way = VecDeque::new();
    let finish = |connection: &mut Connection, number| {
        let answer = connection.receive::<ProduceRequest>(PRODUCE, number);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    };
    for producer in 0..producers {
        under_way.push_back(connection.send(PRODUCE, &by(producer, 0)));
        if under_way.len() == UNDER_WAY {
            finish(&mut connection, under_way.pop_front().expect("one of many"));
        }
    }
    for number in under_way {
        finish(&mut connection, number);
    }
    let highest = broker.highest_resident_kib().expect("it runs") / 1024;
    assert!(highest < 96, "{highest} MiB of 128");
    assert_eq!(broker.stop().code(), Some(0));
    let start = clock::now();
    broker.restart();
    let took = start.elapsed();
    println!("{producers} producers: {highest} MiB at most, the next start took {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    // The first is forgotten or not; it goes on either way, as in Kafka.
    let mut connection = Connection::open(broker.port);
    let answer = connection.call(PRODUCE, &by(0, 1));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(broker.stop().code(), Some(0));
}
