//! UpdateFeatures, UnregisterBroker, DescribeClientQuotas, DescribeUserScramCredentials, and levels of loggers.
use crate::case::Base;
use crate::value::Value;

pub fn bases() -> Vec<Base> {
    [
        updates(),
        filters(),
        loggers(),
        vec![
            Base::new("UnregisterBroker", "of a broker that is not there", |_| {
                Value::fields([("broker_id", Value::Int(70_000))])
            })
            // Not the one that is asked.
            .without(&["broker_id=1"]),
            Base::new("DescribeUserScramCredentials", "of two users", |_| {
                let user = |name| Value::fields([("name", Value::text(name))]);
                let users = ["nobody", "somebody"].map(user);
                Value::fields([("users", Value::list(users))])
            }),
        ],
    ]
    .concat()
}

/// A request that changes nothing: it only asks whether it could.
fn update(feature: &str, level: i64, upgrade_type: i64) -> Value {
    let update = Value::fields([
        ("feature", Value::text(feature)),
        ("max_version_level", Value::Int(level)),
        ("upgrade_type", Value::Int(upgrade_type)),
    ]);
    Value::fields([
        ("timeout_ms", Value::Int(30_000)),
        ("feature_updates", Value::list([update])),
        ("validate_only", Value::Bool(true)),
    ])
}

macro_rules! updates {
    ($($name:literal: $feature:literal $level:literal $upgrade_type:literal,)*) => {
        vec![$(
            Base::new("UpdateFeatures", $name, |_| update($feature, $level, $upgrade_type))
                .versions(1..=i16::MAX)
                .unbroken(),
        )*]
    };
}

fn updates() -> Vec<Base> {
    let mut bases = updates! {
        "a level of tomorrow": "metadata.version" 34 1,
        "a level that nobody knows": "metadata.version" 2 2,
        "safely lower": "metadata.version" 31 2,
        "unsafely lower": "metadata.version" 31 3,
        "lower as an upgrade": "metadata.version" 31 1,
        "the same as a downgrade": "metadata.version" 33 2,
        "the quorum's level as it is": "kraft.version" 1 1,
        "the quorum's level lower": "kraft.version" 0 1,
        "the quorum's level safely lower": "kraft.version" 0 2,
        "the quorum's level of tomorrow": "kraft.version" 2 1,
        "a feature that nobody knows": "nothing" 1 1,
        "a feature that nobody knows, off": "nothing" 0 1,
        "a feature of tomorrow": "group.version" 9 1,
    };
    bases.push(Base::new("UpdateFeatures", "the level that it is", |_| {
        update("metadata.version", 33, 1)
    }));
    bases
}

fn filter<const N: usize>(components: [(&str, i64, Option<&str>); N]) -> Value {
    let component = |(kind, match_type, name): (&str, i64, Option<&str>)| {
        Value::fields([
            ("entity_type", Value::text(kind)),
            ("match_type", Value::Int(match_type)),
            ("match", name.map_or(Value::Null, Value::text)),
        ])
    };
    Value::fields([("components", Value::list(components.map(component)))])
}

macro_rules! filters {
    ($($name:literal: [$($component:expr),*],)*) => {
        vec![$(Base::new("DescribeClientQuotas", $name, |_| filter([$($component),*])).unbroken(),)*]
    };
}

fn filters() -> Vec<Base> {
    let mut bases = filters! {
        "of all users": [("user", 2, None)],
        "of the default client": [("client-id", 1, None)],
        "of an exact null": [("user", 0, None)],
        "of a named default": [("user", 1, Some("x"))],
        "of a named type": [("user", 2, Some("x"))],
        "of a type twice": [("user", 2, None), ("user", 1, None)],
        "of an address and a user": [("ip", 1, None), ("user", 2, None)],
        "of a type that nobody knows": [("shoe", 2, None)],
    };
    bases.push(Base::new("DescribeClientQuotas", "of a user", |_| {
        filter([("user", 0, Some("nobody"))])
    }));
    bases
}

fn logger(node: &str, name: &str, operation: i64, level: Option<&str>) -> Value {
    let config = Value::fields([
        ("name", Value::text(name)),
        ("config_operation", Value::Int(operation)),
        ("value", level.map_or(Value::Null, Value::text)),
    ]);
    let resource = Value::fields([
        ("resource_type", Value::Int(8)),
        ("resource_name", Value::text(node)),
        ("configs", Value::list([config])),
    ]);
    Value::fields([("resources", Value::list([resource]))])
}

macro_rules! loggers {
    ($($name:literal: $node:literal $logger:literal $operation:literal $level:expr,)*) => {
        vec![$(
            Base::new("IncrementalAlterConfigs", $name, |_| logger($node, $logger, $operation, $level))
                .unbroken(),
        )*]
    };
}

/// What is refused, since the two have no logger in common but the one around all.
fn loggers() -> Vec<Base> {
    loggers! {
        "a logger that is not there": "1" "no.such.logger" 0 Some("INFO"),
        "a logger that is not there, off": "1" "no.such.logger" 1 None,
        "a level that nobody knows": "1" "root" 0 Some("LOUD"),
        "a level in other letters": "1" "root" 0 Some("info"),
        "a level that only a file can set": "1" "root" 0 Some("OFF"),
        "a level of null": "1" "root" 0 None,
        "the root logger, off": "1" "root" 1 None,
        "a level appended": "1" "root" 2 Some("INFO"),
        "a level subtracted": "1" "root" 3 Some("INFO"),
        "an operation that nobody knows": "1" "root" 4 Some("INFO"),
        "loggers of another node": "2" "root" 0 Some("INFO"),
        "loggers of no number": "x" "root" 0 Some("INFO"),
        "loggers of nobody": "" "root" 0 Some("INFO"),
    }
}
