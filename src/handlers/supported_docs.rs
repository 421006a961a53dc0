//! Keeps the table of supported APIs in the README equal to the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use protocol::{ApiKey, ListenerKind};

use super::{SUPPORTED, supported};

const BEGIN: &str = "<!-- supported apis: begin -->\n";
const END: &str = "<!-- supported apis: end -->";

fn table() -> String {
    let mut keys: Vec<ApiKey> = SUPPORTED.to_vec();
    keys.sort_by_key(|key| key.code());
    let mut table = String::from("| key | API | versions |\n|---|---|---|\n");
    for key in keys {
        let versions = supported(key, ListenerKind::Broker).expect("a listed API has versions");
        writeln!(
            table,
            "| {} | {} | {} to {} |",
            key.code(),
            key.name(),
            versions.min,
            versions.max
        )
        .expect("writing to a string");
    }
    table
}

/// Run with `RINGMAIN_BLESS=1` to write the table.
#[test]
fn readme_lists_what_the_code_serves() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has the marker");
    let (listed, after) = rest.split_once(END).expect("the README has the end marker");
    if std::env::var_os("RINGMAIN_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(
        listed,
        table(),
        "run RINGMAIN_BLESS=1 cargo test readme_lists"
    );
}
