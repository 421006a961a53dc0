//! What can be wrong or unusual with one field of a request, from the schema alone.
use crate::codec::default;
use crate::schema::{Field, Message, Struct, Type, Versions};
use crate::side::{Frame, Request};
use crate::value::{Step, Value, path_text};

/// One thing that a case does to its base request.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub name: String,
    pub change: Change,
}

#[derive(Clone, Debug)]
pub enum Change {
    Field(Vec<Step>, Value),
    /// The first element of an array stands there again.
    Twice(Vec<Step>),
    Frame(Frame),
}

impl Change {
    /// Whether both can be done to one request: neither is inside the other.
    pub fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Field(one, _) | Self::Twice(one),
                Self::Field(other, _) | Self::Twice(other),
            ) => !one.starts_with(other) && !other.starts_with(one),
            _ => false,
        }
    }

    pub fn apply(&self, request: &mut Request) {
        match self {
            Self::Frame(frame) => request.frame = frame.clone(),
            Self::Field(path, value) => *request.body.at_mut(path) = value.clone(),
            Self::Twice(path) => {
                if let Value::Array(values) = request.body.at_mut(path) {
                    values.insert(0, values[0].clone());
                }
            }
        }
    }
}

/// All mutations of that request in that version. `records` are batches that a field of records may hold.
pub fn all(
    message: &Message,
    version: i16,
    base: &Value,
    records: &[(&'static str, Value)],
) -> Vec<Mutation> {
    let mut walk = Walk {
        message,
        version,
        records,
        found: Vec::new(),
    };
    let top = message.structure(&message.name);
    walk.structure(top, base, &mut Vec::new());
    walk.found.extend(frames(message, version));
    walk.found
}

/// What can be wrong around the body.
fn frames(message: &Message, version: i16) -> Vec<Mutation> {
    let Versions { min, max } = message.versions;
    let mut frames = vec![
        ("no client id", Frame::NoClientId),
        ("empty client id", Frame::EmptyClientId),
        ("bytes behind the body", Frame::Tail(vec![1, 2, 3])),
        ("one byte missing", Frame::Cut(1)),
        ("five bytes missing", Frame::Cut(5)),
        ("no body", Frame::NoBody),
    ];
    if message.flexible.contains(version) {
        frames.push(("unknown tag in the header", Frame::HeaderTag));
    }
    if version == min && min > 0 {
        frames.push(("version below the range", Frame::Version(min - 1)));
    }
    if version == max {
        frames.push(("version -1", Frame::Version(-1)));
        frames.push(("version above the range", Frame::Version(max + 1)));
        frames.push(("highest version there can be", Frame::Version(i16::MAX)));
    }
    let named = frames.into_iter().map(|(name, frame)| Mutation {
        name: name.to_owned(),
        change: Change::Frame(frame),
    });
    named.collect()
}

struct Walk<'a> {
    message: &'a Message,
    version: i16,
    records: &'a [(&'static str, Value)],
    found: Vec<Mutation>,
}

