//! HdrHistogram logs, for other viewers: an interval a second of the measured window. Values are microseconds.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use crate::report::{Measurement, Report, TimelineSecond, unpack, write as write_file};

/// What the format's own writers put before the intervals, and some readers wait for.
const VERSION: &str = "[Histogram log format version 1.3]";
const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// The stored histogram of a second, of one kind of latency.
type Kind = fn(&TimelineSecond) -> &[u8];

/// One `.hlog` a measurement and kind of latency.
pub fn write(report: &Report, folder: &Path) -> Result<()> {
    let kinds: [(&str, Kind); 2] = [
        ("publish", |second| &second.publish),
        ("end-to-end", |second| &second.end_to_end),
    ];
    for measured in &report.measurements {
        for (kind, of) in kinds {
            if measured
                .timeline
                .iter()
                .any(|second| !of(second).is_empty())
            {
                let (target, round) = (&measured.target, measured.round + 1);
                let name = format!("{target}-round{round}-{kind}.hlog");
                write_file(&folder.join(name), &log(measured, of)?)?;
            }
        }
    }
    Ok(())
}

fn log(measured: &Measurement, of: Kind) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    IntervalLogWriterBuilder::new()
        .add_comment(VERSION)
        .with_start_time(SystemTime::UNIX_EPOCH + Duration::from_millis(measured.began))
        .begin_log_with(&mut bytes, &mut serializer)?;
    bytes.extend_from_slice(LEGEND);
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(&mut bytes, &mut serializer)?;
    for (at, second) in measured.timeline.iter().enumerate() {
        // The last one ends with the window.
        let length = (measured.seconds - at as f64).clamp(0.001, 1.0);
        writer
            .write_histogram(
                &unpack(of(second))?,
                Duration::from_secs(at as u64),
                Duration::from_secs_f64(length),
                None,
            )
            .map_err(|error| anyhow!("cannot write a histogram log: {error}"))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    /// What another reader finds: the start and the intervals, each with its start, length and greatest value.
    fn read(bytes: &[u8]) -> (Vec<Duration>, Vec<(Duration, Duration, f64)>) {
        let (mut starts, mut intervals) = (Vec::new(), Vec::new());
        for entry in IntervalLogIterator::new(bytes) {
            match entry.expect("an entry") {
                LogEntry::StartTime(start) => starts.push(start),
                LogEntry::Interval(one) => {
                    intervals.push((one.start_timestamp(), one.duration(), one.max()));
                }
                LogEntry::BaseTime(_) => panic!("times count from the start"),
            }
        }
        (starts, intervals)
    }

    #[test]
    fn each_second_is_an_interval_for_the_librarys_reader() {
        let mut measured = example().measurements.remove(0);
        measured.seconds = 9.5;
        measured.timeline[3].publish.clear();
        let bytes = log(&measured, |second| &second.publish).expect("a log");
        let (starts, intervals) = read(&bytes);
        assert_eq!(starts, [Duration::from_millis(measured.began)]);
        assert_eq!(intervals.len(), 10, "one a second, and empty ones too");
        for (at, (start, length, most)) in intervals.into_iter().enumerate() {
            assert_eq!(start, Duration::from_secs(at as u64));
            let wanted = if at == 9 { 500 } else { 1000 };
            assert_eq!(length, Duration::from_millis(wanted));
            assert!(
                (most - if at == 3 { 0.0 } else { 999.0 }).abs() < 0.5,
                "{most}"
            );
        }
    }

    #[test]
    fn the_text_is_of_the_published_format() {
        let measured = &example().measurements[0];
        let bytes = log(measured, |second| &second.publish).expect("a log");
        let text = String::from_utf8(bytes).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "#[Histogram log format version 1.3]",
                "#[StartTime: 1700000000.250 (seconds since epoch)]",
                r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#,
            ]
        );
        // HISTF is the beginning of every compressed V2 histogram in Base64.
        assert!(
            lines[3].starts_with("0.000,1.000,999.000,HISTF"),
            "{}",
            lines[3]
        );
        assert!(
            lines[12].starts_with("9.000,1.000,999.000,HISTF"),
            "{}",
            lines[12]
        );
        assert_eq!(lines.len(), 13);
    }

    #[test]
    fn there_is_a_log_for_each_measurement_that_has_latencies() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut report = example();
        report.measurements[1].timeline.clear();
        write(&report, folder.path()).expect("written");
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .expect("the folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        names.sort();
        let wanted = [
            "kafka-round2-publish.hlog",
            "ours-round1-publish.hlog",
            "ours-round2-publish.hlog",
        ];
        assert_eq!(names, wanted);
    }
}
