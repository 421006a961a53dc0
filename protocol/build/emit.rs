//! Rust from the schema: one struct a struct, with `read` and `write` over all versions at once.
//!
//! The text is kept short on purpose, since the crate holds over six hundred structs: what can be
//! a call into `wire` is one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::schema::{Field, Kind, Message, Struct, Type, Versions};

/// When a piece of code applies, within the versions that its surroundings already have.
enum When {
    Always,
    Never,
    If(String),
}

impl When {
    fn of(range: Versions, context: Versions) -> When {
        let both = range.intersect(context);
        if both.is_empty() {
            return When::Never;
        }
        let mut tests = Vec::new();
        if both.min > context.min {
            tests.push(format!("v >= {}", both.min));
        }
        if both.max < context.max {
            tests.push(format!("v <= {}", both.max));
        }
        match tests.len() {
            0 => When::Always,
            _ if both.min == both.max => When::If(format!("v == {}", both.min)),
            _ => When::If(tests.join(" && ")),
        }
    }

    fn expression(&self) -> &str {
        match self {
            When::Always => "true",
            When::Never => "false",
            When::If(test) => test,
        }
    }
}

/// `json`: whether the structs can also be shown as JSON, which only stored ones need.
pub fn message(out: &mut String, message: &Message, json: bool) {
    let used = used_structs(message);
    for one in message
        .structs
        .iter()
        .filter(|one| used.contains(&one.name))
    {
        let context = message.versions.intersect(one.versions);
        let emitter = Emitter {
            message,
            context,
            json,
        };
        emitter.structure(out, one);
    }
    let flexible = if message.flexible.is_empty() {
        i16::MAX
    } else {
        message.flexible.min.max(0)
    };
    let stable = if message.latest_unstable {
        message.versions.max - 1
    } else {
        message.versions.max
    };
    let _ = writeln!(
        out,
        "message!({}, {}, {}, {}, {});",
        message.name, message.versions.min, message.versions.max, stable, flexible
    );
    if message.kind == Kind::Request || message.kind == Kind::Response {
        let macro_name = if message.kind == Kind::Request {
            "request"
        } else {
            "response"
        };
        let name = &message.name;
        let api = name
            .strip_suffix("Request")
            .or_else(|| name.strip_suffix("Response"))
            .expect("named for its API and kind");
        let _ = writeln!(out, "{macro_name}!({}, {api}, {api}Response);", name);
    }
}

/// Structs that a valid version can reach.
fn used_structs(message: &Message) -> BTreeSet<String> {
    let mut used = BTreeSet::from([message.name.clone()]);
    let mut todo = vec![message.name.clone()];
    while let Some(name) = todo.pop() {
        for field in &message.structure(&name).fields {
            if field.versions.intersect(message.versions).is_empty() {
                continue;
            }
            if let Some(child) = field.kind.struct_name()
                && used.insert(child.to_owned())
            {
                todo.push(child.to_owned());
            }
        }
    }
    used
}

/// Whether a struct, or one inside it, has an error code.
fn has_errors(message: &Message, name: &str) -> bool {
    message.structure(name).fields.iter().any(|field| {
        let own = field.kind == Type::Int16 && field.name.ends_with("error_code");
        let child = field.kind.struct_name();
        own || child.is_some_and(|child| has_errors(message, child))
    })
}

struct Emitter<'a> {
    message: &'a Message,
    /// Versions in which the struct at hand occurs.
    context: Versions,
    json: bool,
}

