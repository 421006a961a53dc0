//! `short`: a set of scenarios that takes a few minutes, every main figure held against the last one that was recorded.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use serde::Deserialize;

use crate::bench::{Bench, TargetArgs};
use crate::bounds;
use crate::recorded::{self, Recorded};
use crate::report::{Measurement, Report};
use crate::scenario::Scenario;
use crate::table::{FIGURES, Figure, Held, number, remarks};
use crate::{INCOMPLETE, WORSE, say};

/// An open loop that reaches less than this part of its rate has a backlog, and its latencies count nothing else.
const RATE_REACHED: f64 = 0.98;

#[derive(Args)]
pub struct Short {
    /// The set: a file that names scenarios
    #[arg(default_value = "bench-harness/short.toml")]
    set: PathBuf,
    #[command(flatten)]
    targets: TargetArgs,
    /// Folder of the recorded results
    #[arg(long, value_name = "FOLDER", default_value = "perf/results/short")]
    recorded: PathBuf,
    /// Records this run there, too
    #[arg(long)]
    record: bool,
    /// What is measured, for the record; without it, what git says of the current folder
    #[arg(long, value_name = "TEXT")]
    commit: Option<String>,
    /// Only these scenarios of the set
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// How often each target is measured, in turn; the better round counts
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    rounds: u32,
    /// How many times worse than recorded a rate, processor time or memory may be
    #[arg(long, default_value_t = 1.3, value_name = "FACTOR")]
    worse: f64,
    /// The same for latencies
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    worse_latency: f64,
}

/// The file of a set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    /// In place of those of each scenario.
    warm_up_seconds: u32,
    duration_seconds: u32,
    /// Files, beside that of the set.
    scenarios: Vec<PathBuf>,
}

/// How many times worse a figure may be.
#[derive(Clone, Copy)]
struct Limits {
    plain: f64,
    latency: f64,
}

/// What was measured of a set.
#[derive(Default)]
struct Done {
    /// Of the scenarios that are whole.
    reports: Vec<Report>,
    worse: Vec<String>,
    /// Half a scenario is something, too.
    is_something: bool,
}

/// One figure of now beside the recorded one.
struct Line {
    figure: &'static str,
    now: f64,
    then: f64,
    /// How many times worse it is than it may be, if it is.
    worse: bool,
    remark: &'static str,
}

impl Short {
    pub fn execute(&self) -> Result<ExitCode> {
        ensure!(
            self.worse >= 1.0 && self.worse_latency >= 1.0,
            "--worse and --worse-latency: at least 1"
        );
        let scenarios = pick(read_set(&self.set)?, &self.only, &self.set)?;
        let records = if self.record && !self.recorded.exists() {
            Vec::new()
        } else {
            Recorded::load_all(&self.recorded)?
        };
        let commit = self.commit()?;
        let bench = Bench::new(&self.targets)?;
        let mut done = Done::default();
        let failed = self.measure(&bench, &scenarios, &records, &mut done).err();
        match failed {
            Some(error) if !done.is_something => Err(error),
            failed => self.end(done, commit, failed),
        }
    }

    /// Measures the scenarios, one after the other, and prints each beside what was recorded.
    fn measure(
        &self,
        bench: &Bench,
        scenarios: &[Scenario],
        records: &[Recorded],
        done: &mut Done,
    ) -> Result<()> {
        for (at, scenario) in scenarios.iter().enumerate() {
            let (name, count) = (&scenario.name, scenarios.len());
            say(&format!("scenario {} of {count}: {name}", at + 1));
            let measured = bench.measure(scenario, self.rounds);
            let (report, failed) = measured.with_context(|| name.clone())?;
            done.is_something = true;
            let (text, worse) = hold(&report, records, self.limits());
            let beside = bounds::beside::render(&report);
            println!("{text}{beside}{}", remarks(&report));
            // Half of a scenario is no measure of it.
            if let Some(error) = failed {
                return Err(error.context(name.clone()));
            }
            done.worse.extend(worse);
            done.reports.push(report);
        }
        Ok(())
    }

