//! The configuration of a topic: what code reads, and what CreateTopics and AlterConfigs may set.

use std::collections::BTreeMap;

use super::error::ConfigError;
use super::keys::{self, Convert, TopicKey};
use super::settings::{self, Settings};
use super::value::Value;

/// Settings of one resource as they are stored: key to text.
pub type Overrides<'a> = BTreeMap<&'a str, &'a str>;

/// What the log of a topic's partitions must do. All times in milliseconds, all sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicConfig {
    pub segment_bytes: u32,
    pub segment_ms: i64,
    /// At most this much is taken off `segment_ms`, at random, so that segments do not all roll at once.
    pub segment_jitter_ms: i64,
    pub segment_index_bytes: u32,
    /// Records after which a write must be durable; `i64::MAX` means never by count, 1 means each write.
    pub flush_messages: i64,
    /// Time after which what was written must be durable; `i64::MAX` means never by time.
    pub flush_ms: i64,
    /// Size of a partition from which old segments go; -1 means no limit.
    pub retention_bytes: i64,
    /// Age from which segments go; -1 means no limit.
    pub retention_ms: i64,
    /// Largest record batch accepted, compressed as it came.
    pub max_message_bytes: u32,
    /// Largest decompressed size of one record.
    pub max_decompressed_message_bytes: u32,
    pub index_interval_bytes: u32,
    pub file_delete_delay_ms: i64,
    pub delete_retention_ms: i64,
    pub min_compaction_lag_ms: i64,
    pub max_compaction_lag_ms: i64,
    pub min_cleanable_dirty_ratio: f64,
    pub cleanup: CleanupPolicy,
    pub unclean_leader_election: bool,
    pub min_insync_replicas: u32,
    pub compression: TopicCompression,
    pub preallocate: bool,
    pub timestamp_type: TimestampType,
    /// How far a record's CreateTime may lie behind the broker's clock.
    pub timestamp_before_max_ms: i64,
    /// How far a record's CreateTime may lie ahead of the broker's clock.
    pub timestamp_after_max_ms: i64,
}

/// What becomes of old data; with neither it is kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Segments past `retention_ms` or `retention_bytes` are deleted.
    pub delete: bool,
    /// Only the last record of each key is kept; records without a key are refused.
    pub compact: bool,
}

/// How the broker stores batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicCompression {
    /// As the producer sent them.
    Producer,
    Uncompressed,
    /// Level 1 to 9, or -1 for the library's default.
    Gzip(i32),
    Snappy,
    Lz4(i32),
    Zstd(i32),
}

/// Whose clock the timestamp of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

impl TopicConfig {
    /// The configuration of a topic without overrides on a broker with these settings.
    pub(super) fn defaults(settings: &Settings) -> TopicConfig {
        TopicConfig::from_values(&effective_values(settings, &Overrides::new()).unwrap_or_default())
    }

    /// The configuration of a topic with `overrides`, which were validated when they were stored: a value that is
    /// wrong all the same (written by another broker version) falls back to the default.
    pub fn new(settings: &Settings, overrides: &Overrides<'_>) -> TopicConfig {
        match effective_values(settings, overrides) {
            Ok(values) => TopicConfig::from_values(&values),
            Err(_) => {
                let sound = overrides
                    .iter()
                    .filter(|(name, text)| {
                        keys::topic_key(name)
                            .is_some_and(|row| settings::parse(&row.key, text).is_ok())
                    })
                    .map(|(name, text)| (*name, *text))
                    .collect();
                TopicConfig::from_values(&effective_values(settings, &sound).unwrap_or_default())
            }
        }
    }

