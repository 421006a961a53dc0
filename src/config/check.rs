//! The validators of the table, with the texts of Kafka's `ConfigDef` validators.

use super::endpoint;
use super::error::ConfigError;
use super::keys::{Check, Key};
use super::value::{Value, double_text};

/// Is `value` allowed for `key`?
///
/// # Errors
/// The value breaks the key's rule; the text is Kafka's.
pub fn check(key: &Key, value: &Value) -> Result<(), ConfigError> {
    let wrong = |why: &str| Err(ConfigError::value(key.name, &value.error_text(), why));
    match key.check {
        Check::Any => Ok(()),
        Check::AtLeast(low) => at_least(key, value, &low.to_string(), as_real(low)),
        Check::Between(low, high) => {
            at_least(key, value, &low.to_string(), as_real(low))?;
            at_most(key, value, &high.to_string(), as_real(high))
        }
        Check::Fraction(low, high) => {
            at_least(key, value, &short_text(low), low)?;
            at_most(key, value, &short_text(high), high)
        }
        Check::OneOf(words) => match value {
            Value::Text(text) if words.contains(&text.as_str()) => Ok(()),
            _ => wrong(&format!("String must be one of: {}", words.join(", "))),
        },
        Check::OneOfAnyCase(words) => match value {
            Value::Text(text) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => Ok(()),
            _ => wrong(&format!(
                "String must be one of (case insensitive): {}",
                words.join(", ")
            )),
        },
        Check::List {
            allowed,
            may_be_empty,
            may_be_null,
        } => check_list(key, value, allowed, may_be_empty, may_be_null),
        Check::GzipLevel => match value {
            Value::Int(level) if *level == -1 || (1..=9).contains(level) => Ok(()),
            _ => wrong("Value must be between 1 and 9 or equal to -1"),
        },
        Check::NonEmpty => match value {
            Value::Text(text) if text.is_empty() => wrong("String must be non-empty"),
            _ => Ok(()),
        },
        Check::NonNull => match value {
            Value::Null => wrong("entry must be non null"),
            _ => Ok(()),
        },
        Check::ThrottledReplicas => throttled_replicas(key, value),
        Check::QuorumVoters => list_of(value)
            .iter()
            .try_for_each(|entry| endpoint::Voter::parse(entry).map(drop)),
        Check::BootstrapServers => list_of(value)
            .iter()
            .try_for_each(|entry| endpoint::parse_bootstrap_server(entry).map(drop)),
    }
}

/// The values a check allows, in words for people; None where any value of the type will do.
pub fn allowed_text(check: Check) -> Option<String> {
    match check {
        Check::Any => None,
        Check::AtLeast(low) => Some(format!("at least {low}")),
        Check::Between(low, high) => Some(format!("{low} to {high}")),
        Check::Fraction(low, high) => Some(format!("{} to {}", short_text(low), short_text(high))),
        Check::OneOf(words) => Some(format!("one of {}", words.join(", "))),
        Check::OneOfAnyCase(words) => Some(format!("one of {} in any case", words.join(", "))),
        Check::List {
            allowed: [],
            may_be_empty: false,
            ..
        } => Some("a list of at least one".to_string()),
        Check::List { allowed: [], .. } => None,
        Check::List {
            allowed,
            may_be_empty,
            ..
        } => {
            let some = if may_be_empty { "any" } else { "some" };
            Some(format!("{some} of {}", allowed.join(", ")))
        }
        Check::GzipLevel => Some("1 to 9, or -1".to_string()),
        Check::NonEmpty => Some("not empty".to_string()),
        Check::NonNull => None,
        Check::ThrottledReplicas => Some("* or partition:broker,...".to_string()),
        Check::QuorumVoters => Some("id@host:port,...".to_string()),
        Check::BootstrapServers => Some("host:port,...".to_string()),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Kafka compares ranges as doubles, with the same loss"
)]
fn as_real(bound: i64) -> f64 {
    bound as f64
}

/// A bound as Kafka writes it: whole numbers without a fraction.
fn short_text(bound: f64) -> String {
    let text = double_text(bound);
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

fn at_least(key: &Key, value: &Value, low_text: &str, low: f64) -> Result<(), ConfigError> {
    match value.as_number() {
        None => Err(ConfigError::value(
            key.name,
            "null",
            "Value must be non-null",
        )),
        Some(number) if number < low => Err(ConfigError::value(
            key.name,
            &value.error_text(),
            &format!("Value must be at least {low_text}"),
        )),
        Some(_) => Ok(()),
    }
}

fn at_most(key: &Key, value: &Value, high_text: &str, high: f64) -> Result<(), ConfigError> {
    match value.as_number() {
        Some(number) if number > high => Err(ConfigError::value(
            key.name,
            &value.error_text(),
            &format!("Value must be no more than {high_text}"),
        )),
        _ => Ok(()),
    }
}

fn list_of(value: &Value) -> &[String] {
    match value {
        Value::List(values) => values,
        _ => &[],
    }
}

fn check_list(
    key: &Key,
    value: &Value,
    allowed: &[&str],
    may_be_empty: bool,
    may_be_null: bool,
) -> Result<(), ConfigError> {
    let name = key.name;
    let Value::List(values) = value else {
        if may_be_null {
            return Ok(());
        }
        return Err(ConfigError::about(
            name,
            format!("Configuration '{name}' values must not be null."),
        ));
    };
    if values.is_empty() && !may_be_empty {
        let valid = if allowed.is_empty() {
            "any non-empty value".to_string()
        } else {
            format!("[{}]", allowed.join(", "))
        };
        return Err(ConfigError::about(
            name,
            format!("Configuration '{name}' must not be empty. Valid values include: {valid}"),
        ));
    }
    for element in values {
        if element.is_empty() {
            return Err(ConfigError::about(
                name,
                format!("Configuration '{name}' values must not be empty."),
            ));
        }
        if !allowed.is_empty() && !allowed.contains(&element.as_str()) {
            let why = format!("String must be one of: {}", allowed.join(", "));
            return Err(ConfigError::value(name, element, &why));
        }
    }
    Ok(())
}

/// `*`, or `partition:broker` pairs; empty elements count for nothing.
fn throttled_replicas(key: &Key, value: &Value) -> Result<(), ConfigError> {
    let entries: Vec<&str> = list_of(value).iter().map(|entry| entry.trim()).collect();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pair = |entry: &str| {
        entry.is_empty()
            || entry
                .split_once(':')
                .is_some_and(|(left, right)| digits(left) && digits(right))
    };
    if entries.iter().all(|entry| pair(entry)) || entries.concat() == "*" {
        return Ok(());
    }
    let name = key.name;
    let why = format!(
        "{name} must be the literal '*' or a list of replicas in the following format: \
         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
    Err(ConfigError::value(name, &value.error_text(), &why))
}
