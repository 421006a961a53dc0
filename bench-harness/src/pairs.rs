//! Ratios of two targets pair by pair: of the same round, so that a machine that drifts drifts for both.

use serde::Serialize;

use crate::report::{Measurement, Report};
use crate::table::{FIGURES, Figure};

/// Median and spread of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        Some(Self {
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            least,
            most,
        })
    }
}

/// A target's figures as multiples of the last named target's.
#[derive(Serialize)]
pub struct Ratios<'a> {
    pub target: &'a str,
    pub base: &'a str,
    pub figures: Vec<FigureRatios>,
}

#[derive(Serialize)]
pub struct FigureRatios {
    pub name: &'static str,
    #[serde(flatten)]
    pub spread: Spread,
    pub pairs: Vec<Pair>,
}

/// One round, in which both had the figure.
#[derive(Serialize)]
pub struct Pair {
    pub round: u32,
    pub ratio: f64,
}

/// The ratios of every target but the last one to the last one; none where there is one only.
pub fn ratios(report: &Report) -> Vec<Ratios<'_>> {
    let targets = report.targets();
    let Some((&base, others)) = targets.split_last() else {
        return Vec::new();
    };
    let to_base = |target| {
        let of = |figure| ratios_of(report, target, base, figure);
        Ratios {
            target,
            base,
            figures: FIGURES.iter().filter_map(of).collect(),
        }
    };
    others.iter().copied().map(to_base).collect()
}

fn ratios_of(report: &Report, target: &str, base: &str, figure: &Figure) -> Option<FigureRatios> {
    let pair = |mine: &Measurement| {
        let round = mine.round;
        let theirs = report.of(base).find(|theirs| theirs.round == round)?;
        let (mine, theirs) = ((figure.of)(mine), (figure.of)(theirs));
        (mine > 0.0 && theirs > 0.0).then(|| Pair {
            round,
            ratio: mine / theirs,
        })
    };
    let pairs: Vec<Pair> = report.of(target).filter_map(pair).collect();
    let spread = Spread::of(pairs.iter().map(|pair| pair.ratio).collect())?;
    Some(FigureRatios {
        name: figure.name,
        spread,
        pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;

    #[test]
    fn rounds_are_paired_and_a_round_without_its_other_is_left_out() {
        let mut report = example();
        // Ours made twice as much in the first round, and four times as much in the second.
        report.measurements[2].produced_records *= 2;
        let mut alone = report.measurements[0].clone();
        alone.round = 2;
        report.measurements.push(alone);
        let ratios = ratios(&report);
        let [ours] = &ratios[..] else {
            panic!("one target beside the base")
        };
        assert_eq!((ours.target, ours.base), ("ours", "kafka"));
        let records = &ours.figures[0];
        assert_eq!(records.name, "produced records/s");
        let pairs: Vec<(u32, f64)> = records
            .pairs
            .iter()
            .map(|pair| (pair.round, pair.ratio))
            .collect();
        assert_eq!(pairs, [(0, 2.0), (1, 4.0)]);
        let (median, least, most) = (3.0, 2.0, 4.0);
        assert_eq!(
            records.spread,
            Spread {
                median,
                least,
                most
            }
        );
        let nothing = |name: &str| ours.figures.iter().all(|figure| figure.name != name);
        assert!(nothing("consumed MB/s") && nothing("errors"));
    }

    #[test]
    fn one_target_has_nothing_to_be_held_against() {
        let mut report = example();
        report.measurements.retain(|one| one.target == "ours");
        assert!(ratios(&report).is_empty());
    }
}
