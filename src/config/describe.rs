//! What DescribeConfigs and CreateTopics answer about settings: value, source, synonyms, type, documentation.
//!
//! Follows Kafka 4.4's `ConfigHelper` and `KafkaConfigSchema`, also where that surprises: the synonyms of a key are
//! cut before the first one that bears the key's own name, so a topic whose retention comes from
//! `log.retention.minutes` reports the default as its source.

use super::keys::{self, Convert, TopicKey, Update, ValueKind};
use super::settings::Settings;
use super::topic::{Overrides, effective_values};
use super::value::Value;

/// Where a value comes from, with the ids of the DescribeConfigs response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    BrokerLogger = 6,
    ClientMetrics = 7,
    Group = 8,
}

impl ConfigSource {
    /// The id in responses.
    pub fn wire_id(self) -> i8 {
        self as i8
    }
}

/// One setting of a topic or broker.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedConfig {
    pub name: String,
    /// None for null and for secrets.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub sensitive: bool,
    /// The values that stand behind each other, the strongest first.
    pub synonyms: Vec<DescribedSynonym>,
    /// None for a key that nobody knows.
    pub kind: Option<ValueKind>,
    pub documentation: Option<&'static str>,
}

/// One of the values that could have become the value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedSynonym {
    pub name: String,
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// Every setting of a topic with these overrides, by name.
pub fn describe_topic(settings: &Settings, overrides: &Overrides<'_>) -> Vec<DescribedConfig> {
    let values = effective_values(settings, overrides).unwrap_or_default();
    let mut described: Vec<DescribedConfig> = keys::TOPIC_KEYS
        .iter()
        .filter(|row| !row.key.internal || overrides.contains_key(row.key.name))
        .map(|row| {
            let value = values.get(row.key.name).to_text();
            let mut synonyms = Vec::new();
            if overrides.contains_key(row.key.name) {
                let name = row.key.name.to_string();
                synonyms.push(DescribedSynonym {
                    name,
                    value: value.clone(),
                    source: ConfigSource::Topic,
                });
            }
            if let Some(first) = row.synonyms.first() {
                synonyms.extend(synonyms_of(settings, first.broker_key, false));
            }
            DescribedConfig {
                name: row.key.name.to_string(),
                value,
                source: strongest(&synonyms),
                read_only: false,
                sensitive: false,
                synonyms,
                kind: Some(row.key.kind),
                documentation: Some(row.key.doc),
            }
        })
        .collect();
    described.extend(
        overrides
            .iter()
            .filter(|(name, _)| keys::topic_key(name).is_none())
            .map(|(name, _)| {
                let synonym = DescribedSynonym {
                    name: name.to_string(),
                    value: None,
                    source: ConfigSource::Topic,
                };
                unknown(name, vec![synonym])
            }),
    );
    described.sort_by(|a, b| a.name.cmp(&b.name));
    described
}

/// Every setting of this broker, by name; unknown keys are shown without their value.
pub fn describe_broker(settings: &Settings) -> Vec<DescribedConfig> {
    let dynamic = settings.dynamic();
    let written = |name: &str| {
        settings.originals().contains_key(name)
            || dynamic.broker.contains_key(name)
            || dynamic.cluster.contains_key(name)
    };
    let mut described: Vec<DescribedConfig> = keys::broker_keys()
        .filter(|key| !key.internal || written(key.name))
        .map(|key| broker_entry(settings, key.name))
        .collect();
    let names = settings
        .originals()
        .keys()
        .chain(dynamic.broker.keys())
        .chain(dynamic.cluster.keys());
    let mut others: Vec<&String> = names
        .filter(|name| keys::broker_key(name).is_none())
        .collect();
    others.sort();
    others.dedup();
    described.extend(others.into_iter().map(|name| broker_entry(settings, name)));
    described.sort_by(|a, b| a.name.cmp(&b.name));
    described
}

