//! Requests written and answers read straight from the schema, also where they break its rules.
use std::collections::BTreeMap;

use crate::schema::{Field, Message, Struct, Type};
use crate::value::Value;

/// What a field holds when nothing is said.
pub fn default(message: &Message, field: &Field) -> Value {
    let given = field.default.as_deref();
    if given == Some("null") {
        return Value::Null;
    }
    match &field.kind {
        Type::Bool => Value::Bool(given == Some("true")),
        Type::Float64 => Value::Float(0),
        Type::Uuid => Value::Uuid([0; 16]),
        Type::String => Value::text(given.unwrap_or("")),
        Type::Bytes | Type::Records => Value::Bytes(Vec::new()),
        Type::Array(_) => Value::Array(Vec::new()),
        Type::Struct(name) => {
            let fields = &message.structure(name).fields;
            let one = |field: &Field| (field.name.clone(), default(message, field));
            Value::Struct(fields.iter().map(one).collect())
        }
        _ => Value::Int(given.unwrap_or("0").parse().expect("a number")),
    }
}

/// Writes a request body. Nothing is checked: null goes out as null where the schema has none.
pub struct Writer<'a> {
    pub message: &'a Message,
    pub version: i16,
    /// What this side calls a known thing.
    pub resolve: &'a dyn Fn(&str) -> Value,
}

impl Writer<'_> {
    pub fn body(&self, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        self.structure(&mut out, self.message.structure(&self.message.name), value);
        out
    }

    fn structure(&self, out: &mut Vec<u8>, one: &Struct, value: &Value) {
        let flexible = self.message.flexible.contains(self.version);
        let mut tags = Vec::new();
        let present = one
            .fields
            .iter()
            .filter(|field| field.versions.contains(self.version));
        for field in present {
            let usual = default(self.message, field);
            let given = value.field(&field.name).unwrap_or(&usual);
            if let Some(tag) = field.tag {
                if *given != usual {
                    let mut bytes = Vec::new();
                    self.field(&mut bytes, field, given, true);
                    tags.push((tag, bytes));
                }
                continue;
            }
            let compact = flexible
                && field
                    .flexible
                    .is_none_or(|range| range.contains(self.version));
            self.field(out, field, given, compact);
        }
        if flexible {
            tags.sort();
            varint(out, tags.len());
            for (tag, bytes) in tags {
                varint(out, tag as usize);
                varint(out, bytes.len());
                out.extend(bytes);
            }
        }
    }

    fn field(&self, out: &mut Vec<u8>, field: &Field, value: &Value, compact: bool) {
        if let Type::Struct(_) = field.kind {
            match (value, field.tag) {
                (Value::Null, Some(_)) => return out.push(0),
                (Value::Null, None) => return out.push(0xff),
                _ if field.nullable.contains(self.version) => out.push(1),
                _ => {}
            }
        }
        self.plain(out, &field.kind, value, compact);
    }

    fn plain(&self, out: &mut Vec<u8>, kind: &Type, value: &Value, compact: bool) {
        match (kind, value) {
            (_, Value::Known(name)) => self.plain(out, kind, &(self.resolve)(name), compact),
            (_, Value::Null) => length(out, kind, -1, compact),
            (_, Value::Claim(claim)) => length(out, kind, *claim, compact),
            (Type::Bool, Value::Bool(value)) => out.push(u8::from(*value)),
            (Type::Bool | Type::Int8, Value::Int(value)) => out.extend(&value.to_be_bytes()[7..]),
            (Type::Int16 | Type::Uint16, Value::Int(value)) => {
                out.extend(&value.to_be_bytes()[6..]);
            }
            (Type::Int32 | Type::Uint32, Value::Int(value)) => {
                out.extend(&value.to_be_bytes()[4..]);
            }
            (Type::Int64, Value::Int(value)) => out.extend(value.to_be_bytes()),
            (Type::Float64, Value::Float(bits)) => out.extend(bits.to_be_bytes()),
            (Type::Uuid, Value::Uuid(id)) => out.extend(id),
            (Type::String, Value::Text(text)) => {
                length(out, kind, small(text.len()), compact);
                out.extend(text.as_bytes());
            }
            (Type::String | Type::Bytes | Type::Records, Value::Bytes(bytes)) => {
                length(out, kind, small(bytes.len()), compact);
                out.extend(bytes);
            }
            (Type::Struct(name), _) => self.structure(out, self.message.structure(name), value),
            (Type::Array(element), Value::Array(values)) => {
                length(out, kind, small(values.len()), compact);
                for value in values {
                    self.plain(out, element, value, compact);
                }
            }
            _ => panic!("{}: {kind:?} cannot be {value}", self.message.name),
        }
    }
}

fn small(length: usize) -> i32 {
    i32::try_from(length).expect("a small request")
}

