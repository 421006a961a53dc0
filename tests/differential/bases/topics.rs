//! Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs.
use crate::case::{Asked, Base, Names};
use crate::fixture;
use crate::stage::Stage;
use crate::value::Value;

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
pub fn described(names: Names) -> Asked {
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

pub fn config(name: &str, value: &str) -> Value {
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
        .more(super::configs::of_a_new_topic),
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
