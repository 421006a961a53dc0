//! `docs/config.md`, written from the table. Kept fresh by a test: run it with `UPDATE_DOCS=1` after a change.

use std::fmt::Write;

use super::check::allowed_text;
use super::keys::{self, DefaultValue, Key, OWN_PREFIX, Update};

/// The page as it must be.
fn page() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Written from the table in `src/config/keys/`; do not edit by hand (`UPDATE_DOCS=1 cargo test config::docs`).\n\n\
         Names, types and defaults are those of Apache Kafka 4.4. A file is in the format of `java.util.Properties`; \
         `--override KEY=VALUE` is stronger than the file. `*` marks a key that must be set. Status:\n\n\
         - **done**: does what Kafka says it does.\n\
         - **no effect**: accepted, stored and reported, but nothing follows from it yet; said at start when it is set.\n\
         - **refused**: a value other than the default stops the start, because running without its effect would be \
         dangerous.\n\n",
    );
    section(
        &mut page,
        "Keys of Ringmain",
        keys::broker_keys().filter(|key| is_own(key)),
    );
    section(
        &mut page,
        "Broker",
        keys::broker_keys().filter(|key| !is_own(key)),
    );
    let mut topic_keys: Vec<&Key> = keys::TOPIC_KEYS.iter().map(|row| &row.key).collect();
    topic_keys.sort_by_key(|key| key.name);
    section(&mut page, "Topic", topic_keys.into_iter());
    page.push_str("\n## Topic defaults\n\nThe broker keys that give a topic key its default, the strongest first.\n\n");
    page.push_str("| topic key | broker keys |\n|---|---|\n");
    for row in keys::TOPIC_KEYS
        .iter()
        .filter(|row| !row.synonyms.is_empty())
    {
        let names: Vec<String> = row
            .synonyms
            .iter()
            .map(|one| format!("`{}`", one.broker_key))
            .collect();
        let _ = writeln!(page, "| `{}` | {} |", row.key.name, names.join(", "));
    }
    page
}

fn is_own(key: &Key) -> bool {
    key.name.starts_with(OWN_PREFIX)
}

fn section(page: &mut String, title: &str, rows: impl Iterator<Item = &'static Key>) {
    let _ = write!(
        page,
        "\n## {title}\n\n| key | type | default | allowed | status | what it is |\n|---|---|---|---|---|---|\n"
    );
    for key in rows {
        let default = match key.default {
            DefaultValue::Required => "*".to_string(),
            DefaultValue::Null => String::new(),
            DefaultValue::Text("") => "(empty)".to_string(),
            DefaultValue::Text(text) => format!("`{text}`"),
        };
        let status = match key.status {
            keys::Status::Done => "done".to_string(),
            keys::Status::Ignored(reason) => format!("no effect: {reason}"),
            keys::Status::Refused(reason) => format!("refused: {reason}"),
        };
        let change = match (key.update, key.status) {
            (Update::ReadOnly, _) => "",
            (_, keys::Status::Done) => " Can be changed while running.",
            _ => " Kafka can change it while running.",
        };
        let change = if title == "Topic" { "" } else { change };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} | {status} | {}{change} |",
            key.name,
            key.kind.name().to_lowercase(),
            allowed_text(key.check).unwrap_or_default(),
            key.doc,
        );
    }
}

#[test]
fn the_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/config.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap();
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/config.md is old; run: UPDATE_DOCS=1 cargo test config::docs"
    );
}
