//! Properties of Kafka's clients: `key=value` on the command line and in files.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::Failure;
use super::client::read_properties;

/// The properties of a file and then those of the command line, which are stronger.
///
/// # Errors
/// A file that cannot be read, a property without a name.
pub(super) fn collect(
    file: Option<&Path>,
    flag: &str,
    pairs: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut properties = match file {
        Some(file) => read_properties(file)?,
        None => BTreeMap::new(),
    };
    for pair in pairs {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key.is_empty() {
            return Err(Failure::new(format!("{flag} {pair}: it must be KEY=VALUE")));
        }
        properties.insert(key.to_owned(), value.to_owned());
    }
    Ok(properties)
}

/// Properties read as what they are.
pub(super) struct Typed<'a>(pub(super) &'a BTreeMap<String, String>);

impl<'a> Typed<'a> {
    pub(super) fn text(&self, key: &str, default: &'a str) -> &'a str {
        self.0.get(key).map_or(default, |value| value.trim())
    }

    pub(super) fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T, Failure> {
        match self.0.get(key) {
            None => Ok(default),
            Some(text) => text
                .trim()
                .parse()
                .map_err(|_| Failure::new(format!("{key}={text}: it must be a number that fits"))),
        }
    }

    pub(super) fn boolean(&self, key: &str, default: bool) -> Result<bool, Failure> {
        match self.0.get(key).map(|text| text.trim()) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(Failure::new(format!(
                "{key}={text}: it must be true or false"
            ))),
        }
    }

    pub(super) fn millis(&self, key: &str, default: u64) -> Result<Duration, Failure> {
        self.number(key, default).map(Duration::from_millis)
    }
}
