//! Stored records as JSON, in the text that Kafka's tools print: its generated converters, written by Jackson.
//!
//! The structs are turned into [`Json`] by generated code; members keep the schema's order.

use std::fmt::{self, Write as _};

use bytes::Bytes;

use crate::{Str, Uuid};

/// A value of JSON. `Display` is its text, without spaces.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Str),
    /// Shown as base64 with padding.
    Bytes(Bytes),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// The member of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members
                .iter()
                .find_map(|(key, value)| (*key == name).then_some(value)),
            _ => None,
        }
    }

    /// The same, to be replaced.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        match self {
            Json::Object(members) => members
                .iter_mut()
                .find_map(|(key, value)| (*key == name).then_some(value)),
            _ => None,
        }
    }

    /// The text, of a value that is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }
}

macro_rules! from_integers {
    ($($kind:ty),*) => {$(
        impl From<&$kind> for Json {
            fn from(value: &$kind) -> Json {
                Json::Int(i64::from(*value))
            }
        }
    )*};
}

from_integers!(i8, i16, i32, i64, u16, u32);

impl From<&bool> for Json {
    fn from(value: &bool) -> Json {
        Json::Bool(*value)
    }
}

impl From<&f64> for Json {
    fn from(value: &f64) -> Json {
        Json::Float(*value)
    }
}

impl From<&Uuid> for Json {
    fn from(value: &Uuid) -> Json {
        Json::Text(Str::from(value.to_string()))
    }
}

impl From<&Str> for Json {
    fn from(value: &Str) -> Json {
        Json::Text(value.clone())
    }
}

impl From<&Bytes> for Json {
    fn from(value: &Bytes) -> Json {
        Json::Bytes(value.clone())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Int(value) => write!(f, "{value}"),
            Json::Float(value) => write_float(f, *value),
            Json::Text(text) => write_text(f, text),
            Json::Bytes(bytes) => write_base64(f, bytes),
            Json::Array(elements) => {
                f.write_char('[')?;
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{element}")?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "\"{name}\":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

/// As Jackson escapes: short forms where there are some, capitals in the others, nothing above ASCII.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            letter if letter < ' ' => write!(f, "\\u{:04X}", u32::from(letter))?,
            letter => f.write_char(letter)?,
        }
    }
    f.write_char('"')
}

/// As Java shows a double: plain from 0.001 up to ten million, with an exponent beyond; what is no number as text.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    let size = value.abs();
    if value.is_nan() {
        f.write_str("\"NaN\"")
    } else if value.is_infinite() {
        f.write_str(if value > 0.0 {
            "\"Infinity\""
        } else {
            "\"-Infinity\""
        })
    } else if size == 0.0 || (1e-3..1e7).contains(&size) {
        write!(f, "{value:?}")
    } else {
        let text = format!("{value:E}");
        let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        write!(f, "{digits}{point}E{exponent}")
    }
}

fn write_base64(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    f.write_char('"')?;
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at > group.len() {
                f.write_char('=')?;
            } else {
                let index = (bits >> (18 - 6 * at)) & 63;
                f.write_char(char::from(ALPHABET[index as usize]))?;
            }
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_jacksons() {
        let text = "a\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}é😀";
        assert_eq!(
            Json::Text(Str::from(text.to_owned())).to_string(),
            "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\u{7f}é😀\""
        );
    }

    #[test]
    fn doubles_are_javas() {
        for (value, text) in [
            (0.0, "0.0"),
            (-1.0, "-1.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1234567.5, "1234567.5"),
            (10_000_000.0, "1.0E7"),
            (1.25e22, "1.25E22"),
            (f64::INFINITY, "\"Infinity\""),
        ] {
            assert_eq!(Json::Float(value).to_string(), text);
        }
    }

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in [
            (&b""[..], "\"\""),
            (b"f", "\"Zg==\""),
            (b"fo", "\"Zm8=\""),
            (b"foo", "\"Zm9v\""),
            (&[0xfb, 0xff, 0xfe], "\"+//+\""),
        ] {
            assert_eq!(Json::Bytes(Bytes::copy_from_slice(bytes)).to_string(), text);
        }
    }
}
