//! Results that are kept for good: one small file a run of a set, and which of them a new result can be held against.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::observe::Machine;
use crate::report::{Measurement, Report, write};

/// Raised when the recorded form changes.
const FORMAT: u32 = 1;

/// Machines whose memory differs by less than this part are told apart by nothing else.
const MEMORY_TOLERANCE: f64 = 0.05;

/// One run of a set: a report a scenario, slim.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Recorded {
    format: u32,
    /// What was measured with, as git or the one who recorded it called it.
    pub commit: String,
    /// Why scenarios of the set are missing, if some are.
    #[serde(default)]
    pub incomplete: Option<String>,
    pub reports: Vec<Report>,
}

/// What a target's result is held against.
pub struct Last<'a> {
    pub commit: &'a str,
    pub report: &'a Report,
    /// Why the two cannot be judged by their ratio; empty where they can.
    pub differences: Vec<String>,
}

impl Recorded {
    pub fn new(commit: String, reports: Vec<Report>) -> Self {
        Self {
            format: FORMAT,
            commit,
            incomplete: None,
            reports: reports.into_iter().map(Report::slim).collect(),
        }
    }

    /// Writes a file named after the moment when the run began: JSON, one line a scenario, so that it can be read and compared.
    ///
    /// # Errors
    /// Without any report, and I/O errors.
    pub fn store(&self, folder: &Path) -> Result<PathBuf> {
        let first = self.reports.first().context("nothing to record")?;
        let path = folder.join(format!("{}.json", first.date.replace(':', "")));
        let lines = self
            .reports
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<Vec<_>, _>>()?;
        let incomplete = match &self.incomplete {
            Some(reason) => format!("\"incomplete\":{},", serde_json::to_string(reason)?),
            None => String::new(),
        };
        let text = format!(
            "{{\"format\":{FORMAT},\"commit\":{},{incomplete}\"reports\":[\n{}\n]}}\n",
            serde_json::to_string(&self.commit)?,
            lines.join(",\n")
        );
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Reads one recorded file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read recorded result {}", path.display()))?;
        let recorded: Self = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is no recorded result: restore or remove it",
                path.display()
            )
        })?;
        ensure!(
            recorded.format == FORMAT,
            "{} has format {}, this tool reads {FORMAT}",
            path.display(),
            recorded.format
        );
        Ok(recorded)
    }

    /// Reads all recorded files of a folder.
    ///
    /// # Errors
    /// Where the folder cannot be read, and at the first file that is damaged.
    pub fn load_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(folder).with_context(|| {
            format!(
                "cannot read the folder of recorded results {}; --record makes it",
                folder.display()
            )
        })?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }
}

/// The last result of the same scenario and target that can be compared; where none can, the last one, with what differs.
pub fn last<'a>(records: &'a [Recorded], report: &Report, target: &str) -> Option<Last<'a>> {
    let mut found: Vec<Last<'a>> = records
        .iter()
        .flat_map(|recorded| recorded.reports.iter().map(move |then| (recorded, then)))
        .filter(|(_, then)| then.scenario == report.scenario && then.of(target).next().is_some())
        .map(|(recorded, then)| Last {
            commit: &recorded.commit,
            report: then,
            differences: differences(report, then, target),
        })
        .collect();
    found.sort_by(|a, b| {
        let comparable = |last: &Last<'_>| last.differences.is_empty();
        (comparable(a), &a.report.date).cmp(&(comparable(b), &b.report.date))
    });
    found.pop()
}

fn differences(now: &Report, then: &Report, target: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !are_alike(&now.machine, &then.machine) {
        let name = |machine: &Machine| {
            format!(
                "{} x {}, {} MiB",
                machine.cores,
                machine.processor,
                machine.memory >> 20
            )
        };
        found.push(format!(
            "the machine was {}, is {}",
            name(&then.machine),
            name(&now.machine)
        ));
    }
    let cores = |report: &Report| {
        let cores = report.placement.split(';').next().unwrap_or_default();
        cores.to_owned()
    };
    if cores(now) != cores(then) {
        found.push(format!("it was {}, is {}", cores(then), cores(now)));
    }
    let limit = |report: &Report| {
        let first = report.of(target).next();
        match first.and_then(|measured: &Measurement| measured.memory_limit) {
            Some(bytes) => format!("{} MiB", bytes >> 20),
            None => "none".to_owned(),
        }
    };
    if limit(now) != limit(then) {
        found.push(format!(
            "the memory limit was {}, is {}",
            limit(then),
            limit(now)
        ));
    }
    if now.settings != then.settings {
        found.push("the scenario had other settings".to_owned());
    }
    found
}