/// The settings that hold for every broker (resource type BROKER with an empty name), by name.
pub fn describe_cluster_defaults(settings: &Settings) -> Vec<DescribedConfig> {
    settings
        .dynamic()
        .cluster
        .keys()
        .map(|name| {
            let mut entry = broker_entry(settings, name);
            entry
                .synonyms
                .retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
            entry.source = strongest(&entry.synonyms);
            if !entry.sensitive {
                entry.value = settings.dynamic().cluster.get(name).cloned();
            }
            entry
        })
        .collect()
}

fn broker_entry(settings: &Settings, name: &str) -> DescribedConfig {
    let base = keys::listener_override(name).unwrap_or(name);
    let Some(key) = keys::broker_key(base) else {
        return unknown(name, synonyms_of(settings, name, true));
    };
    let sensitive = key.kind == ValueKind::Password;
    let value = match (sensitive, key.name == name) {
        (true, _) => None,
        (false, true) => settings.value(name).to_text(),
        (false, false) => written_anywhere(settings, name),
    };
    let synonyms = synonyms_of(settings, name, sensitive);
    DescribedConfig {
        name: name.to_string(),
        value,
        source: strongest(&synonyms),
        read_only: key.name != name || key.update == Update::ReadOnly,
        sensitive,
        synonyms,
        kind: Some(key.kind),
        documentation: (key.name == name).then_some(key.doc),
    }
}

fn unknown(name: &str, synonyms: Vec<DescribedSynonym>) -> DescribedConfig {
    DescribedConfig {
        name: name.to_string(),
        value: None,
        source: strongest(&synonyms),
        read_only: true,
        sensitive: true,
        synonyms,
        kind: None,
        documentation: None,
    }
}

pub(super) fn strongest(synonyms: &[DescribedSynonym]) -> ConfigSource {
    synonyms
        .first()
        .map_or(ConfigSource::Default, |synonym| synonym.source)
}

fn written_anywhere(settings: &Settings, name: &str) -> Option<String> {
    let dynamic = settings.dynamic();
    let text = dynamic
        .broker
        .get(name)
        .or_else(|| dynamic.cluster.get(name));
    text.or_else(|| settings.originals().get(name)).cloned()
}

/// The values behind a broker key: for this broker, for all brokers, in the file, by default; each for all the names
/// that can stand in for the key.
pub(super) fn synonyms_of(
    settings: &Settings,
    name: &str,
    sensitive: bool,
) -> Vec<DescribedSynonym> {
    let names = keys::broker_synonyms(name);
    let dynamic = settings.dynamic();
    let mut synonyms = Vec::new();
    let mut add = |name: &str, text: Option<String>, source| {
        if let Some(text) = text {
            let value = (!sensitive).then_some(text);
            synonyms.push(DescribedSynonym {
                name: name.to_string(),
                value,
                source,
            });
        }
    };
    for name in &names {
        add(
            name,
            dynamic.broker.get(*name).cloned(),
            ConfigSource::DynamicBroker,
        );
    }
    for name in &names {
        add(
            name,
            dynamic.cluster.get(*name).cloned(),
            ConfigSource::DynamicDefaultBroker,
        );
    }
    for name in &names {
        add(
            name,
            settings.originals().get(*name).cloned(),
            ConfigSource::StaticBroker,
        );
    }
    for name in &names {
        let default = keys::broker_key(name).and_then(|key| Value::default_of(key).to_text());
        add(name, default, ConfigSource::Default);
    }
    let start = synonyms
        .iter()
        .position(|synonym| synonym.name == name)
        .unwrap_or(synonyms.len());
    synonyms.split_off(start)
}

