//! Fetch without sessions: long polls, limits, errors, every version.
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::FetchRequest;

use crate::batch::{self, Batch, Codec};
use crate::common::{FETCH, Topic, connect, fetch, fetch_as, fetch_request, parts, produce};
use crate::support::clock;

fn some(values: &[&str]) -> Bytes {
    Batch::of(clock::wall_clock_ms(), values).bytes()
}

#[test]
fn every_version_brings_the_same_bytes() {
    let topic = Topic::new("fetch-versions");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a", "b"]));
    produce(
        &mut connection,
        &topic,
        Batch::of(clock::wall_clock_ms(), &["c"])
            .packed(Codec::Gzip)
            .bytes(),
    );
    let first = fetch_as(&mut connection, 4, &topic, 0)
        .records
        .expect("records");
    assert_eq!(batch::read(first.clone()).len(), 2);
    for version in 4..=18 {
        let data = fetch_as(&mut connection, version, &topic, 0);
        assert_eq!(data.error_code, 0, "version {version}");
        assert_eq!(data.records.as_ref(), Some(&first), "version {version}");
        assert_eq!(
            (data.high_watermark, data.last_stable_offset),
            (3, 3),
            "version {version}"
        );
        assert_eq!(
            data.aborted_transactions, None,
            "null for a reader of everything, version {version}"
        );
        assert_eq!(
            data.log_start_offset,
            if version < 5 { -1 } else { 0 },
            "version {version}"
        );
    }
}

#[test]
fn nothing_new_is_no_bytes_and_not_null() {
    let topic = Topic::new("fetch-empty");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a"]));
    for version in 4..=18 {
        let data = fetch_as(&mut connection, version, &topic, 1);
        assert_eq!(
            (data.error_code, data.records),
            (0, Some(Bytes::new())),
            "version {version}"
        );
    }
}

#[test]
fn a_reader_of_committed_records_gets_a_list_of_the_aborted() {
    let topic = Topic::new("fetch-committed");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a"]));
    let request = fetch_request(FETCH, &[(&topic, 0, 0)]).with_isolation_level(1);
    let data = connection
        .call(FETCH, &request)
        .responses
        .remove(0)
        .partitions
        .remove(0);
    assert_eq!(data.aborted_transactions.map(|list| list.len()), Some(0));
    assert_eq!(
        data.records.map(|records| batch::read(records).len()),
        Some(1)
    );
}

#[test]
fn an_unknown_isolation_level_is_an_error_where_there_is_something_to_read() {
    const UNKNOWN_SERVER_ERROR: i16 = -1;
    const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    let topic = Topic::new("fetch-isolation");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a"]));
    let mut ask = |partition| {
        let request = fetch_request(FETCH, &[(&topic, partition, 0)]).with_isolation_level(2);
        let answer = connection.call(FETCH, &request);
        let parts = answer.responses.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<i16> = parts.map(|part| part.error_code).collect();
        (answer.error_code, codes)
    };
    assert_eq!(ask(0), (UNKNOWN_SERVER_ERROR, vec![UNKNOWN_SERVER_ERROR]));
    assert_eq!(ask(7), (0, vec![UNKNOWN_TOPIC_OR_PARTITION]));
}

#[test]
fn a_fetch_waits_as_long_as_it_may_and_no_longer() {
    let topic = Topic::new("fetch-wait");
    let mut connection = connect();
    for wait in [0, 1, 500, 2_000] {
        let mut request = fetch_request(FETCH, &[(&topic, 0, 0)]);
        request.max_wait_ms = wait;
        let start = clock::now();
        let answer = connection.call(FETCH, &request);
        let took = clock::now() - start;
        assert_eq!(parts(&answer), [(0, 0, 0)]);
        let wait = Duration::from_millis(wait.unsigned_abs().into());
        assert!(
            took + Duration::from_millis(5) >= wait,
            "{took:?} in place of {wait:?}"
        );
        assert!(
            took < wait + Duration::from_secs(3),
            "{took:?} in place of {wait:?}"
        );
    }
}

#[test]
fn a_fetch_without_a_minimum_does_not_wait() {
    let topic = Topic::new("fetch-min-0");
    let mut request = fetch_request(FETCH, &[(&topic, 0, 0)]);
    (request.max_wait_ms, request.min_bytes) = (30_000, 0);
    let start = clock::now();
    connect().call(FETCH, &request);
    assert!(clock::now() - start < Duration::from_secs(5));
}

#[test]
fn a_waiting_fetch_is_answered_when_enough_has_come() {
    let topic = Topic::with("fetch-woken", 2, &[]);
    let (mut reader, mut writer) = (connect(), connect());
    let size = i32::try_from(some(&["0123456789"]).len()).unwrap();
    let mut request = fetch_request(FETCH, &[(&topic, 0, 0), (&topic, 1, 0)]);
    (request.max_wait_ms, request.min_bytes) = (30_000, 3 * size);
    let start = clock::now();
    let number = reader.send(FETCH, &request);
    for _ in 0..3 {
        produce(&mut writer, &topic, some(&["0123456789"]));
    }
    let answer = reader.receive::<FetchRequest>(FETCH, number);
    assert!(clock::now() - start < Duration::from_secs(10));
    assert_eq!(
        parts(&answer)[0],
        (0, 0, usize::try_from(size).unwrap() * 3)
    );
}

