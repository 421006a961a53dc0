//! What administrators ask about partitions: DescribeTopicPartitions, DescribeLogDirs, DescribeProducers, ElectLeaders,
//! reassignments, DeleteRecords.
use crate::batch::Batch;
use crate::case::{Asked, Base, Names};
use crate::fixture::{self, TIME};
use crate::mutation::{Change, Mutation};
use crate::stage::Stage;
use crate::value::{Step, Value};

pub fn reading() -> Vec<Base> {
    [pages(), directories(), elections(), reassignments()].concat()
}

pub fn changing() -> Vec<Base> {
    [producers(), reassigning(), deleting_records()].concat()
}

fn page(names: &[&str], limit: i64, cursor: Value) -> Value {
    let topics = names
        .iter()
        .map(|name| Value::fields([("name", Value::text(name))]));
    Value::fields([
        ("topics", Value::Array(topics.collect())),
        ("response_partition_limit", Value::Int(limit)),
        ("cursor", cursor),
    ])
}

fn cursor(topic: &str, partition: i64) -> Value {
    Value::fields([
        ("topic_name", Value::text(topic)),
        ("partition_index", Value::Int(partition)),
    ])
}

fn pages() -> Vec<Base> {
    vec![
        Base::new("DescribeTopicPartitions", "three topics", |_| {
            page(&["fixture", "no-such", "compacted"], 2_000, Value::Null)
        }),
        Base::new("DescribeTopicPartitions", "the first page", |_| {
            page(&["fixture", "compacted"], 2, Value::Null)
        }),
        Base::new(
            "DescribeTopicPartitions",
            "a page that ends with a topic",
            |_| page(&["fixture", "small"], 3, Value::Null),
        )
        .unbroken(),
        Base::new("DescribeTopicPartitions", "the second page", |_| {
            page(&["fixture", "compacted", "small"], 2, cursor("fixture", 2))
        }),
        Base::new(
            "DescribeTopicPartitions",
            "a cursor behind the last partition",
            |_| page(&["fixture", "small"], 2, cursor("fixture", 3)),
        )
        .unbroken(),
        Base::new("DescribeTopicPartitions", "all", |_| {
            page(&[], 2_000, Value::Null)
        })
        .unbroken(),
        Base::new("DescribeTopicPartitions", "all from a cursor on", |_| {
            page(&[], 2_000, cursor("compacted", 0))
        })
        .only("cursor"),
        Base::new("DescribeTopicPartitions", "a page of all", |_| {
            page(&[], 4, cursor("compacted", 0))
        })
        .unbroken(),
    ]
}

fn directories() -> Vec<Base> {
    vec![
        Base::new("DescribeLogDirs", "two topics", |_| {
            let topic = |name, partitions| {
                Value::fields([("topic", Value::text(name)), ("partitions", partitions)])
            };
            let topics = Value::list([
                topic("fixture", Value::ints([0, 1, 7])),
                topic("append-time", Value::ints([0])),
            ]);
            Value::fields([("topics", topics)])
        }),
        Base::new("DescribeLogDirs", "all", |_| {
            Value::fields([("topics", Value::Null)])
        })
        .unbroken(),
    ]
}

fn election(kind: i64, topics: Value) -> Value {
    Value::fields([
        ("election_type", Value::Int(kind)),
        ("topic_partitions", topics),
        ("timeout_ms", Value::Int(30_000)),
    ])
}

fn elected() -> Value {
    let topic = |name, partitions| {
        Value::fields([("topic", Value::text(name)), ("partitions", partitions)])
    };
    Value::list([
        topic("fixture", Value::ints([0, 2])),
        topic("compacted", Value::ints([0, 1])),
    ])
}

fn elections() -> Vec<Base> {
    vec![
        Base::new("ElectLeaders", "preferred ones", |_| election(0, elected())),
        Base::new("ElectLeaders", "unclean ones", |_| election(1, elected()))
            .versions(1..=i16::MAX)
            .unbroken(),
        Base::new("ElectLeaders", "of all", |_| election(0, Value::Null)).only("election_type"),
    ]
}

fn reassignments() -> Vec<Base> {
    vec![
        Base::new("ListPartitionReassignments", "of two topics", |_| {
            let topic = |name, indexes| {
                Value::fields([("name", Value::text(name)), ("partition_indexes", indexes)])
            };
            let topics = Value::list([
                topic("fixture", Value::ints([0, 1, 7])),
                topic("compacted", Value::ints([0])),
            ]);
            Value::fields([("timeout_ms", Value::Int(30_000)), ("topics", topics)])
        }),
        Base::new("ListPartitionReassignments", "all", |_| {
            Value::fields([("timeout_ms", Value::Int(30_000)), ("topics", Value::Null)])
        })
        .unbroken(),
    ]
}

fn producers() -> Vec<Base> {
    vec![
        Base::new("DescribeProducers", "one that wrote", |names| {
            let topic =
                |name, indexes| Value::fields([("name", name), ("partition_indexes", indexes)]);
            Value::fields([(
                "topics",
                Value::list([
                    topic(names.text("topic"), Value::ints([0, 1, 7])),
                    topic(Value::text("fixture"), Value::ints([0])),
                ]),
            )])
        })
        .prepare(written_by_two_producers),
    ]
}

