//! Settings that change: AlterConfigs, IncrementalAlterConfigs, and ListConfigResources, which tells who has some.
use crate::case::{Asked, Base, Names};
use crate::fixture;
use crate::mutation::{Change, Mutation};
use crate::stage::Stage;
use crate::value::{Step, Value};

const TOPIC: i64 = 2;
const BROKER: i64 = 4;
const LOGGERS: i64 = 8;
const CLIENT_METRICS: i64 = 16;
const GROUP: i64 = 32;

const SET: i64 = 0;
const DELETE: i64 = 1;
const APPEND: i64 = 2;
const SUBTRACT: i64 = 3;

pub fn reading() -> Vec<Base> {
    vec![
        Base::new("ListConfigResources", "topics and brokers", |_| {
            Value::fields([("resource_types", Value::ints([TOPIC, BROKER]))])
        }),
        Base::new("ListConfigResources", "all", |_| Value::Struct([].into())).unbroken(),
    ]
}

pub fn changing() -> Vec<Base> {
    [of_topics(), of_others()].concat()
}

/// A setting as CreateTopics and AlterConfigs have it; IncrementalAlterConfigs sets it then.
fn setting(name: &str, value: &str) -> Value {
    operation(name, SET, Value::text(value))
}

fn operation(name: &str, operation: i64, value: Value) -> Value {
    Value::fields([
        ("name", Value::text(name)),
        ("config_operation", Value::Int(operation)),
        ("value", value),
    ])
}

fn alter(kind: i64, name: Value, settings: Value) -> Value {
    let resource = Value::fields([
        ("resource_type", Value::Int(kind)),
        ("resource_name", name),
        ("configs", settings),
    ]);
    Value::fields([("resources", Value::list([resource]))])
}

fn describe(kind: i64, name: Value) -> Asked {
    let resource = Value::fields([
        ("resource_type", Value::Int(kind)),
        ("resource_name", name),
        ("configuration_keys", Value::Null),
    ]);
    let request = Value::fields([
        ("resources", Value::list([resource])),
        ("include_synonyms", Value::Bool(true)),
    ]);
    ("DescribeConfigs", 4, request)
}

/// Has settings already.
fn configured_topic(stage: &mut Stage, names: Names) {
    let settings = [("retention.ms", "1000"), ("cleanup.policy", "delete")];
    fixture::creation_of(stage, &names.of("topic"), 2, &settings);
}

fn described_topic(names: Names) -> Asked {
    describe(TOPIC, names.text("topic"))
}

fn of_topics() -> Vec<Base> {
    vec![
        Base::new("AlterConfigs", "of a topic", |names| {
            let settings = [
                setting("retention.bytes", "5"),
                setting("cleanup.policy", "compact"),
            ];
            alter(TOPIC, names.text("topic"), Value::list(settings))
        })
        .prepare(configured_topic)
        .then(described_topic),
        Base::new("AlterConfigs", "of a topic, each setting", |names| {
            alter(TOPIC, names.text("topic"), Value::list([]))
        })
        .versions(2..=i16::MAX)
        .unbroken()
        .more(of_a_resource)
        .prepare(configured_topic)
        .then(described_topic),
        Base::new("IncrementalAlterConfigs", "of a topic", |names| {
            let settings = [
                setting("retention.bytes", "5"),
                operation("retention.ms", DELETE, Value::Null),
                operation("cleanup.policy", APPEND, Value::text("compact")),
            ];
            alter(TOPIC, names.text("topic"), Value::list(settings))
        })
        .prepare(configured_topic)
        .then(described_topic),
        Base::new(
            "IncrementalAlterConfigs",
            "of a topic, each setting",
            |names| alter(TOPIC, names.text("topic"), Value::list([])),
        )
        .versions(1..=i16::MAX)
        .unbroken()
        .more(of_a_resource)
        .prepare(configured_topic)
        .then(described_topic),
        Base::new(
            "IncrementalAlterConfigs",
            "of a topic, each operation",
            |names| alter(TOPIC, names.text("topic"), Value::list([])),
        )
        .unbroken()
        .more(operations)
        .prepare(configured_topic)
        .then(described_topic),
    ]
}

/// Broker 1 without settings of its own.
fn plain_broker(stage: &mut Stage, _: Names) {
    let request = alter(BROKER, Value::text("1"), Value::list([]));
    stage.make("AlterConfigs", 2, &request, "responses.0.error_code");
}

fn described_broker(_: Names) -> Asked {
    describe(BROKER, Value::text("1"))
}

/// Nothing that is for all brokers.
fn plain_default(stage: &mut Stage, _: Names) {
    let request = alter(BROKER, Value::text(""), Value::list([]));
    stage.make("AlterConfigs", 2, &request, "responses.0.error_code");
}

fn described_default(_: Names) -> Asked {
    describe(BROKER, Value::text(""))
}

