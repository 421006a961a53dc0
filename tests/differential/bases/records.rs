//! Produce, Fetch, ListOffsets, OffsetForLeaderEpoch.
use bytes::{BufMut, Bytes, BytesMut};

use crate::batch::{Batch, Codec};
use crate::case::{Asked, Base, Names};
use crate::fixture::{TIME, produce_request};
use crate::stage::Stage;
use crate::value::Value;

pub fn bases() -> Vec<Base> {
    let reading = vec![
        Base::new("ListOffsets", "by time", |_| {
            list_offsets("fixture", 0, TIME + 2_500)
        }),
        Base::new("ListOffsets", "by time in a packed batch", |_| {
            list_offsets("fixture", 1, TIME)
        })
        .unbroken(),
        Base::new("ListOffsets", "the end of an empty partition", |_| {
            list_offsets("fixture", 2, -1)
        })
        .unbroken(),
        Base::new(
            "ListOffsets",
            "the latest time of an empty partition",
            |_| list_offsets("fixture", 2, -3),
        )
        .unbroken(),
        Base::new("ListOffsets", "by append time", |_| {
            list_offsets("append-time", 0, -3)
        })
        .unbroken(),
        Base::new("OffsetForLeaderEpoch", "the epoch there is", |_| {
            let partition = Value::fields([
                ("partition", Value::Int(0)),
                ("current_leader_epoch", Value::Int(0)),
                ("leader_epoch", Value::Int(0)),
            ]);
            let topic = Value::fields([
                ("topic", Value::text("fixture")),
                ("partitions", Value::list([partition])),
            ]);
            Value::fields([
                ("replica_id", Value::Int(-2)),
                ("topics", Value::list([topic])),
            ])
        }),
    ];
    [reading, fetches(), produces()].concat()
}

fn list_offsets(topic: &str, partition: i64, timestamp: i64) -> Value {
    let partition = Value::fields([
        ("partition_index", Value::Int(partition)),
        ("timestamp", Value::Int(timestamp)),
    ]);
    let topic = Value::fields([
        ("name", Value::text(topic)),
        ("partitions", Value::list([partition])),
    ]);
    Value::fields([
        ("replica_id", Value::Int(-1)),
        ("topics", Value::list([topic])),
        ("timeout_ms", Value::Int(30_000)),
    ])
}

fn fetch_topic(topic: &str, parts: &[(i64, Value)]) -> Value {
    let partitions = parts.iter().map(|(partition, offset)| {
        Value::fields([
            ("partition", Value::Int(*partition)),
            ("fetch_offset", offset.clone()),
            ("partition_max_bytes", Value::Int(1 << 20)),
        ])
    });
    Value::fields([
        ("topic", Value::text(topic)),
        ("topic_id", Value::Known(format!("{topic} id"))),
        ("partitions", Value::Array(partitions.collect())),
    ])
}

fn fetch(topics: Vec<Value>) -> Value {
    Value::fields([
        ("min_bytes", Value::Int(1)),
        ("max_bytes", Value::Int(50 << 20)),
        ("topics", Value::Array(topics)),
    ])
}

fn fetches() -> Vec<Base> {
    vec![
        Base::new("Fetch", "from the middle", |_| {
            fetch(vec![fetch_topic("fixture", &[(0, Value::Int(4))])])
        }),
        Base::new("Fetch", "three partitions", |_| {
            let parts = [1, 2, 0].map(|partition| (partition, Value::Int(0)));
            fetch(vec![fetch_topic("fixture", &parts)])
        })
        .unbroken(),
        Base::new("Fetch", "the first batch alone fits", |_| {
            let parts = [0, 1].map(|partition| (partition, Value::Int(0)));
            fetch(vec![fetch_topic("fixture", &parts)]).with([("max_bytes", Value::Int(20))])
        })
        .unbroken(),
        Base::new("Fetch", "committed only", |_| {
            fetch(vec![fetch_topic("fixture", &[(0, Value::Int(0))])])
                .with([("isolation_level", Value::Int(1))])
        })
        .unbroken(),
        Base::new("Fetch", "with append times", |_| {
            fetch(vec![fetch_topic("append-time", &[(0, Value::Int(0))])])
        })
        .unbroken(),
        Base::new("Fetch", "a topic stored in zstd", |_| {
            fetch(vec![fetch_topic("zstd", &[(0, Value::Int(0))])])
        })
        .unbroken(),
        Base::new("Fetch", "at the end", |_| {
            fetch(vec![fetch_topic("fixture", &[(0, Value::Int(10))])])
        })
        .unbroken(),
        Base::new("Fetch", "the start of a session", |_| {
            let parts = [0, 2].map(|partition| (partition, Value::Int(0)));
            fetch(vec![fetch_topic("fixture", &parts)]).with([("session_epoch", Value::Int(0))])
        })
        .versions(7..=i16::MAX)
        .unbroken(),
        Base::new("Fetch", "in a session", in_a_session)
            .versions(7..=12)
            .prepare(session),
        Base::new("Fetch", "in a session by ids", in_a_session)
            .versions(13..=i16::MAX)
            .prepare(session_by_ids),
        Base::new("Fetch", "in a session by names, with ids", in_a_session)
            .versions(13..=i16::MAX)
            .only("session_epoch")
            .prepare(session),
        Base::new("Fetch", "in a session, forgetting", forgetting)
            .versions(7..=12)
            .prepare(session)
            .only("forgotten"),
        Base::new("Fetch", "in a session by ids, forgetting", forgetting)
            .versions(13..=i16::MAX)
            .prepare(session_by_ids)
            .only("forgotten"),
    ]
}