/// A setting of a new topic in the answer to CreateTopics (KIP-525).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopicConfig {
    pub name: &'static str,
    /// As it was written, where it was written.
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// The settings that a topic with these overrides has, by name.
pub fn created_topic_configs(
    settings: &Settings,
    overrides: &Overrides<'_>,
) -> Vec<CreatedTopicConfig> {
    let mut configs: Vec<CreatedTopicConfig> = keys::TOPIC_KEYS
        .iter()
        .filter(|row| !row.key.internal || overrides.contains_key(row.key.name))
        .map(|row| created(settings, overrides, row))
        .collect();
    configs.sort_by_key(|config| config.name);
    configs
}

fn created(settings: &Settings, overrides: &Overrides<'_>, row: &TopicKey) -> CreatedTopicConfig {
    let name = row.key.name;
    if let Some(text) = overrides.get(name) {
        return CreatedTopicConfig {
            name,
            value: Some(text.to_string()),
            source: ConfigSource::Topic,
        };
    }
    let dynamic = settings.dynamic();
    let layers = [
        (&dynamic.broker, ConfigSource::DynamicBroker),
        (&dynamic.cluster, ConfigSource::DynamicDefaultBroker),
        (settings.originals(), ConfigSource::StaticBroker),
    ];
    for (layer, source) in layers {
        for synonym in row.synonyms {
            if let Some(text) = layer.get(synonym.broker_key) {
                return CreatedTopicConfig {
                    name,
                    value: Some(converted(synonym.convert, text)),
                    source,
                };
            }
        }
    }
    CreatedTopicConfig {
        name,
        value: Value::default_of(&row.key).to_text(),
        source: ConfigSource::Default,
    }
}