/// Before there are many topics: Apache goes through all of them each time. The last two leave nothing behind.
pub fn of_brokers() -> Vec<Base> {
    vec![
        Base::new("AlterConfigs", "of a broker", |_| {
            let settings = [
                setting("background.threads", "9"),
                setting("log.segment.bytes", "1048577"),
            ];
            alter(BROKER, Value::text("1"), Value::list(settings))
        })
        // That would set what is for all brokers, see below.
        .without(&["resource_name=\"\""])
        .prepare(plain_broker)
        .then(described_broker),
        Base::new("IncrementalAlterConfigs", "of a broker", |_| {
            let settings = [
                setting("background.threads", "9"),
                operation("log.cleanup.policy", APPEND, Value::text("compact")),
            ];
            alter(BROKER, Value::text("1"), Value::list(settings))
        })
        .prepare(plain_broker)
        .then(described_broker),
        Base::new(
            "IncrementalAlterConfigs",
            "of a broker, each setting",
            |_| alter(BROKER, Value::text("1"), Value::list([])),
        )
        .versions(1..=i16::MAX)
        .unbroken()
        .more(of_a_broker)
        .prepare(plain_broker)
        .then(described_broker),
        Base::new("AlterConfigs", "of all brokers", |_| {
            let settings = [setting("background.threads", "11")];
            alter(BROKER, Value::text(""), Value::list(settings))
        })
        .unbroken()
        .prepare(plain_default)
        .then(described_default),
        Base::new("IncrementalAlterConfigs", "of all brokers", |_| {
            let settings = [
                setting("background.threads", "11"),
                operation("log.cleanup.policy", APPEND, Value::text("compact")),
            ];
            alter(BROKER, Value::text(""), Value::list(settings))
        })
        .prepare(plain_default)
        .then(described_default),
        Base::new("AlterConfigs", "of a broker, back to nothing", |_| {
            alter(BROKER, Value::text("1"), Value::list([]))
        })
        .unbroken()
        .then(described_broker),
        Base::new("AlterConfigs", "of all brokers, back to nothing", |_| {
            alter(BROKER, Value::text(""), Value::list([]))
        })
        .unbroken()
        .then(described_default),
    ]
}

fn of_others() -> Vec<Base> {
    vec![
        Base::new("AlterConfigs", "of a group", |names| {
            let settings = [setting("consumer.session.timeout.ms", "50000")];
            alter(GROUP, names.text("group"), Value::list(settings))
        })
        .unbroken(),
        Base::new("AlterConfigs", "of client metrics", |names| {
            let settings = [setting("interval.ms", "50000")];
            alter(CLIENT_METRICS, names.text("metrics"), Value::list(settings))
        })
        .unbroken(),
        Base::new("IncrementalAlterConfigs", "of a group", |names| {
            let settings = [setting("consumer.session.timeout.ms", "50000")];
            alter(GROUP, names.text("group"), Value::list(settings))
        })
        .unbroken(),
        Base::new("IncrementalAlterConfigs", "of client metrics", |names| {
            let settings = [setting("interval.ms", "50000")];
            alter(CLIENT_METRICS, names.text("metrics"), Value::list(settings))
        })
        .unbroken(),
        Base::new("AlterConfigs", "of loggers", |_| {
            alter(
                LOGGERS,
                Value::text("1"),
                Value::list([setting("root", "INFO")]),
            )
        })
        .unbroken(),
        Base::new("IncrementalAlterConfigs", "of loggers", |_| {
            alter(
                LOGGERS,
                Value::text("1"),
                Value::list([setting("no.such.logger", "INFO")]),
            )
        })
        .unbroken(),
    ]
}

fn mutations(list: &'static str, settings: Vec<(String, Value)>) -> Vec<Mutation> {
    let path = [
        Step::Field(list.to_owned()),
        Step::Index(0),
        Step::Field("configs".to_owned()),
    ];
    let mutation = |(name, value)| Mutation {
        name,
        change: Change::Field(path.to_vec(), value),
    };
    settings.into_iter().map(mutation).collect()
}

pub fn of_a_new_topic() -> Vec<Mutation> {
    mutations("topics", topic_settings())
}

fn of_a_resource() -> Vec<Mutation> {
    mutations("resources", topic_settings())
}

fn of_a_broker() -> Vec<Mutation> {
    mutations("resources", broker_settings())
}

