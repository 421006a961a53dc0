//! `docs/tools.md`, written from the definition of the command line. Kept fresh by a test: run it with `UPDATE_DOCS=1` after a
//! change.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::Line;

/// The tools on the page.
const TOOLS: &[&str] = &[
    "broker-api-versions",
    "cluster",
    "configs",
    "console-consumer",
    "console-producer",
    "consumer-groups",
    "consumer-perf-test",
    "delete-records",
    "doctor",
    "dump-log",
    "features",
    "get-offsets",
    "groups",
    "log-dirs",
    "metadata-quorum",
    "producer-perf-test",
    "storage",
    "topics",
];

/// The page as it must be.
fn page() -> String {
    let mut page = String::from(
        "# Command-line tools\n\n\
         Written from the definitions in `src/tools/`; do not edit by hand (`UPDATE_DOCS=1 cargo test cli::docs`).\n\n\
         `ringmain X` is Kafka's `kafka-X.sh`, with its flags and its output, for any Kafka broker (`doctor` is our own); what \
         differs is listed in `tests/tools_equal/README.md`, and for the tools that read and write records in \
         `record-tools.md`. `ringmain X --help` says the same as this page. `ringmain completions SHELL` prints a \
         script for bash, zsh, fish, elvish or PowerShell: `source <(ringmain completions bash)`.\n\n\
         A file for `--command-config` may set `client.id`, `request.timeout.ms`, `default.api.timeout.ms` and \
         `retry.backoff.ms`. TLS and SASL are refused: they are not there yet.\n",
    );
    let mut line = Line::command();
    line.build();
    for name in TOOLS {
        if let Some(tool) = line.find_subcommand(name) {
            section(&mut page, tool, &format!("ringmain {name}"), 2);
        }
    }
    page
}

fn section(page: &mut String, command: &Command, name: &str, level: usize) {
    let about = command.get_about().map(ToString::to_string);
    let _ = write!(
        page,
        "\n{} {name}\n\n{}.\n",
        "#".repeat(level),
        about.unwrap_or_default()
    );
    let flags: Vec<&Arg> = command
        .get_arguments()
        .filter(|flag| {
            flag.get_long()
                .is_some_and(|long| long != "help" && long != "version")
                && !flag.is_hide_set()
        })
        .collect();
    if !flags.is_empty() {
        page.push_str("\n| flag | what it is |\n|---|---|\n");
        for flag in flags {
            let _ = writeln!(page, "| {} | {} |", usage(flag), help(flag));
        }
    }
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" {
            section(
                page,
                inner,
                &format!("{name} {}", inner.get_name()),
                level + 1,
            );
        }
    }
}

fn usage(flag: &Arg) -> String {
    let long = flag.get_long().unwrap_or_default();
    let short = flag.get_short().map(|short| format!("`-{short}`, "));
    let values = flag
        .get_num_args()
        .is_some_and(|values| values.takes_values());
    let value = flag.get_value_names().filter(|_| values);
    let value = value.map(|names| format!(" {}", names.join(" ")));
    format!(
        "{}`--{long}{}`",
        short.unwrap_or_default(),
        value.unwrap_or_default()
    )
}

fn help(flag: &Arg) -> String {
    let mut text = flag
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace('|', "\\|");
    let words: Vec<String> = flag
        .get_possible_values()
        .iter()
        .filter(|_| {
            flag.get_num_args()
                .is_some_and(|values| values.takes_values())
        })
        .map(|value| value.get_name().to_owned())
        .collect();
    if !words.is_empty() {
        let _ = write!(text, " ({})", words.join(", "));
    }
    text
}

#[test]
fn the_page_is_fresh() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tools.md");
    let page = page();
    for name in TOOLS {
        assert!(page.contains(&format!("\n## ringmain {name}\n")), "{name}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        stands, page,
        "docs/tools.md is stale: UPDATE_DOCS=1 cargo test cli::docs"
    );
}
