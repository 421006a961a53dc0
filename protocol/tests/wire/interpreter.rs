//! Values and bytes of any message straight from the schema, without the generated code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use protocol::{MessageInfo, messages, stored};

use crate::random::Random;
use crate::schema::{self, Field, Message, Struct, Type};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Uuid([u8; 16]),
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Value>),
    /// Fields by name; what is missing has its default.
    Struct(BTreeMap<String, Value>),
}

/// Why a message cannot be written in a version.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    NotInVersion,
    NullNotAllowed,
}

/// Every message of the schema with its generated counterpart.
pub fn all() -> Vec<(Message, MessageInfo)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let mut all = Vec::new();
    for (folder, catalog) in [("api", messages::CATALOG), ("stored", stored::CATALOG)] {
        let files = schema::read_folder(&root.join(folder));
        let before = all.len();
        for message in files.into_iter().flat_map(|file| file.messages) {
            let info = catalog.iter().find(|info| info.name == message.name);
            all.push((message, *info.expect("generated")));
        }
        assert_eq!(all.len() - before, catalog.len());
    }
    all
}

/// A random value with what `version` has.
pub fn generate(message: &Message, version: i16, random: &mut Random) -> Value {
    structure(
        message,
        message.structure(&message.name),
        version,
        random,
        0,
    )
}

fn structure(
    message: &Message,
    one: &Struct,
    version: i16,
    random: &mut Random,
    depth: u32,
) -> Value {
    let mut fields = BTreeMap::new();
    for field in one
        .fields
        .iter()
        .filter(|field| field.versions.contains(version))
    {
        if field.tag.is_some() && random.one_in(2) {
            continue;
        }
        let value = if field.nullable.contains(version) && random.one_in(4) {
            Value::Null
        } else if random.one_in(8) && default(message, field) != Value::Null {
            default(message, field)
        } else {
            plain(message, &field.kind, version, random, depth)
        };
        fields.insert(field.name.clone(), value);
    }
    Value::Struct(fields)
}

fn plain(message: &Message, kind: &Type, version: i16, random: &mut Random, depth: u32) -> Value {
    let raw = random.next();
    // Mostly small numbers, so that lengths of varints vary and defaults are met.
    let number = match raw % 4 {
        0 => raw >> 2,
        1 => raw >> 34,
        2 => (raw >> 60) & 7,
        _ => (raw >> 2).wrapping_neg(),
    };
    let len = |random: &mut Random| match random.below(16) {
        0 => 126 + random.below(4) as usize,
        other => other as usize / 2,
    };
    match kind {
        Type::Bool => Value::Bool(raw & 1 == 1),
        Type::Int8 => Value::Int((number as i8).into()),
        Type::Int16 => Value::Int((number as i16).into()),
        Type::Int32 => Value::Int((number as i32).into()),
        Type::Int64 => Value::Int(number as i64),
        Type::Uint16 => Value::Int((number as u16).into()),
        Type::Uint32 => Value::Int((number as u32).into()),
        Type::Float64 => Value::Float(number as i32 as f64 / 8.0),
        Type::Uuid if number & 7 == 0 => Value::Uuid([0; 16]),
        Type::Uuid => Value::Uuid(random.bytes(16).try_into().expect("16 bytes")),
        Type::String => {
            let letters = ['a', 'Z', '0', '.', '-', 'ä', '→', '🦀'];
            let pick = |_| letters[random.below(letters.len() as u64) as usize];
            let len = raw as usize % 12;
            Value::Text((0..len).map(pick).collect())
        }
        Type::Bytes | Type::Records => {
            let len = len(random);
            Value::Bytes(random.bytes(len))
        }
        Type::Struct(name) => {
            structure(message, message.structure(name), version, random, depth + 1)
        }
        Type::Array(element) => {
            let len = if depth > 2 {
                random.below(2)
            } else {
                random.below(4)
            };
            let one = |_| plain(message, element, version, random, depth + 1);
            Value::Array((0..len).map(one).collect())
        }
    }
}

/// The field's default, as Kafka's generator reads the schema.
fn default(message: &Message, field: &Field) -> Value {
    let given = field.default.as_deref();
    if given == Some("null") || field.kind == Type::Records {
        return Value::Null;
    }
    let parse = |text: Option<&str>| text.unwrap_or("0").parse::<i64>().expect("a number");
    match &field.kind {
        Type::Bool => Value::Bool(given == Some("true")),
        Type::Float64 => Value::Float(0.0),
        Type::Uuid => Value::Uuid([0; 16]),
        Type::String => Value::Text(given.unwrap_or("").to_owned()),
        Type::Bytes | Type::Records => Value::Bytes(Vec::new()),
        Type::Array(_) => Value::Array(Vec::new()),
        Type::Struct(name) => {
            let fields = &message.structure(name).fields;
            let one = |field: &Field| (field.name.clone(), default(message, field));
            Value::Struct(fields.iter().map(one).collect())
        }
        _ => Value::Int(parse(given)),
    }
}

fn is_default(message: &Message, field: &Field, value: &Value) -> bool {
    match (&field.kind, value) {
        (Type::Struct(name), Value::Struct(fields)) if field.default.is_none() => {
            let all = &message.structure(name).fields;
            all.iter().all(|field| {
                fields
                    .get(&field.name)
                    .is_none_or(|value| is_default(message, field, value))
            })
        }
        _ => *value == default(message, field),
    }
}