/// What can be done to a list and to what is none.
fn operations() -> Vec<Mutation> {
    let cases = [
        ("cleanup.policy", APPEND, Value::text("compact")),
        ("cleanup.policy", APPEND, Value::text("delete")),
        ("cleanup.policy", APPEND, Value::text("compact,delete")),
        ("cleanup.policy", APPEND, Value::text("burn")),
        ("cleanup.policy", APPEND, Value::text("")),
        ("cleanup.policy", APPEND, Value::Null),
        ("cleanup.policy", SUBTRACT, Value::text("delete")),
        ("cleanup.policy", SUBTRACT, Value::text("compact")),
        ("cleanup.policy", SUBTRACT, Value::text("burn")),
        ("cleanup.policy", SUBTRACT, Value::Null),
        ("cleanup.policy", DELETE, Value::text("delete")),
        ("retention.bytes", DELETE, Value::Null),
        ("retention.ms", APPEND, Value::text("5")),
        ("retention.ms", SUBTRACT, Value::text("1000")),
        ("no.such.key", DELETE, Value::Null),
        ("no.such.key", APPEND, Value::text("x")),
        (
            "follower.replication.throttled.replicas",
            APPEND,
            Value::text("0:1"),
        ),
        (
            "follower.replication.throttled.replicas",
            SUBTRACT,
            Value::text("0:1"),
        ),
    ];
    let settings = cases.into_iter().map(|(key, kind, value)| {
        let verb = ["set", "delete", "append", "subtract"][usize::try_from(kind).expect("small")];
        let name = format!("{key} {verb} {value}");
        (name, Value::list([operation(key, kind, value)]))
    });
    mutations("resources", settings.collect())
}

/// Sound and unsound settings of a broker. None keeps it from answering the next case.
fn broker_settings() -> Vec<(String, Value)> {
    let kinds: [(&str, &[&str]); 27] = [
        ("background.threads", &["10", "0", "-1", "many", "1000"]),
        ("num.io.threads", &["9", "0", "1000"]),
        ("num.network.threads", &["4", "0"]),
        ("num.replica.fetchers", &["2", "0"]),
        ("num.recovery.threads.per.data.dir", &["3", "0"]),
        ("message.max.bytes", &["1000000", "-1", "x"]),
        ("compression.type", &["gzip", "none", ""]),
        ("compression.gzip.level", &["3", "0"]),
        ("compression.lz4.level", &["3", "0"]),
        ("compression.zstd.level", &["-5", "23"]),
        ("unclean.leader.election.enable", &["true", "maybe"]),
        ("log.cleaner.threads", &["2", "0", "99"]),
        ("log.cleaner.io.buffer.load.factor", &["0.8", "x"]),
        ("log.cleaner.delete.retention.ms", &["1", "-1"]),
        ("log.cleanup.policy", &["compact", "", "burn"]),
        ("log.segment.bytes", &["1048576", "1048575"]),
        ("log.roll.ms", &["1", "0"]),
        ("log.roll.jitter.ms", &["0", "-1"]),
        ("log.retention.ms", &["-1", "0", "-2"]),
        ("log.retention.bytes", &["5", "x"]),
        ("log.index.interval.bytes", &["0", "-1"]),
        ("log.flush.interval.messages", &["1", "0"]),
        ("log.preallocate", &["true", "perhaps"]),
        ("log.message.timestamp.type", &["LogAppendTime", "now"]),
        ("max.connections.per.ip", &["100", "-1"]),
        (
            "max.connections.per.ip.overrides",
            &["10.0.0.1:5", "no address", ""],
        ),
        ("producer.id.expiration.ms", &["1000000", "0"]),
    ];
    let named = kinds.iter().flat_map(|(key, values)| {
        values.iter().map(move |value| {
            (
                format!("{key} {value:?}"),
                Value::list([setting(key, value)]),
            )
        })
    });
    let more = [
        ("fixed", setting("broker.id", "1")),
        ("fixed and wrong", setting("num.partitions", "x")),
        ("unknown", setting("no.such.key", "1")),
        ("of a topic", setting("retention.ms", "1")),
        ("no name", setting("", "1")),
        ("a password", setting("ssl.keystore.password", "secret")),
        (
            "of a listener",
            setting("listener.name.plaintext.max.connections", "100"),
        ),
        (
            "wrong for a listener",
            setting("listener.name.plaintext.max.connections", "x"),
        ),
    ]
    .map(|(name, setting)| (name.to_owned(), Value::list([setting])));
    named.chain(more).collect()
}

/// Sound and unsound values of the settings of a topic.
#[allow(clippy::too_many_lines, reason = "one long table")]
fn topic_settings() -> Vec<(String, Value)> {
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
                Value::list([setting(key, value)]),
            )
        })
    });
    let more = [
        (
            "unknown".to_owned(),
            Value::list([setting("no.such.key", "1")]),
        ),
        (
            "of a broker".to_owned(),
            Value::list([setting("log.retention.ms", "1")]),
        ),
        ("no name".to_owned(), Value::list([setting("", "1")])),
        (
            "given twice".to_owned(),
            Value::list([setting("retention.ms", "1"), setting("retention.ms", "2")]),
        ),
        (
            "that do not fit each other".to_owned(),
            Value::list([
                setting("min.compaction.lag.ms", "100"),
                setting("max.compaction.lag.ms", "10"),
            ]),
        ),
    ];
    named.chain(more).collect()
}
