//! Who is measured and where they run: the targets of a command line on their cores, and scenarios against them, in turn.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, bail, ensure};
use clap::Args;

use crate::bounds;
use crate::interrupt::Interrupt;
use crate::observe::{self, Machine};
use crate::placement::{self, Cores, MemoryGroup};
use crate::report::Report;
use crate::run::{self, Target};
use crate::say;
use crate::scenario::Scenario;

/// File names have 255 bytes, and more than a target's name in them.
const LONGEST_NAME: usize = 100;

/// The part of the command line that says whom to measure, and beside what.
#[derive(Args)]
pub struct TargetArgs {
    /// A broker; the process id is found by itself where the broker runs on this machine
    #[arg(long = "target", required = true, value_name = "NAME=HOST:PORT[:PID]")]
    targets: Vec<String>,
    /// Cores for the generator; the targets get the others. Without it all share all
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,
    /// Memory limit that each target is put under, in MiB (control group, needs root)
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Measures the bare loops that bound each scenario in the same run; a folder on the disk under test, for their files
    #[arg(long, value_name = "FOLDER")]
    bounds: Option<PathBuf>,
}

/// Targets, settled on their cores and under their limits for as long as this lives.
pub struct Bench {
    targets: Vec<Target>,
    cores: Cores,
    placement: String,
    bounds: Option<PathBuf>,
    interrupt: Interrupt,
    _groups: Vec<MemoryGroup>,
}

impl Bench {
    pub fn new(args: &TargetArgs) -> Result<Self> {
        let targets = targets(&args.targets)?;
        if let Some(folder) = &args.bounds {
            bounds::check(folder)?;
        }
        let cores = Cores::split(args.cores)?;
        let groups = settle(&targets, &cores, args.memory)?;
        let interrupt = Interrupt::listen()?;
        Ok(Self {
            placement: describe(&cores, &targets, args.memory),
            targets,
            cores,
            bounds: args.bounds.clone(),
            interrupt,
            _groups: groups,
        })
    }

    /// Measures the bounds if they were asked for, and then each target in turn. Why it ended early, if it did, comes with what was measured until then.
    ///
    /// # Errors
    /// When nothing was measured at all.
    pub fn measure(&self, scenario: &Scenario, rounds: u32) -> Result<(Report, Option<Error>)> {
        let mut report = Report {
            format: Report::format(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            machine: Machine::read(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            settings: serde_json::to_string(scenario)?,
            placement: self.placement.clone(),
            incomplete: None,
            bounds: Vec::new(),
            measurements: Vec::new(),
        };
        if let Some(folder) = &self.bounds {
            report.bounds = bounds::measure(scenario, folder, &self.cores, &self.interrupt)?;
        }
        let failed = self.measure_all(scenario, rounds.max(1), &mut report).err();
        report.incomplete = failed.as_ref().map(|error| format!("{error:#}"));
        bounds::beside::put_beside(&mut report);
        match failed {
            Some(error) if report.measurements.is_empty() => Err(error),
            failed => Ok((report, failed)),
        }
    }

    fn measure_all(&self, scenario: &Scenario, rounds: u32, report: &mut Report) -> Result<()> {
        for round in 0..rounds {
            for target in &self.targets {
                self.interrupt.check()?;
                let Target { name, address, .. } = target;
                say(&format!(
                    "round {} of {rounds}: {name} at {address}",
                    round + 1
                ));
                let measurement =
                    run::measure(scenario, target, round, &self.cores, &self.interrupt)
                        .with_context(|| format!("{name} at {address}"))?;
                let incomplete = measurement.incomplete.clone();
                report.measurements.push(measurement);
                if let Some(reason) = incomplete {
                    bail!("{name} at {address}: {reason}; the measurement is marked incomplete");
                }
            }
        }
        Ok(())
    }
}

/// Gives all targets that we can see the same cores and the same memory limit.
fn settle(targets: &[Target], cores: &Cores, memory: Option<u64>) -> Result<Vec<MemoryGroup>> {
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
        if let Some(mebibytes) = memory {
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

/// Reads the targets of a command line. Results go by their names, which become parts of file names.
fn targets(texts: &[String]) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for text in texts {
        let target = target(text)?;
        let name = &target.name;
        ensure!(
            targets.iter().all(|other| other.name != *name),
            "--target {text}: there are two targets named {name}; name one otherwise"
        );
        ensure!(
            name.len() <= LONGEST_NAME
                && !name.contains(|letter: char| letter == '/' || letter.is_control()),
            "--target {text:?}: the name becomes part of file names: at most {LONGEST_NAME} bytes, without '/' and control characters"
        );
        targets.push(target);
    }
    Ok(targets)
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