fn converted(convert: Convert, text: &str) -> String {
    let span = || text.trim().parse::<i32>().map_or(0, i64::from);
    match convert {
        Convert::Same => text.to_string(),
        Convert::HoursToMs => (span() * 3_600_000).to_string(),
        Convert::MinutesToMs => (span() * 60_000).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DynamicSettings, single_node};
    use std::collections::BTreeMap;

    fn settings(written: &[(&str, &str)]) -> Settings {
        let written = written
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Settings::new(single_node(&written)).unwrap()
    }

    fn entry(described: &[DescribedConfig], name: &str) -> DescribedConfig {
        described
            .iter()
            .find(|entry| entry.name == name)
            .unwrap_or_else(|| panic!("{name} is missing"))
            .clone()
    }

    /// `name=value@source` of each synonym, as an admin client prints them.
    fn synonyms(entry: &DescribedConfig) -> Vec<String> {
        let value = |synonym: &DescribedSynonym| {
            synonym.value.clone().unwrap_or_else(|| "null".to_string())
        };
        entry
            .synonyms
            .iter()
            .map(|one| format!("{}={}@{:?}", one.name, value(one), one.source))
            .collect()
    }

    /// Expectations are what Kafka 4.4 answers with the same settings.
    #[test]
    fn a_topic_is_described_as_kafka_does() {
        let settings = settings(&[("log.retention.minutes", "7"), ("log.roll.ms", "777000 ")]);
        let overrides = Overrides::from([
            ("min.cleanable.dirty.ratio", "0.00001"),
            ("cleanup.policy", "compact, delete"),
        ]);
        let all = describe_topic(&settings, &overrides);
        assert_eq!(all.len(), 37);
        let ratio = entry(&all, "min.cleanable.dirty.ratio");
        assert_eq!(ratio.value.as_deref(), Some("1.0E-5"));
        assert_eq!(
            synonyms(&ratio),
            [
                "min.cleanable.dirty.ratio=1.0E-5@Topic",
                "log.cleaner.min.cleanable.ratio=0.5@Default"
            ]
        );
        let policy = entry(&all, "cleanup.policy");
        assert_eq!(
            (policy.value.as_deref(), policy.source),
            (Some("compact,delete"), ConfigSource::Topic)
        );
        let roll = entry(&all, "segment.ms");
        assert_eq!(
            (roll.value.as_deref(), roll.source),
            (Some("777000"), ConfigSource::StaticBroker)
        );
        assert_eq!(
            synonyms(&roll),
            [
                "log.roll.ms=777000 @StaticBroker",
                "log.roll.hours=168@Default"
            ]
        );
        let retention = entry(&all, "retention.ms");
        assert_eq!(
            (retention.value.as_deref(), retention.source),
            (Some("420000"), ConfigSource::Default)
        );
        assert!(synonyms(&retention).is_empty());
        assert!(
            all.iter()
                .all(|one| one.documentation.is_some() && !one.read_only && !one.sensitive)
        );
    }

    #[test]
    fn a_broker_is_described_as_kafka_does() {
        let settings = settings(&[
            ("ssl.keystore.password", "secret"),
            ("foo.bar", "1"),
            ("listener.name.plaintext.max.connections", "100"),
            ("log.retention.hours", "48"),
            ("log.retention.minutes", "7"),
        ]);
        let all = describe_broker(&settings);
        let secret = entry(&all, "ssl.keystore.password");
        assert_eq!(
            (secret.value.clone(), secret.sensitive, secret.read_only),
            (None, true, false)
        );
        assert_eq!(
            synonyms(&secret),
            ["ssl.keystore.password=null@StaticBroker"]
        );
        let foreign = entry(&all, "foo.bar");
        assert_eq!(
            (foreign.value, foreign.sensitive, foreign.kind),
            (None, true, None)
        );
        let per_listener = entry(&all, "listener.name.plaintext.max.connections");
        assert_eq!(
            (per_listener.value.as_deref(), per_listener.read_only),
            (Some("100"), true)
        );
        assert_eq!(
            synonyms(&entry(&all, "broker.id")),
            ["broker.id=1@StaticBroker", "broker.id=-1@Default"]
        );
        assert_eq!(
            synonyms(&entry(&all, "log.retention.minutes")),
            [
                "log.retention.minutes=7@StaticBroker",
                "log.retention.hours=48@StaticBroker",
                "log.retention.hours=168@Default"
            ]
        );
        assert!(!entry(&all, "log.retention.ms").read_only && entry(&all, "log.dirs").read_only);
        assert!(
            all.iter()
                .all(|one| one.name != "unstable.api.versions.enable"),
            "internal keys stay hidden"
        );
    }

    #[test]
    fn dynamic_settings_are_stronger_than_the_file() {
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect()
        };
        let settings = settings(&[("min.insync.replicas", "3")]).with_dynamic(DynamicSettings {
            cluster: text(&[
                ("min.insync.replicas", "1"),
                ("log.retention.ms", "5"),
                ("node.id", "9"),
            ]),
            broker: text(&[("log.retention.ms", "6")]),
        });
        let all = describe_topic(&settings, &Overrides::new());
        let insync = entry(&all, "min.insync.replicas");
        assert_eq!(
            (insync.value.as_deref(), insync.source),
            (Some("1"), ConfigSource::DynamicDefaultBroker)
        );
        let retention = entry(&all, "retention.ms");
        assert_eq!(
            (retention.value.as_deref(), retention.source),
            (Some("6"), ConfigSource::DynamicBroker)
        );
        assert_eq!(
            entry(&describe_broker(&settings), "node.id")
                .value
                .as_deref(),
            Some("1")
        );
        assert_eq!(describe_cluster_defaults(&settings).len(), 3);
    }

    #[test]
    fn a_new_topic_shows_what_was_written() {
        let settings = settings(&[("log.roll.hours", "2")]);
        let configs =
            created_topic_configs(&settings, &Overrides::from([("retention.ms", " 5000 ")]));
        let config = |name| configs.iter().find(|config| config.name == name).unwrap();
        assert_eq!(config("retention.ms").value.as_deref(), Some(" 5000 "));
        assert_eq!(config("segment.ms").value.as_deref(), Some("7200000"));
        assert_eq!(config("segment.ms").source, ConfigSource::StaticBroker);
        assert_eq!(config("flush.ms").source, ConfigSource::Default);
        assert_eq!(configs.len(), 37);
    }
}
