//! What stands on both brokers before the first case.
use bytes::Bytes;

use crate::batch::{Batch, Codec};
use crate::stage::Stage;
use crate::support::clock;
use crate::value::Value;

/// The time of the first record.
pub const TIME: i64 = 1_700_000_000_000;

pub fn make(stage: &mut Stage) {
    topic(stage, "fixture", 3, &[]);
    topic(stage, "compacted", 1, &[("cleanup.policy", "compact")]);
    topic(
        stage,
        "append-time",
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    );
    topic(stage, "zstd", 1, &[("compression.type", "zstd")]);
    topic(stage, "small", 1, &[("max.message.bytes", "500")]);
    topic(stage, "produced", 1, &[]);
    topic(stage, "twice", 1, &[]);
    records(stage);
    topic(stage, "deleted", 1, &[]);
    let gone = Value::fields([
        (
            "topics",
            Value::list([Value::fields([("name", Value::text("deleted"))])]),
        ),
        ("timeout_ms", Value::Int(30_000)),
    ]);
    stage.make("DeleteTopics", 6, &gone, "responses.0.error_code");
    crate::bases::groups::fixture(stage);
    transactions(stage);
}

/// The first who looks for a transaction's coordinator makes its topic, where transactions are served: so it is there, and
/// loaded, in every case.
fn transactions(stage: &mut Stage) {
    let request = Value::fields([
        ("key_type", Value::Int(1)),
        ("coordinator_keys", Value::strings(["a-transaction"])),
    ]);
    let described = Value::fields([("transactional_ids", Value::strings(["a-transaction"]))]);
    clock::wait_until("Apache's coordinator of transactions", || {
        stage.call("FindCoordinator", 4, request.clone());
        let [apache, _] = stage.call("DescribeTransactions", 0, described.clone());
        // There is none of that name: so it has read what there is.
        apache.int("transaction_states.0.error_code") == Some(105)
    });
}

/// A topic. Returns when all its partitions are served.
pub fn topic(stage: &mut Stage, name: &str, partitions: i64, configs: &[(&str, &str)]) {
    creation_of(stage, name, partitions, configs);
    for partition in 0..partitions {
        let listed = Value::fields([
            ("replica_id", Value::Int(-1)),
            ("topics", one("name", name, "partition_index", partition)),
        ]);
        stage.make(
            "ListOffsets",
            5,
            &listed,
            "topics.0.partitions.0.error_code",
        );
    }
}

/// A topic that may not be served yet, its id known as `NAME id`.
pub fn creation_of(stage: &mut Stage, name: &str, partitions: i64, configs: &[(&str, &str)]) {
    let configs = configs
        .iter()
        .map(|(name, value)| {
            Value::fields([("name", Value::text(name)), ("value", Value::text(value))])
        })
        .collect();
    let creatable = Value::fields([
        ("name", Value::text(name)),
        ("num_partitions", Value::Int(partitions)),
        ("replication_factor", Value::Int(1)),
        ("configs", Value::Array(configs)),
    ]);
    let request = Value::fields([
        ("topics", Value::list([creatable])),
        ("timeout_ms", Value::Int(30_000)),
    ]);
    let answers = stage.make("CreateTopics", 7, &request, "topics.0.error_code");
    stage.remember(&format!("{name} id"), &answers, "topics.0.topic_id");
}

/// One partition of one topic.
fn one(topic_field: &str, topic: &str, partition_field: &str, partition: i64) -> Value {
    Value::list([Value::fields([
        (topic_field, Value::text(topic)),
        (
            "partitions",
            Value::list([Value::fields([
                (partition_field, Value::Int(partition)),
                ("timestamp", Value::Int(-1)),
            ])]),
        ),
    ])])
}

pub fn produce_request(topic: &str, partition: i64, records: Value) -> Value {
    let data = Value::fields([("index", Value::Int(partition)), ("records", records)]);
    let topic = Value::fields([
        ("name", Value::text(topic)),
        ("topic_id", Value::Known(format!("{topic} id"))),
        ("partition_data", Value::list([data])),
    ]);
    Value::fields([
        ("acks", Value::Int(-1)),
        ("timeout_ms", Value::Int(30_000)),
        ("topic_data", Value::list([topic])),
    ])
}

pub fn produce(stage: &mut Stage, topic: &str, partition: i64, records: Bytes) {
    let request = produce_request(topic, partition, Value::Bytes(records.into()));
    stage.make(
        "Produce",
        9,
        &request,
        "responses.0.partition_responses.0.error_code",
    );
}

/// Offsets 0 to 9 of partition 0 in four batches, a packed batch in partition 1, nothing in partition 2.
fn records(stage: &mut Stage) {
    for (start, values) in [
        (0, &["a", "b", "c"][..]),
        (3, &["d"]),
        (4, &["e", "f", "g", "h"]),
        (8, &["i", "j"]),
    ] {
        let timed = (start..).zip(values).map(|(number, value)| {
            let value = Bytes::copy_from_slice(value.as_bytes());
            (
                TIME + number * 1_000,
                Some(Bytes::from_static(b"key")),
                value,
            )
        });
        produce(stage, "fixture", 0, Batch::new(timed.collect()).bytes());
    }
    let packed = Batch::of(TIME, &["packed"; 5]).packed(Codec::Gzip);
    produce(stage, "fixture", 1, packed.bytes());
    // So that its offsets cannot be taken for another topic's.
    produce(stage, "produced", 0, Batch::of(TIME, &["x"; 1_000]).bytes());
    produce(stage, "zstd", 0, Batch::of(TIME, &["a"]).bytes());
    produce(
        stage,
        "append-time",
        0,
        Batch::of(TIME, &["a", "b"]).bytes(),
    );
}
