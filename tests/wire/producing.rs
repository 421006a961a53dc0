//! Produce: what is refused, with which error, and what idempotent producers may rely on.
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::InitProducerIdRequest;

use crate::batch::{self, Batch, Codec};
use crate::client::Connection;
use crate::common::{
    PRODUCE, Topic, connect, creatable, create, fetch, fetch_as, produce, produce_as,
    produce_request,
};
use crate::support::broker::Broker;
use crate::support::clock;

fn now() -> i64 {
    clock::wall_clock_ms()
}

fn some(values: &[&str]) -> Bytes {
    Batch::of(now(), values).bytes()
}

#[test]
fn every_version_appends_and_says_where() {
    let topic = Topic::new("produce-versions");
    let mut connection = connect();
    for version in 3..=13 {
        let answer = produce_as(&mut connection, version, &topic, -1, some(&["a", "b"]));
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, i64::from(version - 3) * 2),
            "version {version}"
        );
        assert_eq!(
            answer.log_append_time_ms, -1,
            "only for topics with LogAppendTime"
        );
        let start = if version < 5 { -1 } else { 0 };
        assert_eq!(answer.log_start_offset, start, "version {version}");
        assert_eq!(answer.error_message, None);
        assert!(answer.record_errors.is_empty());
    }
}

#[test]
fn acks_0_is_never_answered() {
    let topic = Topic::new("produce-acks-0");
    let mut connection = connect();
    for version in 3..=13 {
        connection.send(version, &produce_request(version, &topic, 0, some(&["x"])));
    }
    // The next answer is that of the next request.
    assert_eq!(produce(&mut connection, &topic, some(&["y"])), 11);
}

#[test]
fn acks_0_with_a_failure_ends_the_connection() {
    let mut connection = connect();
    let missing = Topic::missing("produce-no-such-topic/");
    connection.send(
        PRODUCE,
        &produce_request(PRODUCE, &missing, 0, some(&["x"])),
    );
    connection.expect_closed("acks=0 to a topic that is not there");
}

#[test]
fn other_acks_are_refused() {
    let topic = Topic::new("produce-acks-2");
    for acks in [2, -2, 100] {
        let answer = produce_as(&mut connect(), PRODUCE, &topic, acks, some(&["x"]));
        assert_eq!(answer.error_code, 21, "INVALID_REQUIRED_ACKS for {acks}");
        assert_eq!(answer.base_offset, -1);
    }
}

#[test]
fn unknown_topics_and_partitions_have_their_errors() {
    let mut connection = connect();
    let missing = Topic::missing("produce-missing");
    for version in [3, 8, 12] {
        let answer = produce_as(&mut connection, version, &missing, -1, some(&["x"]));
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (3, -1),
            "UNKNOWN_TOPIC_OR_PARTITION in version {version}"
        );
    }
    let answer = produce_as(&mut connection, 13, &missing, -1, some(&["x"]));
    assert_eq!(answer.error_code, 100, "UNKNOWN_TOPIC_ID");
    let topic = Topic::new("produce-no-partition");
    let mut request = produce_request(PRODUCE, &topic, -1, some(&["x"]));
    request.topic_data[0].partition_data[0].index = 7;
    let answer = connection.call(PRODUCE, &request);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 3);
}

#[test]
fn a_failure_is_that_of_its_partition() {
    let topic = Topic::with("produce-one-bad", 2, &[]);
    let mut request = produce_request(PRODUCE, &topic, -1, some(&["good"]));
    let mut bad = request.topic_data[0].partition_data[0].clone();
    bad.index = 1;
    bad.records = Some(with_wrong_checksum(&some(&["bad"])));
    request.topic_data[0].partition_data.push(bad);
    let answer = connect().call(PRODUCE, &request);
    let mut codes: Vec<_> = answer.responses[0]
        .partition_responses
        .iter()
        .map(|part| (part.index, part.error_code))
        .collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [(0, 0), (1, 2)],
        "CORRUPT_MESSAGE for the second alone"
    );
}

fn with_wrong_checksum(batch: &Bytes) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[17] ^= 1;
    bytes.into()
}

