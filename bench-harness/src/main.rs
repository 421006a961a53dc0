//! `ringmain-bench`: measures Kafka brokers, whoever made them, and the machine under them.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that measures time and uses threads of its own; the broker's rules are not its rules"
)]
#![allow(clippy::print_stdout, reason = "a command line tool")]

mod batches;
mod cluster;
mod compare;
mod connection;
mod consumer;
mod content;
mod hardware;
mod measure;
mod observe;
mod placement;
mod plot;
mod producer;
mod report;
mod run;
mod scenario;
mod sink;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};

use crate::placement::{Cores, MemoryGroup};
use crate::report::Report;
use crate::run::Target;
use crate::scenario::Scenario;

/// The exit code of a run that ended before it was whole: what was measured is stored.
const INCOMPLETE: u8 = 3;

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
    /// Puts two stored results side by side
    Compare {
        /// A folder that `run` wrote
        first: PathBuf,
        second: PathBuf,
    },
    /// A broker that answers at once and keeps nothing: against it, `run` measures the generator's own limit
    Sink {
        #[arg(long, default_value = "127.0.0.1:19999", value_name = "HOST:PORT")]
        listen: String,
    },
    /// What a disk can do: writes by size and depth, durable writes, cold reads, and the bare loop of a broker
    Disk {
        /// A folder on the disk; a file of 1 GiB is written there and removed
        folder: PathBuf,
    },
    /// What sockets can do on this machine: echo, send from memory, sendfile
    Net {
        /// Where the file for sendfile lies
        #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
        folder: PathBuf,
    },
    /// What cores can do: CRC, copying, a message between two cores
    Cores,
}

#[derive(Args)]
struct Run {
    /// Scenario file
    scenario: PathBuf,
    /// A broker; the process id is found by itself where the broker runs on this machine
    #[arg(long = "target", required = true, value_name = "NAME=HOST:PORT[:PID]")]
    targets: Vec<String>,
    /// How often each target is measured, in turn
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    rounds: u32,
    /// Cores for the generator; the targets get the others. Without it all share all
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,
    /// Memory limit that each target is put under, in MiB (control group, needs root)
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
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
        Command::Compare { first, second } => {
            compare::print(&first, &second).map(|()| ExitCode::SUCCESS)
        }
        Command::Sink { listen } => sink::serve(&listen).map(|()| ExitCode::SUCCESS),
        Command::Disk { folder } => hardware::disk::print(&folder).map(|()| ExitCode::SUCCESS),
        Command::Net { folder } => hardware::net::print(&folder).map(|()| ExitCode::SUCCESS),
        Command::Cores => hardware::cores::print().map(|()| ExitCode::SUCCESS),
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

impl Run {
    fn execute(&self) -> Result<ExitCode> {
        let mut scenario = Scenario::read(&self.scenario)?;
        scenario.duration_seconds = self.duration.unwrap_or(scenario.duration_seconds).max(1);
        scenario.warm_up_seconds = self.warm_up.unwrap_or(scenario.warm_up_seconds);
        let targets = self
            .targets
            .iter()
            .map(|text| target(text))
            .collect::<Result<Vec<_>>>()?;
        let cores = Cores::split(self.cores)?;
        let _groups = self.settle(&targets, &cores)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted.clone())?;
        let mut report = Report {
            format: Report::format(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            machine: observe::Machine::read(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            settings: serde_json::to_string(&scenario)?,
            placement: describe(&cores, &targets, self.memory),
            measurements: Vec::new(),
        };
        let failed = self.measure_all(&scenario, &targets, &cores, &interrupted, &mut report);
        if report.measurements.is_empty() {
            failed?;
            bail!("nothing was measured");
        }
        let folder = self.out.clone().unwrap_or_else(|| default_folder(&report));
        write_all(&report, &folder)?;
        println!("{}", table::render(&report));
        println!("stored in {}", folder.display());
        if let Err(error) = failed {
            say(&format!("error: {error:#}"));
            return Ok(ExitCode::from(INCOMPLETE));
        }
        Ok(ExitCode::from(if report.is_complete() {
            0
        } else {
            INCOMPLETE
        }))
    }

    /// Gives all targets that we can see the same cores and the same memory limit.
    fn settle(&self, targets: &[Target], cores: &Cores) -> Result<Vec<MemoryGroup>> {
        let mut groups = Vec::new();
        for target in targets {
            let Some(pid) = target.pid else {
                say(&format!(
                    "warning: {}: no process on this machine listens on {}: its processor time and memory are unknown",
                    target.name, target.address
                ));
                continue;
            };
            placement::pin(pid, &cores.targets)?;
            if let Some(mebibytes) = self.memory {
                groups.push(MemoryGroup::hold(&target.name, pid, mebibytes << 20)?);
            }
        }
        let limits: Vec<Option<u64>> = targets
            .iter()
            .filter_map(|target| target.pid)
            .map(placement::memory_limit)
            .collect();
        if limits.windows(2).any(|pair| pair[0] != pair[1]) {
            say("warning: the targets have different memory limits; --memory gives them the same");
        }
        Ok(groups)
    }

    fn measure_all(
        &self,
        scenario: &Scenario,
        targets: &[Target],
        cores: &Cores,
        interrupted: &AtomicBool,
        report: &mut Report,
    ) -> Result<()> {
        for round in 0..self.rounds.max(1) {
            for target in targets {
                if interrupted.load(Ordering::Relaxed) {
                    bail!("interrupted");
                }
                say(&format!(
                    "round {} of {}: {} at {}",
                    round + 1,
                    self.rounds.max(1),
                    target.name,
                    target.address
                ));
                let measurement = run::measure(scenario, target, round, cores, interrupted)
                    .with_context(|| format!("{} at {}", target.name, target.address))?;
                let incomplete = measurement.incomplete.clone();
                report.measurements.push(measurement);
                if let Some(reason) = incomplete {
                    bail!(
                        "{} at {}: {reason}; the measurement is marked incomplete",
                        target.name,
                        target.address
                    );
                }
            }
        }
        Ok(())
    }
}

fn target(text: &str) -> Result<Target> {
    let explain = || format!("--target {text}: NAME=HOST:PORT or NAME=HOST:PORT:PID");
    let (name, rest) = text.split_once('=').with_context(explain)?;
    let parts: Vec<&str> = rest.split(':').collect();
    let [host, port, pid @ ..] = &parts[..] else {
        bail!(explain())
    };
    ensure!(
        !name.is_empty() && !host.is_empty() && pid.len() <= 1,
        explain()
    );
    let port: u16 = port.parse().with_context(explain)?;
    let pid = match pid.first() {
        Some(pid) => Some(pid.parse().with_context(explain)?),
        None => observe::listener(port),
    };
    Ok(Target {
        name: name.to_owned(),
        address: format!("{host}:{port}"),
        pid,
    })
}

fn describe(cores: &Cores, targets: &[Target], memory: Option<u64>) -> String {
    let list = |set: &std::collections::BTreeSet<usize>| {
        set.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    let limits: Vec<String> = targets
        .iter()
        .map(
            |target| match target.pid.and_then(placement::memory_limit) {
                Some(limit) => format!("{} {} MiB", target.name, limit >> 20),
                None => format!("{} none", target.name),
            },
        )
        .collect();
    format!(
        "generator on cores {}, targets on cores {}{}; memory limits: {}{}",
        list(&cores.generator),
        list(&cores.targets),
        if cores.are_shared() { " (shared)" } else { "" },
        limits.join(", "),
        if memory.is_some() {
            " (set by --memory)"
        } else {
            ""
        },
    )
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
    table::write_histogram_logs(report, folder)
}
