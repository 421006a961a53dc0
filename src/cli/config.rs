//! `ringmain config`: the table of keys on the terminal, and a dry run over a file.

use std::io::Write;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{Failure, Overrides, load, print_line};
use crate::config::keys::{self, DefaultValue, Key, Status};

#[derive(Subcommand, Debug)]
pub(super) enum ConfigCommand {
    /// List the keys with type, default and status
    List {
        /// Only keys of this status
        #[arg(long)]
        status: Option<StatusFilter>,
        /// The keys of topics instead of those of the broker
        #[arg(long)]
        topic: bool,
    },
    /// Check a file as `serve` would, without starting
    Check {
        /// The file to check
        file: PathBuf,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusFilter {
    Done,
    Ignored,
    Refused,
}

pub(super) fn run(command: ConfigCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        ConfigCommand::List {
            status,
            topic: false,
        } => list(keys::broker_keys(), status, out),
        ConfigCommand::List {
            status,
            topic: true,
        } => list(keys::TOPIC_KEYS.iter().map(|row| &row.key), status, out),
        ConfigCommand::Check { file, overrides } => {
            let config = load::broker_config(Some(&file), &overrides)?;
            for warning in config.warnings() {
                print_line(out, format_args!("warning: {warning}"))?;
            }
            print_line(out, format_args!("{} can be used", file.display()))
        }
    }
}

fn list(
    rows: impl Iterator<Item = &'static Key>,
    filter: Option<StatusFilter>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for key in rows {
        let status = match key.status {
            Status::Done => StatusFilter::Done,
            Status::Ignored(_) => StatusFilter::Ignored,
            Status::Refused(_) => StatusFilter::Refused,
        };
        if filter.is_some_and(|wanted| wanted != status) {
            continue;
        }
        let default = match key.default {
            DefaultValue::Required => "(must be set)",
            DefaultValue::Null => "(none)",
            DefaultValue::Text("") => "(empty)",
            DefaultValue::Text(text) => text,
        };
        let reason = key
            .status
            .reason()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        let (kind, word) = (key.kind.name().to_lowercase(), key.status.word());
        print_line(
            out,
            format_args!("{}  {kind}  {default}  {word}{reason}", key.name),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::ringmain;

    #[test]
    fn keys_are_listed_by_status() {
        let all = ringmain(&["config", "list"]).unwrap();
        assert_eq!(
            all.lines().count(),
            crate::config::keys::broker_keys().count()
        );
        let refused = ringmain(&["config", "list", "--status", "refused"]).unwrap();
        assert!(refused.contains(
            "authorizer.class.name  string  (empty)  refused: authorization is not supported yet"
        ));
        assert!(refused.lines().all(|line| line.contains("  refused: ")));
        assert_eq!(
            ringmain(&["config", "list", "--topic"])
                .unwrap()
                .lines()
                .count(),
            38
        );
    }

    #[test]
    fn a_file_is_checked_without_a_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.properties");
        std::fs::write(
            &path,
            include_str!("../config/fixtures/combined.properties"),
        )
        .unwrap();
        let path = path.to_str().unwrap();
        let answer = ringmain(&["config", "check", path]).unwrap();
        assert!(
            answer.ends_with(&format!("{path} can be used\n")),
            "{answer}"
        );
        assert!(
            answer.contains("warning: without effect: num.io.threads, num.network.threads, "),
            "{answer}"
        );
        assert!(ringmain(&["config", "check", path, "--override", "listeners=x"]).is_err());
    }
}
