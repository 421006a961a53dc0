//! One enum a group of stored records, chosen by the type id that stands before them.

use std::fmt::Write as _;

use crate::schema::{File, Kind, Message};

pub fn enums(files: &[File]) -> String {
    let mut out = String::new();
    for file in files {
        let Some(group) = &file.records else { continue };
        let of = |kind: Kind| -> Vec<&Message> {
            file.messages
                .iter()
                .filter(|message| message.kind == kind)
                .collect()
        };
        let group = capital(group);
        let (records, keys, values) = (of(Kind::Record), of(Kind::Key), of(Kind::Value));
        if !records.is_empty() {
            emit(
                &mut out,
                "framed_records",
                &format!("{group}Record"),
                "Record",
                &records,
            );
        }
        if !keys.is_empty() {
            emit(
                &mut out,
                "coordinator_keys",
                &format!("{group}Key"),
                "Key",
                &keys,
            );
            emit(
                &mut out,
                "coordinator_values",
                &format!("{group}Value"),
                "Value",
                &values,
            );
        }
    }
    out
}

fn emit(out: &mut String, macro_name: &str, name: &str, suffix: &str, messages: &[&Message]) {
    let _ = writeln!(out, "{macro_name}! {{ {name} {{");
    for message in messages {
        let variant = message
            .name
            .strip_suffix(suffix)
            .expect("named for its kind");
        let id = message.id.expect("a type id");
        let _ = writeln!(out, "    {variant}({}) = {id},", message.name);
    }
    out.push_str("} }\n");
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
