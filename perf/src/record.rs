//! Recordings of a running process through the kernel's `perf` and `strace`, drawn as flame graphs.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;
use inferno::{differential, flamegraph};

use crate::{What, off_core, say};

/// Samples processor time. Works without hardware counters: the event is the kernel's own clock.
pub fn cpu(what: &What, frequency: u32) -> Result<()> {
    let title = format!(
        "processor time of {} for {} s",
        name_of(what.pid)?,
        what.seconds
    );
    let arguments = [
        "--call-graph",
        "dwarf,16384",
        "-e",
        "cpu-clock",
        "-F",
        &frequency.to_string(),
    ];
    let data = record(what, "cpu", &arguments)?;
    let folded = what.out.join("cpu.folded");
    let out = create(&folded)?;
    script(&data, &[], |lines| {
        let folding = Folder::default().collapse(lines, BufWriter::new(out));
        folding.context("no samples: was the process idle?")
    })?;
    draw(&folded, &what.out.join("cpu.svg"), &title, "samples")
}

/// How long threads are off their core, from each switch away to the next switch back, and counts system calls besides.
pub fn off_core(what: &What) -> Result<()> {
    let title = format!(
        "how long {} is off its cores, {} s of each thread",
        name_of(what.pid)?,
        what.seconds
    );
    // Stacks by frame pointers: a copy of the stack at each switch would slow down what is measured.
    let arguments = ["-g", "-e", "sched:sched_switch", "--switch-events"];
    let data = record(what, "off-core", &arguments)?;
    let times = script(&data, &["--ns", "--show-switch-events"], |lines| {
        off_core::fold(lines).context("cannot read what perf script prints")
    })?;
    ensure!(
        !times.stacks.is_empty(),
        "no switch was seen: process {} slept, or computed, all the time",
        what.pid
    );
    if times.lost > 0 {
        say(&format!(
            "{} switches back were lost: the times of those waits are missing",
            times.lost
        ));
    }
    let folded = what.out.join("off-core.folded");
    times
        .write(BufWriter::new(create(&folded)?))
        .with_context(|| format!("cannot write {}", folded.display()))?;
    draw(
        &folded,
        &what.out.join("off-core.svg"),
        &title,
        "microseconds",
    )?;
    system_calls(what)
}

/// Has perf record the process, and answers where.
fn record(what: &What, name: &str, arguments: &[&str]) -> Result<PathBuf> {
    fs::create_dir_all(&what.out)
        .with_context(|| format!("cannot create {}", what.out.display()))?;
    let data = what.out.join(format!("{name}.data"));
    let load = Load::start(what)?;
    let status = Command::new("perf")
        .args(["record", "-q", "-p", &what.pid.to_string(), "-o"])
        .arg(&data)
        .args(arguments)
        .args(["--", "sleep", &what.seconds.to_string()])
        .status()
        .context("cannot run perf: install Debian's package linux-perf")?;
    drop(load);
    ensure!(
        status.success(),
        "perf could not record process {}: see above; /proc/sys/kernel/perf_event_paranoid may forbid it",
        what.pid
    );
    Ok(data)
}

/// Gives `fold` what `perf script` prints of a recording, and removes that.
fn script<T>(
    data: &Path,
    arguments: &[&str],
    fold: impl FnOnce(BufReader<ChildStdout>) -> Result<T>,
) -> Result<T> {
    let mut script = Command::new("perf")
        .args(["script", "--no-inline"])
        .args(arguments)
        .arg("-i")
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run perf script")?;
    let lines = script.stdout.take().context("perf script has no output")?;
    let folded = fold(BufReader::new(lines));
    let status = script.wait()?;
    ensure!(status.success(), "perf script failed on {}", data.display());
    fs::remove_file(data).with_context(|| format!("cannot remove {}", data.display()))?;
    folded
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

fn draw(folded: &Path, svg: &Path, title: &str, unit: &str) -> Result<()> {
    let mut options = flamegraph::Options::default();
    options.title = title.to_owned();
    options.count_name = unit.to_owned();
    options.min_width = 0.1;
    let lines = BufReader::new(File::open(folded)?);
    flamegraph::from_reader(&mut options, lines, BufWriter::new(create(svg)?))
        .with_context(|| format!("cannot draw {}", svg.display()))?;
    println!("{}", svg.display());
    Ok(())
}

/// What grew and what shrank from one `.folded` file to another.
pub fn compare(before: &Path, after: &Path, out: &Path) -> Result<()> {
    let open = |path: &Path| {
        File::open(path)
            .map(BufReader::new)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let mut differences = Vec::new();
    let options = differential::Options {
        normalize: true,
        ..differential::Options::default()
    };
    differential::from_readers(options, open(before)?, open(after)?, &mut differences)?;
    let mut options = flamegraph::Options::default();
    options.title = format!("{} to {}", before.display(), after.display());
    let svg = File::create(out).with_context(|| format!("cannot write {}", out.display()))?;
    flamegraph::from_reader(&mut options, &differences[..], BufWriter::new(svg))?;
    println!("{}", out.display());
    Ok(())
}

/// Count and time of each system call, as `strace -c -w` writes them. It slows the process down while it looks.
fn system_calls(what: &What) -> Result<()> {
    let table = what.out.join("system-calls.txt");
    let load = Load::start(what)?;
    let status = Command::new("timeout")
        .args([
            "-s",
            "INT",
            &what.seconds.to_string(),
            "strace",
            "-f",
            "-c",
            "-w",
            "-o",
        ])
        .arg(&table)
        .args(["-p", &what.pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .context("cannot run strace: install Debian's package strace")?;
    drop(load);
    // timeout's own code for "it was time".
    ensure!(
        status.success() || status.code() == Some(124),
        "strace could not attach to process {}",
        what.pid
    );
    println!("{}", table.display());
    Ok(())
}

fn name_of(pid: u32) -> Result<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"))
        .with_context(|| format!("no process {pid}"))?;
    Ok(name.trim().to_owned())
}

/// The load that runs while something is recorded; ended with it.
struct Load(Option<Child>);

impl Load {
    fn start(what: &What) -> Result<Self> {
        let [program, arguments @ ..] = &what.load[..] else {
            return Ok(Self(None));
        };
        let log = what.out.join("load.txt");
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(PathBuf::from(program))
            .args(arguments)
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        Ok(Self(Some(child)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        if !matches!(child.try_wait(), Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
            say("the load was ended with the recording");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_recordings_become_one_graph_of_differences() {
        let folder = tempfile::tempdir().expect("a folder");
        let (before, after, out) = (
            folder.path().join("a"),
            folder.path().join("b"),
            folder.path().join("c.svg"),
        );
        fs::write(&before, "main;read 10\nmain;write 10\n").expect("written");
        fs::write(&after, "main;read 10\nmain;write 40\n").expect("written");
        compare(&before, &after, &out).expect("a graph");
        let svg = fs::read_to_string(&out).expect("a graph");
        assert!(svg.contains("write") && svg.contains("<svg"));
        assert!(compare(&before, &folder.path().join("none"), &out).is_err());
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(name_of(u32::MAX).is_err());
    }
}