#[test]
fn batches_that_are_not_sound_are_refused() {
    let topic = Topic::new("produce-unsound");
    let sound = some(&["sound", "and", "whole"]);
    let two = [&sound[..], &sound[..]].concat();
    let changed = |at: usize, to: u8| {
        let mut bytes = sound.to_vec();
        bytes[at] = to;
        let sum = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
        Bytes::from(bytes)
    };
    let mut negative = sound.to_vec();
    negative[8..12].copy_from_slice(&(-5i32).to_be_bytes());
    for (bytes, wanted, what) in [
        (with_wrong_checksum(&sound), 2, "a wrong checksum"),
        (sound.slice(..sound.len() - 3), 87, "a batch cut short"),
        (negative.into(), 2, "a negative length"),
        (Bytes::new(), 87, "no batch"),
        (two.into(), 87, "two batches in one partition"),
        (changed(60, 9), 87, "more records than there are"),
        (changed(60, 1), 87, "fewer records than there are"),
        (
            changed(26, 9),
            87,
            "a last offset that does not fit the count",
        ),
    ] {
        let answer = produce_as(&mut connect(), PRODUCE, &topic, -1, bytes);
        assert_eq!(
            answer.error_code, wanted,
            "{what}: {:?}",
            answer.error_message
        );
        assert_eq!(answer.base_offset, -1, "{what}");
    }
    // Apache names its failure: that it is one is enough.
    let codec = produce_as(&mut connect(), PRODUCE, &topic, -1, changed(22, 5));
    assert_ne!(codec.error_code, 0, "a codec that does not exist");
    assert_eq!(
        fetch(&mut connect(), &topic, 0).high_watermark,
        0,
        "nothing of it was kept"
    );
}

#[test]
fn a_batch_beyond_the_limit_of_its_topic_is_refused() {
    let topic = Topic::with("produce-too-large", 1, &[("max.message.bytes", "1000")]);
    let mut connection = connect();
    let large = Batch::of(now(), &[&"x".repeat(2_000)]).bytes();
    assert_eq!(
        produce_as(&mut connection, PRODUCE, &topic, -1, large).error_code,
        10,
        "MESSAGE_TOO_LARGE"
    );
    let packed = Batch::of(now(), &[&"x".repeat(2_000)])
        .packed(Codec::Gzip)
        .bytes();
    assert_eq!(
        produce(&mut connection, &topic, packed),
        0,
        "what counts is the size as sent"
    );
}

#[test]
fn zstd_needs_produce_7() {
    let topic = Topic::new("produce-zstd");
    let marked = Batch::of(now(), &["not zstd at all"])
        .packed(Codec::Zstd)
        .bytes();
    for version in 3..7 {
        let answer = produce_as(&mut connect(), version, &topic, -1, marked.clone());
        assert_eq!(
            answer.error_code, 76,
            "UNSUPPORTED_COMPRESSION_TYPE in version {version}"
        );
    }
}

#[test]
fn a_compacted_topic_refuses_records_without_keys() {
    let topic = Topic::with("produce-compacted", 1, &[("cleanup.policy", "compact")]);
    let record = |key: Option<&'static str>| {
        (
            now(),
            key.map(|key| Bytes::from_static(key.as_bytes())),
            Bytes::from_static(b"v"),
        )
    };
    let mixed = Batch::new(vec![record(Some("k")), record(None), record(Some("k"))]).bytes();
    let answer = produce_as(&mut connect(), PRODUCE, &topic, -1, mixed);
    assert_eq!(answer.error_code, 87, "INVALID_RECORD");
    let indexes: Vec<i32> = answer
        .record_errors
        .iter()
        .map(|error| error.batch_index)
        .collect();
    assert_eq!(indexes, [1], "the record without a key");
    let keyed = Batch::new(vec![record(Some("k")), record(Some("k"))]).bytes();
    assert_eq!(produce(&mut connect(), &topic, keyed), 0);
}

#[test]
fn a_timestamp_far_ahead_is_refused_and_named() {
    let topic = Topic::new("produce-future");
    let year = 31_536_000_000;
    let record = |timestamp| (timestamp, None, Bytes::from_static(b"v"));
    let batch = Batch::new(vec![
        record(now()),
        record(now() + 10 * year),
        record(now()),
    ]);
    let answer = produce_as(&mut connect(), PRODUCE, &topic, -1, batch.bytes());
    assert_eq!(answer.error_code, 32, "INVALID_TIMESTAMP");
    let indexes: Vec<i32> = answer
        .record_errors
        .iter()
        .map(|error| error.batch_index)
        .collect();
    assert_eq!(indexes, [1]);
    let limits = [("message.timestamp.after.max.ms", "9223372036854775807")];
    let open = Topic::with("produce-future-allowed", 1, &limits);
    assert_eq!(produce(&mut connect(), &open, batch.bytes()), 0);
    let soon = Batch::new(vec![record(now() + 1_800_000)]).bytes();
    assert_eq!(
        produce(&mut connect(), &topic, soon),
        0,
        "half an hour ahead is allowed"
    );
}