/// One producer has written once, another twice, and a third only to the other partition.
fn written_by_two_producers(stage: &mut Stage, names: Names) {
    let topic = names.of("topic");
    fixture::topic(stage, &topic, 2, &[]);
    for (partition, sequences) in [(0, 1), (0, 2), (1, 1)] {
        let request = Value::fields([
            ("transactional_id", Value::Null),
            ("transaction_timeout_ms", Value::Int(60_000)),
        ]);
        let answers = stage.make("InitProducerId", 4, &request, "error_code");
        for sequence in 0..sequences {
            for (side, answer) in stage.sides.iter_mut().zip(&answers) {
                let id = answer.int("producer_id").expect("an id");
                let batch = Batch::of(TIME + i64::from(sequence), &["x"]);
                let batch = batch.by(id, 0, sequence).bytes();
                side.known
                    .insert("batch".to_owned(), Value::Bytes(batch.into()));
            }
            let request = fixture::produce_request(&topic, partition, Value::known("batch"));
            let code = "responses.0.partition_responses.0.error_code";
            stage.make("Produce", 9, &request, code);
        }
    }
}

fn reassigned(names: Names, first: Value, second: Value) -> Value {
    let partition = |index, replicas| {
        Value::fields([
            ("partition_index", Value::Int(index)),
            ("replicas", replicas),
        ])
    };
    let topic = Value::fields([
        ("name", names.text("topic")),
        (
            "partitions",
            Value::list([partition(0, first), partition(1, second)]),
        ),
    ]);
    Value::fields([
        ("timeout_ms", Value::Int(30_000)),
        ("topics", Value::list([topic])),
    ])
}

fn reassigning() -> Vec<Base> {
    vec![
        Base::new(
            "AlterPartitionReassignments",
            "one to where it is, one taken back",
            |names| reassigned(names, Value::ints([1]), Value::Null),
        )
        .prepare(new_topic)
        .more(placements)
        .then(super::topics::described),
        Base::new(
            "AlterPartitionReassignments",
            "without time, as many replicas",
            |names| {
                let more = [
                    ("timeout_ms", Value::Int(0)),
                    ("allow_replication_factor_change", Value::Bool(false)),
                ];
                reassigned(names, Value::ints([1]), Value::Null).with(more)
            },
        )
        .prepare(new_topic)
        .unbroken(),
        Base::new("AlterPartitionReassignments", "none", |_| {
            Value::fields([("timeout_ms", Value::Int(30_000))])
        })
        .only("a"),
    ]
}

fn new_topic(stage: &mut Stage, names: Names) {
    fixture::topic(stage, &names.of("topic"), 2, &[]);
}

/// Where the replicas of the first partition shall be.
fn placements() -> Vec<Mutation> {
    let path = [
        Step::Field("topics".to_owned()),
        Step::Index(0),
        Step::Field("partitions".to_owned()),
        Step::Index(0),
        Step::Field("replicas".to_owned()),
    ];
    let cases = [
        ("to the same twice", Value::ints([1, 1])),
        ("to one more that is not there", Value::ints([1, 2])),
        ("to another that is not there", Value::ints([2])),
        ("to no number of a broker", Value::ints([-1])),
        ("to nowhere", Value::ints([])),
    ];
    let mutation = |(name, value): (&str, Value)| Mutation {
        name: name.to_owned(),
        change: Change::Field(path.to_vec(), value),
    };
    cases.into_iter().map(mutation).collect()
}

fn deleting_records() -> Vec<Base> {
    vec![
        Base::new("DeleteRecords", "in two partitions", |names| {
            let partition = |index, offset| {
                Value::fields([
                    ("partition_index", Value::Int(index)),
                    ("offset", Value::Int(offset)),
                ])
            };
            let topic = Value::fields([
                ("name", names.text("topic")),
                (
                    "partitions",
                    Value::list([partition(0, 3), partition(1, -1)]),
                ),
            ]);
            Value::fields([
                ("topics", Value::list([topic])),
                ("timeout_ms", Value::Int(30_000)),
            ])
        })
        .prepare(two_logs)
        .then(starts),
        Base::new("DeleteRecords", "of a compacted topic", |_| {
            let partition = Value::fields([
                ("partition_index", Value::Int(0)),
                ("offset", Value::Int(0)),
            ]);
            let topic = Value::fields([
                ("name", Value::text("compacted")),
                ("partitions", Value::list([partition])),
            ]);
            Value::fields([
                ("topics", Value::list([topic])),
                ("timeout_ms", Value::Int(30_000)),
            ])
        })
        .unbroken(),
    ]
}

/// Ten records in each of two partitions.
fn two_logs(stage: &mut Stage, names: Names) {
    let topic = names.of("topic");
    fixture::topic(stage, &topic, 2, &[]);
    for partition in 0..2 {
        for values in [["a"; 4].as_slice(), &["b"; 6]] {
            fixture::produce(stage, &topic, partition, Batch::of(TIME, values).bytes());
        }
    }
}

/// Where the logs of this case begin.
fn starts(names: Names) -> Asked {
    const EARLIEST: i64 = -2;
    let partition = |index| {
        Value::fields([
            ("partition_index", Value::Int(index)),
            ("timestamp", Value::Int(EARLIEST)),
        ])
    };
    let topic = Value::fields([
        ("name", names.text("topic")),
        ("partitions", Value::list([partition(0), partition(1)])),
    ]);
    let request = Value::fields([
        ("replica_id", Value::Int(-1)),
        ("topics", Value::list([topic])),
    ]);
    ("ListOffsets", 5, request)
}