fn are_alike(a: &Machine, b: &Machine) -> bool {
    let (least, most) = (a.memory.min(b.memory) as f64, a.memory.max(b.memory) as f64);
    a.processor == b.processor && a.cores == b.cores && least >= most * (1.0 - MEMORY_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::beside::put_beside;
    use crate::report::BoundKind;
    use crate::report::tests::{bound, example};

    fn recorded(date: &str, change: impl FnOnce(&mut Report)) -> Recorded {
        let mut report = example();
        report.date = date.to_owned();
        change(&mut report);
        Recorded::new(format!("commit of {date}"), vec![report])
    }

    #[test]
    fn a_recorded_run_is_small_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = recorded("2026-01-02T03:04:05Z", |_| {})
            .store(folder.path())
            .expect("stored");
        assert!(path.ends_with("2026-01-02T030405Z.json"), "{path:?}");
        let bytes = fs::metadata(&path).expect("a file").len();
        assert!(bytes < 6_000, "{bytes} bytes for one scenario");
        let read = Recorded::load_all(folder.path()).expect("read");
        let (now, then) = (
            &example().measurements[0],
            &read[0].reports[0].measurements[0],
        );
        assert_eq!(then.publish.p99, now.publish.p99);
        assert_eq!(then.produced_records, now.produced_records);
    }

    #[test]
    fn bounds_are_recorded_and_files_from_before_them_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = recorded("2026-01-02T03:04:05Z", |report| {
            report.bounds = vec![bound(BoundKind::Durable)];
            put_beside(report);
        })
        .store(folder.path())
        .expect("stored");
        let read = Recorded::load(&path).expect("read");
        let figures = &read.reports[0].bounds[0].figures;
        assert_eq!(figures[1].name, "publish p50 us");
        assert_eq!((figures[1].value, figures[1].targets.len()), (250.0, 2));
        let path = recorded("2026-01-01T00:00:00Z", |_| {})
            .store(folder.path())
            .expect("stored");
        let text = fs::read_to_string(&path).expect("a file");
        assert!(!text.contains("bounds"), "{text}");
        let read = Recorded::load(&path).expect("as those from before");
        assert!(read.reports[0].bounds.is_empty());
    }

    #[test]
    fn a_record_says_why_scenarios_are_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut part = recorded("2026-01-01T00:00:00Z", |_| {});
        part.incomplete = Some("\"Ctrl-C\"".to_owned());
        let read = Recorded::load(&part.store(folder.path()).expect("stored")).expect("read");
        assert_eq!(read.incomplete.as_deref(), Some("\"Ctrl-C\""));
        assert_eq!(read.reports.len(), 1);
        let whole = recorded("2026-01-02T00:00:00Z", |_| {});
        let path = whole.store(folder.path()).expect("stored");
        let text = fs::read_to_string(&path).expect("a file");
        assert!(!text.contains("\"incomplete\":\""), "{text}");
        assert_eq!(Recorded::load(&path).expect("read").incomplete, None);
    }

    #[test]
    fn every_checked_in_result_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../perf/results/short");
        let records = Recorded::load_all(&folder).expect("all of them");
        assert!(!records.is_empty());
    }

    #[test]
    fn the_last_comparable_result_counts_and_else_what_differs_is_named() {
        let records = [
            recorded("2026-01-01T00:00:00Z", |_| {}),
            recorded("2026-01-03T00:00:00Z", |_| {}),
            recorded("2026-01-02T00:00:00Z", |_| {}),
            recorded("2026-01-04T00:00:00Z", |report| report.machine.cores += 1),
        ];
        let found = last(&records, &example(), "ours").expect("a result");
        assert_eq!(found.commit, "commit of 2026-01-03T00:00:00Z");
        assert!(found.differences.is_empty());
        let found = last(&records[3..], &example(), "ours").expect("a result");
        assert_eq!(found.differences.len(), 1, "{:?}", found.differences);
        assert!(found.differences[0].starts_with("the machine was"));
        assert!(last(&records, &example(), "someone else").is_none());
    }

    #[test]
    fn cores_limits_and_settings_that_differ_are_each_named() {
        type Change = fn(&mut Report);
        let changes: [(&str, Change); 4] = [
            ("the machine", |report| report.machine.memory *= 2),
            ("it was other cores", |report| {
                report.placement = "other cores; memory limits: none".to_owned();
            }),
            ("the memory limit was 1 MiB", |report| {
                report.measurements[0].memory_limit = Some(1 << 20);
            }),
            ("the scenario", |report| report.settings = "{ }".to_owned()),
        ];
        for (start, change) in changes {
            let records = [recorded("2026-01-01T00:00:00Z", change)];
            let found = last(&records, &example(), "ours").expect("a result");
            assert_eq!(found.differences.len(), 1, "{start}");
            assert!(found.differences[0].starts_with(start), "{start}");
        }
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = recorded("2026-01-01T00:00:00Z", |_| {})
            .store(folder.path())
            .expect("stored");
        let text = fs::read_to_string(&path).expect("a file");
        fs::write(&path, &text[..text.len() / 2]).expect("cut");
        let error = format!("{:#}", Recorded::load_all(folder.path()).expect_err("cut"));
        assert!(error.contains("2026-01-01T000000Z.json"), "{error}");
        fs::write(
            &path,
            text.replace("\"format\":1,\"commit\"", "\"format\":9,\"commit\""),
        )
        .expect("written");
        let error = format!(
            "{:#}",
            Recorded::load_all(folder.path()).expect_err("newer")
        );
        assert!(error.contains("has format 9"), "{error}");
    }
}
