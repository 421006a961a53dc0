//! Generates the messages, the stored records and the table of APIs from `schema/`.

#[path = "build/apis.rs"]
mod apis;
#[path = "build/emit.rs"]
mod emit;
#[path = "build/records.rs"]
mod records;
#[path = "build/schema.rs"]
mod schema;

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=schema");
    println!("cargo::rerun-if-changed=build");
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let target = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let api = schema::read_folder(&root.join("schema/api"));
    let stored = schema::read_folder(&root.join("schema/stored"));
    write(&target.join("messages.rs"), &messages(&api, false));
    write(&target.join("stored.rs"), &messages(&stored, true));
    write(&target.join("records.rs"), &records::enums(&stored));
    write(&target.join("apis.rs"), &apis::table(&api));
}

fn messages(files: &[schema::File], json: bool) -> String {
    let mut out = String::new();
    let mut names = Vec::new();
    for message in files.iter().flat_map(|file| &file.messages) {
        emit::message(&mut out, message, json);
        names.push(message.name.as_str());
    }
    names.sort_unstable();
    out.push_str("/// Every message here, for tests and tools that walk them all.\n");
    out.push_str("pub static CATALOG: &[MessageInfo] = &[\n");
    for name in &names {
        out.push_str(&format!("    MessageInfo::of::<{name}>(),\n"));
    }
    out.push_str("];\n");
    if json {
        out.push_str("/// How each of them is shown, by name.\n");
        out.push_str("pub static SHOWN: &[(&str, Show)] = &[\n");
        for name in &names {
            out.push_str(&format!(
                "    (\"{name}\", |r, v| Ok({name}::decode(r, v)?.json(v))),\n"
            ));
        }
        out.push_str("];\n");
    }
    out
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
