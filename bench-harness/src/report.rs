//! Results: stored with rkyv, written as JSON for others.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::measure::{Recorder, Second};
use crate::observe::Machine;
use crate::pairs;

/// Raised when the stored form changes.
const FORMAT: u32 = 3;

/// One run of one scenario against one or more targets.
#[derive(
    Clone,
    Debug,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Report {
    pub format: u32,
    /// When it began, UTC.
    pub date: String,
    pub command: String,
    pub machine: Machine,
    pub scenario: String,
    pub about: String,
    /// The scenario as it was run, in JSON.
    pub settings: String,
    /// Cores of the generator and of the targets, and the memory limit of the targets.
    pub placement: String,
    /// Why something is missing that was to be measured, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Measured in the same run; none where they were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
    pub measurements: Vec<Measurement>,
}

/// A bare loop that does the least of what the scenario asks of a target. Times in seconds, sizes in bytes.
#[derive(
    Clone,
    Debug,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Bound {
    pub kind: BoundKind,
    /// What the loop did, one line.
    pub about: String,
    pub seconds: f64,
    /// Batches, writes or sends, as the kind has it.
    pub steps: u64,
    pub bytes: u64,
    /// Processor time of the side that stands for the target; the other's is `generator_cpu`.
    pub cpu: f64,
    pub generator_cpu: f64,
    /// Of a write, or from the intended send to the answer; empty for the kinds that have none.
    pub latency: Latency,
    /// Of the client's limit, where there are consumers.
    #[serde(default)]
    pub consumed_bytes: u64,
    #[serde(default, skip_serializing_if = "Latency::is_empty")]
    pub end_to_end: Latency,
    /// The figures that targets are held against.
    pub figures: Vec<BoundFigure>,
}

#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum BoundKind {
    /// Receive, check and write batches.
    Write,
    /// Send from memory.
    Send,
    /// Send from a file that is not in memory.
    Cold,
    /// Durable writes.
    Durable,
    /// Append each request and answer.
    Echo,
    /// Answer at once: what the generator itself can do.
    Client,
}

/// A figure of a bound, and what the targets reached of it.
#[derive(
    Clone,
    Debug,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct BoundFigure {
    pub name: String,
    pub value: f64,
    pub targets: Vec<BesideBound>,
}

/// A target's figure, of its better round, and how many times the bound's it is.
#[derive(
    Clone,
    Debug,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct BesideBound {
    pub target: String,
    pub value: f64,
    pub ratio: f64,
}

/// One target measured once. Times in seconds, sizes in bytes; all of it within the measured window.
#[derive(
    Clone,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Measurement {
    pub target: String,
    pub round: u32,
    /// What makes it less than it seems, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    /// When the window began, in milliseconds since 1970.
    #[serde(default)]
    pub began: u64,
    pub seconds: f64,
    pub produced_records: u64,
    pub produced_bytes: u64,
    pub produced_batches: u64,
    pub consumed_records: u64,
    pub consumed_bytes: u64,
    pub cold_bytes: u64,
    pub cold_seconds: f64,
    pub errors: u64,
    /// From the intended send to the answer.
    pub publish: Latency,
    /// From the intended send to the reading.
    pub end_to_end: Latency,
    /// How late the generator itself was although it could have sent.
    pub lateness: Latency,
    /// Processor time of the target's process; 0 where we cannot see it.
    pub target_cpu: f64,
    /// Busy time of the whole machine less the generator's own: what the target costs with kernel workers and
    /// interrupts, if nothing else runs.
    pub machine_cpu: f64,
    pub generator_cpu: f64,
    pub switches: u64,
    pub resident_most: u64,
    pub resident_end: u64,
    pub memory_limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineSecond>,
}

/// A histogram with its usual percentiles, in microseconds.
#[derive(
    Clone,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Latency {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
    /// HdrHistogram's own V2 form.
    #[serde(skip)]
    pub histogram: Vec<u8>,
}

#[derive(
    Clone,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct TimelineSecond {
    pub produced_records: u64,
    pub produced_bytes: u64,
    pub consumed_bytes: u64,
    pub publish_p50: u64,
    pub publish_p99: u64,
    pub publish_max: u64,
    /// HdrHistogram's own V2 form of what was meant to be sent in it; empty where there is nothing.
    #[serde(skip)]
    pub publish: Vec<u8>,
    #[serde(skip)]
    pub end_to_end: Vec<u8>,
}

