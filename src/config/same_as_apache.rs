//! DescribeConfigs says the same of every key as Apache Kafka 4.4, except what `fixtures/differences.txt` names.

use std::collections::{BTreeMap, BTreeSet};

use super::describe::{ConfigSource, DescribedConfig, describe_broker, describe_topic};
use super::keys::{OWN_PREFIX, ValueKind};
use super::{Overrides, Settings};

/// What the broker of the fixture was started with: keys that are shown only when set are among them.
const STARTED_WITH: [(&str, &str); 7] = [
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("controller.quorum.voters", "1@127.0.0.1:9093"),
    (
        "listeners",
        "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    ),
    ("advertised.listeners", "PLAINTEXT://127.0.0.1:9092"),
    ("controller.listener.names", "CONTROLLER"),
    ("log.dirs", "/data"),
];

/// What is said of a key besides its name.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    kind: String,
    /// `=` and the text; `null` for a default of null, `none` without one.
    default: String,
    sensitive: bool,
    read_only: bool,
    documented: bool,
}

fn apaches(fixture: &'static str) -> BTreeMap<String, Said> {
    let lines = fixture.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, kind, default, sensitive, read_only, documented] = fields[..] else {
                panic!("{line}");
            };
            let said = Said {
                kind: kind.to_owned(),
                default: default.to_owned(),
                sensitive: sensitive == "sensitive",
                read_only: read_only == "read-only",
                documented: documented == "documented",
            };
            (name.to_owned(), said)
        })
        .collect()
}

fn ours(described: Vec<DescribedConfig>) -> BTreeMap<String, Said> {
    let said = |config: &DescribedConfig| Said {
        kind: kind(config.kind).to_owned(),
        default: default(config),
        sensitive: config.sensitive,
        read_only: config.read_only,
        documented: config.documentation.is_some(),
    };
    let described = described.iter();
    described
        .map(|config| (config.name.clone(), said(config)))
        .collect()
}

fn kind(kind: Option<ValueKind>) -> &'static str {
    match kind {
        None => "UNKNOWN",
        Some(ValueKind::Boolean) => "BOOLEAN",
        Some(ValueKind::String) => "STRING",
        Some(ValueKind::Int) => "INT",
        Some(ValueKind::Short) => "SHORT",
        Some(ValueKind::Long) => "LONG",
        Some(ValueKind::Double) => "DOUBLE",
        Some(ValueKind::List) => "LIST",
        Some(ValueKind::Class) => "CLASS",
        Some(ValueKind::Password) => "PASSWORD",
    }
}

fn default(config: &DescribedConfig) -> String {
    let mut synonyms = config.synonyms.iter();
    match synonyms.find(|it| it.source == ConfigSource::Default) {
        None => "none".to_owned(),
        Some(it) => match &it.value {
            None => "null".to_owned(),
            Some(value) => format!("={value}"),
        },
    }
}

/// Every difference: resource, key, what.
fn differences(
    resource: &str,
    apaches: &BTreeMap<String, Said>,
    ours: &BTreeMap<String, Said>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let keys: BTreeSet<&String> = apaches.keys().chain(ours.keys()).collect();
    for key in keys {
        // Our own keys are one difference, however many there are.
        let named = match key.starts_with(OWN_PREFIX) {
            true => "ringmain.*",
            false => key,
        };
        let mut add = |what: &str| {
            found.insert(format!("{resource} {named} {what}"));
        };
        match (apaches.get(key), ours.get(key)) {
            (Some(_), None) => add("absent"),
            (None, Some(_)) => add("extra"),
            (Some(apache), Some(our)) => {
                for (what, differs) in [
                    ("type", apache.kind != our.kind),
                    ("default", apache.default != our.default),
                    ("sensitive", apache.sensitive != our.sensitive),
                    ("read-only", apache.read_only != our.read_only),
                    ("documented", apache.documented != our.documented),
                ] {
                    if differs {
                        add(what);
                    }
                }
            }
            (None, None) => {}
        }
    }
    found
}

#[test]
fn every_key_is_described_as_by_apache_kafka() {
    let written = STARTED_WITH.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let settings = Settings::new(written.into()).unwrap();
    let broker = differences(
        "broker",
        &apaches(include_str!("fixtures/apache-broker.tsv")),
        &ours(describe_broker(&settings)),
    );
    let topic = differences(
        "topic",
        &apaches(include_str!("fixtures/apache-topic.tsv")),
        &ours(describe_topic(&settings, &Overrides::new())),
    );
    let found: BTreeSet<String> = broker.union(&topic).cloned().collect();
    let named: BTreeSet<String> = include_str!("fixtures/differences.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (what, reason) = line.split_once(": ").expect(line);
            assert!(reason.len() > 10, "{line}");
            what.to_owned()
        })
        .collect();
    let unnamed: Vec<&String> = found.difference(&named).collect();
    let gone: Vec<&String> = named.difference(&found).collect();
    assert!(
        unnamed.is_empty() && gone.is_empty(),
        "differences without a reason in fixtures/differences.txt: {unnamed:#?}\nreasons for what does not differ: {gone:#?}"
    );
}
