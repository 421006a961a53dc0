//! Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs.
use crate::case::{Asked, Base, Names};
use crate::fixture;
use crate::mutation::{Change, Mutation};
use crate::stage::Stage;
use crate::value::{Step, Value};

pub fn reading() -> Vec<Base> {
    vec![
        Base::new("Metadata", "all", |_| {
            Value::fields([("topics", Value::Null)])
        })
        .versions(1..=i16::MAX)
        .unbroken(),
        Base::new("Metadata", "by name", |_| metadata("fixture")),
        Base::new("Metadata", "by name and allowed to create", |names| {
            metadata(&names.of("topic")).with([("allow_auto_topic_creation", Value::Bool(true))])
        })
        .unbroken()
        .then(described),
        Base::new("Metadata", "by id", |_| {
            let topic = Value::fields([
                ("topic_id", Value::known("fixture id")),
                ("name", Value::Null),
            ]);
            Value::fields([
                ("topics", Value::list([topic])),
                ("allow_auto_topic_creation", Value::Bool(false)),
            ])
        })
        .versions(12..=i16::MAX),
        Base::new("DescribeConfigs", "a topic", |_| {
            describe(
                2,
                "compacted",
                Value::strings(["cleanup.policy", "retention.ms"]),
            )
        }),
        Base::new("DescribeConfigs", "all of a topic", |_| {
            describe(2, "small", Value::Null)
        })
        .unbroken(),
        Base::new("DescribeConfigs", "the broker", |_| {
            describe(4, "1", Value::strings(["num.io.threads", "node.id"]))
        }),
        Base::new("DescribeConfigs", "all of the broker", |_| {
            describe(4, "1", Value::Null)
        })
        .unbroken(),
        Base::new("DescribeConfigs", "the default of brokers", |_| {
            describe(4, "", Value::Null)
        })
        .unbroken(),
        Base::new("DescribeConfigs", "a group", |_| {
            describe(32, "a-group", Value::Null)
        }),
        Base::new("DescribeConfigs", "client metrics", |_| {
            describe(16, "a-subscription", Value::Null)
        }),
        Base::new("DescribeConfigs", "a broker's loggers", |_| {
            describe(8, "1", Value::strings(["no.such.logger"]))
        }),
    ]
}

fn describe(kind: i64, name: &str, keys: Value) -> Value {
    let resource = Value::fields([
        ("resource_type", Value::Int(kind)),
        ("resource_name", Value::text(name)),
        ("configuration_keys", keys),
    ]);
    Value::fields([
        ("resources", Value::list([resource])),
        ("include_synonyms", Value::Bool(true)),
        ("include_documentation", Value::Bool(false)),
    ])
}

fn metadata(name: &str) -> Value {
    let topic = Value::fields([("name", Value::text(name))]);
    Value::fields([
        ("topics", Value::list([topic])),
        ("allow_auto_topic_creation", Value::Bool(false)),
    ])
}

/// What became of the topic of this case.
fn described(names: Names) -> Asked {
    ("Metadata", 12, metadata(&names.of("topic")))
}

fn creation(topic: Value) -> Value {
    Value::fields([
        ("topics", Value::list([topic])),
        ("timeout_ms", Value::Int(30_000)),
    ])
}

fn creatable(names: Names, configs: Value) -> Value {
    Value::fields([
        ("name", names.text("topic")),
        ("num_partitions", Value::Int(2)),
        ("replication_factor", Value::Int(1)),
        ("configs", configs),
    ])
}

fn config(name: &str, value: &str) -> Value {
    Value::fields([("name", Value::text(name)), ("value", Value::text(value))])
}

pub fn changing() -> Vec<Base> {
    [creating(), growing_and_deleting()].concat()
}

fn creating() -> Vec<Base> {
    vec![
        Base::new("CreateTopics", "one", |names| {
            creation(creatable(
                names,
                Value::list([config("retention.ms", "1000")]),
            ))
        })
        .then(described),
        Base::new("CreateTopics", "placed by hand", |names| {
            let assignment = Value::fields([
                ("partition_index", Value::Int(0)),
                ("broker_ids", Value::ints([1])),
            ]);
            creation(Value::fields([
                ("name", names.text("topic")),
                ("num_partitions", Value::Int(-1)),
                ("replication_factor", Value::Int(-1)),
                ("assignments", Value::list([assignment])),
            ]))
        })
        .only("assignments")
        .then(described),
        Base::new("CreateTopics", "with settings", |names| {
            creation(creatable(
                names,
                Value::list([config("retention.ms", "1000")]),
            ))
        })
        .versions(7..=i16::MAX)
        .unbroken()
        .more(topic_settings),
        Base::new("CreateTopics", "only tried", |names| {
            creation(creatable(names, Value::list([]))).with([("validate_only", Value::Bool(true))])
        })
        .unbroken()
        .then(described),
    ]
}