fn session(stage: &mut Stage, _: Names) {
    open_session(stage, 12);
}

fn session_by_ids(stage: &mut Stage, _: Names) {
    open_session(stage, 13);
}

/// A session of two partitions in place of the one before, so that there is always room for it.
fn open_session(stage: &mut Stage, version: i16) {
    let [apache, ours] = &stage.sides;
    if [apache, ours].map(|side| side.known.contains_key("session")) == [true; 2] {
        let last = fetch(vec![]).with([
            ("session_id", Value::known("session")),
            ("session_epoch", Value::Int(-1)),
        ]);
        stage.call("Fetch", version, last);
    }
    let parts = [0, 2].map(|partition| (partition, Value::Int(0)));
    let request =
        fetch(vec![fetch_topic("fixture", &parts)]).with([("session_epoch", Value::Int(0))]);
    let answers = stage.make("Fetch", version, &request, "error_code");
    stage.remember("session", &answers, "session_id");
}

fn in_a_session(_: Names) -> Value {
    fetch(vec![fetch_topic("fixture", &[(2, Value::Int(0))])]).with([
        ("session_id", Value::known("session")),
        ("session_epoch", Value::Int(1)),
    ])
}

fn forgetting(_: Names) -> Value {
    let forgotten = Value::fields([
        ("topic", Value::text("fixture")),
        ("topic_id", Value::known("fixture id")),
        ("partitions", Value::ints([0])),
    ]);
    fetch(vec![]).with([
        ("session_id", Value::known("session")),
        ("session_epoch", Value::Int(1)),
        ("forgotten_topics_data", Value::list([forgotten])),
    ])
}

/// Where the log of `produced` ends.
fn end_of_produced(stage: &mut Stage, _: Names) {
    end_of(stage, "produced");
}

fn end_of_twice(stage: &mut Stage, _: Names) {
    end_of(stage, "twice");
}

fn end_of(stage: &mut Stage, topic: &str) {
    let answers = stage.call("ListOffsets", 5, list_offsets(topic, 0, -1));
    stage.remember("end", &answers, "topics.0.partitions.0.offset");
}

/// What was written by the request.
fn written(_: Names) -> Asked {
    let topic = fetch_topic("produced", &[(0, Value::known("end"))]);
    ("Fetch", 11, fetch(vec![topic]))
}

fn produces() -> Vec<Base> {
    vec![
        Base::new("Produce", "one batch", |_| {
            let records = Batch::of(TIME, &["a", "b"]).bytes();
            produce_request("produced", 0, Value::Bytes(records.into()))
        })
        .prepare(unknown_producers)
        .then(written)
        .records(batches)
        .without(&["twice the same"]),
        Base::new("Produce", "one batch, named twice", |_| {
            let records = Batch::of(TIME, &["a", "b"]).bytes();
            produce_request("twice", 0, Value::Bytes(records.into()))
        })
        .prepare(end_of_twice)
        .only("twice the same"),
        Base::new("Produce", "to a small topic, too large", |_| {
            let records = Batch::of(TIME, &["x".repeat(600).as_str()]).bytes();
            produce_request("small", 0, Value::Bytes(records.into()))
        })
        .unbroken(),
        Base::new("Produce", "to a compacted topic, no key", |_| {
            let records = Batch::of(TIME, &["x"]).bytes();
            produce_request("compacted", 0, Value::Bytes(records.into()))
        })
        .unbroken(),
        Base::new("Produce", "a batch of a producer", |_| {
            produce_request("produced", 0, Value::known("batch 0"))
        })
        .prepare(producer)
        .then(written)
        .records(batches_of_producer)
        .only("records="),
    ]
}

