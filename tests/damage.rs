//! Damage done by hand to the files of a stopped or killed broker: what it says, what it serves then, and that nothing
//! that was acknowledged and is still whole is lost.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/batch.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod batch;
#[path = "wire/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;
#[path = "damage/directories.rs"]
mod directories;
#[path = "damage/log.rs"]
mod log;
#[path = "damage/metadata.rs"]
mod metadata;
#[path = "damage/small_files.rs"]
mod small_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use batch::Batch;
use bytes::Bytes;
use client::Connection;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, FetchRequest, ListOffsetsRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use support::broker::Broker;
use support::{clock, segments};

/// The error code of a batch that is damaged.
const CORRUPT_MESSAGE: i16 = 2;
/// Batches of one record that every topic of these tests gets.
const BATCHES: i64 = 40;
const PRODUCER: i64 = 4_242;

/// The timestamp of a record: each is a second after the one before, and the first an hour ago, because a producer whose
/// last record is a day old is forgotten.
fn time_of(offset: i64) -> i64 {
    static FIRST: OnceLock<i64> = OnceLock::new();
    FIRST.get_or_init(|| clock::wall_clock_ms() - 3_600_000) + offset * 1_000
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

fn create(port: u16, topics: &[&str]) {
    let topics: Vec<_> = topics
        .iter()
        .map(|topic| {
            CreatableTopic::default()
                .with_name(name(topic))
                .with_num_partitions(1)
                .with_replication_factor(1)
        })
        .collect();
    let request = CreateTopicsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(30_000);
    for topic in Connection::open(port).call(7, &request).topics {
        assert_eq!(topic.error_code, 0, "{topic:?}");
    }
}

/// The batch that stands at an offset: different bytes for each.
fn batch_at(offset: i64) -> Bytes {
    let value: String = (0..300)
        .map(|at| char::from(b'a' + u8::try_from((offset * 7 + at) % 26).expect("small")))
        .collect();
    let sequence = i32::try_from(offset).expect("small");
    Batch::of(time_of(offset), &[&value])
        .by(PRODUCER, 0, sequence)
        .bytes()
}

/// Produces the batch of an offset; error and offset as answered.
fn produce(connection: &mut Connection, topic: &str, offset: i64) -> (i16, i64) {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(batch_at(offset)));
    let data = TopicProduceData::default()
        .with_name(name(topic))
        .with_partition_data(vec![partition]);
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![data]);
    let answer = connection.call(12, &request);
    let partition = &answer.responses[0].partition_responses[0];
    (partition.error_code, partition.base_offset)
}

/// Produces all batches of a topic.
fn fill(port: u16, topic: &str) {
    let mut connection = Connection::open(port);
    for offset in 0..BATCHES {
        assert_eq!(produce(&mut connection, topic, offset), (0, offset));
    }
}

fn fill_all(port: u16, topics: &[&str]) {
    topics.iter().for_each(|topic| fill(port, topic));
}

/// Error and record bytes of a fetch from an offset.
fn fetch(connection: &mut Connection, topic: &str, offset: i64, max_bytes: i32) -> (i16, Bytes) {
    let partition = FetchPartition::default()
        .with_partition(0)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(max_bytes);
    let topic = FetchTopic::default()
        .with_topic(name(topic))
        .with_partitions(vec![partition]);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    let mut answer = connection.call(12, &request);
    let data = answer.responses.remove(0).partitions.remove(0);
    (data.error_code, data.records.unwrap_or_default())
}

/// Every offset below `end` is read and has the bytes that were sent, but for those that answer CORRUPT_MESSAGE: these.
fn unreadable(port: u16, topic: &str, end: i64) -> Vec<i64> {
    unreadable_by(1 << 20, port, topic, end)
}

/// The same with fetches of so many bytes.
fn unreadable_by(max_bytes: i32, port: u16, topic: &str, end: i64) -> Vec<i64> {
    let mut connection = Connection::open(port);
    let (mut offset, mut corrupt) = (0, Vec::new());
    while offset < end {
        let (error, records) = fetch(&mut connection, topic, offset, max_bytes);
        if error == CORRUPT_MESSAGE {
            assert!(records.is_empty(), "no bytes with an error");
            corrupt.push(offset);
            offset += 1;
            continue;
        }
        assert_eq!(error, 0, "{topic} at {offset}");
        // It checks every checksum.
        let heads = batch::read(records);
        assert!(!heads.is_empty(), "{topic} has nothing at {offset}");
        for head in heads {
            assert_eq!(head.base_offset, offset, "{topic}");
            let mut sent = batch::read(batch_at(offset));
            assert_eq!(head.values, sent.remove(0).values, "{topic} at {offset}");
            offset = head.last_offset + 1;
        }
    }
    corrupt
}

/// The log ends at `end`, and takes the producer's next batch there; its last one is a duplicate.
fn goes_on(port: u16, topic: &str, end: i64) {
    let mut connection = Connection::open(port);
    if end > 0 {
        let last = produce(&mut connection, topic, end - 1);
        assert_eq!(last, (0, end - 1), "{topic}: the last one is known");
    }
    assert_eq!(produce(&mut connection, topic, end), (0, end), "{topic}");
    let found = fetch(&mut connection, topic, end, 1 << 20);
    assert_eq!(batch::read(found.1)[0].base_offset, end);
}

/// The offset that ListOffsets finds for a time.
fn offset_of_time(port: u16, topic: &str, timestamp: i64) -> (i16, i64) {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(0)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(name(topic))
        .with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic]);
    let answer = Connection::open(port).call(6, &request);
    let partition = &answer.topics[0].partitions[0];
    (partition.error_code, partition.offset)
}

fn partition(data: &Path, topic: &str) -> PathBuf {
    data.join(format!("{topic}-0"))
}

/// The newest segment of a topic.
fn segment(broker: &Broker, topic: &str) -> PathBuf {
    let files = segments::files_of(&partition(&broker.data(), topic), ".log");
    files.last().expect("a segment").clone()
}

/// Changes the bytes of a file.
fn change(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    how(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}

/// Whether one line of the log has all these words.
fn tells(log: &str, words: &[impl AsRef<str>]) -> bool {
    log.lines()
        .any(|line| words.iter().all(|word| line.contains(word.as_ref())))
}

/// Settings with a small index interval, so that small topics have index entries. What is damaged here are segments, so
/// records go there at once.
const SMALL: [(&str, &str); 3] = [
    ("ringmain.journal.bytes", "0"),
    ("log.index.interval.bytes", "1000"),
    ("auto.create.topics.enable", "false"),
];