fn pack(histogram: &Histogram<u64>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| anyhow!("cannot store a histogram: {error}"))?;
    Ok(bytes)
}

/// The histogram that was stored; an empty one where there was nothing.
pub fn unpack(mut bytes: &[u8]) -> Result<Histogram<u64>> {
    if bytes.is_empty() {
        return Ok(Histogram::new(3)?);
    }
    Deserializer::new()
        .deserialize(&mut bytes)
        .map_err(|error| anyhow!("a stored histogram is broken: {error}"))
}

impl Latency {
    pub fn new(histogram: &Histogram<u64>) -> Result<Self> {
        let at = |percentile| histogram.value_at_percentile(percentile);
        Ok(Self {
            count: histogram.len(),
            mean: histogram.mean(),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p99_9: at(99.9),
            p99_99: at(99.99),
            max: histogram.max(),
            histogram: pack(histogram)?,
        })
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn histogram(&self) -> Result<Histogram<u64>> {
        unpack(&self.histogram)
    }
}

impl TimelineSecond {
    fn new(second: &Second) -> Result<Self> {
        let at = |percentile| {
            let publish = second.publish.as_ref();
            publish.map_or(0, |publish| publish.value_at_percentile(percentile))
        };
        let packed = |histogram: &Option<Histogram<u64>>| match histogram {
            Some(histogram) => pack(histogram),
            None => Ok(Vec::new()),
        };
        Ok(Self {
            produced_records: second.acknowledged_records,
            produced_bytes: second.acknowledged_bytes,
            consumed_bytes: second.consumed_bytes,
            publish_p50: at(50.0),
            publish_p99: at(99.0),
            publish_max: at(100.0),
            publish: packed(&second.publish)?,
            end_to_end: packed(&second.end_to_end)?,
        })
    }
}

impl Measurement {
    /// Takes what producers and consumers wrote down.
    pub fn take(&mut self, mut recorder: Recorder) -> Result<()> {
        self.produced_records = recorder.acknowledged_records;
        self.produced_bytes = recorder.acknowledged_bytes;
        self.produced_batches = recorder.acknowledged_batches;
        self.consumed_records = recorder.consumed_records;
        self.consumed_bytes = recorder.consumed_bytes;
        self.cold_bytes = recorder.cold_bytes;
        self.cold_seconds = recorder.cold_nanos as f64 / 1e9;
        self.publish = Latency::new(&recorder.publish)?;
        self.lateness = Latency::new(&recorder.lateness)?;
        self.end_to_end = Latency::new(&recorder.end_to_end()?)?;
        let seconds = recorder.seconds.iter().map(TimelineSecond::new);
        self.timeline = seconds.collect::<Result<_>>()?;
        if self.incomplete.is_none() {
            self.incomplete = recorder.first_error;
        }
        Ok(())
    }

    pub fn records_a_second(&self) -> f64 {
        ratio(self.produced_records as f64, self.seconds)
    }

    pub fn batches_a_second(&self) -> f64 {
        ratio(self.produced_batches as f64, self.seconds)
    }

    /// MB (10^6) produced a second.
    pub fn produced_rate(&self) -> f64 {
        ratio(self.produced_bytes as f64 / 1e6, self.seconds)
    }

    pub fn consumed_rate(&self) -> f64 {
        ratio(self.consumed_bytes as f64 / 1e6, self.seconds)
    }

    pub fn cold_rate(&self) -> f64 {
        ratio(self.cold_bytes as f64 / 1e6, self.cold_seconds)
    }

    /// The target's processor seconds a GB (10^9) that came in, or went out where nothing came in.
    pub fn cpu_a_gigabyte(&self) -> f64 {
        ratio(self.target_cpu, self.gigabytes())
    }

    pub fn machine_cpu_a_gigabyte(&self) -> f64 {
        ratio(self.machine_cpu, self.gigabytes())
    }

    /// The target's processor seconds a GB that went out, whatever it did besides.
    pub fn cpu_a_gigabyte_sent(&self) -> f64 {
        let sent = self.consumed_bytes + self.cold_bytes;
        ratio(self.target_cpu, sent as f64 / 1e9)
    }

