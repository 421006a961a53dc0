//! The limit of the client: the scenario's producers and consumers against the tool's own sink. Where a target comes near
//! it, it is the client that is measured.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Place;
use crate::hardware::loops::Moved;
use crate::placement::{self, Cores};
use crate::report::{Bound, BoundKind};
use crate::run::{self, Target};
use crate::scenario::Scenario;

/// Longer than this says nothing new.
const MOST_SECONDS: f64 = 5.0;
const WARM_UP_SECONDS: u32 = 1;

/// Measures the sink as if it were a target. It has no disk, so prefills and cold readers are left out.
///
/// # Errors
/// Where the sink cannot be started, of connections, and when it was interrupted.
pub fn measure(scenario: &Scenario, place: &Place<'_>) -> Result<Bound> {
    let sink = Sink::start(place.cores)?;
    let target = Target {
        name: "sink".to_owned(),
        address: sink.address.clone(),
        pid: Some(sink.process.id()),
    };
    let alone = Scenario {
        prefill: None,
        cold_readers: None,
        idle_connections: 0,
        warm_up_seconds: WARM_UP_SECONDS,
        duration_seconds: place.seconds.min(MOST_SECONDS).round() as u32,
        ..scenario.clone()
    };
    let measured = run::measure(&alone, &target, 0, place.cores, place.interrupt)?;
    if let Some(reason) = measured.incomplete {
        bail!("the sink: {reason}");
    }
    let who = match scenario.consumers {
        Some(_) => "producers and consumers",
        None => "producers",
    };
    let about = format!(
        "the client's limit: the same {who} against a sink that answers at once and keeps nothing, on the targets' cores"
    );
    let moved = Moved {
        steps: measured.produced_batches,
        bytes: measured.produced_bytes,
        seconds: measured.seconds,
        processor: measured.target_cpu,
    };
    Ok(Bound {
        generator_cpu: measured.generator_cpu,
        latency: measured.publish,
        consumed_bytes: measured.consumed_bytes,
        end_to_end: measured.end_to_end,
        ..Bound::new(BoundKind::Client, about, moved)
    })
}

/// The sink as a process of its own; it ends with this.
struct Sink {
    process: Child,
    address: String,
    /// Stays open, so that the sink can say what is wrong.
    errors: BufReader<ChildStderr>,
}

impl Sink {
    fn start(cores: &Cores) -> Result<Self> {
        // This very executable, also where another one has taken its name meanwhile.
        let mut process = Command::new("/proc/self/exe")
            .args(["sink", "--listen", "127.0.0.1:0", "--with-parent"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tool, which then ends it.
            .process_group(0)
            .spawn()
            .context("cannot start the sink")?;
        let pipe = process.stderr.take().context("no standard error")?;
        let mut sink = Self {
            process,
            address: String::new(),
            errors: BufReader::new(pipe),
        };
        let mut line = String::new();
        sink.errors.read_line(&mut line)?;
        let address = line.trim().strip_prefix("sink on ");
        let address = address.with_context(|| format!("the sink did not start: {line}"))?;
        address.clone_into(&mut sink.address);
        placement::pin(sink.process.id(), &cores.targets)?;
        Ok(sink)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Nothing is left to be done where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
