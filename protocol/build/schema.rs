//! The schema's text form, parsed. See the crate's README for the format.
//!
//! Used by the build script, and again by the tests, which walk the same description with an
//! interpreter of their own to check what was generated.

use std::fmt::Write as _;
use std::path::Path;

/// An inclusive range of versions; `max == i16::MAX` is written `N+`, and nothing is `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub min: i16,
    pub max: i16,
}

impl Versions {
    pub const NONE: Versions = Versions { min: 1, max: 0 };

    pub fn is_empty(self) -> bool {
        self.min > self.max
    }

    pub fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    pub fn intersect(self, other: Versions) -> Versions {
        Versions {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    fn parse(text: &str) -> Option<Versions> {
        if text == "none" {
            return Some(Versions::NONE);
        }
        if let Some(min) = text.strip_suffix('+') {
            return Some(Versions {
                min: min.parse().ok()?,
                max: i16::MAX,
            });
        }
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        Some(Versions {
            min: min.parse().ok()?,
            max: max.parse().ok()?,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint16,
    Uint32,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    /// Kafka's name of the struct, without the message's name before it.
    Struct(String),
    Array(Box<Type>),
}

impl Type {
    fn parse(text: &str) -> Type {
        if let Some(element) = text.strip_prefix("[]") {
            return Type::Array(Box::new(Type::parse(element)));
        }
        match text {
            "bool" => Type::Bool,
            "int8" => Type::Int8,
            "int16" => Type::Int16,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "uint16" => Type::Uint16,
            "uint32" => Type::Uint32,
            "float64" => Type::Float64,
            "uuid" => Type::Uuid,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "records" => Type::Records,
            name => Type::Struct(name.to_owned()),
        }
    }

    /// Can a value of this type be null at all?
    pub fn is_nullable(&self) -> bool {
        matches!(
            self,
            Type::String | Type::Bytes | Type::Records | Type::Struct(_) | Type::Array(_)
        )
    }

    /// The name of the struct, of the field or of the array's elements.
    pub fn struct_name(&self) -> Option<&str> {
        match self {
            Type::Struct(name) => Some(name),
            Type::Array(element) => element.struct_name(),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub kind: Type,
    pub versions: Versions,
    pub nullable: Versions,
    /// A tagged field has this number in every version that has it.
    pub tag: Option<u32>,
    pub default: Option<String>,
    /// Overrides where the message turns flexible (the client id of the request header).
    pub flexible: Option<Versions>,
    /// May be left out silently where the version lacks it.
    pub ignorable: bool,
}

#[derive(Clone, Debug)]
pub struct Struct {
    pub name: String,
    pub versions: Versions,
    pub fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
    /// Stored with its type id and version before it in one frame.
    Record,
    /// Key of a coordinator's record: the type id stands before it.
    Key,
    /// Value of a coordinator's record: the version stands before it.
    Value,
    Data,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub kind: Kind,
    /// Api key of a request or response, type id of a record, key or value.
    pub id: Option<i16>,
    pub name: String,
    pub versions: Versions,
    pub flexible: Versions,
    pub latest_unstable: bool,
    /// The first is the message itself, under its own name.
    pub structs: Vec<Struct>,
}

impl Message {
    pub fn structure(&self, name: &str) -> &Struct {
        self.structs
            .iter()
            .find(|one| one.name == name)
            .unwrap_or_else(|| panic!("{}: no struct {name}", self.name))
    }
}

#[derive(Clone, Debug)]
pub struct Api {
    pub key: i16,
    pub name: String,
    pub listeners: Vec<String>,
    pub advertised_min: Option<i16>,
    pub cluster_action: bool,
    pub forwardable: bool,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub apis: Vec<Api>,
    /// Name of the group of stored records, e.g. `metadata`.
    pub records: Option<String>,
    pub messages: Vec<Message>,
}

/// All files of a folder, ordered by name.
pub fn read_folder(folder: &Path) -> Vec<File> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).expect("a readable schema file");
            parse(&text).unwrap_or_else(|error| panic!("{}:{error}", path.display()))
        })
        .collect()
}

/// The error is `line: what is wrong`.
pub fn parse(text: &str) -> Result<File, String> {
    let mut file = File::default();
    // Open structs of the current message: (indent of their fields, index into its structs).
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fail = |what: &str| Err(format!("{}: {what}: {line}", index + 1));
        let body = line.split('#').next().unwrap_or("").trim_end();
        let words: Vec<&str> = body.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let indent = (body.len() - body.trim_start().len()) / 2;
        if indent == 0 {
            if parse_heading(&mut file, &words).is_none() {
                return fail("not a heading");
            }
            open = vec![(1, 0)];
            continue;
        }
        let Some(message) = file.messages.last_mut() else {
            return fail("no message yet");
        };
        while open.last().is_some_and(|(at, _)| *at > indent) {
            open.pop();
        }
        let Some((at, parent)) = open.last().copied() else {
            return fail("indented wrongly");
        };
        if at != indent {
            return fail("indented too far");
        }
        if words[0] == "struct" && words.len() == 3 {
            let Some(versions) = Versions::parse(words[2]) else {
                return fail("versions");
            };
            let name = words[1].to_owned();
            message.structs.push(Struct {
                name,
                versions,
                fields: Vec::new(),
            });
            open.push((indent + 1, message.structs.len() - 1));
            continue;
        }
        let Some(field) = parse_field(&words) else {
            return fail("not a field");
        };
        if let Some(name) = field.kind.struct_name()
            && !message.structs.iter().any(|one| one.name == name)
        {
            // The struct's fields follow, indented.
            let (name, versions) = (name.to_owned(), field.versions);
            message.structs.push(Struct {
                name,
                versions,
                fields: Vec::new(),
            });
            open.push((indent + 1, message.structs.len() - 1));
        }
        message.structs[parent].fields.push(field);
    }
    check(&file)?;
    Ok(file)
}

fn parse_heading(file: &mut File, words: &[&str]) -> Option<()> {
    match words[0] {
        "api" => {
            let listeners = option(words, "listeners").unwrap_or("");
            file.apis.push(Api {
                key: words.get(1)?.parse().ok()?,
                name: (*words.get(2)?).to_owned(),
                listeners: listeners.split(',').map(str::to_owned).collect(),
                advertised_min: option(words, "advertised-min").and_then(|min| min.parse().ok()),
                cluster_action: words.contains(&"cluster-action"),
                forwardable: words.contains(&"forwardable"),
            });
            return Some(());
        }
        "records" => {
            file.records = Some((*words.get(1)?).to_owned());
            return Some(());
        }
        _ => {}
    }
    let api = file.apis.last();
    let (kind, id, name) = match words[0] {
        "request" => (
            Kind::Request,
            Some(api?.key),
            format!("{}Request", api?.name),
        ),
        "response" => (
            Kind::Response,
            Some(api?.key),
            format!("{}Response", api?.name),
        ),
        "data" => (Kind::Data, None, (*words.get(1)?).to_owned()),
        word => {
            let kind = match word {
                "record" => Kind::Record,
                "key" => Kind::Key,
                "value" => Kind::Value,
                _ => return None,
            };
            (
                kind,
                Some(words.get(1)?.parse().ok()?),
                (*words.get(2)?).to_owned(),
            )
        }
    };
    let versions = Versions::parse(option(words, "versions")?)?;
    file.messages.push(Message {
        kind,
        id,
        structs: vec![Struct {
            name: name.clone(),
            versions,
            fields: Vec::new(),
        }],
        name,
        versions,
        flexible: Versions::parse(option(words, "flexible")?)?,
        latest_unstable: words.contains(&"latest-unstable"),
    });
    Some(())
}

fn parse_field(words: &[&str]) -> Option<Field> {
    let nullable = match option(words, "null") {
        Some(text) => Versions::parse(text)?,
        None => Versions::NONE,
    };
    let tag = match option(words, "tag") {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    let flexible = match option(words, "flexible") {
        Some(text) => Some(Versions::parse(text)?),
        None => None,
    };
    Some(Field {
        name: (*words.first()?).to_owned(),
        kind: Type::parse(words.get(1)?),
        versions: Versions::parse(words.get(2)?)?,
        nullable,
        tag,
        default: option(words, "default").map(str::to_owned),
        flexible,
        ignorable: words.contains(&"ignorable"),
    })
}

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words
        .iter()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// What the generator relies on.
fn check(file: &File) -> Result<(), String> {
    let mut wrong = String::new();
    for message in &file.messages {
        for one in &message.structs {
            if one.fields.is_empty() && one.name != message.name {
                let _ = write!(wrong, "{} {}: no fields", message.name, one.name);
            }
            let mut tags = Vec::new();
            for field in &one.fields {
                let place = format!("{} {}.{}", message.name, one.name, field.name);
                if !field.nullable.is_empty() && !field.kind.is_nullable() {
                    let _ = write!(wrong, "{place}: this type cannot be null");
                }
                if let Some(tag) = field.tag {
                    tags.push(tag);
                    if field.versions.intersect(message.versions).min < message.flexible.min {
                        let _ = write!(wrong, "{place}: tagged before the message is flexible");
                    }
                }
            }
            tags.sort_unstable();
            if !tags.iter().copied().eq(0..tags.len() as u32) {
                let _ = write!(wrong, "{} {}: tags leave a gap", message.name, one.name);
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
