//! `ringmain-bench`: measures Kafka brokers, whoever made them, and the machine under them.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that measures time and uses threads of its own; the broker's rules are not its rules"
)]
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod batches;
mod bench;
mod bounds;
mod cluster;
mod compare;
mod connection;
mod consumer;
mod content;
mod ending;
mod executors;
mod hardware;
mod histogram_logs;
mod interrupt;
mod measure;
mod observe;
mod pairs;
mod placement;
mod plot;
mod producer;
mod ratios;
mod recorded;
mod report;
mod run;
mod scenario;
mod short;
mod sink;
mod table;
mod throughput;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::bench::{Bench, TargetArgs};
use crate::hardware::sheet::{Sheet, SheetArgs};
use crate::ratios::Ratios;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::short::Short;

/// The exit code of a run that ended before it was whole: what was measured is stored.
const INCOMPLETE: u8 = 3;
/// The exit code of `short` when a figure got worse than it may.
const WORSE: u8 = 4;

#[derive(Parser)]
#[command(
    name = "ringmain-bench",
    version,
    about = "Measures Kafka brokers and the machine under them"
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a scenario against one or more brokers, in turn
    Run(Run),
    /// Runs the short set and holds every figure against the last one that was recorded
    Short(Short),
    /// Draws a recorded run of two targets: one's figures as multiples of the other's
    Ratios(Ratios),
    /// Puts two stored results side by side
    Compare {
        /// A folder that `run` wrote
        first: PathBuf,
        second: PathBuf,
    },
    /// Becomes a broker under a memory limit, which counts from its first byte (control group, needs root)
    Start {
        /// In MiB
        #[arg(long, value_name = "MIB")]
        memory: u64,
        /// The broker's command line
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// A broker that answers at once and keeps nothing: against it, `run` measures the generator's own limit
    Sink {
        #[arg(long, default_value = "127.0.0.1:19999", value_name = "HOST:PORT")]
        listen: String,
        /// Ends with the process that started it
        #[arg(long, hide = true)]
        with_parent: bool,
    },
    /// What a disk can do: writes by size and depth, durable writes, cold reads, and the bare loop of a broker
    Disk {
        /// A folder on the disk; a file of 1 GiB is written there and removed
        folder: PathBuf,
        #[command(flatten)]
        sheet: SheetArgs,
    },
    /// What sockets can do on this machine: echo, send from memory, sendfile
    Net {
        /// Where the file for sendfile lies
        #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
        folder: PathBuf,
        #[command(flatten)]
        sheet: SheetArgs,
    },
    /// What cores can do: CRC, copying, a message between two cores
    Cores {
        #[command(flatten)]
        sheet: SheetArgs,
    },
}

#[derive(Args)]
struct Run {
    /// Scenario file
    scenario: PathBuf,
    #[command(flatten)]
    targets: TargetArgs,
    /// How often each target is measured, in turn
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    rounds: u32,
    /// Seconds to measure in place of the scenario's
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u32>,
    /// Seconds of warm-up in place of the scenario's
    #[arg(long, value_name = "SECONDS")]
    warm_up: Option<u32>,
    /// Folder for results
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Run(run) => run.execute(),
        Command::Short(short) => short.execute(),
        Command::Ratios(ratios) => ratios.execute().map(|()| ExitCode::SUCCESS),
        Command::Compare { first, second } => {
            compare::print(&first, &second).map(|()| ExitCode::SUCCESS)
        }
        Command::Start { memory, command } => {
            placement::start(memory, &command).map(|()| ExitCode::SUCCESS)
        }
        Command::Sink {
            listen,
            with_parent,
        } => sink::serve(&listen, with_parent).map(|()| ExitCode::SUCCESS),
        Command::Disk { folder, sheet } => Sheet::new(sheet)
            .and_then(|sheet| hardware::disk::measure(&folder, sheet))
            .map(|()| ExitCode::SUCCESS),
        Command::Net { folder, sheet } => Sheet::new(sheet)
            .and_then(|sheet| hardware::net::measure(&folder, sheet))
            .map(|()| ExitCode::SUCCESS),
        Command::Cores { sheet } => Sheet::new(sheet)
            .and_then(hardware::cores::measure)
            .map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// A line for people, beside the results on standard output.
#[allow(clippy::print_stderr, reason = "a command line tool")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// A line that replaces the one before, on terminals only; an empty one at the end.
fn progress(line: &str) {
    let mut error = std::io::stderr();
    if error.is_terminal() {
        let _ = write!(error, "\r\x1b[K{line}");
    }
}

impl Run {
    fn execute(&self) -> Result<ExitCode> {
        let mut scenario = Scenario::read(&self.scenario)?;
        scenario.duration_seconds = self.duration.unwrap_or(scenario.duration_seconds).max(1);
        scenario.warm_up_seconds = self.warm_up.unwrap_or(scenario.warm_up_seconds);
        let bench = Bench::new(&self.targets)?;
        let (report, failed) = bench.measure(&scenario, self.rounds)?;
        let folder = self.out.clone().unwrap_or_else(|| default_folder(&report));
        write_all(&report, &folder)?;
        println!("{}", table::render(&report));
        println!("stored in {}", folder.display());
        Ok(match failed {
            Some(error) => {
                say(&format!("error: {error:#}"));
                ExitCode::from(INCOMPLETE)
            }
            None => ExitCode::SUCCESS,
        })
    }
}

fn default_folder(report: &Report) -> PathBuf {
    PathBuf::from("bench-results").join(format!(
        "{}-{}",
        report.date.replace(':', ""),
        report.scenario
    ))
}

fn write_all(report: &Report, folder: &Path) -> Result<()> {
    report.store(folder)?;
    report::write(&folder.join("table.txt"), table::render(report).as_bytes())?;
    plot::draw_all(report, folder)?;
    histogram_logs::write(report, folder)
}