/// Tags that no schema has, for each tag section.
#[derive(Clone, Copy, PartialEq)]
pub enum Noise {
    None,
    UnknownTags,
}

/// The bytes of a value in `version`, whichever version it was made for.
pub fn write(
    message: &Message,
    value: &Value,
    version: i16,
    noise: Noise,
) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    let writer = Writer {
        message,
        version,
        noise,
    };
    writer.structure(&mut out, message.structure(&message.name), value)?;
    Ok(out)
}

/// The bytes of the message when all is left at its default.
pub fn write_default(message: &Message, version: i16) -> Result<Vec<u8>, Refusal> {
    write(
        message,
        &Value::Struct(BTreeMap::new()),
        version,
        Noise::None,
    )
}

struct Writer<'a> {
    message: &'a Message,
    version: i16,
    noise: Noise,
}

impl Writer<'_> {
    fn structure(&self, out: &mut Vec<u8>, one: &Struct, value: &Value) -> Result<(), Refusal> {
        let Value::Struct(values) = value else {
            panic!("{}: {value:?}", one.name)
        };
        let value_of = |field: &Field| match values.get(&field.name) {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(default(self.message, field)),
        };
        let flexible = self.message.flexible.contains(self.version);
        let mut tags = Vec::new();
        for field in &one.fields {
            let reachable = !field.versions.intersect(self.message.versions).is_empty();
            let value = value_of(field);
            if !field.versions.contains(self.version) {
                if reachable && !field.ignorable && !is_default(self.message, field, &value) {
                    return Err(Refusal::NotInVersion);
                }
                continue;
            }
            if let Some(tag) = field.tag {
                if !is_default(self.message, field, &value) {
                    let mut bytes = Vec::new();
                    self.field(&mut bytes, field, &value, true)?;
                    tags.push((tag, bytes));
                }
            } else {
                let field_flexible = flexible
                    && field
                        .flexible
                        .is_none_or(|range| range.contains(self.version));
                self.field(out, field, &value, field_flexible)?;
            }
        }
        if flexible {
            if self.noise == Noise::UnknownTags {
                tags.push((1000, b"noise".to_vec()));
                tags.push((u32::MAX, Vec::new()));
            }
            tags.sort();
            varint(out, tags.len() as u32);
            for (tag, bytes) in tags {
                varint(out, tag);
                varint(out, bytes.len() as u32);
                out.extend(bytes);
            }
        }
        Ok(())
    }

    fn field(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        value: &Value,
        flexible: bool,
    ) -> Result<(), Refusal> {
        let nullable = field.nullable.contains(self.version);
        if *value == Value::Null && !nullable {
            return Err(Refusal::NullNotAllowed);
        }
        let is_struct = matches!(field.kind, Type::Struct(_));
        match value {
            Value::Null if is_struct && field.tag.is_some() => out.push(0),
            Value::Null if is_struct => out.push(0xff),
            Value::Null if flexible => out.push(0),
            Value::Null if field.kind == Type::String => out.extend((-1i16).to_be_bytes()),
            Value::Null => out.extend((-1i32).to_be_bytes()),
            _ => {
                if is_struct && nullable {
                    out.push(1);
                }
                self.plain(out, &field.kind, value, flexible)?;
            }
        }
        Ok(())
    }

    fn plain(
        &self,
        out: &mut Vec<u8>,
        kind: &Type,
        value: &Value,
        flexible: bool,
    ) -> Result<(), Refusal> {
        match (kind, value) {
            (Type::Bool, Value::Bool(value)) => out.push(u8::from(*value)),
            (Type::Int8, Value::Int(value)) => out.push(*value as u8),
            (Type::Int16 | Type::Uint16, Value::Int(value)) => {
                out.extend((*value as u16).to_be_bytes());
            }
            (Type::Int32 | Type::Uint32, Value::Int(value)) => {
                out.extend((*value as u32).to_be_bytes());
            }
            (Type::Int64, Value::Int(value)) => out.extend(value.to_be_bytes()),
            (Type::Float64, Value::Float(value)) => out.extend(value.to_be_bytes()),
            (Type::Uuid, Value::Uuid(value)) => out.extend(value),
            (Type::String, Value::Text(text)) => {
                if flexible {
                    varint(out, text.len() as u32 + 1);
                } else {
                    out.extend((text.len() as u16).to_be_bytes());
                }
                out.extend(text.as_bytes());
            }
            (Type::Bytes | Type::Records, Value::Bytes(bytes)) => {
                length(out, bytes.len(), flexible);
                out.extend(bytes);
            }
            (Type::Struct(name), value) => {
                self.structure(out, self.message.structure(name), value)?;
            }
            (Type::Array(element), Value::Array(values)) => {
                length(out, values.len(), flexible);
                for value in values {
                    self.plain(out, element, value, flexible)?;
                }
            }
            _ => panic!("{kind:?} cannot be {value:?}"),
        }
        Ok(())
    }
}

fn length(out: &mut Vec<u8>, length: usize, flexible: bool) {
    if flexible {
        varint(out, length as u32 + 1);
    } else {
        out.extend((length as i32).to_be_bytes());
    }
}

fn varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
