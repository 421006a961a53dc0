//! Where two answers differ, and the file that says which differences are meant.
use std::cell::Cell;
use std::fmt;
use std::ops::RangeInclusive;

use crate::case::Case;
use crate::value::Value;

/// One place where the answers differ; what is missing on a side is `absent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    pub apache: String,
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}\n        apache: {}\n        ours:   {}",
            self.path, self.apache, self.ours
        )
    }
}

/// Fields by which the elements of an array are told apart.
const KEYS: &[&str] = &[
    "name",
    "topic",
    "group_id",
    "key",
    "resource_name",
    "api_key",
    "partition_index",
    "partition",
    "partition_id",
    "transactional_id",
    "member_id",
    "index",
];

fn key(value: &Value) -> Option<String> {
    let found = KEYS.iter().find_map(|name| value.field(name))?;
    let found = match found {
        Value::Text(text) => text.clone(),
        Value::Null => return None,
        other => other.to_string(),
    };
    // A broker and its loggers have the same name.
    Some(match value.field("resource_type") {
        Some(kind) => format!("{found} of type {kind}"),
        None => found,
    })
}

/// The keys of all elements, if each has one of its own.
fn keys(values: &[Value]) -> Option<Vec<String>> {
    let keys: Vec<String> = values.iter().map(key).collect::<Option<_>>()?;
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == keys.len()).then_some(keys)
}

pub fn compare(path: &str, apache: &Value, ours: &Value, found: &mut Vec<Difference>) {
    let note = |path: String, apache: Option<&Value>, ours: Option<&Value>| {
        let text =
            |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
        Difference {
            path,
            apache: text(apache),
            ours: text(ours),
        }
    };
    match (apache, ours) {
        (Value::Struct(left), Value::Struct(right)) => {
            for (name, value) in left {
                let place = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                compare(&place, value, &right[name], found);
            }
        }
        (Value::Array(left), Value::Array(right)) => match (keys(left), keys(right)) {
            (Some(left_keys), Some(right_keys)) => {
                for (key, value) in left_keys.iter().zip(left) {
                    let place = format!("{path}[{key}]");
                    match right_keys.iter().position(|other| other == key) {
                        Some(at) => compare(&place, value, &right[at], found),
                        None => found.push(note(place, Some(value), None)),
                    }
                }
                for (key, value) in right_keys.iter().zip(right) {
                    if !left_keys.contains(key) {
                        found.push(note(format!("{path}[{key}]"), None, Some(value)));
                    }
                }
            }
            _ if left.len() == right.len() => {
                for (index, (left, right)) in left.iter().zip(right).enumerate() {
                    compare(&format!("{path}[{index}]"), left, right, found);
                }
            }
            _ => found.push(note(path.to_owned(), Some(apache), Some(ours))),
        },
        _ if apache == ours => {}
        _ => found.push(note(path.to_owned(), Some(apache), Some(ours))),
    }
}

/// A difference that is meant.
#[derive(Debug, Default)]
pub struct Named {
    pub name: String,
    apis: Vec<(String, RangeInclusive<i16>)>,
    case: String,
    path: String,
    apache: String,
    ours: String,
    because: String,
    pub used: Cell<usize>,
}

impl Named {
    fn covers(&self, api: &str, version: i16, case: &str, difference: &Difference) -> bool {
        self.apis
            .iter()
            .any(|(name, versions)| matches(name, api) && versions.contains(&version))
            && matches(&self.case, case)
            && matches(&self.path, &difference.path)
            && matches(&self.apache, &difference.apache)
            && matches(&self.ours, &difference.ours)
    }
}

/// Whether the text is as one of the patterns says: ` | ` between them, `*` for any text.
pub fn matches(patterns: &str, text: &str) -> bool {
    patterns.split(" | ").any(|pattern| glob(pattern, text))
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

pub struct Differences(pub Vec<Named>);

impl Differences {
    /// Blocks of `key: value` with an empty line between them; a line that begins with a blank continues the one before.
    pub fn parse(text: &str) -> Self {
        let joined = text.lines().filter(|line| !line.starts_with('#')).fold(
            String::new(),
            |joined, line| match line.strip_prefix(' ') {
                Some(more) => joined + " " + more.trim(),
                None => joined + "\n" + line,
            },
        );
        let blocks = joined.split("\n\n").map(str::trim);
        Self(
            blocks
                .filter(|block| !block.is_empty())
                .map(parse_block)
                .collect(),
        )
    }

    /// The entry that covers the difference.
    pub fn find(&self, case: &Case, difference: &Difference) -> Option<&Named> {
        let (api, name) = (&case.base.api, case.name());
        let mut all = self.0.iter();
        all.find(|named| named.covers(api, case.version, &name, difference))
    }

    /// Whether one of them says that Apache does not answer.
    pub fn tell_of_silence(&self, case: &Case) -> bool {
        let silence = Difference {
            path: "connection".to_owned(),
            apache: "Silent".to_owned(),
            ours: "Open".to_owned(),
        };
        self.find(case, &silence)
            .is_some_and(|named| named.apache.contains("Silent"))
    }

    /// Whether all of them have a name.
    pub fn cover(&self, case: &Case, found: &[Difference]) -> bool {
        found.iter().all(|it| self.find(case, it).is_some())
    }
}

fn parse_block(block: &str) -> Named {
    let any = || "*".to_owned();
    let mut named = Named {
        case: any(),
        path: any(),
        apache: any(),
        ours: any(),
        ..Named::default()
    };
    for line in block.lines().filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim().to_owned();
        match key {
            "difference" => named.name = value,
            "api" => named.apis = value.split(", ").map(parse_api).collect(),
            "case" => named.case = value,
            "path" => named.path = value,
            "apache" => named.apache = value,
            "ours" => named.ours = value,
            "because" => named.because = value,
            _ => panic!("{line:?} in the file of differences"),
        }
    }
    let complete = !named.name.is_empty() && !named.apis.is_empty() && named.because.len() > 10;
    assert!(complete, "name, api and reason are needed: {block}");
    named
}

/// `Fetch`, `Fetch 12` or `Fetch 4-12`.
fn parse_api(text: &str) -> (String, RangeInclusive<i16>) {
    let Some((name, versions)) = text.split_once(' ') else {
        return (text.to_owned(), 0..=i16::MAX);
    };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("versions: {text}"));
    let (low, high) = versions.split_once('-').unwrap_or((versions, versions));
    (name.to_owned(), number(low)..=number(high))
}
