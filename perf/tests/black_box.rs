//! `ringmain-perf` as it is called, on a small program that computes, waits for another and makes system calls. Where the
//! machine has no perf or strace, or forbids them, a test says so and ends.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test of a tool that waits for other processes, and says why it cannot"
)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// About 10 ms of waiting for each ms of computing.
const PROGRAM: &str =
    "while :; do i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; sleep 0.01; done";

/// Ended with the test.
struct Running(Child);

impl Running {
    fn start() -> Running {
        let program = Command::new("sh").args(["-c", PROGRAM]).spawn();
        Running(program.expect("a shell"))
    }

    /// Records it for a second.
    fn record(&self, command: &str, out: &Path) -> Output {
        let pid = self.0.id().to_string();
        ringmain_perf(&[command, "--seconds", "1", "--pid", &pid, "--out"], out)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ringmain_perf(arguments: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringmain-perf"))
        .args(arguments)
        .arg(out)
        .output()
        .expect("the binary starts")
}

/// Whether this machine runs that; says so where it does not.
fn runs(command: &[&str]) -> bool {
    let done = Command::new(command[0])
        .args(&command[1..])
        .stdout(Stdio::null())
        .output();
    let why = match done {
        Ok(done) if done.status.success() => return true,
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: `{}` does not run here: {why}", command.join(" "));
    false
}

fn records(event: &str) -> bool {
    runs(&[
        "perf",
        "record",
        "-q",
        "-o",
        "/dev/null",
        "-e",
        event,
        "--",
        "true",
    ])
}

fn text(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).expect("it was written")
}

/// The sum of the stacks that begin so.
fn sum(folded: &str, front: &str) -> u64 {
    let counts = folded
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a count"))
        .filter(|(stack, _)| stack.starts_with(front));
    counts
        .map(|(_, count)| count.parse::<u64>().expect("a number"))
        .sum()
}

fn succeeded(done: &Output) {
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}");
}

#[test]
fn processor_time_is_recorded_by_stack() {
    if !records("cpu-clock") {
        return;
    }
    let (folder, program) = (TempDir::new().expect("a folder"), Running::start());
    succeeded(&program.record("cpu", folder.path()));
    let folded = text(&folder, "cpu.folded");
    assert!(sum(&folded, "sh;") > 0, "{folded}");
    assert!(text(&folder, "cpu.svg").contains("<svg"));
    assert!(!folder.path().join("cpu.data").exists());
}

#[test]
fn time_off_the_core_is_recorded_by_state_and_stack_and_system_calls_are_counted() {
    if !records("sched:sched_switch") || !runs(&["strace", "-o", "/dev/null", "true"]) {
        return;
    }
    let (folder, program) = (TempDir::new().expect("a folder"), Running::start());
    succeeded(&program.record("off-core", folder.path()));
    let folded = text(&folder, "off-core.folded");
    // The shell waits most of the second for `sleep`: each wait is told with its time.
    let asleep = sum(&folded, "sh;asleep (S);");
    assert!((100_000..1_500_000).contains(&asleep), "{asleep}: {folded}");
    assert!(text(&folder, "off-core.svg").contains("microseconds"));
    let calls = text(&folder, "system-calls.txt");
    assert!(calls.contains("wait4"), "{calls}");
}

#[test]
fn a_process_that_is_not_there_is_told_in_one_line() {
    let folder = TempDir::new().expect("a folder");
    for command in ["cpu", "off-core"] {
        let pid = u32::MAX.to_string();
        let done = ringmain_perf(&[command, "--pid", &pid, "--out"], folder.path());
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{told}");
        assert!(told.contains("no process 4294967295"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}