/// A length or count; -1 is null.
fn length(out: &mut Vec<u8>, kind: &Type, length: i32, compact: bool) {
    if compact {
        varint(out, length.wrapping_add(1).cast_unsigned() as usize);
    } else if *kind == Type::String {
        out.extend(&length.to_be_bytes()[2..]);
    } else {
        out.extend(length.to_be_bytes());
    }
}

pub fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Reads an answer; the error says where its bytes are not what the schema says.
pub struct Reader<'a> {
    message: &'a Message,
    version: i16,
    bytes: &'a [u8],
}

type Read<T> = Result<T, String>;

impl<'a> Reader<'a> {
    pub fn body(message: &'a Message, version: i16, bytes: &'a [u8]) -> Read<Value> {
        let mut reader = Self {
            message,
            version,
            bytes,
        };
        let value = reader.structure(message.structure(&message.name))?;
        if reader.bytes.is_empty() {
            Ok(value)
        } else {
            Err(format!("{} bytes behind the answer", reader.bytes.len()))
        }
    }

    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(format!("{count} bytes wanted, {} left", self.bytes.len()));
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn int(&mut self, width: usize) -> Read<i64> {
        let taken = self.take(width)?;
        let start = if taken[0] & 0x80 == 0 { 0 } else { -1 };
        Ok(taken
            .iter()
            .fold(start, |number, byte| number << 8 | i64::from(*byte)))
    }

    fn varint(&mut self) -> Read<usize> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a varint too long".to_owned())
    }

    fn structure(&mut self, one: &Struct) -> Read<Value> {
        let flexible = self.message.flexible.contains(self.version);
        let mut fields = BTreeMap::new();
        let present: Vec<&Field> = one
            .fields
            .iter()
            .filter(|field| field.versions.contains(self.version))
            .collect();
        for field in &present {
            let value = if field.tag.is_some() {
                default(self.message, field)
            } else {
                self.field(field, flexible)
                    .map_err(|error| format!("{}: {error}", field.name))?
            };
            fields.insert(field.name.clone(), value);
        }
        if flexible {
            for _ in 0..self.varint()? {
                let (tag, size) = (self.varint()?, self.varint()?);
                let content = self.take(size)?;
                let field = present
                    .iter()
                    .find(|field| field.tag.is_some_and(|known| known as usize == tag))
                    .ok_or_else(|| format!("tag {tag} is unknown"))?;
                let mut inner = Reader {
                    bytes: content,
                    ..*self
                };
                let value = inner
                    .field(field, true)
                    .map_err(|error| format!("{}: {error}", field.name))?;
                fields.insert(field.name.clone(), value);
            }
        }
        Ok(Value::Struct(fields))
    }

    fn field(&mut self, field: &Field, compact: bool) -> Read<Value> {
        let nullable = field.nullable.contains(self.version);
        if let Type::Struct(_) = field.kind
            && nullable
            && self.int(1)? < 0
        {
            return Ok(Value::Null);
        }
        let value = self.plain(&field.kind, compact)?;
        if value == Value::Null && !nullable {
            return Err("null, where it cannot be".to_owned());
        }
        Ok(value)
    }

    fn plain(&mut self, kind: &Type, compact: bool) -> Read<Value> {
        Ok(match kind {
            Type::Bool => Value::Bool(self.int(1)? != 0),
            Type::Int8 => Value::Int(self.int(1)?),
            Type::Int16 => Value::Int(self.int(2)?),
            Type::Uint16 => Value::Int(self.int(2)? & 0xffff),
            Type::Int32 => Value::Int(self.int(4)?),
            Type::Uint32 => Value::Int(self.int(4)? & 0xffff_ffff),
            Type::Int64 => Value::Int(self.int(8)?),
            Type::Float64 => Value::Float(self.int(8)?.cast_unsigned()),
            Type::Uuid => Value::Uuid(self.take(16)?.try_into().expect("16 bytes")),
            Type::Struct(name) => self.structure(self.message.structure(name))?,
            Type::String | Type::Bytes | Type::Records => {
                let Some(size) = self.length(kind, compact)? else {
                    return Ok(Value::Null);
                };
                let taken = self.take(size)?.to_vec();
                if *kind == Type::String {
                    Value::Text(String::from_utf8(taken).map_err(|error| error.to_string())?)
                } else {
                    Value::Bytes(taken)
                }
            }
            Type::Array(element) => {
                let Some(count) = self.length(kind, compact)? else {
                    return Ok(Value::Null);
                };
                let values: Read<Vec<Value>> =
                    (0..count).map(|_| self.plain(element, compact)).collect();
                Value::Array(values?)
            }
        })
    }

    fn length(&mut self, kind: &Type, compact: bool) -> Read<Option<usize>> {
        let length = if compact {
            i64::try_from(self.varint()?).expect("five bytes") - 1
        } else {
            self.int(if *kind == Type::String { 2 } else { 4 })?
        };
        Ok(usize::try_from(length).ok())
    }
}
