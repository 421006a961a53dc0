//! Targets beside their bounds: which figure stands beside which, and both as text.

use std::fmt::Write;

use crate::report::{BesideBound, Bound, BoundFigure, BoundKind, Measurement, Report, ratio};
use crate::short::better_round;
use crate::table::{Figure, Held, number};

/// A figure of the targets, and what it is of a bound.
struct Row {
    figure: Figure,
    bound: fn(&Bound) -> f64,
}

const fn row(
    name: &'static str,
    held: Held,
    of: fn(&Measurement) -> f64,
    bound: fn(&Bound) -> f64,
) -> Row {
    let held = Some(held);
    Row {
        figure: Figure { name, of, held },
        bound,
    }
}

const PRODUCED: Row = row(
    "produced MB/s",
    Held::Rate,
    Measurement::produced_rate,
    Bound::rate,
);
const CPU_A_GIGABYTE: Row = row(
    "CPU s/GB, process",
    Held::Cost,
    Measurement::cpu_a_gigabyte,
    Bound::cpu_a_gigabyte,
);
const CONSUMED: Row = row(
    "consumed MB/s",
    Held::Rate,
    Measurement::consumed_rate,
    Bound::rate,
);
const COLD: Row = row(
    "cold read MB/s",
    Held::Rate,
    Measurement::cold_rate,
    Bound::rate,
);
const CPU_A_GIGABYTE_SENT: Row = row(
    "CPU s/GB sent, process",
    Held::Cost,
    Measurement::cpu_a_gigabyte_sent,
    Bound::cpu_a_gigabyte,
);
const BATCHES: Row = row(
    "produced batches/s",
    Held::Rate,
    Measurement::batches_a_second,
    Bound::steps_a_second,
);
const CPU_A_BATCH: Row = row(
    "CPU us/batch, process",
    Held::Cost,
    Measurement::cpu_a_batch,
    Bound::cpu_a_step,
);
const P50: Row = row(
    "publish p50 us",
    Held::Latency,
    |measured| measured.publish.p50 as f64,
    |bound| bound.latency.p50 as f64,
);
const P99: Row = row(
    "publish p99 us",
    Held::Latency,
    |measured| measured.publish.p99 as f64,
    |bound| bound.latency.p99 as f64,
);
const P99_9: Row = row(
    "publish p99.9 us",
    Held::Latency,
    |measured| measured.publish.p99_9 as f64,
    |bound| bound.latency.p99_9 as f64,
);
const CONSUMED_BY_CLIENT: Row = row(
    "consumed MB/s",
    Held::Rate,
    Measurement::consumed_rate,
    Bound::consumed_rate,
);
const END_TO_END_P50: Row = row(
    "end to end p50 us",
    Held::Latency,
    |measured| measured.end_to_end.p50 as f64,
    |bound| bound.end_to_end.p50 as f64,
);
const END_TO_END_P99: Row = row(
    "end to end p99 us",
    Held::Latency,
    |measured| measured.end_to_end.p99 as f64,
    |bound| bound.end_to_end.p99 as f64,
);

fn rows(kind: BoundKind) -> &'static [Row] {
    match kind {
        BoundKind::Write => &[PRODUCED, CPU_A_GIGABYTE],
        BoundKind::Send => &[CONSUMED, CPU_A_GIGABYTE_SENT],
        BoundKind::Cold => &[COLD, CPU_A_GIGABYTE_SENT],
        BoundKind::Durable => &[BATCHES, P50, P99, P99_9],
        BoundKind::Echo => &[BATCHES, CPU_A_BATCH, P50, P99, P99_9],
        BoundKind::Client => &[
            PRODUCED,
            CONSUMED_BY_CLIENT,
            P50,
            P99,
            END_TO_END_P50,
            END_TO_END_P99,
        ],
    }
}

/// Writes the figures of every bound, with those of the targets: the better round of each, and how many times the bound's
/// it is. A figure that nobody has is left out.
pub fn put_beside(report: &mut Report) {
    let mut bounds = std::mem::take(&mut report.bounds);
    for bound in &mut bounds {
        let figures = rows(bound.kind)
            .iter()
            .map(|row| figure(report, bound, row));
        let is_there = |figure: &BoundFigure| {
            let of_targets = figure.targets.iter().map(|beside| beside.value);
            of_targets.fold(figure.value, f64::max) > 0.0
        };
        bound.figures = figures.filter(is_there).collect();
    }
    report.bounds = bounds;
}

