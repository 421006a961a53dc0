//! Throughput as bars: each target beside the bounds that were measured in the same run.

use std::fmt::Write;

use crate::report::{Bound, Report};
use crate::short::better_round;
use crate::table::{FIGURES, Held, number};

const WIDTH: f64 = 760.0;
const NAMES: f64 = 210.0;
const VALUES: f64 = 70.0;
const BAR: f64 = 18.0;
const TITLE: f64 = 26.0;

const BATCHES: &str = "produced batches/s";
/// What is drawn, each rate on a scale of its own.
const RATES: [&str; 4] = ["produced MB/s", BATCHES, "consumed MB/s", "cold read MB/s"];

struct Bar {
    name: String,
    value: f64,
    colour: &'static str,
}

/// The bars of one rate.
struct Group {
    rate: &'static str,
    bars: Vec<Bar>,
}

/// The picture, or nothing where no target moved anything.
pub fn draw(report: &Report) -> Option<String> {
    let groups: Vec<Group> = RATES
        .into_iter()
        .filter_map(|rate| group(report, rate))
        .collect();
    (!groups.is_empty()).then(|| svg(&report.scenario, &groups))
}

fn group(report: &Report, rate: &'static str) -> Option<Group> {
    let figure = FIGURES.iter().find(|figure| figure.name == rate)?;
    let of_bound = |bound: &Bound| {
        let figure = bound.figures.iter().find(|figure| figure.name == rate)?;
        Some(Bar {
            name: format!("bound: {}", bound.kind.name()),
            value: figure.value,
            colour: "#999999",
        })
    };
    let of_target = |target: &&str| Bar {
        name: (*target).to_owned(),
        value: better_round(report, target, figure, Held::Rate),
        colour: "#0072b2",
    };
    let mut bars: Vec<Bar> = report.bounds.iter().filter_map(of_bound).collect();
    // Without a bound that counts batches they say what the bytes say.
    if bars.is_empty() && rate == BATCHES {
        return None;
    }
    let targets: Vec<Bar> = report.targets().iter().map(of_target).collect();
    if targets.iter().all(|bar| bar.value == 0.0) {
        return None;
    }
    bars.extend(targets);
    Some(Group { rate, bars })
}

fn svg(scenario: &str, groups: &[Group]) -> String {
    let tall = |group: &Group| TITLE + group.bars.len() as f64 * BAR;
    let height = TITLE + groups.iter().map(tall).sum::<f64>() + BAR;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"18\" font-size=\"14\">{scenario}: throughput, the better round of each target</text>\n"
    );
    let mut y = TITLE;
    for Group { rate, bars } in groups {
        let _ = writeln!(
            svg,
            "<text x=\"{NAMES}\" y=\"{:.1}\" font-weight=\"bold\">{rate}</text>",
            y + TITLE - 8.0
        );
        y += TITLE;
        let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for bar in bars {
            let width = (WIDTH - NAMES - VALUES) * bar.value / most;
            let base = y + BAR - 6.0;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{base:.1}\">{}</text>",
                NAMES - 6.0,
                escaped(&bar.name),
                BAR - 3.0,
                bar.colour,
                NAMES + width + 6.0,
                number(bar.value)
            );
            y += BAR;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Targets have whatever names people give them.
fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::beside::put_beside;
    use crate::report::BoundKind;
    use crate::report::tests::{bound, cold_example, example};

    /// The bars under a rate: name, width and value as they are drawn.
    fn bars(svg: &str, rate: &str) -> Vec<(String, f64, String)> {
        let (_, under) = svg
            .split_once(&format!(">{rate}</text>\n"))
            .expect("the rate");
        let lines = under.lines().take_while(|line| line.contains("<rect"));
        let between = |line: &str, from: &str, to: &str| {
            let (_, rest) = line.split_once(from).expect("a part");
            rest.split_once(to).expect("its end").0.to_owned()
        };
        lines
            .map(|line| {
                let (name, rest) = line.split_once("</text>").expect("a name");
                let width = between(rest, "width=\"", "\"").parse().expect("a width");
                let value = between(rest, "<text", "</text>");
                (
                    name.rsplit('>').next().expect("a name").to_owned(),
                    width,
                    value.rsplit('>').next().expect("a value").to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn each_target_is_a_bar_beside_its_bound() {
        let mut report = example();
        report.bounds = vec![bound(BoundKind::Write), bound(BoundKind::Echo)];
        put_beside(&mut report);
        let svg = draw(&report).expect("a picture");
        let produced = bars(&svg, "produced MB/s");
        let names: Vec<&str> = produced.iter().map(|bar| bar.0.as_str()).collect();
        assert_eq!(
            names,
            ["bound: receive + check + write", "ours", "kafka"],
            "{svg}"
        );
        let values: Vec<&str> = produced.iter().map(|bar| bar.2.as_str()).collect();
        assert_eq!(values, ["200.0", "100.0", "50.0"]);
        assert!((produced[0].1 / produced[1].1 - 2.0).abs() < 0.01, "{svg}");
        assert!((produced[0].1 / produced[2].1 - 4.0).abs() < 0.01, "{svg}");
        let batches = bars(&svg, BATCHES);
        assert_eq!(batches[0].0, "bound: echo + append");
        assert_eq!(
            (batches[0].2.as_str(), batches[1].2.as_str()),
            ("200.0", "1000")
        );
    }

    #[test]
    fn what_only_reads_has_its_bars_too() {
        let mut report = cold_example();
        report.bounds = vec![bound(BoundKind::Cold)];
        put_beside(&mut report);
        let svg = draw(&report).expect("a picture");
        let cold = bars(&svg, "cold read MB/s");
        let drawn: Vec<(&str, &str)> = cold
            .iter()
            .map(|bar| (bar.0.as_str(), bar.2.as_str()))
            .collect();
        assert_eq!(
            drawn,
            [
                ("bound: sendfile from a cold file", "200.0"),
                ("ours", "400.0")
            ]
        );
        assert!(!svg.contains("produced"), "{svg}");
    }

    #[test]
    fn without_bounds_there_are_the_targets_and_without_anything_no_picture() {
        let mut report = example();
        let svg = draw(&report).expect("a picture");
        assert_eq!(bars(&svg, "produced MB/s").len(), 2);
        assert!(!svg.contains("bound:") && !svg.contains(BATCHES), "{svg}");
        report.measurements.clear();
        assert!(draw(&report).is_none());
    }

    #[test]
    fn a_name_cannot_break_the_picture() {
        assert_eq!(escaped("a<b&c"), "a&lt;b&amp;c");
    }
}
