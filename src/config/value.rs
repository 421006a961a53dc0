//! Typed values: text to value and back, exactly as Kafka's `ConfigDef` does it.

use super::error::ConfigError;
use super::keys::{DefaultValue, Key, ValueKind};

/// What Kafka answers and logs in place of a password.
pub const HIDDEN: &str = "[hidden]";

/// The value of a key.
#[derive(Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Int(i32),
    Short(i16),
    Long(i64),
    Double(f64),
    /// Text and the names of Java classes.
    Text(String),
    List(Vec<String>),
    Password(String),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_text().unwrap_or_else(|| "null".to_string()))
    }
}

impl Value {
    /// The value of `text` for a key of type `kind`. Surrounding space does not count.
    ///
    /// # Errors
    /// The text is not of that type; the error carries Kafka's words.
    pub fn parse(name: &str, kind: ValueKind, text: &str) -> Result<Value, ConfigError> {
        let trimmed = java_trim(text);
        let not_a_number = || {
            ConfigError::value(
                name,
                trimmed,
                &format!("Not a number of type {}", kind.name()),
            )
        };
        match kind {
            ValueKind::Boolean => {
                if trimmed.eq_ignore_ascii_case("true") {
                    Ok(Value::Boolean(true))
                } else if trimmed.eq_ignore_ascii_case("false") {
                    Ok(Value::Boolean(false))
                } else {
                    Err(ConfigError::value(
                        name,
                        text,
                        "Expected value to be either true or false",
                    ))
                }
            }
            ValueKind::String | ValueKind::Class => Ok(Value::Text(trimmed.to_string())),
            ValueKind::Password => Ok(Value::Password(trimmed.to_string())),
            ValueKind::Int => trimmed.parse().map(Value::Int).map_err(|_| not_a_number()),
            ValueKind::Short => trimmed
                .parse()
                .map(Value::Short)
                .map_err(|_| not_a_number()),
            ValueKind::Long => trimmed.parse().map(Value::Long).map_err(|_| not_a_number()),
            ValueKind::Double => parse_double(trimmed)
                .map(Value::Double)
                .ok_or_else(not_a_number),
            ValueKind::List => Ok(Value::List(split_list(trimmed))),
        }
    }

    /// The default of a key; `Null` for a required key, whose absence is an error of its own.
    pub fn default_of(key: &Key) -> Value {
        match key.default {
            DefaultValue::Required | DefaultValue::Null => Value::Null,
            DefaultValue::Text(text) => {
                Value::parse(key.name, key.kind, text).unwrap_or(Value::Null)
            }
        }
    }

    /// The text that Kafka answers for the value: lists joined by commas, passwords hidden, null as None.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Boolean(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Short(value) => Some(value.to_string()),
            Value::Long(value) => Some(value.to_string()),
            Value::Double(value) => Some(double_text(*value)),
            Value::Text(value) => Some(value.clone()),
            Value::List(values) => Some(values.join(",")),
            Value::Password(_) => Some(HIDDEN.to_string()),
        }
    }

    /// The text inside Kafka's error messages, where lists stand in brackets.
    pub fn error_text(&self) -> String {
        match self {
            Value::List(values) => format!("[{}]", values.join(", ")),
            other => other.to_text().unwrap_or_else(|| "null".to_string()),
        }
    }

    /// The value as a number for range checks.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(f64::from(*value)),
            Value::Short(value) => Some(f64::from(*value)),
            #[expect(
                clippy::cast_precision_loss,
                reason = "Kafka compares ranges as doubles, with the same loss"
            )]
            Value::Long(value) => Some(*value as f64),
            Value::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// `String.trim` of Java: everything up to and including the space character, at both ends.
pub fn java_trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Splits at commas with the space around them, like Java's `split("\\s*,\\s*", -1)`; nothing for an empty text.
pub fn split_list(trimmed: &str) -> Vec<String> {
    const JAVA_SPACE: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];
    if trimmed.is_empty() {
        return Vec::new();
    }
    trimmed
        .split(',')
        .map(|part| part.trim_matches(JAVA_SPACE).to_string())
        .collect()
}

/// `Double.parseDouble` without hexadecimal notation.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" => {
            return Some(if text.starts_with('-') {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            });
        }
        _ => {}
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let plain = digits
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if plain { digits.parse().ok() } else { None }
}

/// `Double.toString` of Java: 0.5, 1.0E-4, 1.7976931348623157E308.
pub fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "Infinity".to_string()
        } else {
            "-Infinity".to_string()
        };
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_java() {
        let int = |text| Value::parse("k", ValueKind::Int, text);
        assert_eq!(int(" 7 ").unwrap(), Value::Int(7));
        assert_eq!(int("+7").unwrap(), Value::Int(7));
        assert_eq!(
            int("2147483648").unwrap_err().to_string(),
            "Invalid value 2147483648 for configuration k: Not a number of type INT"
        );
        assert_eq!(
            int("").unwrap_err().to_string(),
            "Invalid value  for configuration k: Not a number of type INT"
        );
        for wrong in ["1.0", "0x10", "1_000", "1 000", "seven"] {
            assert!(int(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn doubles_follow_java() {
        for (text, shown) in [
            ("0.5", "0.5"),
            ("1", "1.0"),
            ("1.7976931348623157E308", "1.7976931348623157E308"),
            ("1e-4", "1.0E-4"),
            ("10000000", "1.0E7"),
            ("9999999", "9999999.0"),
            ("0.001", "0.001"),
            ("-2.5e10d", "-2.5E10"),
            ("-0", "-0.0"),
            ("Infinity", "Infinity"),
        ] {
            let value = Value::parse("k", ValueKind::Double, text).unwrap();
            assert_eq!(value.to_text().unwrap(), shown, "{text}");
        }
        for wrong in ["inf", "nan", "", "1..2", "0.5x", "1,5"] {
            assert!(
                Value::parse("k", ValueKind::Double, wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn lists_split_at_commas_and_keep_empty_elements() {
        let list = |text| Value::parse("k", ValueKind::List, text).unwrap();
        assert_eq!(
            list(" a , b,c "),
            Value::List(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(list(""), Value::List(vec![]));
        assert_eq!(
            list("a,,b,"),
            Value::List(vec!["a".into(), String::new(), "b".into(), String::new()])
        );
    }

    #[test]
    fn booleans_are_true_or_false_in_any_case() {
        assert_eq!(
            Value::parse("k", ValueKind::Boolean, " TRUE ").unwrap(),
            Value::Boolean(true)
        );
        assert_eq!(
            Value::parse("k", ValueKind::Boolean, "yes")
                .unwrap_err()
                .to_string(),
            "Invalid value yes for configuration k: Expected value to be either true or false"
        );
    }

    #[test]
    fn passwords_are_never_shown() {
        let value = Value::parse("k", ValueKind::Password, "secret").unwrap();
        assert_eq!(value.to_text().unwrap(), HIDDEN);
        assert_eq!(format!("{value:?}"), HIDDEN);
    }
}
