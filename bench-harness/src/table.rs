//! Results for people: a table, the ratios pair by pair, and HdrHistogram logs for other viewers.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use crate::bounds;
use crate::report::{Latency, Measurement, Report, ratio, write as write_file};

/// A figure of a measurement, with how it is written.
pub struct Figure {
    pub name: &'static str,
    pub of: fn(&Measurement) -> f64,
    /// How it is held against an earlier one; `None` where neither more nor less of it is better.
    pub held: Option<Held>,
}

/// What a main figure is, and so when it got worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// More is better.
    Rate,
    /// Less is better.
    Cost,
    /// Less is better, and it varies more than the others.
    Latency,
}

/// Figures that are compared; 0 stands for "not measured".
pub const FIGURES: [Figure; 22] = [
    Figure {
        name: "produced records/s",
        of: Measurement::records_a_second,
        held: Some(Held::Rate),
    },
    Figure {
        name: "produced batches/s",
        of: Measurement::batches_a_second,
        held: None,
    },
    Figure {
        name: "produced MB/s",
        of: Measurement::produced_rate,
        held: None,
    },
    Figure {
        name: "consumed MB/s",
        of: Measurement::consumed_rate,
        held: Some(Held::Rate),
    },
    Figure {
        name: "cold read MB/s",
        of: Measurement::cold_rate,
        held: Some(Held::Rate),
    },
    Figure {
        name: "publish p50 us",
        of: |measured| measured.publish.p50 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "publish p99 us",
        of: |measured| measured.publish.p99 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "publish p99.9 us",
        of: |measured| measured.publish.p99_9 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "publish p99.99 us",
        of: |measured| measured.publish.p99_99 as f64,
        held: None,
    },
    Figure {
        name: "publish max us",
        of: |measured| measured.publish.max as f64,
        held: None,
    },
    Figure {
        name: "end to end p50 us",
        of: |measured| measured.end_to_end.p50 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "end to end p99 us",
        of: |measured| measured.end_to_end.p99 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "end to end p99.9 us",
        of: |measured| measured.end_to_end.p99_9 as f64,
        held: Some(Held::Latency),
    },
    Figure {
        name: "generator late p99 us",
        of: |measured| measured.lateness.p99 as f64,
        held: None,
    },
    Figure {
        name: "CPU s/GB, process",
        of: Measurement::cpu_a_gigabyte,
        held: Some(Held::Cost),
    },
    Figure {
        name: "CPU s/GB, machine less generator",
        of: Measurement::machine_cpu_a_gigabyte,
        held: None,
    },
    Figure {
        name: "CPU us/batch, process",
        of: Measurement::cpu_a_batch,
        held: Some(Held::Cost),
    },
    Figure {
        name: "CPU cores, process",
        of: |measured| ratio(measured.target_cpu, measured.seconds),
        held: None,
    },
    Figure {
        name: "CPU cores, generator",
        of: |measured| ratio(measured.generator_cpu, measured.seconds),
        held: None,
    },
    Figure {
        name: "context switches/s",
        of: |measured| ratio(measured.switches as f64, measured.seconds),
        held: None,
    },
    Figure {
        name: "resident MiB, most",
        of: |measured| measured.resident_most as f64 / 1048576.0,
        held: Some(Held::Cost),
    },
    Figure {
        name: "errors",
        of: |measured| measured.errors as f64,
        held: None,
    },
];

/// Median and spread of a target's rounds.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self {
            least,
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            most,
        })
    }
}

/// The whole result as text: one column a target; with several, each target's ratio to the last one, round by round.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    let targets = report.targets();
    let machine = &report.machine;
    let _ = writeln!(text, "{}: {}", report.scenario, report.about);
    let _ = writeln!(
        text,
        "{}  {} x {}, {} MiB, Linux {}",
        report.date,
        machine.cores,
        machine.processor,
        machine.memory >> 20,
        machine.kernel
    );
    let _ = writeln!(text, "{}\n{}\n", report.command, report.placement);
    let _ = write!(text, "{:<34}", "median of rounds");
    targets.iter().for_each(|target| {
        let _ = write!(text, "{target:>16}");
    });
    let _ = writeln!(text);
    for figure in &FIGURES {
        let columns: Vec<Option<Spread>> = targets
            .iter()
            .map(|target| Spread::of(report.of(target).map(figure.of).collect()))
            .collect();
        if columns.iter().flatten().all(|spread| spread.most == 0.0) {
            continue;
        }
        let _ = write!(text, "{:<34}", figure.name);
        for spread in columns {
            let _ = write!(
                text,
                "{:>16}",
                spread.map_or_else(|| "-".to_owned(), |spread| number(spread.median))
            );
        }
        let _ = writeln!(text);
    }
    if let Some((base, others)) = targets
        .split_last()
        .filter(|(_, others)| !others.is_empty())
    {
        others
            .iter()
            .for_each(|target| ratios(&mut text, report, target, base));
    }
    text.push_str(&bounds::beside::render(report));
    text.push_str(&remarks(report));
    text
}

/// What makes the result less than it seems, a line each.
pub fn remarks(report: &Report) -> String {
    let mut text = String::new();
    for measured in &report.measurements {
        let name = format!("{} round {}", measured.target, measured.round + 1);
        for warning in &measured.warnings {
            let _ = writeln!(text, "warning: {name}: {warning}");
        }
        if let Some(reason) = &measured.incomplete {
            let _ = writeln!(text, "INCOMPLETE: {name}: {reason}");
        }
    }
    // Where it is a measurement that is not whole, it has said why.
    let between = |_: &&String| {
        report
            .measurements
            .iter()
            .all(|one| one.incomplete.is_none())
    };
    if let Some(reason) = report.incomplete.as_ref().filter(between) {
        let _ = writeln!(text, "INCOMPLETE: {reason}");
    }
    text
}