impl Walk<'_> {
    fn structure(&mut self, one: &Struct, value: &Value, path: &mut Vec<Step>) {
        let version = self.version;
        let present = one
            .fields
            .iter()
            .filter(|field| field.versions.contains(version));
        for field in present {
            let usual = default(self.message, field);
            let current = value.field(&field.name).unwrap_or(&usual);
            path.push(Step::Field(field.name.clone()));
            self.field(field, current, path);
            self.inside(&field.kind, current, path);
            path.pop();
        }
    }

    /// The first element stands for all.
    fn inside(&mut self, kind: &Type, current: &Value, path: &mut Vec<Step>) {
        match (kind, current) {
            (Type::Struct(name), Value::Struct(_)) => {
                self.structure(self.message.structure(name), current, path);
            }
            (Type::Array(element), Value::Array(values)) if !values.is_empty() => {
                path.push(Step::Index(0));
                if let Type::Struct(_) = **element {
                    self.inside(element, &values[0], path);
                } else {
                    for (label, value) in self.plain("", element) {
                        self.push(path, &label, value, &values[0]);
                    }
                }
                path.pop();
            }
            _ => {}
        }
    }

    fn push(&mut self, path: &[Step], label: &str, value: Value, current: &Value) {
        if value != *current {
            self.found.push(Mutation {
                name: format!("{}={label}", path_text(path)),
                change: Change::Field(path.to_vec(), value),
            });
        }
    }

    fn field(&mut self, field: &Field, current: &Value, path: &[Step]) {
        if field.kind.is_nullable() {
            // Also where the version has no null.
            self.push(path, "null", Value::Null, current);
        }
        match &field.kind {
            Type::Struct(_) => {}
            Type::Array(element) => self.array(element, current, path),
            kind => {
                for (label, value) in self.plain(&field.name, kind) {
                    self.push(path, &label, value, current);
                }
            }
        }
    }

    fn array(&mut self, element: &Type, current: &Value, path: &[Step]) {
        let mut candidates = vec![
            ("empty", Value::Array(Vec::new())),
            ("claims 2147483646", Value::Claim(i32::MAX - 1)),
            ("claims 300", Value::Claim(300)),
            ("claims -2", Value::Claim(-2)),
        ];
        let values = match current {
            Value::Array(values) => values.as_slice(),
            _ => &[],
        };
        if values.is_empty() {
            let one = match element {
                Type::Struct(_) => Value::Struct([].into()),
                plain => self.plain("", plain).swap_remove(0).1,
            };
            candidates.push(("one by default", Value::Array(vec![one])));
        } else {
            self.found.push(Mutation {
                name: format!("{}=twice the same", path_text(path)),
                change: Change::Twice(path.to_vec()),
            });
        }
        for (label, value) in candidates {
            self.push(path, label, value, current);
        }
    }

    /// Values worth trying in a field of that name and type, with what to call them.
    fn plain(&self, name: &str, kind: &Type) -> Vec<(String, Value)> {
        let named = |values: Vec<(&str, Value)>| {
            values
                .into_iter()
                .map(|(label, value)| (label.to_owned(), value))
                .collect()
        };
        match kind {
            Type::Bool => named(vec![
                ("false", Value::Bool(false)),
                ("true", Value::Bool(true)),
                ("byte 2", Value::Int(2)),
            ]),
            Type::Int8 => ints(name, i8::MIN.into(), i8::MAX.into()),
            Type::Int16 => ints(name, i16::MIN.into(), i16::MAX.into()),
            Type::Uint16 => ints(name, 0, u16::MAX.into()),
            Type::Int32 => ints(name, i32::MIN.into(), i32::MAX.into()),
            Type::Uint32 => ints(name, 0, u32::MAX.into()),
            Type::Int64 => ints(name, i64::MIN, i64::MAX),
            Type::Float64 => named(vec![("-1.5", Value::Float((-1.5f64).to_bits()))]),
            Type::Uuid => named(vec![
                ("zero", Value::Uuid([0; 16])),
                ("one", Value::Uuid(1u128.to_be_bytes())),
                ("unknown", Value::Uuid([0x12; 16])),
                ("another topic's", Value::known("compacted id")),
                ("a deleted topic's", Value::known("deleted id")),
            ]),
            Type::String => strings(name),
            Type::Bytes => named(vec![
                ("empty", Value::Bytes(Vec::new())),
                ("garbage", Value::Bytes(vec![0xfe; 40])),
                ("claims -2", Value::Claim(-2)),
                ("claims 300", Value::Claim(300)),
            ]),
            Type::Records => named(
                [
                    ("empty", Value::Bytes(Vec::new())),
                    ("garbage", Value::Bytes(vec![0xfe; 40])),
                    ("claims 300", Value::Claim(300)),
                ]
                .into_iter()
                .chain(self.records.iter().cloned())
                .collect(),
            ),
            Type::Struct(_) | Type::Array(_) => Vec::new(),
        }
    }
}

fn ints(name: &str, min: i64, max: i64) -> Vec<(String, Value)> {
    let mut numbers = vec![0, 1, -1, -2, 2, 7, 99, min, max];
    if name.contains("timestamp") {
        numbers.extend([
            -3,
            -4,
            -5,
            -6,
            -7,
            crate::fixture::TIME,
            crate::fixture::TIME + 1_500,
        ]);
    }
    if name.contains("type") {
        numbers.extend([3, 4, 8, 16, 32, 64]);
    }
    if name.contains("offset") {
        numbers.extend([3, 5, 9, 10, 11]);
    }
    if name.contains("timeout") {
        // Whether so little time is enough depends on the machine.
        numbers.retain(|number| !(1..100).contains(number));
    }
    numbers.retain(|number| (min..=max).contains(number));
    let mut named = Vec::new();
    for number in numbers {
        let entry = (number.to_string(), Value::Int(number));
        if !named.contains(&entry) {
            named.push(entry);
        }
    }
    named
}

fn strings(name: &str) -> Vec<(String, Value)> {
    let mut words = vec!["", "no-such", "ö"];
    if name.contains("topic") || name == "name" {
        words.extend([
            "bad/name",
            "..",
            "__consumer_offsets",
            "fixture",
            "compacted",
        ]);
    }
    if name.contains("group") {
        words.extend(["simple", "stable"]);
    }
    let mut named: Vec<(String, Value)> = words
        .iter()
        .map(|word| (format!("{word:?}"), Value::text(word)))
        .collect();
    for length in [249, 250, 32_767] {
        named.push((format!("{length} letters"), Value::Text("x".repeat(length))));
    }
    named.push(("not UTF-8".to_owned(), Value::Bytes(vec![b'a', 0xff, b'b'])));
    named.push(("claims -2".to_owned(), Value::Claim(-2)));
    named.push(("claims 300".to_owned(), Value::Claim(300)));
    named
}
