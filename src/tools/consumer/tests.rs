//! The parts that need no broker.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::messages::{
    FetchResponse, FetchResponseAbortedTransaction, FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
};
use protocol::records::BatchBuilder;
use protocol::{ErrorCode, Str};

use super::assignor::{self, Member};
use super::fetcher::Fetcher;
use super::records::Fetched;
use super::settings::ConsumerSettings;
use crate::tools::client::Partition;

fn partition(number: i32) -> Partition {
    Partition {
        topic: Str::from("t"),
        number,
    }
}

fn member(id: &str, instance: Option<&str>, topics: &[&str]) -> Member {
    Member {
        id: Str::from(id),
        instance: instance.map(Str::from),
        topics: topics.iter().map(|topic| Str::from(*topic)).collect(),
    }
}

fn numbers(assigned: &BTreeMap<Str, Vec<Partition>>, id: &str, topic: &str) -> Vec<i32> {
    let mine = assigned.get(id).map(Vec::as_slice).unwrap_or_default();
    mine.iter()
        .filter(|partition| partition.topic == topic)
        .map(|partition| partition.number)
        .collect()
}

#[test]
fn ranges_are_javas() {
    let members = [
        member("b", None, &["t", "u"]),
        member("a", None, &["t"]),
        member("z", Some("first"), &["t", "u"]),
    ];
    let counts = BTreeMap::from([(Str::from("t"), 7), (Str::from("u"), 1)]);
    let assigned = assignor::range(&members, &counts);
    assert_eq!(
        numbers(&assigned, "z", "t"),
        [0, 1, 2],
        "static members first"
    );
    assert_eq!(numbers(&assigned, "a", "t"), [3, 4]);
    assert_eq!(numbers(&assigned, "b", "t"), [5, 6]);
    assert_eq!(numbers(&assigned, "z", "u"), [0]);
    assert!(numbers(&assigned, "b", "u").is_empty());
}

#[test]
fn what_members_tell_each_other_comes_back() {
    let topics = [Str::from("t"), Str::from("u")];
    assert_eq!(
        assignor::topics_of(&assignor::subscription(&topics)),
        topics
    );
    let partitions = vec![partition(3), partition(4)];
    let told = assignor::assignment(&partitions);
    assert_eq!(assignor::partitions_of(told).unwrap(), partitions);
    assert!(assignor::partitions_of(Bytes::new()).unwrap().is_empty());
    assert!(assignor::partitions_of(Bytes::from_static(&[0, 0, 9])).is_err());
    assert!(assignor::topics_of(&Bytes::from_static(&[7])).is_empty());
}

fn batch(offset: i64, count: usize, producer: i64, transactional: bool) -> Bytes {
    let mut builder = BatchBuilder::new(offset)
        .producer(producer, 0, 0)
        .transactional(transactional);
    for _ in 0..count {
        builder.append(1000, None, Some(b"v"), &[]);
    }
    builder.build_bytes().unwrap()
}

fn marker(offset: i64, producer: i64, commit: bool) -> Bytes {
    let mut builder = BatchBuilder::new(offset)
        .producer(producer, 0, -1)
        .transactional(true)
        .control(true);
    let key = [0, 0, 0, u8::from(commit)];
    builder.append(1000, Some(&key), Some(&[0, 0, 0, 0, 0, 0]), &[]);
    builder.build_bytes().unwrap()
}

fn offsets(bytes: Vec<Bytes>, from: i64, aborted: &[(i64, i64)], committed: bool) -> Vec<i64> {
    let aborted = aborted
        .iter()
        .map(
            |(producer_id, first_offset)| FetchResponseAbortedTransaction {
                producer_id: *producer_id,
                first_offset: *first_offset,
            },
        )
        .collect();
    let bytes = Bytes::from(bytes.concat());
    let mut fetched = Fetched::new(partition(0), bytes, from, aborted, committed, true);
    let end = fetched.end();
    let mut seen = Vec::new();
    let mut next = from;
    while let Some(batch) = fetched.next() {
        let batch = batch.unwrap();
        seen.extend(batch.records.iter().map(|record| record.offset));
        next = batch.next_offset;
    }
    assert_eq!(next, end, "the next fetch begins behind the last batch");
    seen
}

#[test]
fn aborted_transactions_and_markers_are_left_out() {
    let log = || {
        vec![
            batch(0, 2, 7, true),
            batch(2, 1, 8, true),
            marker(3, 7, false),
            batch(4, 1, 7, true),
            marker(5, 7, true),
            batch(6, 1, -1, false),
            marker(7, 8, false),
        ]
    };
    let aborted = [(7, 0), (8, 2)];
    assert_eq!(offsets(log(), 0, &aborted, true), [4, 6]);
    assert_eq!(offsets(log(), 0, &[], false), [0, 1, 2, 4, 6]);
}

#[test]
fn a_batch_begun_earlier_gives_only_what_was_asked_for_and_a_torn_one_nothing() {
    let mut torn = batch(3, 2, -1, false).to_vec();
    torn.truncate(torn.len() - 1);
    let log = vec![batch(0, 3, -1, false), torn.into()];
    assert_eq!(offsets(log, 2, &[], false), [2]);
}

#[test]
fn damage_is_an_error_once() {
    let mut bytes = batch(7, 3, -1, false).to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut fetched = Fetched::new(partition(0), bytes.into(), 7, Vec::new(), false, true);
    let bad = fetched.next().unwrap().unwrap_err();
    assert_eq!((bad.offset, bad.next_offset), (7, Some(10)));
    assert!(fetched.next().is_none());
}

#[test]
fn a_batch_that_the_broker_finds_damaged_ends_the_reading_and_is_named() {
    let settings = ConsumerSettings::new(&BTreeMap::new()).unwrap();
    let mut fetcher = Fetcher::new(settings);
    let asked = BTreeMap::from([(partition(2), 5)]);
    fetcher.assign(asked.clone());
    let data = FetchResponsePartitionData {
        partition_index: 2,
        error_code: ErrorCode::CorruptMessage.code(),
        ..FetchResponsePartitionData::default()
    };
    let topic = FetchResponseFetchableTopicResponse {
        topic: Str::from("t"),
        partitions: [data].into(),
        ..FetchResponseFetchableTopicResponse::default()
    };
    let response = FetchResponse {
        responses: [topic].into(),
        ..FetchResponse::default()
    };
    let why = fetcher.take(response, &asked).unwrap_err().to_string();
    let beginning = "the broker cannot serve the records of t-2 from offset 5 on";
    assert!(why.starts_with(beginning), "{why}");
}
