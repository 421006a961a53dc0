//! The command line: what belongs to a node of ours, and Kafka's tools (`crate::tools`). Everything here runs before the cores
//! do, so files are read and written plainly.

mod config;
#[cfg(test)]
mod docs;
mod environment;
mod load;
mod recover;
mod serve;
mod storage;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::tools::{self, Tool};

pub use storage::{FormatPlan, NewFile, new_files};

/// Why a command ended. The text is one line for a person, or empty if all has been said; the process ends with code 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<tools::Failure> for Failure {
    fn from(failure: tools::Failure) -> Failure {
        Failure(failure.to_string())
    }
}

#[derive(Parser, Debug)]
#[command(
    name = "ringmain",
    version,
    propagate_version = true,
    about = "A message broker that every Kafka client can use unchanged"
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one of them in a process"
)]
enum Command {
    /// Run a node: broker and controller in one process
    #[command(visible_alias = "server-start")]
    Serve(serve::ServeArgs),
    /// Format data directories, and look at them
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    /// Put what a crash left in the journals into the segments, for another broker to go on
    Recover(recover::RecoverArgs),
    /// List the configuration keys, and check a file
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print a script that completes this command line in a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    #[command(flatten)]
    Tool(Tool),
}

/// Settings on the command line, as Kafka has them.
#[derive(Args, Debug, Clone, Default)]
struct Overrides {
    /// A setting that is stronger than the file; may be repeated
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    match run_with(std::env::args_os(), &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            if !text.is_empty() {
                // There is nobody left to tell if standard error is gone too.
                let _ = writeln!(std::io::stderr(), "ringmain: {text}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs the command of these arguments; the first is the program's name. What the command answers goes to `out`.
///
/// # Errors
/// Why the command ended, in one line.
pub fn run_with(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let line = match Line::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return Err(usage(&error)),
        Err(help) => return print(out, help.render()),
    };
    match line.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Storage(command) => storage::run(command, out),
        Command::Recover(arguments) => recover::run(arguments, out),
        Command::Config(command) => config::run(command, out),
        Command::Completions { shell } => print(out, completions(shell)),
        Command::Tool(tool) => Ok(tool.run(out)?),
    }
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "ringmain", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The first line of clap's error, and where to read more; the whole help where a command is missing.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::new(format!("a command is missing\n\n{}", text.trim_end()));
    }
    let lines: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let first = lines.join(" ");
    Failure::new(format!(
        "{} (see --help)",
        first.strip_prefix("error: ").unwrap_or(&first)
    ))
}

fn print(out: &mut dyn Write, text: impl std::fmt::Display) -> Result<(), Failure> {
    write!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(format!("standard output: {error}")))
}

fn print_line(out: &mut dyn Write, text: impl std::fmt::Display) -> Result<(), Failure> {
    print(out, format_args!("{text}\n"))
}

/// The time of day, for files that carry it.
#[expect(
    clippy::disallowed_methods,
    reason = "no core runs yet whose clock could be asked"
)]
fn wall_clock_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// Random bits from the system.
fn random_u64() -> Result<u64, Failure> {
    getrandom::u64()
        .map_err(|error| Failure::new(format!("the system gives no random bytes: {error}")))
}

/// A random id.
fn random_id() -> Result<protocol::Uuid, Failure> {
    let mut failure = None;
    let id = protocol::Uuid::random(|| {
        random_u64().unwrap_or_else(|error| {
            failure = Some(error);
            // Ends the loop in `random`; the id is thrown away.
            u64::MAX >> 1
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command answers, or why it failed.
    pub(super) fn ringmain(arguments: &[&str]) -> Result<String, String> {
        let arguments = std::iter::once("ringmain")
            .chain(arguments.iter().copied())
            .map(OsString::from);
        let mut out = Vec::new();
        match run_with(arguments, &mut out) {
            Ok(()) => Ok(String::from_utf8(out).unwrap()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Line::command().debug_assert();
    }

    #[test]
    fn mistakes_are_one_line() {
        assert_eq!(
            ringmain(&["serve", "--loud"]).unwrap_err(),
            "unexpected argument '--loud' found (see --help)"
        );
        assert_eq!(
            ringmain(&["storage", "format", "-c", "x"]).unwrap_err(),
            "the following required arguments were not provided: --cluster-id <CLUSTER_ID> (see --help)"
        );
        assert!(
            ringmain(&["nonsense"])
                .unwrap_err()
                .starts_with("unrecognized subcommand 'nonsense'")
        );
    }

    #[test]
    fn help_and_version_are_answers() {
        assert!(ringmain(&["--help"]).unwrap().contains("serve"));
        assert!(ringmain(&["--version"]).unwrap().starts_with("ringmain "));
        assert!(
            ringmain(&[])
                .unwrap_err()
                .contains("Usage: ringmain <COMMAND>")
        );
    }
}
