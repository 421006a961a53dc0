//! `ringmain-perf`: where a running broker spends its time, and what changed between two recordings.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that waits for other processes"
)]
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod instructions;
mod off_core;
mod record;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "ringmain-perf",
    version,
    about = "Where a running broker spends its time"
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Where the processor time goes: cpu.svg, a flame graph, and cpu.folded, to compare it later
    Cpu {
        #[command(flatten)]
        what: What,
        /// Samples a second and processor
        #[arg(long, default_value_t = 499, value_name = "COUNT")]
        frequency: u32,
    },
    /// How long threads wait: off-core.svg by state and stack, in microseconds, and the system calls with their times
    OffCore {
        #[command(flatten)]
        what: What,
    },
    /// Two recordings as one flame graph: red is what grew, blue what shrank
    Compare {
        /// A `.folded` file
        before: PathBuf,
        after: PathBuf,
        /// The SVG to write
        #[arg(long, default_value = "difference.svg")]
        out: PathBuf,
    },
    /// Instructions of each steady piece of work, counted by valgrind: the same on every run of a build
    Instructions,
    /// One piece of work so many times; what `instructions` runs under valgrind
    #[command(hide = true)]
    Repeat { index: usize, count: u64 },
}

#[derive(Args)]
struct What {
    /// The broker's process
    #[arg(long)]
    pid: u32,
    #[arg(long, default_value_t = 10, value_name = "COUNT")]
    seconds: u32,
    /// Folder for what is written
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    out: PathBuf,
    /// A load that runs meanwhile, with its arguments: `-- ringmain-bench run SCENARIO --target …`
    #[arg(last = true, value_name = "COMMAND")]
    load: Vec<String>,
}

fn main() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Cpu { what, frequency } => record::cpu(&what, frequency),
        Command::OffCore { what } => record::off_core(&what),
        Command::Compare { before, after, out } => record::compare(&before, &after, &out),
        Command::Instructions => instructions::print(),
        Command::Repeat { index, count } => instructions::repeat(index, count),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// A line for people, beside the results on standard output.
#[allow(clippy::print_stderr, reason = "a command line tool")]
fn say(line: &str) {
    eprintln!("{line}");
}
