//! The file format of `java.util.Properties`, read as Java's `Properties.load(InputStream)` reads it.
//!
//! Bytes are ISO-8859-1; anything else is written as `\uXXXX`. A line may go on after a backslash at its end;
//! `=`, `:` or space separates key and value; `#` and `!` start a comment; of a key given twice the last counts.

use std::collections::BTreeMap;

/// A file that Java would refuse too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedEscape {
    /// The logical line, as far as it is text.
    pub line: String,
}

impl std::fmt::Display for MalformedEscape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a \\u escape needs four hexadecimal digits, in the line: {}",
            self.line
        )
    }
}

impl std::error::Error for MalformedEscape {}

/// All keys of a file with their values, escapes resolved.
///
/// # Errors
/// A `\u` that four hexadecimal digits do not follow.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, String>, MalformedEscape> {
    let mut entries = BTreeMap::new();
    for line in LogicalLines::new(bytes) {
        let (key, value) = split(&line);
        let unescaped = |part| {
            unescape(part).ok_or_else(|| MalformedEscape {
                line: latin1(&line),
            })
        };
        entries.insert(unescaped(key)?, unescaped(value)?);
    }
    Ok(entries)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Lines after comments and blank lines are gone and continued lines are joined; escapes still stand in them.
struct LogicalLines<'a> {
    rest: &'a [u8],
}

impl<'a> LogicalLines<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        LogicalLines { rest: bytes }
    }

    /// The bytes up to the next line end, which is consumed (`\n`, `\r` or `\r\n`).
    fn natural_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self
            .rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        let skip = match self.rest.get(end..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        self.rest = &self.rest[end + skip..];
        Some(line)
    }
}

impl Iterator for LogicalLines<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut logical = Vec::new();
        while let Some(natural) = self.natural_line() {
            let start = natural
                .iter()
                .position(|byte| !is_space(*byte))
                .unwrap_or(natural.len());
            let text = &natural[start..];
            // As long as nothing was collected a comment is a comment, even after a lone backslash.
            if logical.is_empty() && matches!(text.first(), None | Some(b'#' | b'!')) {
                continue;
            }
            let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 1 {
                logical.extend_from_slice(&text[..text.len() - 1]);
                if self.rest.is_empty() {
                    // Java makes an entry with an empty key of a file that ends in a lone backslash.
                    return Some(logical);
                }
                continue;
            }
            logical.extend_from_slice(text);
            return Some(logical);
        }
        if logical.is_empty() {
            None
        } else {
            Some(logical)
        }
    }
}

/// Key and value of a logical line, both still escaped.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let mut key_end = line.len();
    for (at, byte) in line.iter().enumerate() {
        if !escaped && (matches!(byte, b'=' | b':') || is_space(*byte)) {
            key_end = at;
            break;
        }
        escaped = *byte == b'\\' && !escaped;
    }
    let mut value = &line[key_end..];
    let mut separator_seen = false;
    while let Some((first, tail)) = value.split_first() {
        if !is_space(*first) {
            if separator_seen || !matches!(first, b'=' | b':') {
                break;
            }
            separator_seen = true;
        }
        value = tail;
    }
    (&line[..key_end], value)
}

/// Resolves `\t \n \r \f \uXXXX`; a backslash before anything else only vanishes. None for a malformed `\u`.
fn unescape(part: &[u8]) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'\\' {
            units.push(u16::from(*byte));
            continue;
        }
        let Some((escape, tail)) = rest.split_first() else {
            break;
        };
        rest = tail;
        match escape {
            b'u' => {
                let digits = rest.get(..4)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                units.push(u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = &rest[4..];
            }
            b't' => units.push(0x09),
            b'n' => units.push(0x0a),
            b'r' => units.push(0x0d),
            b'f' => units.push(0x0c),
            other => units.push(u16::from(*other)),
        }
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let escapes = [
            ("\\", "\\\\"),
            ("\t", "\\t"),
            ("\n", "\\n"),
            ("\r", "\\r"),
            ("\u{c}", "\\f"),
        ];
        escapes
            .into_iter()
            .fold(text.to_string(), |text, (from, to)| text.replace(from, to))
    }

    /// The expectation was written by `java.util.Properties` itself, keys and values with escapes.
    #[test]
    fn an_odd_file_reads_as_in_java() {
        let entries = parse(include_bytes!("fixtures/odd.properties")).unwrap();
        let read: Vec<String> = entries
            .iter()
            .map(|(key, value)| format!("{}\t{}", shown(key), shown(value)))
            .collect();
        let expected: Vec<&str> = include_str!("fixtures/odd.expected")
            .split_terminator('\n')
            .collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn ends_of_files_read_as_in_java() {
        let entry = |key: &str, value: &str| BTreeMap::from([(key.to_string(), value.to_string())]);
        for (text, expected) in [
            ("\\", entry("", "")),
            ("a\\", entry("a", "")),
            ("a=b\\\n", entry("a", "b")),
            ("\\\n", entry("", "")),
            ("\\\n  ", BTreeMap::new()),
            ("#x", BTreeMap::new()),
            ("=", entry("", "")),
            ("  ", BTreeMap::new()),
            ("", BTreeMap::new()),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for text in ["a=\\u12", "a=\\uZZZZ", "\\u=1", "a=\\u+123"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(
            parse(b"x=1\nkey=\\uXX")
                .unwrap_err()
                .to_string()
                .ends_with("in the line: key=\\uXX")
        );
    }
}
