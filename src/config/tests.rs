//! Tests of the table as a whole.

use std::collections::BTreeMap;

use super::check::check;
use super::keys::{self, DefaultValue, Key, Status};
use super::value::Value;

fn every_key() -> impl Iterator<Item = &'static Key> {
    keys::broker_keys().chain(keys::TOPIC_KEYS.iter().map(|row| &row.key))
}

#[test]
fn the_table_is_kafkas_and_ours() {
    let own = keys::broker_keys()
        .filter(|key| key.name.starts_with(keys::OWN_PREFIX))
        .count();
    assert_eq!(keys::broker_keys().count() - own, 379);
    assert_eq!(keys::TOPIC_KEYS.len(), 38);
}

#[test]
fn every_default_is_allowed() {
    for key in every_key().filter(|key| key.default != DefaultValue::Required) {
        let value = match key.default {
            DefaultValue::Text(text) => Value::parse(key.name, key.kind, text).unwrap(),
            _ => Value::Null,
        };
        check(key, &value).unwrap();
        assert_eq!(value, Value::default_of(key), "{}", key.name);
    }
}

#[test]
fn every_key_is_documented_in_a_sentence() {
    for key in every_key() {
        assert!(
            key.doc.len() > 10 && key.doc.ends_with('.') && !key.doc.contains("\n"),
            "{}",
            key.name
        );
        assert!(
            key.doc
                .starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()),
            "{}",
            key.name
        );
        if let Some(reason) = key.status.reason() {
            assert!(reason.len() > 10 && !reason.ends_with('.'), "{}", key.name);
        }
    }
}

#[test]
fn a_topic_key_has_the_type_and_default_of_its_broker_keys() {
    for row in keys::TOPIC_KEYS
        .iter()
        .filter(|row| !row.synonyms.is_empty())
    {
        let strongest = keys::broker_key(row.synonyms[0].broker_key).expect(row.key.name);
        assert_eq!(strongest.kind, row.key.kind, "{}", row.key.name);
        for synonym in row.synonyms {
            let broker_key = keys::broker_key(synonym.broker_key).expect(synonym.broker_key);
            assert_eq!(broker_key.status, row.key.status, "{}", row.key.name);
        }
    }
    let settings = super::Settings::new(super::single_node(&BTreeMap::new())).unwrap();
    let values = super::topic::effective_values(&settings, &BTreeMap::new()).unwrap();
    for row in keys::TOPIC_KEYS {
        assert_eq!(
            *values.get(row.key.name),
            Value::default_of(&row.key),
            "{}",
            row.key.name
        );
    }
}

#[test]
fn dangerous_keys_are_refused_and_not_ignored() {
    for name in [
        "authorizer.class.name",
        "create.topic.policy.class.name",
        "config.providers",
    ] {
        assert!(
            matches!(keys::broker_key(name).unwrap().status, Status::Refused(_)),
            "{name}"
        );
    }
}