impl Emitter<'_> {
    fn structure(&self, out: &mut String, one: &Struct) {
        let fields: Vec<&Field> = one
            .fields
            .iter()
            .filter(|field| !self.present(field).is_empty())
            .collect();
        let name = self.rust_name(&one.name);
        let plain = fields.iter().all(|field| self.default_is_plain(field));
        let _ = writeln!(out, "/// {}.", describe(self.message, one, self.context));
        let default = if plain { "Default, " } else { "" };
        let _ = writeln!(
            out,
            "#[derive(Clone, Debug, {default}PartialEq)]\npub struct {name} {{"
        );
        for field in &fields {
            let _ = writeln!(
                out,
                "    /// {}.\n    pub {}: {},",
                describe_field(field),
                ident(&field.name),
                self.rust_type(field)
            );
        }
        out.push_str("}\n");
        if !plain {
            let _ = writeln!(
                out,
                "impl Default for {name} {{\n    fn default() -> Self {{"
            );
            out.push_str("        Self {\n");
            for field in &fields {
                let value = self.default_value(field);
                let _ = writeln!(out, "            {}: {value},", ident(&field.name));
            }
            out.push_str("        }\n    }\n}\n");
        }
        let _ = writeln!(out, "impl {name} {{");
        self.reader(out, &fields);
        self.writer(out, &fields);
        let whole = one.name == self.message.name;
        if self.message.kind == Kind::Response && (whole || has_errors(self.message, &one.name)) {
            self.errors(out, &fields);
        }
        if self.json {
            self.json(out, &fields);
        }
        out.push_str("}\n");
    }

    /// Kafka's order is the schema's, tagged fields where they stand; of those, defaults are left out.
    fn json(&self, out: &mut String, fields: &[&Field]) {
        out.push_str(
            "    /// The value in this version, as Kafka's converters show it.\n    pub fn json(&self, v: i16) -> Json {\n        let _ = v;\n        let mut object = Vec::new();\n",
        );
        for field in fields {
            let put = format!(
                "object.push((\"{}\", {}));",
                json_name(&field.name),
                self.json_value(field)
            );
            let put = if field.tag.is_some() {
                format!("if {} {{ {put} }}", self.differs(field))
            } else {
                put
            };
            match When::of(field.versions, self.context) {
                When::Always => drop(writeln!(out, "        {put}")),
                When::Never => {}
                When::If(test) => drop(writeln!(out, "        if {test} {{ {put} }}")),
            }
        }
        out.push_str("        Json::Object(object)\n    }\n");
    }

    fn json_value(&self, field: &Field) -> String {
        let name = format!("self.{}", ident(&field.name));
        let value = |one: &str| match &field.kind {
            Type::Struct(_) => format!("{one}.json(v)"),
            Type::Array(element) => match element.as_ref() {
                Type::Struct(_) => {
                    format!("Json::Array({one}.iter().map(|one| one.json(v)).collect())")
                }
                _ => format!("Json::Array({one}.iter().map(Json::from).collect())"),
            },
            _ if one == "one" => "Json::from(one)".to_owned(),
            _ => format!("Json::from(&{one})"),
        };
        if !self.is_option(field) {
            return value(&name);
        }
        match value("one").as_str() {
            "Json::from(one)" => format!("{name}.as_ref().map_or(Json::Null, Json::from)"),
            value => format!("{name}.as_ref().map_or(Json::Null, |one| {value})"),
        }
    }

    fn reader(&self, out: &mut String, fields: &[&Field]) {
        out.push_str(
            "    pub(crate) fn read(r: &mut Reader, v: i16) -> Result<Self, DecodeError> {\n",
        );
        out.push_str("        let _ = v;\n        let mut x = Self::default();\n");
        for field in fields.iter().filter(|field| field.tag.is_none()) {
            let statement = self.read_statement(field);
            match When::of(field.versions, self.context) {
                When::Always => drop(writeln!(out, "        {statement}")),
                When::Never => {}
                When::If(test) => drop(writeln!(out, "        if {test} {{ {statement} }}")),
            }
        }
        let tagged = by_tag(fields);
        let section = if tagged.is_empty() {
            "r.skip_tags()?;".to_owned()
        } else {
            let mut section = "r.tags(|r, tag| { match tag {\n".to_owned();
            for field in tagged {
                let guard = match When::of(field.versions, self.flexible_context()) {
                    When::If(test) => format!(" if {test}"),
                    _ => String::new(),
                };
                let tag = field.tag.unwrap_or(0);
                let statement = self.read_statement(field);
                let _ = writeln!(section, "            {tag}{guard} => {{ {statement} }}");
            }
            section.push_str("            _ => return Ok(false),\n        } Ok(true) })?;");
            section
        };
        match self.flexible() {
            When::Always => drop(writeln!(out, "        {section}")),
            When::Never => {}
            When::If(test) => drop(writeln!(out, "        if {test} {{ {section} }}")),
        }
        out.push_str("        let _ = r;\n        Ok(x)\n    }\n");
    }

    fn writer(&self, out: &mut String, fields: &[&Field]) {
        out.push_str(
            "    pub(crate) fn write(&self, w: &mut Writer, v: i16) -> Result<(), EncodeError> {\n        let _ = v;\n",
        );
        for field in fields.iter() {
            let absent = if field.ignorable {
                String::new()
            } else {
                let name = &field.name;
                format!(
                    "if {} {{ return Err(EncodeError::absent(\"{name}\")); }}",
                    self.differs(field)
                )
            };
            let present = if field.tag.is_some() {
                String::new()
            } else {
                self.write_statement(field)
            };
            match When::of(field.versions, self.context) {
                When::Always => drop(writeln!(out, "        {present}")),
                When::Never => {}
                When::If(test) if present.is_empty() && absent.is_empty() => drop(test),
                When::If(test) if present.is_empty() => {
                    let _ = writeln!(out, "        if !({test}) {{ {absent} }}");
                }
                When::If(test) if absent.is_empty() => {
                    let _ = writeln!(out, "        if {test} {{ {present} }}");
                }
                When::If(test) => {
                    let _ = writeln!(out, "        if {test} {{ {present} }} else {absent}");
                }
            }
        }
        let tagged = by_tag(fields);
        let section = if tagged.is_empty() {
            "w.no_tags();".to_owned()
        } else {
            let mut section = "let mut tags = TagWriter::default();\n".to_owned();
            for field in tagged {
                let mut test = self.differs(field);
                if let When::If(versions) = When::of(field.versions, self.flexible_context()) {
                    test = format!("{versions} && {test}");
                }
                let tag = field.tag.unwrap_or(0);
                let statement = self.write_statement(field);
                let _ = writeln!(
                    section,
                    "            if {test} {{ tags.put({tag}, |w| {{ {statement} Ok(()) }})?; }}"
                );
            }
            section.push_str("            tags.finish(w)?;");
            section
        };
        match self.flexible() {
            When::Always => drop(writeln!(out, "        {section}")),
            When::Never => {}
            When::If(test) => drop(writeln!(out, "        if {test} {{ {section} }}")),
        }
        out.push_str("        let _ = w;\n        Ok(())\n    }\n");
    }

    /// A walk over the error codes of a response.
    fn errors(&self, out: &mut String, fields: &[&Field]) {
        out.push_str("    pub(crate) fn each_error(&self, visit: &mut dyn FnMut(i16)) {\n        let _ = &visit;\n");
        for field in fields {
            let name = ident(&field.name);
            if field.kind == Type::Int16 && field.name.ends_with("error_code") {
                let _ = writeln!(out, "        visit(self.{name});");
            }
            let Some(child) = field.kind.struct_name() else {
                continue;
            };
            if !has_errors(self.message, child) {
                continue;
            }
            let each = match (&field.kind, self.is_option(field)) {
                (Type::Array(_), true) => format!("self.{name}.iter().flatten()"),
                (Type::Array(_), false) | (_, true) => format!("self.{name}.iter()"),
                _ => format!("std::iter::once(&self.{name})"),
            };
            let _ = writeln!(out, "        {each}.for_each(|one| one.each_error(visit));");
        }
        out.push_str("    }\n");
    }

    fn flexible(&self) -> When {
        When::of(self.message.flexible, self.context)
    }

    fn flexible_context(&self) -> Versions {
        self.message.flexible.intersect(self.context)
    }

    fn present(&self, field: &Field) -> Versions {
        field.versions.intersect(self.context)
    }

    /// Whether the field has the compact form of lengths, as an expression.
    fn compact(&self, field: &Field) -> String {
        if field.tag.is_some() {
            return "true".to_owned();
        }
        let flexible = match field.flexible {
            Some(versions) => versions.intersect(self.message.flexible),
            None => self.message.flexible,
        };
        When::of(flexible, self.present(field))
            .expression()
            .to_owned()
    }

    fn is_option(&self, field: &Field) -> bool {
        field.kind == Type::Records || !field.nullable.intersect(self.present(field)).is_empty()
    }

    /// A check that null is allowed, where it is not always.
    fn null_check(&self, field: &Field, subject: &str, failure: &str) -> String {
        let test = match When::of(field.nullable, self.present(field)) {
            When::Always => return String::new(),
            When::Never => String::new(),
            When::If(test) => format!("!({test}) && "),
        };
        format!("if {test}{subject}.is_none() {{ return Err({failure}); }}")
    }

    fn read_statement(&self, field: &Field) -> String {
        let name = ident(&field.name);
        let compact = self.compact(field);
        let option = self.is_option(field);
        let prefix = if option { "nullable_" } else { "" };
        let value = match &field.kind {
            Type::String => format!("r.{prefix}string({compact})?"),
            Type::Bytes | Type::Records => format!("r.{prefix}bytes({compact})?"),
            Type::Array(element) => {
                let minimum = self.minimum_element(field, element);
                let closure = self.read_element(element, &compact);
                format!("r.{prefix}array({compact}, {minimum}, {closure})?")
            }
            Type::Struct(kind) => {
                let kind = self.rust_name(kind);
                match (option, field.tag.is_some()) {
                    (false, _) => format!("{kind}::read(r, v)?"),
                    (true, tagged) => {
                        let nullable = When::of(field.nullable, self.present(field));
                        let mut test = if tagged {
                            "r.tagged_present()?"
                        } else {
                            "r.present()?"
                        }
                        .to_owned();
                        if let When::If(versions) = nullable {
                            test = format!("!({versions}) || {test}");
                        }
                        format!("if {test} {{ Some({kind}::read(r, v)?) }} else {{ None }}")
                    }
                }
            }
            plain => format!("r.{}()?", plain_method(plain)),
        };
        let check = if option && !matches!(field.kind, Type::Struct(_)) {
            let failure = format!("r.null(\"{}\")", field.name);
            self.null_check(field, &format!("x.{name}"), &failure)
        } else {
            String::new()
        };
        format!("x.{name} = {value}; {check}")
    }

    fn read_element(&self, element: &Type, compact: &str) -> String {
        match element {
            Type::Struct(kind) => format!("|r| {}::read(r, v)", self.rust_name(kind)),
            Type::String => format!("|r| r.string({compact})"),
            Type::Bytes => format!("|r| r.bytes({compact})"),
            plain => format!("Reader::{}", plain_method(plain)),
        }
    }

    fn write_statement(&self, field: &Field) -> String {
        let name = ident(&field.name);
        let compact = self.compact(field);
        let option = self.is_option(field);
        let prefix = if option { "nullable_" } else { "" };
        let check = if option {
            let failure = format!("EncodeError::null(\"{}\")", field.name);
            self.null_check(field, &format!("self.{name}"), &failure)
        } else {
            String::new()
        };
        let borrowed = if option && matches!(field.kind, Type::Array(_)) {
            format!("self.{name}.as_ref()")
        } else if option {
            format!("self.{name}.as_deref()")
        } else {
            format!("&self.{name}")
        };
        let write = match &field.kind {
            Type::String => format!("w.{prefix}string({compact}, {borrowed})?;"),
            Type::Bytes | Type::Records => format!("w.{prefix}bytes({compact}, {borrowed})?;"),
            Type::Array(element) => {
                let closure = self.write_element(element, &compact);
                format!("w.{prefix}array({compact}, {borrowed}, {closure})?;")
            }
            Type::Struct(_) if option => {
                let tagged = field.tag.is_some();
                let present = match When::of(field.nullable, self.present(field)) {
                    When::If(versions) => {
                        format!("if {versions} {{ w.presence({tagged}, true); }}")
                    }
                    _ => format!("w.presence({tagged}, true);"),
                };
                format!(
                    "if let Some(one) = &self.{name} {{ {present} one.write(w, v)?; }} else {{ w.presence({tagged}, false); }}"
                )
            }
            Type::Struct(_) => format!("self.{name}.write(w, v)?;"),
            plain => format!("w.{}(self.{name});", plain_method(plain)),
        };
        format!("{check} {write}")
    }

    fn write_element(&self, element: &Type, compact: &str) -> String {
        match element {
            Type::Struct(_) => "|w, one| one.write(w, v)".to_owned(),
            Type::String => format!("|w, one| w.string({compact}, one)"),
            Type::Bytes => format!("|w, one| w.bytes({compact}, one)"),
            plain => format!("|w, one| {{ w.{}(*one); Ok(()) }}", plain_method(plain)),
        }
    }

    /// Does the field differ from its default? As an expression.
    fn differs(&self, field: &Field) -> String {
        let name = format!("self.{}", ident(&field.name));
        if self.is_option(field) {
            if self.default_is_null(field) {
                return format!("{name}.is_some()");
            }
            return format!("{name} != {}", self.default_value(field));
        }
        match &field.kind {
            Type::String | Type::Bytes | Type::Array(_) if field.default.is_none() => {
                format!("!{name}.is_empty()")
            }
            Type::Bool if field.default.as_deref() == Some("true") => format!("!{name}"),
            Type::Bool => name,
            _ => format!("{name} != {}", self.default_value(field)),
        }
    }

    fn default_is_null(&self, field: &Field) -> bool {
        field.kind == Type::Records || field.default.as_deref() == Some("null")
    }

    /// Is the schema's default what `Default` gives the Rust type?
    fn default_is_plain(&self, field: &Field) -> bool {
        if self.is_option(field) {
            return self.default_is_null(field);
        }
        matches!(field.default.as_deref(), None | Some("0" | "false"))
    }

    fn default_value(&self, field: &Field) -> String {
        if self.is_option(field) {
            return if self.default_is_null(field) {
                "None".to_owned()
            } else {
                format!("Some({})", self.default_plain(field))
            };
        }
        self.default_plain(field)
    }

    fn default_plain(&self, field: &Field) -> String {
        let given = field.default.as_deref();
        match &field.kind {
            Type::Bool => given.unwrap_or("false").to_owned(),
            Type::Float64 => given.unwrap_or("0.0").to_owned(),
            Type::Uuid => "Uuid::ZERO".to_owned(),
            Type::String => match given {
                Some(text) => format!("Str::from_static({text:?})"),
                None => "Str::default()".to_owned(),
            },
            Type::Bytes | Type::Records => "Bytes::new()".to_owned(),
            Type::Array(_) => "Array::new()".to_owned(),
            Type::Struct(kind) => format!("{}::default()", self.rust_name(kind)),
            _ => given.unwrap_or("0").to_owned(),
        }
    }

    fn rust_type(&self, field: &Field) -> String {
        let plain = self.rust_plain(&field.kind);
        if self.is_option(field) {
            format!("Option<{plain}>")
        } else {
            plain
        }
    }

    fn rust_plain(&self, kind: &Type) -> String {
        match kind {
            Type::Bool => "bool".to_owned(),
            Type::Int8 => "i8".to_owned(),
            Type::Int16 => "i16".to_owned(),
            Type::Int32 => "i32".to_owned(),
            Type::Int64 => "i64".to_owned(),
            Type::Uint16 => "u16".to_owned(),
            Type::Uint32 => "u32".to_owned(),
            Type::Float64 => "f64".to_owned(),
            Type::Uuid => "Uuid".to_owned(),
            Type::String => "Str".to_owned(),
            Type::Bytes | Type::Records => "Bytes".to_owned(),
            Type::Struct(name) => self.rust_name(name),
            Type::Array(element) => format!("Array<{}>", self.rust_plain(element)),
        }
    }

    fn rust_name(&self, name: &str) -> String {
        if name == self.message.name {
            name.to_owned()
        } else {
            format!("{}{name}", self.message.name)
        }
    }

    /// Bytes that one element takes at least, in any version that has the field: what a count is
    /// checked against.
    fn minimum_element(&self, field: &Field, element: &Type) -> usize {
        let present = self.present(field);
        (present.min..=present.max)
            .map(|version| minimum_size(self.message, element, version))
            .min()
            .unwrap_or(1)
            .max(1)
    }
}