#[test]
fn log_append_time_is_the_brokers() {
    let topic = Topic::with(
        "produce-append-time",
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    );
    let before = now();
    for codec in [Codec::None, Codec::Gzip] {
        let record = |timestamp| (timestamp, None, Bytes::from_static(b"v"));
        let bytes = Batch::new(vec![record(5), record(now() * 2), record(7)])
            .packed(codec)
            .bytes();
        let answer = produce_as(&mut connect(), PRODUCE, &topic, -1, bytes);
        assert_eq!(answer.error_code, 0, "{answer:?}");
        assert!((before..=now()).contains(&answer.log_append_time_ms));
        let stored = fetch(&mut connect(), &topic, answer.base_offset)
            .records
            .expect("records");
        let head = batch::read(stored).remove(0); // and its checksum is right
        assert_eq!(head.attributes & 8, 8, "the bit that says so");
        assert_eq!(head.attributes & 7, codec as i16);
        assert_eq!(head.max_timestamp, answer.log_append_time_ms);
        assert_eq!(head.values.len(), 3);
    }
}

#[test]
fn the_leader_writes_offset_and_epoch_into_the_batch() {
    let topic = Topic::new("produce-head");
    let mut connection = connect();
    produce(&mut connection, &topic, some(&["a", "b", "c"]));
    let at = produce(
        &mut connection,
        &topic,
        Batch::of(now(), &["d", "e"]).packed(Codec::Gzip).bytes(),
    );
    let heads = batch::read(fetch(&mut connection, &topic, 0).records.expect("records"));
    let places: Vec<_> = heads
        .iter()
        .map(|head| (head.base_offset, head.last_offset, head.leader_epoch))
        .collect();
    assert_eq!((at, places), (3, vec![(0, 2, 0), (3, 4, 0)]));
    let values: Vec<_> = heads.into_iter().flat_map(|head| head.values).collect();
    assert_eq!(values, ["a", "b", "c", "d", "e"]);
}

#[test]
fn other_formats_are_not_taken_for_batches() {
    let topic = Topic::new("produce-magic");
    let mut message = BytesMut::new();
    message.put_i64(0);
    message.put_i32(22 + 1);
    message.put_u32(0); // checksum
    message.put_slice(&[1, 0]); // magic 1
    message.put_i64(now());
    message.put_i32(-1);
    message.put_i32(1);
    message.put_slice(b"v");
    let answer = produce_as(&mut connect(), PRODUCE, &topic, -1, message.freeze());
    assert_eq!(answer.error_code, 87, "INVALID_RECORD");
}

pub fn producer(connection: &mut Connection) -> (i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let answer = clock::wait_for("the ids to have loaded", || {
        let answer = connection.call(4, &request);
        (answer.error_code != 14).then_some(answer)
    });
    assert_eq!(answer.error_code, 0, "{answer:?}");
    (answer.producer_id.0, answer.producer_epoch)
}

#[test]
fn producers_have_ids_of_their_own() {
    let mut connection = connect();
    let ids: std::collections::BTreeSet<_> = (0..50).map(|_| producer(&mut connection)).collect();
    assert_eq!(ids.len(), 50);
    assert!(ids.iter().all(|(id, epoch)| *id >= 0 && *epoch == 0));
}

#[test]
fn a_duplicate_is_answered_with_its_first_offset() {
    let topic = Topic::new("produce-duplicate");
    let mut connection = connect();
    let (id, epoch) = producer(&mut connection);
    let nth = |number: i32| {
        Batch::of(1_700_000_000_000, &["a", "b"])
            .by(id, epoch, number * 2)
            .bytes()
    };
    for number in 0..7 {
        assert_eq!(
            produce(&mut connection, &topic, nth(number)),
            i64::from(number) * 2
        );
    }
    // The last five are known.
    for number in 2..7 {
        assert_eq!(
            produce(&mut connection, &topic, nth(number)),
            i64::from(number) * 2,
            "batch {number} again"
        );
    }
    let older = produce_as(&mut connection, PRODUCE, &topic, -1, nth(0));
    assert_eq!(
        older.error_code, 45,
        "OUT_OF_ORDER_SEQUENCE_NUMBER: an older one is forgotten"
    );
    assert_eq!(
        fetch(&mut connection, &topic, 0).high_watermark,
        14,
        "nothing was written twice"
    );
}

