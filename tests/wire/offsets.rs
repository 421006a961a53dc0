//! ListOffsets and OffsetForLeaderEpoch.
use bytes::Bytes;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::EpochEndOffset;
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, OffsetForLeaderEpochRequest};

use crate::batch::{Batch, Codec};
use crate::client::Connection;
use crate::common::{NO_EPOCH, Topic, connect, produce};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

/// Error, timestamp and offset.
fn list(
    connection: &mut Connection,
    version: i16,
    topic: &Topic,
    timestamp: i64,
    epoch: i32,
) -> (i16, i64, i64) {
    let part = ListOffsetsPartition::default()
        .with_timestamp(timestamp)
        .with_current_leader_epoch(epoch);
    let asked = ListOffsetsTopic::default()
        .with_name(topic.name.clone())
        .with_partitions(vec![part]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![asked]);
    let data = connection
        .call(version, &request)
        .topics
        .remove(0)
        .partitions
        .remove(0);
    (data.error_code, data.timestamp, data.offset)
}

fn of_time(connection: &mut Connection, topic: &Topic, timestamp: i64) -> (i16, i64, i64) {
    list(connection, 7, topic, timestamp, NO_EPOCH)
}

fn at(timestamps: impl IntoIterator<Item = i64>) -> Batch {
    Batch::new(
        timestamps
            .into_iter()
            .map(|timestamp| (timestamp, None, Bytes::from_static(b"v")))
            .collect(),
    )
}

/// A day that no retention takes before the test has ended.
fn day() -> i64 {
    crate::support::clock::wall_clock_ms() - 3_600_000
}

#[test]
fn a_time_within_a_batch_finds_its_record() {
    for codec in [Codec::None, Codec::Gzip] {
        let topic = Topic::new(&format!("list-time-{codec:?}"));
        let mut connection = connect();
        let start = day();
        produce(
            &mut connection,
            &topic,
            at((1..=100).map(|number| start + number))
                .packed(codec)
                .bytes(),
        );
        produce(
            &mut connection,
            &topic,
            at((201..=300).map(|number| start + number))
                .packed(codec)
                .bytes(),
        );
        for number in 1..=100 {
            assert_eq!(
                of_time(&mut connection, &topic, start + number),
                (0, start + number, number - 1)
            );
        }
        assert_eq!(
            of_time(&mut connection, &topic, start - 5),
            (0, start + 1, 0),
            "before all of them"
        );
        assert_eq!(
            of_time(&mut connection, &topic, start + 150),
            (0, start + 201, 100),
            "between two batches"
        );
        assert_eq!(
            of_time(&mut connection, &topic, start + 300),
            (0, start + 300, 199)
        );
        assert_eq!(
            of_time(&mut connection, &topic, start + 301),
            (0, -1, -1),
            "behind all of them"
        );
    }
}

#[test]
fn times_out_of_order_find_the_first_that_is_late_enough() {
    let topic = Topic::new("list-disorder");
    let mut connection = connect();
    let start = day();
    produce(
        &mut connection,
        &topic,
        at([50, 10, 90, 30].map(|number| start + number))
            .packed(Codec::Gzip)
            .bytes(),
    );
    produce(
        &mut connection,
        &topic,
        at([20, 95, 40].map(|number| start + number)).bytes(),
    );
    for (time, wanted) in [
        (5, (50, 0)),
        (50, (50, 0)),
        (51, (90, 2)),
        (91, (95, 5)),
        (95, (95, 5)),
    ] {
        assert_eq!(
            of_time(&mut connection, &topic, start + time),
            (0, start + wanted.0, wanted.1),
            "from {time} on"
        );
    }
    assert_eq!(
        of_time(&mut connection, &topic, MAX_TIMESTAMP),
        (0, start + 95, 5)
    );
}

