//! Results for people: a table, and the ratios pair by pair.

use std::fmt::Write;

use crate::bounds;
use crate::pairs::{self, Ratios, Spread};
use crate::report::{Measurement, Report, ratio};

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
pub const FIGURES: [Figure; 24] = [
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
        name: "end to end p99.99 us",
        of: |measured| measured.end_to_end.p99_99 as f64,
        held: None,
    },
    Figure {
        name: "end to end max us",
        of: |measured| measured.end_to_end.max as f64,
        held: None,
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
    pairs::ratios(report)
        .iter()
        .for_each(|ratios| render_ratios(&mut text, ratios));
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

fn render_ratios(text: &mut String, ratios: &Ratios<'_>) {
    let _ = writeln!(
        text,
        "\n{:<34}{:>16}   least to most, pair by pair",
        format!("{} to {}", ratios.target, ratios.base),
        "ratio"
    );
    for figure in &ratios.figures {
        let _ = writeln!(
            text,
            "{:<34}{:>16}   {} to {}",
            figure.name,
            number(figure.spread.median),
            number(figure.spread.least),
            number(figure.spread.most)
        );
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
    fn the_table_shows_the_far_end_of_both_latencies() {
        let mut report = example();
        for measured in &mut report.measurements {
            measured.end_to_end = measured.publish.clone();
            (measured.end_to_end.p99_99, measured.end_to_end.max) = (777_000, 888_000);
        }
        let text = render(&report);
        for (name, wanted) in [
            ("publish p99.99 us", "999.0"),
            ("publish max us", "999.0"),
            ("end to end p99.99 us", "777000"),
            ("end to end max us", "888000"),
        ] {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_at(34).1.split_whitespace().next());
            assert_eq!(value, Some(wanted), "{name}: {text}");
        }
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
}
