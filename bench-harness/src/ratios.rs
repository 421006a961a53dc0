//! `ratios`: a small picture of a recorded run, one target's figures as multiples of another's.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::recorded::Recorded;
use crate::report::{Report, write};
use crate::short::{better_round, is_behind};
use crate::table::{FIGURES, Figure, Held, number};

const WIDTH: f64 = 760.0;
const NAMES: f64 = 190.0;
const VALUES: f64 = 60.0;
const BAR: f64 = 12.0;
const TOP: f64 = 44.0;
/// The scale ends here, at this many times as much and as little.
const ENDS: f64 = 32.0;

/// What is drawn of a scenario: for each kind, the first figure that both targets have.
const KINDS: [(&str, &str, &[&str]); 3] = [
    (
        "rate, more is better",
        "#0072b2",
        &["produced records/s", "cold read MB/s"],
    ),
    (
        "processor time, less is better",
        "#d55e00",
        &["CPU us/batch, process", "CPU s/GB, process"],
    ),
    (
        "p99, less is better",
        "#888888",
        &["end to end p99 us", "publish p99 us"],
    ),
];

#[derive(Args)]
pub struct Ratios {
    /// A file that `short --record` wrote
    recorded: PathBuf,
    /// Whose figures are drawn
    #[arg(long, value_name = "NAME")]
    target: String,
    /// Whose figures are 1
    #[arg(long, value_name = "NAME")]
    base: String,
    /// The picture, SVG
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// The bars of one scenario: the kind and how many times the base's figure it is.
struct Bars<'a> {
    scenario: &'a str,
    ratios: Vec<(usize, f64)>,
}

impl Ratios {
    pub fn execute(&self) -> Result<()> {
        let recorded = Recorded::load(&self.recorded)?;
        let all: Vec<Bars<'_>> = recorded
            .reports
            .iter()
            .map(|report| bars(report, &self.target, &self.base))
            .filter(|bars| !bars.ratios.is_empty())
            .collect();
        ensure!(
            !all.is_empty(),
            "{}: no scenario has both {} and {}",
            self.recorded.display(),
            self.target,
            self.base
        );
        let title = format!("{} beside {} = 1", self.target, self.base);
        write(&self.out, draw(&title, &all).as_bytes())?;
        println!("{}", self.out.display());
        Ok(())
    }
}

fn bars<'a>(report: &'a Report, target: &str, base: &str) -> Bars<'a> {
    let backlog = is_behind(report, target) || is_behind(report, base);
    let ratio = |figure: &Figure| {
        let held = figure
            .held
            .filter(|held| *held != Held::Latency || !backlog)?;
        let (mine, theirs) = (
            better_round(report, target, figure, held),
            better_round(report, base, figure, held),
        );
        (mine > 0.0 && theirs > 0.0).then(|| mine / theirs)
    };
    let of_kind = |(kind, (_, _, names)): (usize, &(&str, &str, &[&str]))| {
        let named = |name: &&str| FIGURES.iter().find(|figure| figure.name == *name);
        Some((kind, names.iter().filter_map(named).find_map(ratio)?))
    };
    Bars {
        scenario: &report.scenario,
        ratios: KINDS.iter().enumerate().filter_map(of_kind).collect(),
    }
}

/// Where a ratio lies, on a scale on which twice as much and half as much are as far from 1.
fn across(ratio: f64) -> f64 {
    let half = (WIDTH - NAMES - 2.0 * VALUES) / 2.0;
    let part = (ratio.log2() / ENDS.log2()).clamp(-1.0, 1.0);
    NAMES + VALUES + half * (1.0 + part)
}

fn draw(title: &str, all: &[Bars<'_>]) -> String {
    let step = |bars: &Bars<'_>| bars.ratios.len() as f64 * BAR + 10.0;
    let height = TOP + all.iter().map(step).sum::<f64>() + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"16\" font-size=\"14\">{title}</text>\n"
    );
    for (at, (kind, colour, _)) in KINDS.iter().enumerate() {
        let x = NAMES + at as f64 * 180.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"35\">{kind}</text>",
            x + 14.0
        );
    }
    for (ratio, name) in [
        (1.0 / 16.0, "1/16"),
        (0.25, "1/4"),
        (1.0, "1"),
        (4.0, "4"),
        (16.0, "16"),
    ] {
        let (x, colour) = (
            across(ratio),
            if ratio == 1.0 { "black" } else { "#dddddd" },
        );
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{:.1}\" stroke=\"{colour}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            height - 20.0,
            height - 8.0
        );
    }
    let mut y = TOP + 4.0;
    for bars in all {
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{:.1}\">{}</text>",
            y + BAR,
            bars.scenario
        );
        for (kind, ratio) in &bars.ratios {
            let (one, end) = (across(1.0), across(*ratio));
            let (left, width) = (one.min(end), (end - one).abs());
            let (x, anchor) = if end < one {
                (end - 4.0, "end")
            } else {
                (end + 4.0, "start")
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                BAR - 2.0,
                KINDS[*kind].1,
                y + BAR - 3.0,
                number(*ratio)
            );
            y += BAR;
        }
        y += 10.0;
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;
    use std::path::Path;

    fn ratios(folder: &Path, base: &str) -> Ratios {
        let recorded = Recorded::new("abc".to_owned(), vec![example()]);
        Ratios {
            recorded: recorded.store(folder).expect("stored"),
            target: "ours".to_owned(),
            base: base.to_owned(),
            out: folder.join("ratios.svg"),
        }
    }

    #[test]
    fn a_scenario_is_drawn_as_multiples_of_the_base() {
        let folder = tempfile::tempdir().expect("a folder");
        let ratios = ratios(folder.path(), "kafka");
        ratios.execute().expect("drawn");
        let svg = std::fs::read_to_string(&ratios.out).expect("a picture");
        assert!(svg.contains("ours beside kafka = 1") && svg.contains(">example<"));
        // Twice the rate, a quarter of the processor time a batch, half the p99.
        for value in [">2.000<", ">0.250<", ">0.500<"] {
            assert!(svg.contains(value), "{value}: {svg}");
        }
        assert!(svg.len() < 4_000, "{} bytes", svg.len());
    }

    #[test]
    fn a_base_that_was_not_recorded_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = ratios(folder.path(), "redpanda")
            .execute()
            .expect_err("none");
        assert!(
            error.to_string().contains("both ours and redpanda"),
            "{error}"
        );
    }

    #[test]
    fn half_and_twice_are_as_far_from_one() {
        let (half, one, two) = (across(0.5), across(1.0), across(2.0));
        assert!((one - half - (two - one)).abs() < 1e-9 && half < one);
        assert!(across(1e9) <= WIDTH - VALUES && across(1e-9) >= NAMES + VALUES);
    }
}