#[test]
fn a_gap_in_the_sequence_is_refused() {
    let topic = Topic::new("produce-gap");
    let mut connection = connect();
    let (id, epoch) = producer(&mut connection);
    let from = |sequence: i32| Batch::of(now(), &["a"]).by(id, epoch, sequence).bytes();
    assert_eq!(produce(&mut connection, &topic, from(0)), 0);
    let answer = produce_as(&mut connection, PRODUCE, &topic, -1, from(5));
    assert_eq!(
        (answer.error_code, answer.base_offset),
        (45, -1),
        "OUT_OF_ORDER_SEQUENCE_NUMBER"
    );
    assert_eq!(
        produce(&mut connection, &topic, from(1)),
        1,
        "the next in turn is taken"
    );
}

#[test]
fn an_older_epoch_of_a_producer_is_fenced_and_a_newer_starts_at_0() {
    let topic = Topic::new("produce-epoch");
    let mut connection = connect();
    let (id, epoch) = producer(&mut connection);
    let of = |epoch: i16, sequence: i32| Batch::of(now(), &["a"]).by(id, epoch, sequence).bytes();
    assert_eq!(produce(&mut connection, &topic, of(epoch + 1, 0)), 0);
    assert_eq!(
        produce_as(&mut connection, PRODUCE, &topic, -1, of(epoch, 0)).error_code,
        47,
        "INVALID_PRODUCER_EPOCH"
    );
    assert_eq!(
        produce_as(&mut connection, PRODUCE, &topic, -1, of(epoch + 2, 3)).error_code,
        45
    );
    assert_eq!(produce(&mut connection, &topic, of(epoch + 2, 0)), 1);
}

#[test]
fn an_unknown_producer_may_go_on_anywhere_in_a_partition_with_records() {
    let topic = Topic::new("produce-unknown");
    let mut connection = connect();
    assert_eq!(produce(&mut connection, &topic, some(&["another"])), 0);
    let (id, epoch) = producer(&mut connection);
    let from = |sequence| Batch::of(now(), &["a"]).by(id, epoch, sequence).bytes();
    assert_eq!(produce(&mut connection, &topic, from(9)), 1);
    assert_eq!(produce(&mut connection, &topic, from(10)), 2);
}

/// KIP-360: an idle producer is forgotten after a time of its own, which nothing else knows of, and may go on all the same.
#[test]
fn a_producer_that_was_idle_for_long_goes_on() {
    let settings = [
        ("producer.id.expiration.ms", "1000"),
        ("producer.id.expiration.check.interval.ms", "200"),
    ];
    let broker = Broker::start("producer-expires", &settings);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    topic.wait_served_by(&mut connection, 1);
    let batch = |sequence| Batch::of(now(), &["a"]).by(77, 0, sequence).bytes();
    let mut send = |sequence| {
        let answer = produce_as(&mut connection, PRODUCE, &topic, -1, batch(sequence));
        (answer.error_code, answer.base_offset)
    };
    assert_eq!([send(0), send(1)], [(0, 0), (0, 1)]);
    assert_eq!(send(1), (0, 1), "known: sent again, it is where it was");
    assert_eq!(send(5).0, 45, "known: OUT_OF_ORDER_SEQUENCE_NUMBER");
    clock::wait_until("it to be forgotten", || send(5).0 == 0);
    assert_eq!(send(6), (0, 3), "known again");
}

#[test]
fn what_one_producer_sends_at_once_is_written_in_order() {
    let topic = Topic::new("produce-pipelined");
    let mut connection = connect();
    let (id, epoch) = producer(&mut connection);
    let requests = 200;
    for number in 0..requests {
        let value = number.to_string();
        let batch = Batch::of(now(), &[&value]).by(id, epoch, number).bytes();
        connection.send(PRODUCE, &produce_request(PRODUCE, &topic, -1, batch));
    }
    for number in 0..requests {
        let answer =
            connection.receive::<kafka_protocol::messages::ProduceRequest>(PRODUCE, number + 2);
        let part = &answer.responses[0].partition_responses[0];
        assert_eq!((part.error_code, part.base_offset), (0, i64::from(number)));
    }
    let heads = batch::read(
        fetch_as(&mut connection, 4, &topic, 0)
            .records
            .expect("records"),
    );
    let sequences: Vec<i32> = heads.iter().map(|head| head.sequence).collect();
    assert_eq!(sequences, (0..requests).collect::<Vec<_>>());
}

#[test]
fn an_answer_does_not_wait_for_the_timeout() {
    let topic = Topic::new("produce-prompt");
    let start = clock::now();
    produce(&mut connect(), &topic, some(&["x"]));
    assert!(clock::now() - start < Duration::from_secs(10));
}