    /// The target's processor time a batch, in microseconds.
    pub fn cpu_a_batch(&self) -> f64 {
        ratio(self.target_cpu * 1e6, self.produced_batches as f64)
    }

    fn gigabytes(&self) -> f64 {
        let bytes = if self.produced_bytes > 0 {
            self.produced_bytes
        } else {
            self.consumed_bytes + self.cold_bytes
        };
        bytes as f64 / 1e9
    }
}

impl BoundKind {
    /// For where there is no room for all that `about` says.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "receive + check + write",
            Self::Send => "send from memory",
            Self::Cold => "sendfile from a cold file",
            Self::Durable => "durable writes",
            Self::Echo => "echo + append",
            Self::Client => "the client's limit",
        }
    }
}

impl Bound {
    /// MB (10^6) a second.
    pub fn rate(&self) -> f64 {
        ratio(self.bytes as f64 / 1e6, self.seconds)
    }

    pub fn consumed_rate(&self) -> f64 {
        ratio(self.consumed_bytes as f64 / 1e6, self.seconds)
    }

    pub fn steps_a_second(&self) -> f64 {
        ratio(self.steps as f64, self.seconds)
    }

    /// Processor seconds a GB (10^9).
    pub fn cpu_a_gigabyte(&self) -> f64 {
        ratio(self.cpu, self.bytes as f64 / 1e9)
    }

    /// Processor time a step, in microseconds.
    pub fn cpu_a_step(&self) -> f64 {
        ratio(self.cpu * 1e6, self.steps as f64)
    }
}

/// What is written for others: with the ratios, which are stored nowhere else as they follow from the rest.
#[derive(serde::Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    report: &'a Report,
    ratios: Vec<pairs::Ratios<'a>>,
}

/// 0 where there is nothing to divide by: tables show it as a dash.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Report {
    pub fn format() -> u32 {
        FORMAT
    }

    /// Targets in the order in which they were named.
    pub fn targets(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for measurement in &self.measurements {
            if !names.contains(&measurement.target.as_str()) {
                names.push(&measurement.target);
            }
        }
        names
    }

    pub fn of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a Measurement> {
        self.measurements
            .iter()
            .filter(move |measurement| measurement.target == target)
    }

    /// The same without what plots are drawn from: small enough to be kept for good.
    pub fn slim(mut self) -> Self {
        for bound in &mut self.bounds {
            bound.latency.histogram.clear();
            bound.end_to_end.histogram.clear();
        }
        for measurement in &mut self.measurements {
            measurement.timeline.clear();
            for latency in [
                &mut measurement.publish,
                &mut measurement.end_to_end,
                &mut measurement.lateness,
            ] {
                latency.histogram.clear();
            }
        }
        self
    }

    pub fn store(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let bytes = rkyv::to_bytes::<rkyv::rancor::Error>(self)?;
        write(&folder.join("result.rkyv"), &bytes)?;
        let whole = Json {
            report: self,
            ratios: pairs::ratios(self),
        };
        write(
            &folder.join("result.json"),
            serde_json::to_string_pretty(&whole)?.as_bytes(),
        )
    }

    /// Reads a stored result: a folder, or its `result.rkyv`.
    pub fn load(path: &Path) -> Result<Self> {
        let file = if path.is_dir() {
            path.join("result.rkyv")
        } else {
            path.to_owned()
        };
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut aligned = rkyv::util::AlignedVec::<16>::with_capacity(bytes.len());
        aligned.extend_from_slice(&bytes);
        let report = rkyv::from_bytes::<Self, rkyv::rancor::Error>(&aligned)
            .map_err(|error| anyhow!("{} is no result of this tool: {error}", file.display()))?;
        ensure!(
            report.format == FORMAT,
            "{} has format {}, this tool reads {FORMAT}",
            file.display(),
            report.format
        );
        Ok(report)
    }
}

pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A report of two targets with two rounds each; the second target is twice as slow.
    pub fn example() -> Report {
        let mut measurements = Vec::new();
        for round in 0..2 {
            for (target, factor) in [("ours", 1), ("kafka", 2)] {
                let mut publish =
                    Histogram::<u64>::new_with_bounds(1, 120_000_000, 3).expect("bounds");
                (1..1000).for_each(|micros| publish.record(micros * factor).expect("in bounds"));
                measurements.push(Measurement {
                    target: target.to_owned(),
                    round,
                    began: 1_700_000_000_250,
                    seconds: 10.0,
                    produced_records: 1_000_000 / factor,
                    produced_bytes: 1_000_000_000 / factor,
                    produced_batches: 10_000 / factor,
                    publish: Latency::new(&publish).expect("a latency"),
                    target_cpu: 2.0 * factor as f64,
                    timeline: vec![
                        TimelineSecond {
                            publish_p50: 500,
                            publish_p99: 900,
                            publish_max: 999,
                            publish: pack(&publish).expect("packed"),
                            ..Default::default()
                        };
                        10
                    ],
                    ..Default::default()
                });
            }
        }
        Report {
            format: FORMAT,
            date: "2026-01-01T00:00:00Z".to_owned(),
            command: "a test".to_owned(),
            machine: Machine::read(),
            scenario: "example".to_owned(),
            about: "an example".to_owned(),
            settings: "{}".to_owned(),
            placement: "all share all".to_owned(),
            incomplete: None,
            bounds: Vec::new(),
            measurements,
        }
    }

    /// A report of one target that was read from and not written to: 1000 MB in 2.5 s.
    pub fn cold_example() -> Report {
        let cold = Measurement {
            target: "ours".to_owned(),
            seconds: 2.6,
            cold_bytes: 1_000_000_000,
            cold_seconds: 2.5,
            ..Default::default()
        };
        Report {
            measurements: vec![cold],
            ..example()
        }
    }

    /// A bound of 200 MB/s, 0.1 processor seconds a GB and latencies of 250 us.
    pub fn bound(kind: BoundKind) -> Bound {
        let mut latency = Histogram::<u64>::new_with_bounds(1, 120_000_000, 3).expect("bounds");
        latency.record(250).expect("in bounds");
        Bound {
            kind,
            about: "a loop".to_owned(),
            seconds: 5.0,
            steps: 1000,
            bytes: 1_000_000_000,
            cpu: 0.1,
            generator_cpu: 0.2,
            latency: Latency::new(&latency).expect("a latency"),
            consumed_bytes: 0,
            end_to_end: Latency::default(),
            figures: Vec::new(),
        }
    }

    #[test]
    fn a_stored_report_is_read_back_with_its_histograms() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut report = example();
        report.bounds.push(bound(BoundKind::Durable));
        report.store(folder.path()).expect("stored");
        let read = Report::load(folder.path()).expect("read");
        assert_eq!(read.targets(), ["ours", "kafka"]);
        assert_eq!(read.bounds[0].kind, BoundKind::Durable);
        assert_eq!(read.bounds[0].latency.p99, 250);
        let publish = read.measurements[1]
            .publish
            .histogram()
            .expect("a histogram");
        assert_eq!(publish.len(), 999);
        assert_eq!(
            publish.value_at_percentile(50.0),
            report.measurements[1].publish.p50
        );
    }

    #[test]
    fn the_json_holds_each_ratio_pair_by_pair() {
        let folder = tempfile::tempdir().expect("a folder");
        example().store(folder.path()).expect("stored");
        let text = fs::read_to_string(folder.path().join("result.json")).expect("a file");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["scenario"], "example", "as before");
        let ratios = &json["ratios"][0];
        assert_eq!(
            (&ratios["target"], &ratios["base"]),
            (&"ours".into(), &"kafka".into())
        );
        let figures = ratios["figures"].as_array().expect("figures");
        let cpu = figures
            .iter()
            .find(|figure| figure["name"] == "CPU s/GB, process");
        let expected = serde_json::json!({
            "name": "CPU s/GB, process", "median": 0.25, "least": 0.25, "most": 0.25,
            "pairs": [{"round": 0, "ratio": 0.25}, {"round": 1, "ratio": 0.25}],
        });
        assert_eq!(cpu, Some(&expected));
    }

    #[test]
    fn another_file_is_refused_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("result.rkyv"), b"something else").expect("written");
        let error = Report::load(folder.path()).expect_err("no result");
        assert!(error.to_string().contains("result.rkyv"), "{error}");
    }
}