const UNKNOWN_PRODUCER: &str = "unknown producer";
const UNKNOWN_PRODUCER_LATE: &str = "unknown producer, sequence 5";

/// Batches of producers that nobody gave an id, each with one of its own.
fn unknown_producers(stage: &mut Stage, names: Names) {
    let first = 10_000_000 + 2 * i64::try_from(names.0).expect("a small number");
    for (name, id, sequence) in [
        (UNKNOWN_PRODUCER, first, 0),
        (UNKNOWN_PRODUCER_LATE, first + 1, 5),
    ] {
        let batch = Batch::of(TIME, &["a", "b"]).by(id, 0, sequence).bytes();
        for side in &mut stage.sides {
            side.known
                .insert(name.to_owned(), Value::Bytes(batch.clone().into()));
        }
    }
    end_of_produced(stage, names);
}

/// A new producer that has written its batches 0 to 6 with sequences 0 to 6; `batch N` is the one numbered so.
fn producer(stage: &mut Stage, names: Names) {
    let request = Value::fields([
        ("transactional_id", Value::Null),
        ("transaction_timeout_ms", Value::Int(60_000)),
    ]);
    let answers = stage.make("InitProducerId", 4, &request, "error_code");
    stage.remember("producer", &answers, "producer_id");
    for (side, answer) in stage.sides.iter_mut().zip(&answers) {
        let id = answer.int("producer_id").expect("an id");
        let mut know = |name: &str, epoch: i16, sequence: i32, values: &[&str]| {
            let batch = Batch::of(TIME, values).by(id, epoch, sequence).bytes();
            let value = Value::Bytes(batch.into());
            side.known.insert(format!("batch {name}"), value);
        };
        for sequence in 0..10 {
            know(&sequence.to_string(), 0, sequence, &["x"]);
        }
        know("of the next epoch", 1, 0, &["x"]);
        know("of the next epoch, later", 1, 3, &["x"]);
        know("of two", 0, 6, &["x", "y"]);
        know("without sequence", 0, -1, &["x"]);
        know("without epoch", -1, 7, &["x"]);
        know("at the last sequence", 0, i32::MAX, &["x"]);
    }
    for sequence in 0..7 {
        let request = produce_request("produced", 0, Value::Known(format!("batch {sequence}")));
        stage.make(
            "Produce",
            9,
            &request,
            "responses.0.partition_responses.0.error_code",
        );
    }
    end_of_produced(stage, names);
}

fn batches_of_producer() -> Vec<(&'static str, Value)> {
    [
        "batch 0",
        "batch 1",
        "batch 2",
        "batch 6",
        "batch 7",
        "batch 8",
        "batch of the next epoch",
        "batch of the next epoch, later",
        "batch of two",
        "batch without sequence",
        "batch without epoch",
        "batch at the last sequence",
    ]
    .into_iter()
    .map(|name| (name, Value::known(name)))
    .collect()
}

/// A batch with its bytes from `at` on replaced, and its checksum right again.
fn patched(at: usize, with: &[u8]) -> Value {
    let mut bytes = Batch::of(TIME, &["a", "b"]).bytes().to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    let sum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    Value::Bytes(bytes)
}

