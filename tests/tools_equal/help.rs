//! Every flag that Apache's help of a tool names is known to ours, but for a list with reasons.
use std::collections::BTreeSet;

use crate::both::Both;
use crate::support::commands::ringmain;

/// The tools, and what of each is looked at besides.
const TOOLS: &[&str] = &[
    "broker-api-versions",
    "cluster",
    "configs",
    "console-consumer",
    "console-producer",
    "consumer-groups",
    "consumer-perf-test",
    "delete-records",
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

/// Deprecated, so taken but not shown.
const SILENT: &[(&str, &str)] = &[("cluster", "--config")];

/// Flags of Apache's that ours does not have; README.md says why.
const WITHOUT: &[(&str, &str)] = &[
    ("consumer-perf-test", "--date-format"),
    ("consumer-perf-test", "--print-metrics"),
    ("producer-perf-test", "--print-metrics"),
    ("producer-perf-test", "--transactional-id"),
    ("producer-perf-test", "--transaction-duration-ms"),
    ("topics", "--delete-config"),
];

/// What differs, a line each.
pub fn compare(both: &mut Both) -> Vec<String> {
    let (mut differences, mut missing) = (Vec::new(), BTreeSet::new());
    for tool in TOOLS {
        let commands = commands(&both.apaches_help(&[tool]));
        let each = commands.iter().map(|command| vec![*tool, command.as_str()]);
        for words in std::iter::once(vec![*tool]).chain(each) {
            let theirs = flags(&both.apaches_help(&words));
            let ours = ringmain(&[&words[..], &["--help"]].concat());
            if ours.code != 0 {
                differences.push(format!("there is no ringmain {}", words.join(" ")));
            }
            for flag in theirs.difference(&flags(&ours.out)) {
                let known = (*tool, flag.as_str());
                if WITHOUT.contains(&known) {
                    missing.insert((*tool, flag.clone()));
                } else if !SILENT.contains(&known) {
                    differences.push(format!("ringmain {} has no {flag}", words.join(" ")));
                }
            }
        }
    }
    for (tool, flag) in WITHOUT {
        if !missing.contains(&(*tool, (*flag).to_owned())) {
            differences.push(format!("{tool} {flag} is listed as missing and is not"));
        }
    }
    differences
}

/// The commands of a tool that has some: its help begins with `{one,another}`.
fn commands(help: &str) -> Vec<String> {
    let list = help
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let plain = |letter: char| letter.is_ascii_lowercase() || letter == '-' || letter == ',';
    match list {
        Some((list, _)) if list.chars().all(plain) => list.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The flags that a help text describes: those at the beginning of a line, and in a usage all.
fn flags(text: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    for line in text.lines() {
        let shown = line.trim_start();
        if shown.starts_with('-')
            || shown.starts_with('[')
            || shown.to_lowercase().starts_with("usage:")
        {
            flags.extend(words(shown));
        }
        // Of clap, which lists other names of a flag behind its description.
        if let Some((_, names)) = shown
            .split_once("[aliases: ")
            .or_else(|| shown.split_once("[alias: "))
        {
            flags.extend(words(names));
        }
    }
    flags
}

/// Words such as `--flag`, and `-f` for those that have only one letter.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '.';
    text.split(end)
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| {
            let name = word.trim_start_matches('-');
            let dashes = word.len() - name.len();
            let first = name
                .chars()
                .next()
                .is_some_and(|letter| letter.is_ascii_alphabetic());
            first
                && !word.ends_with('-')
                && (dashes == 2 && name.len() > 1 || dashes == 1 && name.len() == 1)
        })
        .map(str::to_owned)
}
