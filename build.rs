//! Lists the modules that log, with a point where Rust has `::`: the loggers that an administrator can set.
//! And sets `cfg(frame_pointers)` where the build has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=src");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if has_frame_pointers(&flags) {
        println!("cargo:rustc-cfg=frame_pointers");
    }
    let mut loggers = BTreeSet::new();
    visit(Path::new("src"), "broker", &mut loggers);
    let list: Vec<String> = loggers
        .iter()
        .map(|name| format!("    {name:?},\n"))
        .collect();
    let out = std::env::var("OUT_DIR").expect("cargo names a folder");
    let file = Path::new(&out).join("loggers.rs");
    fs::write(file, format!("&[\n{}]\n", list.concat())).expect("the folder can be written");
}

/// What the last `-C force-frame-pointers` of the compiler's flags says, which may be one word or two.
fn has_frame_pointers(encoded: &str) -> bool {
    let said = encoded.rsplit('\x1f').find_map(|flag| {
        let option = flag.strip_prefix("-C").unwrap_or(flag);
        option.trim_start().strip_prefix("force-frame-pointers")
    });
    match said {
        None => false,
        Some("") => true,
        Some(value) => ["=y", "=yes", "=on", "=true", "=always"].contains(&value),
    }
}

/// Adds the modules of a folder that log, and the modules around them.
fn visit(folder: &Path, module: &str, loggers: &mut BTreeSet<String>) {
    let entries = fs::read_dir(folder).expect("a folder of the source");
    for entry in entries {
        let path = entry.expect("an entry of the source").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            visit(&path, &format!("{module}.{stem}"), loggers);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a file of the source");
            if logs(&text) {
                let own = match &*stem {
                    "mod" | "lib" => module.to_owned(),
                    _ => format!("{module}.{stem}"),
                };
                add(&own, loggers);
            }
        }
    }
}

/// A macro of `tracing`, whether it is named in full or brought in.
fn logs(text: &str) -> bool {
    let level = |name: &str| text.contains(&format!("tracing::{name}!"));
    ["error", "warn", "info", "debug", "trace"]
        .iter()
        .any(|name| level(name))
        || text.contains("use tracing::")
}

fn add(module: &str, loggers: &mut BTreeSet<String>) {
    let mut name = module;
    loop {
        loggers.insert(name.to_owned());
        match name.rsplit_once('.') {
            Some((around, _)) => name = around,
            None => return,
        }
    }
}