/// Ratios of the same round, so that a machine that drifts drifts for both.
fn ratios(text: &mut String, report: &Report, target: &str, base: &str) {
    let _ = writeln!(
        text,
        "\n{:<34}{:>16}   least to most, pair by pair",
        format!("{target} to {base}"),
        "ratio"
    );
    for figure in &FIGURES {
        let pairs = report.of(target).filter_map(|mine| {
            let theirs = report.of(base).find(|theirs| theirs.round == mine.round)?;
            let (mine, theirs) = ((figure.of)(mine), (figure.of)(theirs));
            (mine > 0.0 && theirs > 0.0).then(|| mine / theirs)
        });
        if let Some(spread) = Spread::of(pairs.collect()) {
            let _ = writeln!(
                text,
                "{:<34}{:>16}   {} to {}",
                figure.name,
                number(spread.median),
                number(spread.least),
                number(spread.most)
            );
        }
    }
}

/// Two stored results side by side, target by target.
pub fn side_by_side(first: &Report, second: &Report) -> String {
    let mut text = format!(
        "first:  {} {} {}\nsecond: {} {} {}\n",
        first.date, first.scenario, first.command, second.date, second.scenario, second.command
    );
    if first.settings != second.settings {
        text.push_str("warning: the scenarios differ in their settings\n");
    }
    let seconds = second.targets();
    for (at, target) in first.targets().iter().enumerate() {
        // The same name if there is one, else the same place.
        let Some(other) = seconds
            .iter()
            .find(|name| *name == target)
            .or_else(|| seconds.get(at))
        else {
            continue;
        };
        let _ = writeln!(
            text,
            "\n{:<34}{:>16}{:>16}{:>16}",
            format!("{target} and {other}"),
            "first",
            "second",
            "second/first"
        );
        for figure in &FIGURES {
            let median = |report: &Report, name: &str| {
                Spread::of(report.of(name).map(figure.of).collect())
                    .map_or(0.0, |spread| spread.median)
            };
            let (mine, theirs) = (median(first, target), median(second, other));
            if mine > 0.0 || theirs > 0.0 {
                let _ = writeln!(
                    text,
                    "{:<34}{:>16}{:>16}{:>16}",
                    figure.name,
                    number(mine),
                    number(theirs),
                    number(ratio(theirs, mine))
                );
            }
        }
    }
    text
}

pub fn number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// One `.hlog` a measurement and kind of latency, in the format that HdrHistogram's viewers open. Values are microseconds.
pub fn write_histogram_logs(report: &Report, folder: &Path) -> Result<()> {
    for measured in &report.measurements {
        for (kind, latency) in [
            ("publish", &measured.publish),
            ("end-to-end", &measured.end_to_end),
        ] {
            if latency.count > 0 {
                let name = format!(
                    "{}-round{}-{kind}.hlog",
                    measured.target,
                    measured.round + 1
                );
                write_file(&folder.join(name), &log(latency, measured.seconds)?)?;
            }
        }
    }
    Ok(())
}

fn log(latency: &Latency, seconds: f64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .with_start_time(SystemTime::UNIX_EPOCH)
        .begin_log_with(&mut bytes, &mut serializer)?;
    writer
        .write_histogram(
            &latency.histogram()?,
            Duration::ZERO,
            Duration::from_secs_f64(seconds),
            None,
        )
        .map_err(|error| anyhow!("cannot write a histogram log: {error:?}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;

    #[test]
    fn the_table_shows_each_target_and_the_ratio_of_pairs() {
        let text = render(&example());
        let line = |start: &str| {
            text.lines()
                .find(|line| line.starts_with(start))
                .unwrap_or_default()
                .to_owned()
        };
        assert!(
            line("produced records/s").contains("100000")
                && line("produced records/s").contains("50000"),
            "{text}"
        );
        let (_, ratios) = text.split_once("ours to kafka").expect("ratios");
        let cpu = ratios
            .lines()
            .find(|line| line.starts_with("CPU s/GB, process"))
            .expect("a ratio");
        assert!(cpu.contains("0.250"), "{cpu}");
    }

    #[test]
    fn what_a_result_lacks_stands_below_it() {
        let mut report = example();
        assert_eq!(remarks(&report), "");
        report.measurements[1].warnings = vec!["late".to_owned()];
        report.incomplete = Some("a round is missing".to_owned());
        let missing = "warning: kafka round 1: late\nINCOMPLETE: a round is missing\n";
        assert_eq!(remarks(&report), missing);
        report.measurements[2].incomplete = Some("gone".to_owned());
        let gone = "warning: kafka round 1: late\nINCOMPLETE: ours round 2: gone\n";
        assert_eq!(remarks(&report), gone);
        assert!(render(&report).ends_with(gone));
    }

    #[test]
    fn two_results_stand_side_by_side() {
        let (first, mut second) = (example(), example());
        second
            .measurements
            .iter_mut()
            .for_each(|measured| measured.target_cpu *= 3.0);
        let text = side_by_side(&first, &second);
        let cpu = text
            .lines()
            .find(|line| line.starts_with("CPU s/GB, process"))
            .expect("a line");
        assert!(cpu.trim_end().ends_with("3.000"), "{cpu}");
    }

    #[test]
    fn histogram_logs_are_read_back_by_their_format() {
        use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
        let report = example();
        let bytes = log(&report.measurements[0].publish, 10.0).expect("a log");
        let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(&bytes)
            .filter_map(std::result::Result::ok)
            .collect();
        assert!(
            entries
                .iter()
                .any(|entry| matches!(entry, LogEntry::Interval(_))),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
}
