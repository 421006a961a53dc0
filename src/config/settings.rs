//! The static configuration of a node: what was written, and the typed value of every broker key.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{allowed_text, check};
use super::error::ConfigError;
use super::keys::{self, Check, DefaultValue, Key, Status, Update};
use super::value::Value;

/// Every broker key with its value, parsed and checked one by one. Relations between keys are checked by
/// [`super::BrokerConfig::new`].
#[derive(Clone)]
pub struct Settings {
    /// What file and overrides say, by key, also for unknown keys.
    originals: BTreeMap<String, String>,
    /// What the metadata log says for all brokers and for this one.
    dynamic: DynamicSettings,
    values: BTreeMap<&'static str, Value>,
}

/// Broker settings in the metadata log; they are stronger than the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicSettings {
    /// For every broker (resource name empty).
    pub cluster: BTreeMap<String, String>,
    /// For this broker; stronger than `cluster`.
    pub broker: BTreeMap<String, String>,
}

impl std::fmt::Debug for Settings {
    /// Without what was written, because that may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.values).finish()
    }
}

impl Settings {
    /// Parses and checks what was written.
    ///
    /// # Errors
    /// The first key, in the order of names, with a wrong, missing or refused value.
    pub fn new(written: BTreeMap<String, String>) -> Result<Settings, ConfigError> {
        let originals = with_node_id_synonym(written);
        let mut values = BTreeMap::new();
        for key in keys::broker_keys() {
            values.insert(key.name, value_of(key, originals.get(key.name))?);
        }
        Ok(Settings {
            originals,
            dynamic: DynamicSettings::default(),
            values,
        })
    }

    /// The same file under other dynamic settings. Of those, keys that cannot change while a broker runs, unknown
    /// keys and wrong values count for nothing (they are still described).
    pub fn with_dynamic(&self, dynamic: DynamicSettings) -> Settings {
        let mut values = self.values.clone();
        for key in keys::broker_keys().filter(|key| key.update != Update::ReadOnly) {
            let text = dynamic
                .broker
                .get(key.name)
                .or_else(|| dynamic.cluster.get(key.name));
            let text = text.or_else(|| self.originals.get(key.name));
            if let Ok(value) = value_of(key, text) {
                values.insert(key.name, value);
            }
        }
        Settings {
            originals: self.originals.clone(),
            dynamic,
            values,
        }
    }

    /// What the metadata log says about this broker.
    pub fn dynamic(&self) -> &DynamicSettings {
        &self.dynamic
    }

    /// The value of a key of the table.
    pub fn value(&self, name: &str) -> &Value {
        self.values.get(name).unwrap_or(&Value::Null)
    }

    /// What was written for a key, before its default.
    pub fn written(&self, name: &str) -> Option<&str> {
        self.originals.get(name).map(String::as_str)
    }

    /// All that was written, by key.
    pub fn originals(&self) -> &BTreeMap<String, String> {
        &self.originals
    }

    /// What a person should know about keys that were written and do nothing, one line a reason.
    pub fn warnings(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        let mut per_listener = Vec::new();
        let mut without_effect: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in self.originals.keys() {
            match keys::broker_key(name) {
                Some(Key {
                    status: Status::Ignored(reason),
                    ..
                }) => without_effect.entry(reason).or_default().push(name),
                Some(_) => {}
                None if keys::listener_override(name).is_some() => per_listener.push(name.as_str()),
                None => unknown.push(name.as_str()),
            }
        }
        let mut lines = Vec::new();
        if !unknown.is_empty() {
            lines.push(format!("unknown and ignored: {}", unknown.join(", ")));
        }
        if !per_listener.is_empty() {
            lines.push(format!(
                "without effect: {} (settings for a single listener are not supported yet)",
                per_listener.join(", ")
            ));
        }
        for (reason, names) in without_effect {
            lines.push(format!("without effect: {} ({reason})", names.join(", ")));
        }
        lines
    }

    /// A boolean key of the table.
    pub(super) fn boolean(&self, name: &'static str) -> bool {
        matches!(self.value(name), Value::Boolean(true))
    }