#[test]
fn an_error_ends_the_wait() {
    let topic = Topic::with("fetch-error-now", 2, &[]);
    let mut request = fetch_request(FETCH, &[(&topic, 0, 0), (&topic, 1, 77)]);
    request.max_wait_ms = 30_000;
    let start = clock::now();
    let answer = connect().call(FETCH, &request);
    assert!(clock::now() - start < Duration::from_secs(10));
    assert_eq!(
        parts(&answer),
        [(0, 0, 0), (1, 1, 0)],
        "OFFSET_OUT_OF_RANGE"
    );
}

/// KIP-74: or the reader stands still for ever.
#[test]
fn the_first_batch_comes_whole_however_small_the_limits() {
    let topic = Topic::with("fetch-oversized", 2, &[]);
    let mut connection = connect();
    let large = Batch::of(clock::wall_clock_ms(), &[&"x".repeat(5 << 20)]).bytes();
    produce(&mut connection, &topic, large.clone());
    let mut second = crate::common::produce_request(12, &topic, -1, large.clone());
    second.topic_data[0].partition_data[0].index = 1;
    connection.call(12, &second);
    for version in [4, 7, 12, 13, 18] {
        let mut request = fetch_request(version, &[(&topic, 0, 0), (&topic, 1, 0)]);
        (request.max_bytes, request.max_wait_ms) = (1, 500);
        for fetched in &mut request.topics {
            fetched.partitions[0].partition_max_bytes = 1;
        }
        let answer = connection.call(version, &request);
        assert_eq!(
            parts(&answer),
            [(0, 0, large.len()), (1, 0, 0)],
            "version {version}"
        );
        request.topics.reverse();
        let answer = connection.call(version, &request);
        assert_eq!(
            parts(&answer),
            [(1, 0, large.len()), (0, 0, 0)],
            "version {version}, the other first"
        );
    }
}

#[test]
fn limits_end_between_batches() {
    let topic = Topic::new("fetch-limits");
    let mut connection = connect();
    let one = some(&["0123456789"]);
    for _ in 0..10 {
        produce(&mut connection, &topic, one.clone());
    }
    for (limit, wanted) in [(1, 1), (one.len(), 1), (one.len() * 3, 3), (1 << 20, 10)] {
        let mut request = fetch_request(FETCH, &[(&topic, 0, 0)]);
        request.topics[0].partitions[0].partition_max_bytes = i32::try_from(limit).unwrap();
        let data = connection
            .call(FETCH, &request)
            .responses
            .remove(0)
            .partitions
            .remove(0);
        let records = data.records.expect("records");
        // A limit in the middle of a batch may bring a part of it.
        assert!(
            records.len() >= wanted * one.len(),
            "{} bytes for {limit}",
            records.len()
        );
        assert!(
            records.len() <= (wanted * one.len()).max(limit),
            "{} bytes for {limit}",
            records.len()
        );
    }
}

#[test]
fn an_offset_within_a_batch_brings_the_batch() {
    let topic = Topic::new("fetch-within");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a", "b", "c", "d"]));
    produce(&mut connection, &topic, some(&["e"]));
    for (offset, first) in [(0, 0), (2, 0), (3, 0), (4, 4)] {
        let heads = batch::read(
            fetch(&mut connection, &topic, offset)
                .records
                .expect("records"),
        );
        assert_eq!(heads[0].base_offset, first, "from {offset}");
        assert_eq!(heads.last().map(|head| head.last_offset), Some(4));
    }
}

#[test]
fn offsets_outside_the_log_are_out_of_range() {
    let topic = Topic::new("fetch-out-of-range");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a"]));
    for offset in [2, 1_000_000, -1, i64::MAX] {
        let data = fetch(&mut connection, &topic, offset);
        assert_eq!(data.error_code, 1, "OFFSET_OUT_OF_RANGE at {offset}");
        assert_eq!(
            (
                data.high_watermark,
                data.last_stable_offset,
                data.log_start_offset
            ),
            (-1, -1, -1),
            "at {offset}"
        );
        assert_eq!(
            data.records,
            Some(Bytes::new()),
            "no null, which old clients cannot bear"
        );
    }
}

#[test]
fn unknown_topics_and_partitions_have_their_errors() {
    let mut connection = connect();
    let missing = Topic::missing("fetch-missing");
    for (version, wanted) in [(4, 3), (12, 3), (13, 100), (18, 100)] {
        let data = fetch_as(&mut connection, version, &missing, 0);
        assert_eq!(data.error_code, wanted, "version {version}");
        assert_eq!(
            (data.high_watermark, data.records),
            (-1, Some(Bytes::new())),
            "version {version}"
        );
    }
    let topic = Topic::new("fetch-no-partition");
    for version in [4, 12, 13, 18] {
        let answer = connection.call(version, &fetch_request(version, &[(&topic, 5, 0)]));
        assert_eq!(parts(&answer), [(5, 3, 0)], "version {version}");
    }
}

#[test]
fn the_epoch_that_a_reader_knows_is_compared() {
    let topic = Topic::new("fetch-epoch");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a"]));
    for version in [9, 12, 13, 18] {
        for (epoch, wanted) in [(0, 0), (-1, 0), (7, 75)] {
            let mut request = fetch_request(version, &[(&topic, 0, 0)]);
            request.topics[0].partitions[0].current_leader_epoch = epoch;
            let data = connection
                .call(version, &request)
                .responses
                .remove(0)
                .partitions
                .remove(0);
            assert_eq!(data.error_code, wanted, "epoch {epoch}, version {version}");
        }
    }
}
