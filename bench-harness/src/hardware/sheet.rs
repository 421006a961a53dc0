//! The figures of `disk`, `net` and `cores`: lines for people as they come and, where that was asked for, JSON for others.

use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;

use super::Repeated;
use super::loops::Moved;
use crate::observe::Machine;
use crate::report::{self, ratio};
use crate::table::number;

/// The part of the command line that all three share.
#[derive(Args)]
pub struct SheetArgs {
    /// Seconds that each figure is measured
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    seconds: f64,
    /// Writes the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What the machine runs, for the file
    #[arg(long, value_name = "TEXT")]
    commit: Option<String>,
}

/// What a figure was measured with, by name: `bytes`, `depth`, `core`.
type Parameters<'a> = &'a [(&'static str, u64)];

#[derive(Serialize)]
struct Figure {
    name: String,
    unit: &'static str,
    value: f64,
    parameters: serde_json::Map<String, serde_json::Value>,
}

/// All that a command measured.
#[derive(Serialize)]
pub struct Sheet {
    /// When it began, UTC.
    date: String,
    command: String,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    machine: Machine,
    /// That each figure was measured.
    pub seconds: f64,
    /// What makes figures less than they seem.
    remarks: Vec<String>,
    figures: Vec<Figure>,
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Sheet {
    /// Checks what was asked for before anything is measured.
    ///
    /// # Errors
    /// Seconds that are none, and a file that cannot be written.
    pub fn new(args: SheetArgs) -> Result<Self> {
        ensure!(
            args.seconds.is_finite() && args.seconds > 0.0,
            "--seconds {}: more than 0",
            args.seconds
        );
        if let Some(file) = &args.json {
            check_writable(file).with_context(|| format!("--json {}", file.display()))?;
        }
        Ok(Self {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION"),
            commit: args.commit,
            machine: Machine::read(),
            seconds: args.seconds,
            remarks: Vec::new(),
            figures: Vec::new(),
            file: args.json,
        })
    }

    pub fn remark(&mut self, text: String) {
        crate::say(&text);
        self.remarks.push(text);
    }

    /// Steps that each moved `parameters`' bytes.
    pub fn repeated(&mut self, name: &str, parameters: Parameters<'_>, measured: &Repeated) {
        let bytes = parameters.iter().find(|(name, _)| *name == "bytes");
        let steps = measured.steps as f64;
        let gigabytes = steps * bytes.map_or(0, |(_, bytes)| *bytes) as f64 / 1e9;
        let values = [
            ("rate", "MB/s", gigabytes * 1000.0 / measured.seconds),
            ("count", "1/s", steps / measured.seconds),
            (
                "p50",
                "us",
                measured.latency.value_at_percentile(50.0) as f64,
            ),
            (
                "p99",
                "us",
                measured.latency.value_at_percentile(99.0) as f64,
            ),
            ("CPU", "s/GB", ratio(measured.processor, gigabytes)),
            ("CPU each", "us", ratio(measured.processor * 1e6, steps)),
        ];
        self.add(name, parameters, &values);
    }

    /// A loop whose processor time is that of the side which stands for a broker.
    pub fn moved(&mut self, name: &str, parameters: Parameters<'_>, moved: &Moved) {
        let values = [
            ("rate", "MB/s", moved.rate()),
            ("CPU", "s/GB", moved.cpu_a_gigabyte()),
        ];
        self.add(name, parameters, &values);
    }

    /// Time that each step took.
    pub fn time(&mut self, name: &str, parameters: Parameters<'_>, nanos: f64) {
        self.add(name, parameters, &[("time", "ns", nanos)]);
    }

    fn add(
        &mut self,
        name: &str,
        parameters: Parameters<'_>,
        values: &[(&str, &'static str, f64)],
    ) {
        let mut line = format!("{:<56}", described(name, parameters));
        for (quantity, unit, value) in values {
            let _ = write!(line, "  {quantity} {:>7} {unit}", number(*value));
            self.figures.push(Figure {
                name: format!("{name}: {quantity}"),
                unit,
                value: *value,
                parameters: parameters
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                    .collect(),
            });
        }
        println!("{line}");
    }

    /// Writes the file, if one was asked for.
    ///
    /// # Errors
    /// I/O errors.
    pub fn end(self) -> Result<()> {
        match &self.file {
            Some(file) => report::write(file, serde_json::to_string_pretty(&self)?.as_bytes()),
            None => Ok(()),
        }
    }
}

fn described(name: &str, parameters: Parameters<'_>) -> String {
    let mut text = name.to_owned();
    for (name, value) in parameters {
        let part = match (*name, *value) {
            ("bytes", bytes) if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
            ("bytes", bytes) if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
            ("bytes", bytes) => format!("{bytes} bytes"),
            (name, value) => format!("{name} {value}"),
        };
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}

/// Opens the file as the end will; one that was not there is not left behind, as the command may fail yet.
fn check_writable(file: &Path) -> Result<()> {
    let was_there = file.exists();
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)?;
    if !was_there {
        fs::remove_file(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(seconds: f64, json: Option<PathBuf>) -> Result<Sheet> {
        Sheet::new(SheetArgs {
            seconds,
            json,
            commit: Some("abc".to_owned()),
        })
    }

    #[test]
    fn what_cannot_be_done_is_said_before_anything_is_measured() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = sheet(seconds, None).err().expect("no seconds");
            assert!(error.to_string().starts_with("--seconds"), "{error}");
        }
        let error = sheet(1.0, Some("not/there.json".into())).err();
        let error = format!("{:#}", error.expect("no folder"));
        assert!(error.starts_with("--json not/there.json: "), "{error}");
    }

    #[test]
    fn a_file_that_may_be_written_is_written_at_the_end_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("figures.json");
        let mut sheet = sheet(1.0, Some(file.clone())).expect("a sheet");
        assert!(!file.exists());
        let moved = Moved {
            steps: 1,
            bytes: 2_000_000_000,
            seconds: 4.0,
            processor: 1.0,
        };
        sheet.moved("loop", &[("bytes", 4096), ("depth", 4)], &moved);
        sheet.end().expect("written");
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
        let parameters = serde_json::json!({"bytes": 4096, "depth": 4});
        let wanted = serde_json::json!([
            {"name": "loop: rate", "unit": "MB/s", "value": 500.0, "parameters": parameters},
            {"name": "loop: CPU", "unit": "s/GB", "value": 0.5, "parameters": parameters},
        ]);
        assert_eq!(json["figures"], wanted);
        assert_eq!(json["commit"], "abc");
        assert!(json["machine"]["cores"].as_u64() > Some(0), "{json}");
    }

    #[test]
    fn a_figure_is_named_with_what_it_was_measured_with() {
        let text = described("write", &[("bytes", 64 << 10), ("depth", 4)]);
        assert_eq!(text, "write, 64 KiB, depth 4");
        assert_eq!(described("echo", &[("bytes", 64)]), "echo, 64 bytes");
        assert_eq!(described("copy", &[("bytes", 1 << 20)]), "copy, 1 MiB");
    }
}