/// What a client may send in place of one sound batch.
#[allow(clippy::too_many_lines, reason = "one long table")]
fn batches() -> Vec<(&'static str, Value)> {
    let one = Batch::of(TIME, &["a", "b"]).bytes();
    let joined = |parts: &[&[u8]]| Value::Bytes(parts.concat());
    let mut flipped = one.to_vec();
    flipped[70] ^= 1;
    let packed = |codec| Value::Bytes(Batch::of(TIME, &["a", "b"]).packed(codec).bytes().into());
    let unkeyed = Batch::of(TIME, &["a"]).by(7, -1, -1).bytes();
    vec![
        ("two batches", joined(&[&one, &one])),
        ("a batch and a piece", joined(&[&one, &one[..20]])),
        ("a batch cut short", joined(&[&one[..one.len() - 1]])),
        ("half a batch", joined(&[&one[..40]])),
        ("a flipped bit", Value::Bytes(flipped)),
        ("gzip", packed(Codec::Gzip)),
        ("zstd in name only", packed(Codec::Zstd)),
        ("gzip in name only", patched(21, &[0, 1])),
        ("snappy in name only", patched(21, &[0, 2])),
        ("lz4 in name only", patched(21, &[0, 3])),
        ("codec 5", patched(21, &[0, 5])),
        ("codec 7", patched(21, &[0, 7])),
        ("append time", patched(21, &[0, 8])),
        ("transactional", patched(21, &[0, 16])),
        ("control", patched(21, &[0, 32])),
        ("delete horizon", patched(21, &[0, 64])),
        ("unused attributes", patched(21, &[0x7f, 0x80])),
        ("magic 0", patched(16, &[0])),
        ("magic 1", patched(16, &[1])),
        ("magic 3", patched(16, &[3])),
        ("magic -1", patched(16, &[0xff])),
        ("base offset 7", patched(0, &7i64.to_be_bytes())),
        ("base offset -1", patched(0, &(-1i64).to_be_bytes())),
        ("length 0", patched(8, &0i32.to_be_bytes())),
        ("length -1", patched(8, &(-1i32).to_be_bytes())),
        ("length 48", patched(8, &48i32.to_be_bytes())),
        ("length too long", patched(8, &10_000i32.to_be_bytes())),
        ("leader epoch 5", patched(12, &5i32.to_be_bytes())),
        ("last offset delta 0", patched(23, &0i32.to_be_bytes())),
        ("last offset delta 2", patched(23, &2i32.to_be_bytes())),
        ("last offset delta -1", patched(23, &(-1i32).to_be_bytes())),
        ("base time -1", patched(27, &(-1i64).to_be_bytes())),
        (
            "base time of the year 2100",
            patched(27, &4_102_444_800_000i64.to_be_bytes()),
        ),
        ("base time 0", patched(27, &0i64.to_be_bytes())),
        ("highest time -1", patched(35, &(-1i64).to_be_bytes())),
        (
            "highest time too high",
            patched(35, &(TIME + 50).to_be_bytes()),
        ),
        ("producer without epoch", Value::Bytes(unkeyed.into())),
        (UNKNOWN_PRODUCER, Value::known(UNKNOWN_PRODUCER)),
        (UNKNOWN_PRODUCER_LATE, Value::known(UNKNOWN_PRODUCER_LATE)),
        ("count 0", patched(57, &0i32.to_be_bytes())),
        ("count 1", patched(57, &1i32.to_be_bytes())),
        ("count 3", patched(57, &3i32.to_be_bytes())),
        ("count -1", patched(57, &(-1i32).to_be_bytes())),
        ("count 2147483647", patched(57, &i32::MAX.to_be_bytes())),
        ("record attributes 1", patched(62, &[1])),
        ("second record at the first's offset", second_offset(0)),
        ("second record at offset 2", second_offset(4)),
        ("record length 0", patched(61, &[0])),
        ("record length -1", patched(61, &[1])),
        ("record length too long", patched(61, &[0x7e])),
        ("no records", Value::Bytes(empty())),
        ("an old message", Value::Bytes(old_message(1).into())),
        ("a very old message", Value::Bytes(old_message(0).into())),
        ("1.2 MB", {
            let long = "x".repeat(1_200_000);
            Value::Bytes(Batch::of(TIME, &[long.as_str()]).bytes().into())
        }),
    ]
}

/// The second record's offset delta, as its varint. Records of one letter take eight bytes each.
fn second_offset(varint: u8) -> Value {
    let one = Batch::of(TIME, &["a", "b"]).bytes();
    let second = 61 + 1 + usize::from(one[61] >> 1);
    patched(second + 3, &[varint])
}

/// A batch of no records, as compaction leaves it.
fn empty() -> Vec<u8> {
    let mut bytes = Batch::of(TIME, &["a"]).bytes()[..61].to_vec();
    bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
    bytes[57..61].copy_from_slice(&0i32.to_be_bytes());
    let sum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A message of the formats before batches.
fn old_message(magic: u8) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(magic);
    body.put_u8(0);
    if magic > 0 {
        body.put_i64(TIME);
    }
    body.put_i32(-1);
    body.put_i32(1);
    body.put_u8(b'a');
    let mut whole = BytesMut::new();
    whole.put_i64(0);
    whole.put_i32(i32::try_from(body.len() + 4).expect("small"));
    let mut sum = flate2::Crc::new();
    sum.update(&body);
    whole.put_u32(sum.sum());
    whole.put_slice(&body);
    whole.freeze()
}