/// The tagged fields, in the order in which they have to be written.
fn by_tag<'a>(fields: &[&'a Field]) -> Vec<&'a Field> {
    let mut tagged: Vec<_> = fields
        .iter()
        .copied()
        .filter(|field| field.tag.is_some())
        .collect();
    tagged.sort_by_key(|field| field.tag);
    tagged
}

fn minimum_size(message: &Message, kind: &Type, version: i16) -> usize {
    let compact = message.flexible.contains(version);
    match kind {
        Type::Bool | Type::Int8 => 1,
        Type::Int16 | Type::Uint16 => 2,
        Type::Int32 | Type::Uint32 => 4,
        Type::Int64 | Type::Float64 => 8,
        Type::Uuid => 16,
        Type::String | Type::Bytes | Type::Records | Type::Array(_) if compact => 1,
        Type::String => 2,
        Type::Bytes | Type::Records | Type::Array(_) => 4,
        Type::Struct(name) => {
            let fields = message.structure(name).fields.iter();
            fields
                .filter(|field| field.tag.is_none() && field.versions.contains(version))
                .map(|field| {
                    let null = field.nullable.contains(version);
                    let structure = matches!(field.kind, Type::Struct(_));
                    if null && structure {
                        1
                    } else {
                        minimum_size(message, &field.kind, version)
                    }
                })
                .sum::<usize>()
                + usize::from(compact)
        }
    }
}