    /// A whole number of any width; None if the key has no value.
    pub(super) fn maybe_integer(&self, name: &'static str) -> Option<i64> {
        match self.value(name) {
            Value::Int(value) => Some(i64::from(*value)),
            Value::Short(value) => Some(i64::from(*value)),
            Value::Long(value) => Some(*value),
            _ => None,
        }
    }

    /// A whole number of a key that always has one.
    pub(super) fn integer(&self, name: &'static str) -> i64 {
        self.maybe_integer(name).unwrap_or_default()
    }

    /// A number of a key whose values fit 32 bits.
    pub(super) fn int(&self, name: &'static str) -> i32 {
        i32::try_from(self.integer(name)).unwrap_or(i32::MAX)
    }

    /// A size or count that cannot be negative; a negative value (allowed by some of Kafka's rows) counts as 0.
    pub(super) fn size(&self, name: &'static str) -> u64 {
        u64::try_from(self.integer(name)).unwrap_or(0)
    }

    /// As [`Settings::size`], for values of type INT.
    pub(super) fn size32(&self, name: &'static str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or(0)
    }

    /// A time span in the unit of milliseconds; negative counts as none.
    pub(super) fn millis(&self, name: &'static str) -> std::time::Duration {
        std::time::Duration::from_millis(self.size(name))
    }

    /// A text; None if the key has no value.
    pub(super) fn text(&self, name: &'static str) -> Option<&str> {
        match self.value(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list; None if the key has no value.
    pub(super) fn maybe_list(&self, name: &'static str) -> Option<&[String]> {
        match self.value(name) {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// A list, empty if the key has no value.
    pub(super) fn list(&self, name: &'static str) -> &[String] {
        self.maybe_list(name).unwrap_or(&[])
    }
}

/// `broker.id` and `node.id` are one setting; the one that is missing takes the value of the other.
fn with_node_id_synonym(mut written: BTreeMap<String, String>) -> BTreeMap<String, String> {
    match (
        written.get("broker.id").cloned(),
        written.get("node.id").cloned(),
    ) {
        (None, Some(id)) => {
            written.insert("broker.id".to_string(), id);
        }
        (Some(id), None) => {
            written.insert("node.id".to_string(), id);
        }
        _ => {}
    }
    written
}

/// Parses and checks the text of a key. Repeated elements of a list count once, as in Kafka.
pub(super) fn parse(key: &Key, text: &str) -> Result<Value, ConfigError> {
    let mut value = Value::parse(key.name, key.kind, text)?;
    if let (Check::List { .. }, Value::List(elements)) = (key.check, &mut value) {
        let mut seen = BTreeSet::new();
        elements.retain(|element| seen.insert(element.clone()));
    }
    check(key, &value)?;
    Ok(value)
}

fn value_of(key: &'static Key, written: Option<&String>) -> Result<Value, ConfigError> {
    let Some(text) = written else {
        if key.default == DefaultValue::Required {
            let message = format!(
                "Missing required configuration \"{}\" which has no default value.",
                key.name
            );
            return Err(ConfigError::about(key.name, message));
        }
        return Ok(Value::default_of(key));
    };
    let value = parse(key, text)?;
    if let Status::Refused(reason) = key.status {
        let default = Value::default_of(key);
        if value != default && value.to_text().is_some_and(|text| !text.is_empty()) {
            let shown = value.to_text().unwrap_or_default();
            let message = format!("{}={shown} is refused: {reason}", key.name);
            return Err(ConfigError::about(key.name, message));
        }
    }
    Ok(value)
}

/// What a key allows, for the end of an error line: `int, at least 1, default 8`.
pub fn what_is_allowed(name: &str) -> Option<String> {
    let key = keys::broker_key(name)?;
    let mut parts = vec![key.kind.name().to_lowercase()];
    parts.extend(allowed_text(key.check));
    if let DefaultValue::Text(text) = key.default {
        parts.push(if text.is_empty() {
            "default empty".to_string()
        } else {
            format!("default {text}")
        });
    }
    Some(parts.join(", "))
}