fn growing_and_deleting() -> Vec<Base> {
    vec![
        Base::new("CreatePartitions", "one more", |names| {
            let topic = Value::fields([
                ("name", names.text("topic")),
                ("count", Value::Int(3)),
                ("assignments", Value::Null),
            ]);
            creation(topic)
        })
        .prepare(new_topic)
        .then(described),
        Base::new("CreatePartitions", "placed by hand", |names| {
            let assignment = Value::fields([("broker_ids", Value::ints([1]))]);
            let topic = Value::fields([
                ("name", names.text("topic")),
                ("count", Value::Int(3)),
                ("assignments", Value::list([assignment])),
            ]);
            creation(topic)
        })
        .prepare(new_topic)
        .only("assignments")
        .then(described),
        Base::new("DeleteTopics", "one", |names| {
            let topic = Value::fields([("name", names.text("topic"))]);
            creation(topic).with([("topic_names", Value::list([names.text("topic")]))])
        })
        .prepare(new_topic)
        .then(described),
        Base::new("DeleteTopics", "one by id", |names| {
            let topic = Value::fields([
                ("name", Value::Null),
                (
                    "topic_id",
                    Value::Known(format!("{} id", names.of("topic"))),
                ),
            ]);
            creation(topic)
        })
        .versions(6..=i16::MAX)
        .prepare(new_topic)
        .then(described),
    ]
}

fn new_topic(stage: &mut Stage, names: Names) {
    fixture::creation_of(stage, &names.of("topic"), 2, &[]);
}

/// Sound and unsound values of the settings of a topic.
#[allow(clippy::too_many_lines, reason = "one long table")]
fn topic_settings() -> Vec<Mutation> {
    let numbers = ["", "-2", "-1", "0", "1", "999999999999", "soon", "1.5"];
    let kinds: [(&str, &[&str]); 24] = [
        (
            "cleanup.policy",
            &[
                "delete",
                "compact",
                "compact,delete",
                "delete, compact",
                "",
                "burn",
                "Delete",
                "none",
            ],
        ),
        (
            "compression.type",
            &["gzip", "producer", "uncompressed", "GZIP", "none", ""],
        ),
        ("compression.gzip.level", &numbers),
        ("compression.lz4.level", &numbers),
        ("compression.zstd.level", &numbers),
        ("delete.retention.ms", &numbers),
        ("file.delete.delay.ms", &numbers),
        ("flush.messages", &numbers),
        ("index.interval.bytes", &numbers),
        ("max.compaction.lag.ms", &numbers),
        ("max.message.bytes", &numbers),
        (
            "message.timestamp.type",
            &["LogAppendTime", "CreateTime", "logappendtime", ""],
        ),
        ("message.timestamp.after.max.ms", &numbers),
        (
            "min.cleanable.dirty.ratio",
            &["0", "0.50", "1", "1.5", "-1", "half", " 0.2 "],
        ),
        ("min.insync.replicas", &numbers),
        ("preallocate", &["true", "TRUE", "yes", "", " false "]),
        ("retention.bytes", &numbers),
        (
            "retention.ms",
            &[
                " 1000 ",
                "01000",
                "+5",
                "1_000",
                "-1",
                "-2",
                "9223372036854775807",
                "9223372036854775808",
            ],
        ),
        (
            "segment.bytes",
            &["1048576", "1048575", "14", "-1", "2147483648", "x"],
        ),
        ("segment.index.bytes", &numbers),
        ("segment.ms", &numbers),
        ("remote.storage.enable", &["true", "false", "maybe"]),
        (
            "leader.replication.throttled.replicas",
            &["*", "0:1", "0:1,1:1", "none", "1", "a:b", ""],
        ),
        ("local.retention.ms", &numbers),
    ];
    let named = kinds.iter().flat_map(|(key, values)| {
        values.iter().map(move |value| {
            (
                format!("{key} {value:?}"),
                Value::list([config(key, value)]),
            )
        })
    });
    let more = [
        (
            "unknown".to_owned(),
            Value::list([config("no.such.key", "1")]),
        ),
        (
            "of a broker".to_owned(),
            Value::list([config("log.retention.ms", "1")]),
        ),
        ("no name".to_owned(), Value::list([config("", "1")])),
        (
            "given twice".to_owned(),
            Value::list([config("retention.ms", "1"), config("retention.ms", "2")]),
        ),
        (
            "that do not fit each other".to_owned(),
            Value::list([
                config("min.compaction.lag.ms", "100"),
                config("max.compaction.lag.ms", "10"),
            ]),
        ),
    ];
    let path = [
        Step::Field("topics".to_owned()),
        Step::Index(0),
        Step::Field("configs".to_owned()),
    ];
    let mutation = |(name, value)| Mutation {
        name,
        change: Change::Field(path.to_vec(), value),
    };
    named.chain(more).map(mutation).collect()
}
