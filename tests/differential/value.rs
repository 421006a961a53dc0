//! A message as a tree, made from the schema or read by it.
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// The bits of a float64.
    Float(u64),
    Uuid([u8; 16]),
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Value>),
    /// Fields by name. What a request leaves out has its default.
    Struct(BTreeMap<String, Value>),
    /// In requests: what each side calls by a value of its own. In answers, the same once it is recognised.
    Known(String),
    /// In requests: a length or count that is claimed, with nothing behind it.
    Claim(i32),
}

impl Value {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub fn known(name: &str) -> Self {
        Self::Known(name.to_owned())
    }

    pub fn fields<const N: usize>(fields: [(&str, Value); N]) -> Self {
        Self::Struct(
            fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// The same with other fields on top.
    pub fn with<const N: usize>(mut self, fields: [(&str, Value); N]) -> Self {
        for (name, value) in fields {
            *self.at_mut(&[Step::Field(name.to_owned())]) = value;
        }
        self
    }

    pub fn list<const N: usize>(values: [Value; N]) -> Self {
        Self::Array(values.into())
    }

    pub fn strings<const N: usize>(values: [&str; N]) -> Self {
        Self::Array(values.into_iter().map(Self::text).collect())
    }

    pub fn ints<const N: usize>(values: [i64; N]) -> Self {
        Self::Array(values.into_iter().map(Self::Int).collect())
    }

    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The value at a path such as `topics.0.topic_id`.
    pub fn find(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, step| match value {
            Self::Struct(fields) => fields.get(step),
            Self::Array(values) => values.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    pub fn int(&self, path: &str) -> Option<i64> {
        match self.find(path)? {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The place at a path of fields and indexes; fields on the way are made where they are missing.
    pub fn at_mut(&mut self, path: &[Step]) -> &mut Value {
        path.iter().fold(self, |value, step| {
            if *value == Self::Null {
                *value = Self::Struct(BTreeMap::new());
            }
            match (value, step) {
                (Self::Struct(fields), Step::Field(name)) => {
                    fields.entry(name.clone()).or_insert(Self::Null)
                }
                (Self::Array(values), Step::Index(index)) => &mut values[*index],
                (value, step) => panic!("no {step:?} in {value}"),
            }
        })
    }

    /// Calls `change` for each value of the tree, the inner ones first.
    pub fn each_mut(&mut self, change: &mut impl FnMut(&str, &mut Value)) {
        self.each_named("", change);
    }

    fn each_named(&mut self, name: &str, change: &mut impl FnMut(&str, &mut Value)) {
        match self {
            Self::Struct(fields) => {
                for (name, value) in fields {
                    value.each_named(name, change);
                }
            }
            Self::Array(values) => values
                .iter_mut()
                .for_each(|value| value.each_named(name, change)),
            _ => {}
        }
        change(name, self);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Field(String),
    Index(usize),
}

pub fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text += name,
            Step::Field(name) => text += &format!(".{name}"),
            Step::Index(index) => text += &format!("[{index}]"),
        }
    }
    text
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Float(bits) => write!(out, "{}", f64::from_bits(*bits)),
            Self::Uuid(id) => write!(out, "uuid:{:032x}", u128::from_be_bytes(*id)),
            Self::Text(text) => write_text(out, text),
            Self::Bytes(bytes) => write_bytes(out, bytes),
            Self::Known(name) => write!(out, "{{{name}}}"),
            Self::Claim(length) => write!(out, "length:{length}"),
            Self::Array(values) => {
                out.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(out, "{}{value}", if index > 0 { ", " } else { "" })?;
                }
                out.write_str("]")
            }
            Self::Struct(fields) => {
                out.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(out, "{}{name}: {value}", if index > 0 { ", " } else { "" })?;
                }
                out.write_str("}")
            }
        }
    }
}

fn write_text(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    const SHOWN: usize = 400;
    let start: String = text.chars().take(SHOWN).collect();
    write!(out, "{start:?}")?;
    if start.len() < text.len() {
        write!(out, "…{}", text.len())?;
    }
    Ok(())
}

fn write_bytes(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const SHOWN: usize = 100;
    out.write_str("bytes:")?;
    for byte in bytes.iter().take(SHOWN) {
        write!(out, "{byte:02x}")?;
    }
    if bytes.len() > SHOWN {
        write!(out, "…{}", bytes.len())?;
    }
    Ok(())
}