/// The reader's and writer's method of a type of fixed length.
fn plain_method(kind: &Type) -> &'static str {
    match kind {
        Type::Bool => "bool",
        Type::Int8 => "i8",
        Type::Int16 => "i16",
        Type::Int32 => "i32",
        Type::Int64 => "i64",
        Type::Uint16 => "u16",
        Type::Uint32 => "u32",
        Type::Float64 => "f64",
        Type::Uuid => "uuid",
        other => panic!("{other:?} has no fixed length"),
    }
}

fn ident(name: &str) -> String {
    match name {
        "type" | "match" | "struct" | "ref" | "where" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// The name in Kafka's JSON: camel case again. "KRaft" alone has two capitals.
fn json_name(name: &str) -> String {
    let mut out = String::new();
    for (at, word) in name.split('_').enumerate() {
        match (at, word) {
            (0, "kraft") => out.push_str("kRaft"),
            (0, word) => out.push_str(word),
            (_, word) => {
                let mut letters = word.chars();
                out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                out.push_str(letters.as_str());
            }
        }
    }
    out
}

fn describe(message: &Message, one: &Struct, context: Versions) -> String {
    let range = versions_text(context);
    if one.name == message.name {
        let flexible = if message.flexible.is_empty() {
            "never flexible".to_owned()
        } else {
            format!("flexible from {}", message.flexible.min)
        };
        format!("Versions {range}, {flexible}")
    } else {
        format!("`{}` of [`{}`], versions {range}", one.name, message.name)
    }
}

fn describe_field(field: &Field) -> String {
    let mut text = format!("Versions {}", versions_text(field.versions));
    if !field.nullable.is_empty() {
        let _ = write!(text, ", may be null in {}", versions_text(field.nullable));
    }
    if let Some(tag) = field.tag {
        let _ = write!(text, ", tag {tag}");
    }
    if let Some(default) = &field.default {
        let _ = write!(text, ", default {default}");
    }
    text
}

fn versions_text(versions: Versions) -> String {
    match versions {
        Versions { min, max } if min == max => min.to_string(),
        Versions { min, max: i16::MAX } => format!("{min}+"),
        Versions { min, max } => format!("{min}-{max}"),
    }
}