#[test]
fn the_latest_time_is_that_of_the_first_record_that_has_it() {
    for codec in [Codec::None, Codec::Gzip] {
        let topic = Topic::new(&format!("list-max-{codec:?}"));
        let mut connection = connect();
        assert_eq!(
            of_time(&mut connection, &topic, MAX_TIMESTAMP),
            (0, -1, -1),
            "of an empty log"
        );
        let start = day();
        produce(
            &mut connection,
            &topic,
            at([10, 90, 90, 30].map(|number| start + number))
                .packed(codec)
                .bytes(),
        );
        produce(
            &mut connection,
            &topic,
            at([90, 20].map(|number| start + number))
                .packed(codec)
                .bytes(),
        );
        assert_eq!(
            of_time(&mut connection, &topic, MAX_TIMESTAMP),
            (0, start + 90, 1)
        );
    }
}

#[test]
fn the_ends_have_their_names() {
    let topic = Topic::new("list-ends");
    let mut connection = connect();
    let ends = |connection: &mut Connection, version| {
        [EARLIEST, LATEST].map(|end| list(connection, version, &topic, end, NO_EPOCH))
    };
    for version in 1..=10 {
        assert_eq!(
            ends(&mut connection, version),
            [(0, -1, 0), (0, -1, 0)],
            "empty, version {version}"
        );
    }
    produce(&mut connection, &topic, at([day(); 3]).bytes());
    for version in 1..=10 {
        assert_eq!(
            ends(&mut connection, version),
            [(0, -1, 0), (0, -1, 3)],
            "version {version}"
        );
    }
    assert_eq!(
        list(&mut connection, 8, &topic, EARLIEST_LOCAL, NO_EPOCH),
        (0, -1, 0)
    );
    assert_eq!(
        list(&mut connection, 9, &topic, LATEST_TIERED, NO_EPOCH),
        (0, -1, -1),
        "nothing is tiered"
    );
}

#[test]
fn a_name_that_the_version_does_not_know_is_refused() {
    let topic = Topic::new("list-unknown-name");
    let mut connection = connect();
    for (version, name) in [
        (6, MAX_TIMESTAMP),
        (7, EARLIEST_LOCAL),
        (8, LATEST_TIERED),
        (10, -7),
    ] {
        assert_eq!(
            list(&mut connection, version, &topic, name, NO_EPOCH).0,
            35,
            "{name} in version {version}"
        );
    }
}

#[test]
fn unknown_topics_and_epochs_have_their_errors() {
    let mut connection = connect();
    let missing = Topic::missing("list-missing");
    assert_eq!(
        list(&mut connection, 7, &missing, LATEST, NO_EPOCH),
        (3, -1, -1)
    );
    let topic = Topic::new("list-epochs");
    assert_eq!(list(&mut connection, 7, &topic, LATEST, 0), (0, -1, 0));
    assert_eq!(
        list(&mut connection, 7, &topic, LATEST, 9),
        (75, -1, -1),
        "UNKNOWN_LEADER_EPOCH"
    );
}

fn end_of_epoch(
    connection: &mut Connection,
    topic: &Topic,
    current: i32,
    epoch: i32,
) -> EpochEndOffset {
    let part = OffsetForLeaderPartition::default()
        .with_current_leader_epoch(current)
        .with_leader_epoch(epoch);
    let asked = OffsetForLeaderTopic::default()
        .with_topic(topic.name.clone())
        .with_partitions(vec![part]);
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![asked]);
    connection
        .call(4, &request)
        .topics
        .remove(0)
        .partitions
        .remove(0)
}

#[test]
fn the_end_of_an_epoch_is_known() {
    let topic = Topic::new("epoch-ends");
    let mut connection = connect();
    produce(&mut connection, &topic, at([day(); 4]).bytes());
    let mut ask = |current, epoch| {
        let end = end_of_epoch(&mut connection, &topic, current, epoch);
        (end.error_code, end.leader_epoch, end.end_offset)
    };
    assert_eq!(
        ask(0, 0),
        (0, 0, 4),
        "the current one ends at the end of the log"
    );
    assert_eq!(ask(NO_EPOCH, 0), (0, 0, 4));
    assert_eq!(ask(NO_EPOCH, 5), (0, -1, -1), "one that was never");
    assert_eq!(ask(5, 0), (75, -1, -1), "UNKNOWN_LEADER_EPOCH");
    let missing = Topic::missing("epoch-missing");
    assert_eq!(
        end_of_epoch(&mut connection, &missing, NO_EPOCH, 0).error_code,
        3
    );
}
