//! What a line says: headers, key and value, as Kafka's `LineMessageReader` parts them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;

use crate::tools::Failure;
use crate::tools::properties::Typed;

/// How lines are parted.
#[derive(Debug)]
pub(super) struct LineReader {
    parse_key: bool,
    parse_headers: bool,
    ignore_error: bool,
    key_separator: String,
    headers_delimiter: String,
    headers_separator: Regex,
    headers_key_separator: String,
    null_marker: Option<String>,
}

/// A line, parted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) value: Option<&'a str>,
    pub(super) headers: Vec<(&'a str, Option<&'a str>)>,
}

/// Without the end of the line; text that is not UTF-8 is repaired, as Java does.
pub(super) fn without_end(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line)
}

impl LineReader {
    pub(super) fn new(properties: &BTreeMap<String, String>) -> Result<LineReader, Failure> {
        let typed = Typed(properties);
        let flag = |key: &str| typed.text(key, "false").eq_ignore_ascii_case("true");
        let text = |key: &str, default: &str| {
            properties
                .get(key)
                .map_or_else(|| default.to_owned(), Clone::clone)
        };
        let key_separator = text("key.separator", "\t");
        let headers_delimiter = text("headers.delimiter", "\t");
        let headers_separator = text("headers.separator", ",");
        let headers_key_separator = text("headers.key.separator", ":");
        let null_marker = properties.get("null.marker").cloned();
        let same = |one: &str, other: &str| {
            Err(Failure::new(format!("{one} and {other} may not be equal")))
        };
        if headers_delimiter == headers_separator {
            return same("headers.delimiter", "headers.separator");
        }
        if headers_delimiter == headers_key_separator {
            return same("headers.delimiter", "headers.key.separator");
        }
        if headers_separator == headers_key_separator {
            return same("headers.separator", "headers.key.separator");
        }
        for (name, separator) in [
            ("key.separator", &key_separator),
            ("headers.separator", &headers_separator),
            ("headers.delimiter", &headers_delimiter),
            ("headers.key.separator", &headers_key_separator),
        ] {
            if null_marker.as_ref() == Some(separator) {
                return same("null.marker", name);
            }
        }
        Ok(LineReader {
            parse_key: flag("parse.key"),
            parse_headers: flag("parse.headers"),
            ignore_error: flag("ignore.error"),
            key_separator,
            headers_delimiter,
            headers_separator: Regex::new(&headers_separator).map_err(|_| {
                Failure::new(format!(
                    "headers.separator={headers_separator}: it is an invalid regex."
                ))
            })?,
            headers_key_separator,
            null_marker,
        })
    }

    pub(super) fn read<'a>(&self, line: &'a str, number: u64) -> Result<Parsed<'a>, Failure> {
        let mut rest = line;
        let headers = if self.parse_headers {
            self.before(
                &mut rest,
                &self.headers_delimiter,
                "headers delimiter",
                line,
                number,
            )?
        } else {
            None
        };
        let key = if self.parse_key {
            self.before(
                &mut rest,
                &self.key_separator,
                "key separator",
                line,
                number,
            )?
        } else {
            None
        };
        let headers = headers.and_then(|text| self.unless_null(text));
        Ok(Parsed {
            key: key.and_then(|text| self.unless_null(text)),
            value: self.unless_null(rest),
            headers: headers.map_or(Ok(Vec::new()), |text| self.headers(text, number))?,
        })
    }

    /// What stands before a separator, which goes too.
    fn before<'a>(
        &self,
        rest: &mut &'a str,
        separator: &str,
        name: &str,
        line: &str,
        number: u64,
    ) -> Result<Option<&'a str>, Failure> {
        match rest.split_once(separator) {
            Some((before, behind)) => {
                *rest = behind;
                Ok(Some(before))
            }
            None if self.ignore_error => Ok(None),
            None => Err(Failure::new(format!(
                "No {name} found on line number {number}: '{line}'"
            ))),
        }
    }

    fn unless_null<'a>(&self, text: &'a str) -> Option<&'a str> {
        (self.null_marker.as_deref() != Some(text)).then_some(text)
    }

    fn headers<'a>(
        &self,
        text: &'a str,
        number: u64,
    ) -> Result<Vec<(&'a str, Option<&'a str>)>, Failure> {
        let mut pairs: Vec<&str> = self.headers_separator.split(text).collect();
        // Java's split drops what is empty at the end.
        while pairs.len() > 1 && pairs.last().is_some_and(|last| last.is_empty()) {
            pairs.pop();
        }
        let mut headers = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let Some((key, value)) = pair.split_once(&self.headers_key_separator) else {
                if self.ignore_error {
                    headers.push((pair, None));
                    continue;
                }
                return Err(Failure::new(format!(
                    "No header key separator found in pair '{pair}' on line number {number}"
                )));
            };
            if self.unless_null(key).is_none() {
                return Err(Failure::new(format!(
                    "Header keys should not be equal to the null marker '{key}' as they can't be null"
                )));
            }
            headers.push((key, self.unless_null(value)));
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(pairs: &[(&str, &str)]) -> Result<LineReader, String> {
        let properties = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        LineReader::new(&properties).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_line_is_a_value_unless_told_otherwise() {
        let plain = reader(&[]).unwrap();
        assert_eq!(plain.read("a\tb", 1).unwrap().value, Some("a\tb"));
        assert_eq!(plain.read("", 1).unwrap().value, Some(""));
        let keyed = reader(&[("parse.key", "true"), ("key.separator", ":")]).unwrap();
        let parsed = keyed.read("k:v:w", 1).unwrap();
        assert_eq!((parsed.key, parsed.value), (Some("k"), Some("v:w")));
        assert_eq!(
            keyed.read("none", 7).unwrap_err().to_string(),
            "No key separator found on line number 7: 'none'"
        );
    }

    #[test]
    fn headers_keys_and_nulls() {
        let all = reader(&[
            ("parse.key", "true"),
            ("parse.headers", "true"),
            ("null.marker", "NULL"),
        ])
        .unwrap();
        let parsed = all.read("a:1,b:NULL,c:,\tNULL\tNULL", 1).unwrap();
        assert_eq!(
            parsed.headers,
            [("a", Some("1")), ("b", None), ("c", Some(""))]
        );
        assert_eq!((parsed.key, parsed.value), (None, None));
        assert!(all.read("NULL\tk\tv", 1).unwrap().headers.is_empty());
        for (line, error) in [
            (
                "a\tk\tv",
                "No header key separator found in pair 'a' on line number 3",
            ),
            (
                "NULL:1\tk\tv",
                "Header keys should not be equal to the null marker 'NULL' as they can't be null",
            ),
            ("k", "No headers delimiter found on line number 3: 'k'"),
        ] {
            assert_eq!(all.read(line, 3).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn separators_must_differ_and_errors_may_be_ignored() {
        let error = reader(&[("headers.separator", ":")]).unwrap_err();
        assert_eq!(
            error,
            "headers.separator and headers.key.separator may not be equal"
        );
        let error = reader(&[("null.marker", "\t")]).unwrap_err();
        assert_eq!(error, "null.marker and key.separator may not be equal");
        let lenient = reader(&[("parse.key", "true"), ("ignore.error", "true")]).unwrap();
        let parsed = lenient.read("only", 1).unwrap();
        assert_eq!((parsed.key, parsed.value), (None, Some("only")));
    }
}