fn figure(report: &Report, bound: &Bound, row: &Row) -> BoundFigure {
    let of_bound = (row.bound)(bound);
    let beside = |target: &&str| {
        let held = row.figure.held.unwrap_or(Held::Cost);
        let value = better_round(report, target, &row.figure, held);
        BesideBound {
            target: (*target).to_owned(),
            value,
            ratio: ratio(value, of_bound),
        }
    };
    BoundFigure {
        name: row.figure.name.to_owned(),
        value: of_bound,
        targets: report.targets().iter().map(beside).collect(),
    }
}

/// A paragraph a bound, a line a figure; nothing where no bounds were measured.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    for bound in &report.bounds {
        let _ = writeln!(text, "\nbound: {}", bound.about);
        let _ = write!(text, "{:<24}{:>14}", "better round", "bound");
        for target in report.targets() {
            let _ = write!(text, "{target:>14}{:>10}", "to bound");
        }
        let _ = writeln!(text);
        for figure in &bound.figures {
            let _ = write!(text, "{:<24}{:>14}", figure.name, show(figure.value));
            for beside in &figure.targets {
                let _ = write!(text, "{:>14}{:>10}", show(beside.value), show(beside.ratio));
            }
            let _ = writeln!(text);
        }
    }
    text
}

fn show(value: f64) -> String {
    match value {
        0.0 => "-".to_owned(),
        value => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{bound, example};

    #[test]
    fn each_target_stands_beside_the_bound_with_its_ratio() {
        let mut report = example();
        // 1000 MB in 5 s for 0.1 s of processor time; ours makes 100 MB/s for 2 s a GB, kafka 50 for 8.
        report.bounds = vec![bound(BoundKind::Write), bound(BoundKind::Echo)];
        put_beside(&mut report);
        let text = render(&report);
        let columns = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(name));
            let values = line.expect("a line").split_at(24).1.split_whitespace();
            values.map(str::to_owned).collect()
        };
        assert_eq!(
            columns("produced MB/s"),
            ["200.0", "100.0", "0.500", "50.0", "0.250"]
        );
        assert_eq!(
            columns("CPU s/GB, process"),
            ["0.100", "2.000", "20.0", "8.000", "80.0"]
        );
        let p50 = columns("publish p50 us");
        assert_eq!(
            (p50[0].as_str(), p50[2].as_str(), p50[4].as_str()),
            ("250.0", "2.000", "4.000")
        );
        assert!(text.contains("bound: a loop"), "{text}");
    }

    #[test]
    fn the_clients_limit_has_the_figures_of_what_the_client_did() {
        let mut report = example();
        let limit = Bound {
            consumed_bytes: 2_000_000_000,
            ..bound(BoundKind::Client)
        };
        report.bounds = vec![limit];
        put_beside(&mut report);
        let figures = |report: &Report| -> Vec<(String, f64, f64)> {
            let figures = report.bounds[0].figures.iter();
            figures
                .map(|figure| (figure.name.clone(), figure.value, figure.targets[0].ratio))
                .collect()
        };
        let found = figures(&report);
        assert_eq!(found[0], ("produced MB/s".to_owned(), 200.0, 0.5));
        assert_eq!(found[1], ("consumed MB/s".to_owned(), 400.0, 0.0));
        let names: Vec<&str> = found.iter().map(|figure| figure.0.as_str()).collect();
        assert_eq!(names[2..], ["publish p50 us", "publish p99 us"]);
        for measured in &mut report.measurements {
            measured.consumed_bytes = 8_000_000_000;
            measured.end_to_end = measured.publish.clone();
        }
        report.bounds[0].end_to_end = report.bounds[0].latency.clone();
        put_beside(&mut report);
        let found = figures(&report);
        assert_eq!(found[1], ("consumed MB/s".to_owned(), 400.0, 2.0));
        assert_eq!(found[4], ("end to end p50 us".to_owned(), 250.0, 2.0));
    }

    #[test]
    fn without_bounds_there_is_no_text() {
        let mut report = example();
        put_beside(&mut report);
        assert_eq!(render(&report), "");
    }
}
