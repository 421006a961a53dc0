//! Plots of a result as SVG: latency by percentile, publish latency and throughput over time, throughput beside its bound.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::report::{Measurement, Report, write};
use crate::throughput;

const SIZE: (u32, u32) = (960, 540);
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(0, 130, 70),
    RGBColor(150, 80, 170),
    RGBColor(230, 150, 0),
    RGBColor(90, 90, 90),
];

/// A named line of points.
type Line = (String, Vec<(f64, f64)>);

pub fn draw_all(report: &Report, folder: &Path) -> Result<()> {
    let lines = percentiles(report)?;
    if lines.iter().any(|(_, points)| !points.is_empty()) {
        let marks = |nines: &f64| percentile_label(*nines);
        draw(
            &folder.join("latency.svg"),
            &format!("{}: latency by percentile", report.scenario),
            "percentile",
            "microseconds",
            &lines,
            Some(&marks),
            true,
        )?;
    }
    let published = timeline(report, |second| second.publish_p99 as f64);
    if published
        .iter()
        .any(|(_, points)| points.iter().any(|point| point.1 > 0.0))
    {
        draw(
            &folder.join("timeline.svg"),
            &format!("{}: publish p99 of each second", report.scenario),
            "second",
            "microseconds",
            &published,
            None,
            true,
        )?;
    }
    let produced = timeline(report, |second| second.produced_bytes as f64 / 1e6);
    if produced.iter().any(|(_, points)| !points.is_empty()) {
        draw(
            &folder.join("timeline-throughput.svg"),
            &format!("{}: produced, each second", report.scenario),
            "second",
            "MB/s",
            &produced,
            None,
            false,
        )?;
    }
    match throughput::draw(report) {
        Some(bars) => write(&folder.join("throughput.svg"), bars.as_bytes()),
        None => Ok(()),
    }
}

/// The x axis counts nines: 1 is p90, 2 is p99, 3 is p99.9.
fn percentiles(report: &Report) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for measured in first_rounds(report) {
        for (kind, latency) in [
            ("publish", &measured.publish),
            ("end to end", &measured.end_to_end),
        ] {
            if latency.count == 0 {
                continue;
            }
            let histogram = latency.histogram()?;
            let points = (0..=100).map(|step| {
                let nines = f64::from(step) / 25.0;
                (
                    nines,
                    histogram.value_at_quantile(1.0 - 10f64.powf(-nines)).max(1) as f64,
                )
            });
            lines.push((format!("{} {kind}", measured.target), points.collect()));
        }
    }
    Ok(lines)
}

fn percentile_label(nines: f64) -> String {
    match nines.round() as i64 {
        0 => "min".to_owned(),
        1 => "p90".to_owned(),
        2 => "p99".to_owned(),
        3 => "p99.9".to_owned(),
        _ => "p99.99".to_owned(),
    }
}

/// The first round stands for its target: later ones would only lie on top of it.
fn first_rounds(report: &Report) -> impl Iterator<Item = &Measurement> {
    report
        .measurements
        .iter()
        .filter(|measured| measured.round == 0)
}

fn timeline(report: &Report, of: fn(&crate::report::TimelineSecond) -> f64) -> Vec<Line> {
    let points = |measured: &Measurement| {
        measured
            .timeline
            .iter()
            .enumerate()
            .map(|(at, second)| (at as f64, of(second).max(0.0)))
            .collect()
    };
    first_rounds(report)
        .map(|measured| (measured.target.clone(), points(measured)))
        .collect()
}

fn draw(
    path: &Path,
    title: &str,
    across: &str,
    up: &str,
    lines: &[Line],
    marks: Option<&dyn Fn(&f64) -> String>,
    logarithmic: bool,
) -> Result<()> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
    let bottom = points()
        .map(|point| point.1)
        .filter(|value| *value > 0.0)
        .fold(top, f64::min);
    let broken = |error: &dyn std::fmt::Display| anyhow!("cannot draw {}: {error}", path.display());
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(|error| broken(&error))?;
    let mut builder = ChartBuilder::on(&area);
    builder
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(80);
    let plain = |value: &f64| format!("{value:.0}");
    let marks = marks.unwrap_or(&plain);
    // The two kinds of axis are two types, so the same steps stand here twice, behind a macro.
    macro_rules! fill {
        ($chart:expr) => {{
            let mut chart = $chart.map_err(|error| broken(&error))?;
            chart
                .configure_mesh()
                .x_desc(across)
                .y_desc(up)
                .x_labels(if right <= 4.0 { 5 } else { 10 })
                .x_label_formatter(marks)
                .y_label_formatter(&plain)
                .draw()
                .map_err(|error| broken(&error))?;
            for (at, (name, points)) in lines.iter().enumerate() {
                let colour = COLOURS[at % COLOURS.len()];
                let drawable = points
                    .iter()
                    .filter(|point| point.1 > 0.0 || !logarithmic)
                    .copied();
                chart
                    .draw_series(LineSeries::new(drawable, colour.stroke_width(2)))
                    .map_err(|error| broken(&error))?
                    .label(name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour));
            }
            chart
                .configure_series_labels()
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK)
                .position(SeriesLabelPosition::UpperLeft)
                .draw()
                .map_err(|error| broken(&error))?;
        }};
    }
    if logarithmic {
        fill!(builder.build_cartesian_2d(0.0..right, (bottom..top.max(bottom * 10.0)).log_scale()));
    } else {
        fill!(builder.build_cartesian_2d(0.0..right, 0.0..top));
    }
    area.present().map_err(|error| broken(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{cold_example, example};

    #[test]
    fn a_result_becomes_svg_with_a_line_for_each_target() {
        let folder = tempfile::tempdir().expect("a folder");
        draw_all(&example(), folder.path()).expect("plots");
        for name in ["latency.svg", "timeline.svg", "timeline-throughput.svg"] {
            let svg = std::fs::read_to_string(folder.path().join(name)).expect("a plot");
            assert!(
                svg.starts_with("<svg") && svg.contains("ours") && svg.contains("kafka"),
                "{name}"
            );
            assert!(svg.matches("<polyline").count() >= 2, "{name}");
        }
        assert!(folder.path().join("throughput.svg").exists());
    }

    #[test]
    fn a_result_of_reading_alone_has_a_plot_of_what_was_read() {
        let folder = tempfile::tempdir().expect("a folder");
        draw_all(&cold_example(), folder.path()).expect("plots");
        let svg = std::fs::read_to_string(folder.path().join("throughput.svg")).expect("a plot");
        assert!(
            svg.contains("cold read MB/s") && svg.contains(">ours<"),
            "{svg}"
        );
        let files = std::fs::read_dir(folder.path())
            .expect("the folder")
            .count();
        assert_eq!(files, 1, "there is nothing else to draw");
    }
}