    fn from_values(values: &TopicValues) -> TopicConfig {
        let words = values.list("cleanup.policy");
        let has = |word: &str| words.iter().any(|policy| policy.eq_ignore_ascii_case(word));
        TopicConfig {
            segment_bytes: values
                .internal_segment_bytes()
                .unwrap_or_else(|| values.size("segment.bytes")),
            segment_ms: values.integer("segment.ms"),
            segment_jitter_ms: values.integer("segment.jitter.ms"),
            segment_index_bytes: values.size("segment.index.bytes"),
            flush_messages: values.integer("flush.messages"),
            flush_ms: values.integer("flush.ms"),
            retention_bytes: values.integer("retention.bytes"),
            retention_ms: values.integer("retention.ms"),
            max_message_bytes: values.size("max.message.bytes"),
            max_decompressed_message_bytes: values.size("max.decompressed.message.bytes"),
            index_interval_bytes: values.size("index.interval.bytes"),
            file_delete_delay_ms: values.integer("file.delete.delay.ms"),
            delete_retention_ms: values.integer("delete.retention.ms"),
            min_compaction_lag_ms: values.integer("min.compaction.lag.ms"),
            max_compaction_lag_ms: values.integer("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio: values.real("min.cleanable.dirty.ratio"),
            cleanup: CleanupPolicy {
                delete: has("delete"),
                compact: has("compact"),
            },
            unclean_leader_election: values.boolean("unclean.leader.election.enable"),
            min_insync_replicas: values.size("min.insync.replicas"),
            compression: values.compression(),
            preallocate: values.boolean("preallocate"),
            timestamp_type: match values.text("message.timestamp.type") {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            timestamp_before_max_ms: values.integer("message.timestamp.before.max.ms"),
            timestamp_after_max_ms: values.integer("message.timestamp.after.max.ms"),
        }
    }

    /// After this time the active segment is closed: a compacted topic must not keep records from the cleaner
    /// longer than `max_compaction_lag_ms`.
    pub fn max_segment_ms(&self) -> i64 {
        if self.cleanup.compact && self.max_compaction_lag_ms > 0 {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }
}

/// Checks overrides as CreateTopics and AlterConfigs must: known names, right types and ranges, and no conflict
/// between keys. Errors carry Kafka's words, which go into the INVALID_CONFIG answer.
///
/// # Errors
/// The first wrong override in the order in which Kafka looks at them.
pub fn validate_overrides(
    settings: &Settings,
    overrides: &Overrides<'_>,
) -> Result<(), ConfigError> {
    if let Some(name) = overrides
        .keys()
        .find(|name| keys::topic_key(name).is_none())
    {
        return Err(ConfigError::about(
            name,
            format!("Unknown topic config name: {name}"),
        ));
    }
    let values = effective_values(settings, overrides)?;
    let (low, high) = (
        values.integer("min.compaction.lag.ms"),
        values.integer("max.compaction.lag.ms"),
    );
    if low > high {
        return Err(ConfigError::relation(format!(
            "conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )));
    }
    if values.boolean("remote.storage.enable") {
        return Err(ConfigError::about(
            "remote.storage.enable",
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ));
    }
    Ok(())
}

/// The typed value of every topic key.
#[derive(Default)]
pub(super) struct TopicValues(BTreeMap<&'static str, Value>);

impl TopicValues {
    pub(super) fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    fn integer(&self, name: &str) -> i64 {
        match self.get(name) {
            Value::Int(value) => i64::from(*value),
            Value::Long(value) => *value,
            _ => 0,
        }
    }

    fn size(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or(0)
    }

    fn real(&self, name: &str) -> f64 {
        self.get(name).as_number().unwrap_or(0.0)
    }

    fn boolean(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Boolean(true))
    }

    fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Text(text) => text,
            _ => "",
        }
    }

    fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Value::List(values) => values,
            _ => &[],
        }
    }

    /// Tests of Kafka make tiny segments with this key; it beats `segment.bytes`.
    fn internal_segment_bytes(&self) -> Option<u32> {
        match self.get("internal.segment.bytes") {
            Value::Int(value) => u32::try_from(*value).ok(),
            _ => None,
        }
    }

    fn compression(&self) -> TopicCompression {
        let level = |name| i32::try_from(self.integer(name)).unwrap_or(-1);
        match self.text("compression.type") {
            "uncompressed" => TopicCompression::Uncompressed,
            "gzip" => TopicCompression::Gzip(level("compression.gzip.level")),
            "snappy" => TopicCompression::Snappy,
            "lz4" => TopicCompression::Lz4(level("compression.lz4.level")),
            "zstd" => TopicCompression::Zstd(level("compression.zstd.level")),
            _ => TopicCompression::Producer,
        }
    }
}

/// Every topic key: the override, else what the broker's settings say.
pub(super) fn effective_values(
    settings: &Settings,
    overrides: &Overrides<'_>,
) -> Result<TopicValues, ConfigError> {
    let mut values = BTreeMap::new();
    for row in keys::TOPIC_KEYS {
        let value = match overrides.get(row.key.name) {
            Some(text) => settings::parse(&row.key, text)?,
            None => broker_default(settings, row),
        };
        values.insert(row.key.name, value);
    }
    Ok(TopicValues(values))
}

/// The value that the broker's settings give to a topic key: the first synonym that has a value, in the topic's unit.
fn broker_default(settings: &Settings, row: &TopicKey) -> Value {
    for synonym in row.synonyms {
        let value = settings.value(synonym.broker_key);
        if *value == Value::Null {
            continue;
        }
        return match (synonym.convert, value) {
            (Convert::HoursToMs, Value::Int(hours)) => Value::Long(scaled(*hours, 3_600_000)),
            (Convert::MinutesToMs, Value::Int(minutes)) => Value::Long(scaled(*minutes, 60_000)),
            (Convert::Same, Value::Long(ms)) if row.key.name == "retention.ms" => {
                Value::Long((*ms).max(-1))
            }
            _ => value.clone(),
        };
    }
    Value::default_of(&row.key)
}

/// Negative spans mean "no limit" and become -1.
fn scaled(span: i32, unit_ms: i64) -> i64 {
    if span < 0 {
        -1
    } else {
        i64::from(span) * unit_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::single_node;

    fn settings(written: &[(&str, &str)]) -> Settings {
        let written = written
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Settings::new(single_node(&written)).unwrap()
    }

    /// What Kafka 4.4 answers to CreateTopics with one setting each.
    #[test]
    fn refusals_have_kafkas_words() {
        let settings = settings(&[]);
        let not_valid = "Invalid value";
        for (key, value, answer) in [
            ("foo", "1", "Unknown topic config name: foo".to_string()),
            (
                "retention.ms",
                "abc",
                format!(
                    "{not_valid} abc for configuration retention.ms: Not a number of type LONG"
                ),
            ),
            (
                "retention.ms",
                "-2",
                format!("{not_valid} -2 for configuration retention.ms: Value must be at least -1"),
            ),
            (
                "retention.ms",
                "",
                format!("{not_valid}  for configuration retention.ms: Not a number of type LONG"),
            ),
            (
                "cleanup.policy",
                "foo",
                format!(
                    "{not_valid} foo for configuration cleanup.policy: String must be one of: compact, delete"
                ),
            ),
            (
                "cleanup.policy",
                "compact,",
                "Configuration 'cleanup.policy' values must not be empty.".to_string(),
            ),
            (
                "compression.type",
                "x",
                format!(
                    "{not_valid} x for configuration compression.type: \
                     String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
                ),
            ),
            (
                "compression.gzip.level",
                "0",
                format!(
                    "{not_valid} 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"
                ),
            ),
            (
                "min.cleanable.dirty.ratio",
                "2",
                format!(
                    "{not_valid} 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
                ),
            ),
            (
                "min.cleanable.dirty.ratio",
                "-0.1",
                format!(
                    "{not_valid} -0.1 for configuration min.cleanable.dirty.ratio: Value must be at least 0"
                ),
            ),
            (
                "segment.bytes",
                "10",
                format!(
                    "{not_valid} 10 for configuration segment.bytes: Value must be at least 1048576"
                ),
            ),
            (
                "preallocate",
                "yes",
                format!(
                    "{not_valid} yes for configuration preallocate: Expected value to be either true or false"
                ),
            ),
            (
                "max.decompressed.message.bytes",
                "2147483647",
                format!(
                    "{not_valid} 2147483647 for configuration max.decompressed.message.bytes: \
                     Value must be no more than 2147483639"
                ),
            ),
            (
                "remote.storage.enable",
                "true",
                "Tiered Storage functionality is disabled in the broker. \
                 Topic cannot be configured with remote log storage."
                    .to_string(),
            ),
            (
                "follower.replication.throttled.replicas",
                "1:1,*",
                format!(
                    "{not_valid} [1:1, *] for configuration follower.replication.throttled.replicas: \
                     follower.replication.throttled.replicas must be the literal '*' or a list of replicas in the \
                     following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                ),
            ),
        ] {
            let overrides = Overrides::from([(key, value)]);
            assert_eq!(
                validate_overrides(&settings, &overrides)
                    .unwrap_err()
                    .to_string(),
                answer,
                "{key}={value}"
            );
        }
        let conflict = Overrides::from([
            ("min.compaction.lag.ms", "11"),
            ("max.compaction.lag.ms", "10"),
        ]);
        assert_eq!(
            validate_overrides(&settings, &conflict)
                .unwrap_err()
                .to_string(),
            "conflict topic config setting min.compaction.lag.ms (11) > max.compaction.lag.ms (10)"
        );
    }

    #[test]
    fn what_kafka_takes_is_taken() {
        let settings = settings(&[]);
        for (key, value) in [
            ("cleanup.policy", "delete,delete"),
            ("cleanup.policy", ""),
            ("internal.segment.bytes", "100"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", "0:1, 1:1"),
            ("retention.ms", " 5000 "),
            ("unclean.leader.election.enable", "TRUE"),
        ] {
            validate_overrides(&settings, &Overrides::from([(key, value)])).unwrap();
        }
    }

    #[test]
    fn overrides_lie_over_the_broker_and_the_broker_over_the_default() {
        let settings = settings(&[
            ("log.retention.minutes", "7"),
            ("log.roll.hours", "2"),
            ("log.retention.hours", "1"),
        ]);
        let plain = TopicConfig::new(&settings, &Overrides::new());
        assert_eq!(plain, TopicConfig::defaults(&settings));
        assert_eq!(plain.retention_ms, 420_000);
        assert_eq!(plain.segment_ms, 7_200_000);
        assert_eq!(plain.flush_messages, i64::MAX);
        assert_eq!(plain.compression, TopicCompression::Producer);
        assert_eq!(
            plain.cleanup,
            CleanupPolicy {
                delete: true,
                compact: false
            }
        );
        let overrides = Overrides::from([
            ("retention.ms", "-1"),
            ("cleanup.policy", "compact, delete"),
            ("compression.type", "zstd"),
            ("compression.zstd.level", "7"),
            ("max.compaction.lag.ms", "60000"),
            ("message.timestamp.type", "LogAppendTime"),
        ]);
        let own = TopicConfig::new(&settings, &overrides);
        assert_eq!(own.retention_ms, -1);
        assert_eq!(
            own.cleanup,
            CleanupPolicy {
                delete: true,
                compact: true
            }
        );
        assert_eq!(own.compression, TopicCompression::Zstd(7));
        assert_eq!(
            (own.max_segment_ms(), plain.max_segment_ms()),
            (60_000, 7_200_000)
        );
        assert_eq!(own.timestamp_type, TimestampType::LogAppendTime);
    }

    #[test]
    fn any_negative_retention_of_the_broker_is_no_limit() {
        for key in [
            "log.retention.ms",
            "log.retention.minutes",
            "log.retention.hours",
        ] {
            let config = TopicConfig::defaults(&settings(&[(key, "-3")]));
            assert_eq!(config.retention_ms, -1, "{key}");
        }
    }

    #[test]
    fn a_stored_override_that_is_wrong_by_now_leaves_the_others() {
        let settings = settings(&[]);
        let stored = Overrides::from([
            ("segment.bytes", "14"),
            ("flush.messages", "1"),
            ("gone.key", "x"),
        ]);
        let config = TopicConfig::new(&settings, &stored);
        assert_eq!(config.segment_bytes, 1 << 30);
        assert_eq!(config.flush_messages, 1);
    }
}