    /// Keeps the scenarios that were measured, and says what became of the set.
    fn end(&self, done: Done, commit: String, failed: Option<Error>) -> Result<ExitCode> {
        let missing = failed.map(|error| format!("{error:#}"));
        if self.record && !done.reports.is_empty() {
            let mut recorded = Recorded::new(commit, done.reports);
            recorded.incomplete.clone_from(&missing);
            println!("recorded in {}", recorded.store(&self.recorded)?.display());
        }
        if !done.worse.is_empty() {
            println!("worse than it may be:\n  {}", done.worse.join("\n  "));
        }
        Ok(match missing {
            Some(reason) => {
                say(&format!("error: {reason}; the set is incomplete"));
                ExitCode::from(INCOMPLETE)
            }
            None if done.worse.is_empty() => ExitCode::SUCCESS,
            None => ExitCode::from(WORSE),
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            plain: self.worse,
            latency: self.worse_latency,
        }
    }

    /// Only a record needs it, and it is asked for before minutes are spent on measuring.
    fn commit(&self) -> Result<String> {
        if let Some(commit) = &self.commit {
            return Ok(commit.clone());
        }
        if !self.record {
            return Ok(String::new());
        }
        let output = Command::new("git")
            .args(["describe", "--always", "--dirty"])
            .output()
            .ok()
            .filter(|output| output.status.success());
        let output = output.context("git knows no commit of the current folder: use --commit")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn read_set(path: &Path) -> Result<Vec<Scenario>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read set {}", path.display()))?;
    let set: Set = toml::from_str(&text).with_context(|| format!("set {}", path.display()))?;
    ensure!(
        set.duration_seconds >= 1 && !set.scenarios.is_empty(),
        "set {}: duration_seconds at least 1, and at least one scenario",
        path.display()
    );
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let read = |file: &PathBuf| {
        let mut scenario = Scenario::read(&folder.join(file))?;
        scenario.warm_up_seconds = set.warm_up_seconds;
        scenario.duration_seconds = set.duration_seconds;
        Ok(scenario)
    };
    set.scenarios.iter().map(read).collect()
}

fn pick(scenarios: Vec<Scenario>, only: &[String], set: &Path) -> Result<Vec<Scenario>> {
    for name in only {
        let known = || scenarios.iter().map(|scenario| scenario.name.as_str());
        ensure!(
            known().any(|scenario| scenario == name),
            "--only {name}: not in {}, which has {}",
            set.display(),
            known().collect::<Vec<_>>().join(", ")
        );
    }
    let picked = |scenario: &Scenario| only.is_empty() || only.contains(&scenario.name);
    Ok(scenarios.into_iter().filter(picked).collect())
}

/// Every target's figures beside its last recorded ones as text, and a line for each that is worse than it may be.
fn hold(report: &Report, records: &[Recorded], limits: Limits) -> (String, Vec<String>) {
    let (mut text, mut worse) = (String::new(), Vec::new());
    for target in report.targets() {
        let name = format!("{}, {target}", report.scenario);
        let last = recorded::last(records, report, target);
        let _ = match &last {
            None => writeln!(text, "{name}: nothing was recorded to hold it against"),
            Some(last) if last.differences.is_empty() => writeln!(
                text,
                "{name}: against {} of {}",
                last.commit, last.report.date
            ),
            Some(last) => writeln!(
                text,
                "{name}: {} of {} cannot judge it: {}",
                last.commit,
                last.report.date,
                last.differences.join("; ")
            ),
        };
        let judged = last
            .as_ref()
            .is_some_and(|last| last.differences.is_empty());
        let then = last.as_ref().map(|last| last.report);
        for mut line in lines(report, then, target, limits) {
            line.worse &= judged;
            let _ = writeln!(text, "  {}", line.text());
            if line.worse {
                worse.push(format!("{name}: {}", line.text()));
            }
        }
    }
    (text, worse)
}

fn lines(now: &Report, then: Option<&Report>, target: &str, limits: Limits) -> Vec<Line> {
    let has_backlog = is_behind(now, target) || then.is_some_and(|then| is_behind(then, target));
    let mut lines = Vec::new();
    for figure in &FIGURES {
        let Some(held) = figure.held else { continue };
        let value = better_round(now, target, figure, held);
        let recorded = then.map_or(0.0, |then| better_round(then, target, figure, held));
        if value == 0.0 && recorded == 0.0 {
            continue;
        }
        let backlog = held == Held::Latency && has_backlog;
        lines.push(Line {
            figure: figure.name,
            now: value,
            then: recorded,
            worse: !backlog && is_worse(held, value, recorded, limits),
            remark: if backlog {
                "a backlog, below its rate: not judged"
            } else {
                ""
            },
        });
    }
    lines
}

/// What disturbs a machine makes a round worse and never better.
pub fn better_round(report: &Report, target: &str, figure: &Figure, held: Held) -> f64 {
    let values = report.of(target).map(figure.of);
    let better = match held {
        Held::Rate => values.reduce(f64::max),
        Held::Cost | Held::Latency => values.filter(|value| *value > 0.0).reduce(f64::min),
    };
    better.unwrap_or(0.0)
}

fn is_worse(held: Held, now: f64, then: f64, limits: Limits) -> bool {
    match held {
        // Nothing at all where there was something is the worst there is.
        Held::Rate => then > now * limits.plain,
        Held::Cost => then > 0.0 && now > then * limits.plain,
        Held::Latency => then > 0.0 && now > then * limits.latency,
    }
}

/// Whether an open loop stayed below its rate in any round.
pub fn is_behind(report: &Report, target: &str) -> bool {
    let scenario: Option<Scenario> = serde_json::from_str(&report.settings).ok();
    let rate = scenario.and_then(|scenario| scenario.producers?.rate);
    rate.is_some_and(|rate| {
        let reached = |measured: &Measurement| measured.records_a_second();
        report
            .of(target)
            .any(|measured| reached(measured) < RATE_REACHED * rate as f64)
    })
}

impl Line {
    fn text(&self) -> String {
        let show = |value: f64| match value {
            0.0 => "-".to_owned(),
            value => number(value),
        };
        let ratio = match self.then {
            0.0 => 0.0,
            then => self.now / then,
        };
        let verdict = if self.worse { "WORSE" } else { self.remark };
        let line = format!(
            "{:<24}{:>14}{:>14}{:>10}  {verdict}",
            self.figure,
            show(self.now),
            show(self.then),
            show(ratio)
        );
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;

    const LIMITS: Limits = Limits {
        plain: 1.3,
        latency: 2.0,
    };

    fn recorded() -> Vec<Recorded> {
        vec![Recorded::new("abc".to_owned(), vec![example()])]
    }

    fn held(change: impl Fn(&mut Measurement)) -> (String, Vec<String>) {
        let mut report = example();
        report.measurements.iter_mut().for_each(change);
        hold(&report, &recorded(), LIMITS)
    }

    #[test]
    fn an_equal_result_is_no_worse_and_names_what_it_was_held_against() {
        let (text, worse) = held(|_| {});
        assert_eq!(worse, Vec::<String>::new());
        assert!(text.contains("example, ours: against abc of 2026-01-01T00:00:00Z"));
        assert!(text.contains("example, kafka: against abc"));
        let line = text
            .lines()
            .find(|line| line.contains("produced records/s"))
            .expect("a rate");
        assert!(line.trim_end().ends_with("1.000"), "{line}");
    }

    #[test]
    fn each_kind_of_figure_gets_worse_in_its_own_direction() {
        type Change = fn(&mut Measurement);
        let cases: [(Change, &[&str]); 6] = [
            (|m| m.produced_records /= 2, &["produced records/s"]),
            (|m| m.produced_records *= 2, &[]),
            (|m| m.target_cpu *= 1.29, &[]),
            (
                |m| m.target_cpu *= 1.31,
                &["CPU s/GB, process", "CPU us/batch, process"],
            ),
            (|m| m.publish.p99 = m.publish.p99 * 19 / 10, &[]),
            (
                |m| m.publish.p99 = m.publish.p99 * 21 / 10,
                &["publish p99 us"],
            ),
        ];
        for (at, (change, wanted)) in cases.into_iter().enumerate() {
            let (text, worse) = held(change);
            // Both targets of the example change.
            assert_eq!(worse.len(), 2 * wanted.len(), "case {at}: {text}");
            for figure in wanted {
                let found = worse.iter().filter(|line| line.contains(figure)).count();
                assert_eq!(found, 2, "case {at}: {worse:?}");
            }
        }
    }

    #[test]
    fn one_bad_round_is_no_verdict() {
        let (text, worse) = held(|measured| {
            if measured.round == 1 {
                measured.target_cpu *= 10.0;
                measured.produced_records /= 10;
            }
        });
        assert_eq!(worse, Vec::<String>::new(), "{text}");
    }

    #[test]
    fn another_machine_is_shown_and_judges_nothing() {
        let mut report = example();
        report.machine.cores += 2;
        report.measurements[0].produced_records = 1;
        report.measurements[2].produced_records = 1;
        let (text, worse) = hold(&report, &recorded(), LIMITS);
        assert_eq!(worse, Vec::<String>::new());
        assert!(text.contains("cannot judge it: the machine was"), "{text}");
        let (text, _) = hold(&report, &[], LIMITS);
        assert!(text.contains("nothing was recorded"), "{text}");
    }

    #[test]
    fn latencies_of_a_backlog_are_not_judged() {
        let mut report = example();
        let settings = r#"{"name":"example","about":"","topic":{"partitions":1},
            "producers":{"count":1,"record_bytes":1,"batch_records":1,"acks":"all","rate":RATE},
            "warm_up_seconds":0,"duration_seconds":1}"#;
        // Ours reaches 100,000 records a second in the example, kafka 50,000.
        report.settings = settings.replace("RATE", "100000");
        let records = vec![Recorded::new("abc".to_owned(), vec![report.clone()])];
        for measured in &mut report.measurements {
            measured.publish.p99 *= 10;
        }
        let (text, worse) = hold(&report, &records, LIMITS);
        assert_eq!(worse.len(), 1, "{text}");
        assert!(worse[0].starts_with("example, ours"), "{worse:?}");
        assert!(text.contains("not judged"), "{text}");
    }

    #[test]
    fn the_checked_in_set_names_scenarios_that_are_there() {
        let set = Path::new(env!("CARGO_MANIFEST_DIR")).join("short.toml");
        let scenarios = read_set(&set).expect("the set");
        assert!(scenarios.len() >= 7, "{}", scenarios.len());
        let pick = |name: &str| pick(scenarios.clone(), &[name.to_owned()], &set);
        assert_eq!(pick("fsync-every-ack").expect("one").len(), 1);
        let error = pick("fsync").expect_err("no such scenario").to_string();
        assert!(error.contains("--only fsync: not in"), "{error}");
    }
}
