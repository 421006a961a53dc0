//! THE table of configuration keys: every key of Kafka 4.4's broker and topics, and our own.
//!
//! One row says everything about a key: name, type, default, allowed values, importance, how it may change while
//! running, and how far this broker honours it. Parsing, validation, DescribeConfigs, the start-up warnings and
//! `docs/config.md` are all derived from these rows; nothing else in the code knows a key's default.

#[macro_use]
mod macros;

mod broker_cluster;
mod broker_groups;
mod broker_log;
mod broker_network;
mod broker_other;
mod broker_remote;
mod broker_sasl;
mod broker_tls;
mod broker_transactions;
mod reasons;
mod ringmain;
mod topic;

pub use topic::TOPIC_KEYS;

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The type of a value, as Kafka's `ConfigDef.Type`; DescribeConfigs reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl ValueKind {
    /// Kafka's name of the type, as its error texts write it.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Boolean => "BOOLEAN",
            ValueKind::String => "STRING",
            ValueKind::Int => "INT",
            ValueKind::Short => "SHORT",
            ValueKind::Long => "LONG",
            ValueKind::Double => "DOUBLE",
            ValueKind::List => "LIST",
            ValueKind::Class => "CLASS",
            ValueKind::Password => "PASSWORD",
        }
    }

    /// The id of the type in a DescribeConfigs response (KIP-569).
    pub fn wire_id(self) -> i8 {
        match self {
            ValueKind::Boolean => 1,
            ValueKind::String => 2,
            ValueKind::Int => 3,
            ValueKind::Short => 4,
            ValueKind::Long => 5,
            ValueKind::Double => 6,
            ValueKind::List => 7,
            ValueKind::Class => 8,
            ValueKind::Password => 9,
        }
    }
}

/// What a key is when nobody sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The start is refused without it.
    Required,
    /// No value; often "derived from another key".
    Null,
    /// The text is parsed like a line of the file.
    Text(&'static str),
}

/// Which values a key allows, beyond its type. Texts and limits are those of Kafka's `ConfigDef` validators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A fraction between two bounds, both included.
    Fraction(f64, f64),
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    /// A list without empty or repeated elements; `allowed` empty means any element.
    List {
        allowed: &'static [&'static str],
        may_be_empty: bool,
        may_be_null: bool,
    },
    /// -1 (the library's default) or 1 to 9.
    GzipLevel,
    NonEmpty,
    NonNull,
    /// `*` or `partition:broker` pairs (KIP-73).
    ThrottledReplicas,
    /// `id@host:port` entries.
    QuorumVoters,
    /// `host:port` entries.
    BootstrapServers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// How Kafka lets the value of a broker key change while the broker runs (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    ReadOnly,
    PerBroker,
    ClusterWide,
}

/// How far this broker honours a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The key does what Kafka says it does.
    Done,
    /// Stored and reported, but without effect; said once at start when the key is set.
    Ignored(&'static str),
    /// A value other than the default stops the start, because running without its effect would be dangerous.
    Refused(&'static str),
}

impl Status {
    /// The word in the docs page.
    pub fn word(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Ignored(_) => "accepted without effect",
            Status::Refused(_) => "refused",
        }
    }

    /// Why the key has no effect or is refused.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Status::Done => None,
            Status::Ignored(reason) | Status::Refused(reason) => Some(reason),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: ValueKind,
    pub default: DefaultValue,
    pub check: Check,
    pub importance: Importance,
    pub update: Update,
    /// Kafka hides the key from DescribeConfigs unless it is set.
    pub internal: bool,
    pub status: Status,
    pub doc: &'static str,
}

/// How the value of a broker key becomes the value of the topic key it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convert {
    Same,
    HoursToMs,
    MinutesToMs,
}

/// A broker key that gives the default of a topic key. The first synonym that is set counts.
#[derive(Clone, Copy, Debug)]
pub struct Synonym {
    pub broker_key: &'static str,
    pub convert: Convert,
}

/// A row of the topic keys.
#[derive(Clone, Copy, Debug)]
pub struct TopicKey {
    pub key: Key,
    pub synonyms: &'static [Synonym],
}

/// The broker keys, file by file.
const BROKER_TABLES: &[&[Key]] = &[
    broker_cluster::KEYS,
    broker_network::KEYS,
    broker_log::KEYS,
    broker_groups::KEYS,
    broker_transactions::KEYS,
    broker_other::KEYS,
    broker_remote::KEYS,
    broker_tls::KEYS,
    broker_sasl::KEYS,
    ringmain::KEYS,
];

static BROKER_INDEX: LazyLock<BTreeMap<&'static str, &'static Key>> = LazyLock::new(|| {
    BROKER_TABLES
        .iter()
        .flat_map(|table| table.iter())
        .map(|key| (key.name, key))
        .collect()
});

static TOPIC_INDEX: LazyLock<BTreeMap<&'static str, &'static TopicKey>> =
    LazyLock::new(|| TOPIC_KEYS.iter().map(|row| (row.key.name, row)).collect());

/// The row of a broker key.
pub fn broker_key(name: &str) -> Option<&'static Key> {
    BROKER_INDEX.get(name).copied()
}

/// All broker keys in the order of their names.
pub fn broker_keys() -> impl Iterator<Item = &'static Key> {
    BROKER_INDEX.values().copied()
}

/// The row of a topic key.
pub fn topic_key(name: &str) -> Option<&'static TopicKey> {
    TOPIC_INDEX.get(name).copied()
}

/// Prefix of the keys that only this broker has.
pub const OWN_PREFIX: &str = "ringmain.";

/// The broker keys that stand in for each other, the strongest first; a key without such relatives stands alone.
/// (Kafka: `DynamicBrokerConfig.brokerConfigSynonyms`.)
pub fn broker_synonyms(name: &str) -> Vec<&str> {
    const ROLL: &[&str] = &["log.roll.ms", "log.roll.hours"];
    const JITTER: &[&str] = &["log.roll.jitter.ms", "log.roll.jitter.hours"];
    const RETENTION: &[&str] = &[
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ];
    const FLUSH: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    if let Some(group) = [ROLL, JITTER, RETENTION]
        .iter()
        .find(|group| group.contains(&name))
    {
        return group.to_vec();
    }
    if name == "log.flush.interval.ms" {
        return FLUSH.to_vec();
    }
    match listener_override(name) {
        Some(base) => vec![name, base],
        None => vec![name],
    }
}

/// The key behind `listener.name.<listener>.<key>`, or None for any other name.
pub fn listener_override(name: &str) -> Option<&str> {
    const PER_MECHANISM: &[&str] = &[
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.server.callback.handler.class",
        "connections.max.reauth.ms",
    ];
    let rest = name.strip_prefix("listener.name.")?;
    let (_listener, base) = rest.split_once('.')?;
    Some(
        PER_MECHANISM
            .iter()
            .find(|key| base.ends_with(**key))
            .copied()
            .unwrap_or(base),
    )
}
