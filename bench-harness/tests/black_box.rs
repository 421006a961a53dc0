//! The tool as people run it, against its own sink.
#![allow(clippy::disallowed_methods, reason = "waits for processes")]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use support::{Sink, TOOL, Watched};

/// Whatever does not end by then does not end.
const LONGEST_END_SECONDS: i64 = 60;

fn run(scenario: &Path, target: &str, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command
        .arg("run")
        .arg(scenario)
        .args(["--target", target])
        .arg("--out")
        .arg(out)
        .args(more);
    command
}

fn quick() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/quick.toml")
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn json(out: &Path) -> serde_json::Value {
    let bytes = std::fs::read(out.join("result.json")).expect("a result");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn signal(child: &Child, signal: Signal) {
    let process = Pid::from_child(child);
    rustix::process::kill_process(process, signal).expect("a signal");
}

/// A run that is not waited for yet. Killed where it does not end: its exit code is none then.
struct Under {
    child: Child,
    errors: BufReader<ChildStderr>,
    seen: String,
}

impl Under {
    fn way(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a run");
        let errors = child.stderr.take().expect("standard error");
        Self {
            child,
            errors: BufReader::new(errors),
            seen: String::new(),
        }
    }

    /// Reads what it says until it has said that.
    fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let read = self.errors.read_line(&mut self.seen).expect("a line");
            assert!(read > 0, "it ended early: {}", self.seen);
        }
    }

    /// Waits until it measures and has something to keep.
    fn until_it_measures(&mut self) {
        self.until(": measuring");
        // One second of the timeline, so that there are answers in the window.
        std::thread::sleep(Duration::from_secs(1));
    }

    fn interrupt(&self) {
        signal(&self.child, Signal::INT);
    }

    fn end(mut self) -> Output {
        if !Watched::open(Pid::from_child(&self.child)).ends_within(LONGEST_END_SECONDS) {
            self.child.kill().expect("killed");
        }
        self.errors
            .read_to_string(&mut self.seen)
            .expect("the rest");
        let mut output = self.child.wait_with_output().expect("the run ended");
        output.stderr = self.seen.into_bytes();
        output
    }
}

#[test]
fn a_run_measures_both_ends_stores_everything_and_compares() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("first");
    let both = format!("b={}", sink.address);
    let more = ["--duration", "1", "--rounds", "2", "--target", &both];
    let output = run(&quick(), &format!("a={}", sink.address), &out, &more)
        .output()
        .expect("a run");
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("a to b"), "{}", text(&output));
    let result = json(&out);
    let order: Vec<(&str, u64)> = result["measurements"]
        .as_array()
        .expect("measurements")
        .iter()
        .map(|one| {
            (
                one["target"].as_str().expect("a name"),
                one["round"].as_u64().expect("a round"),
            )
        })
        .collect();
    assert_eq!(order, [("a", 0), ("b", 0), ("a", 1), ("b", 1)], "in turn");
    for one in result["measurements"].as_array().expect("measurements") {
        let count = |field: &str| one[field].as_u64().expect("a count");
        assert!(
            count("produced_records") > 0
                && count("produced_bytes") > count("produced_records") * 400
        );
        assert!(count("consumed_records") > 0, "{one}");
        assert!(
            one["publish"]["count"].as_u64() > Some(0)
                && one["end_to_end"]["count"].as_u64() > Some(0),
            "{one}"
        );
        assert!(
            one["resident_most"].as_u64() > Some(1 << 20),
            "the sink's process was found"
        );
    }
    for name in [
        "result.rkyv",
        "table.txt",
        "latency.svg",
        "timeline.svg",
        "throughput.svg",
        "a-round1-publish.hlog",
    ] {
        assert!(
            out.join(name).metadata().is_ok_and(|data| data.len() > 0),
            "{name}"
        );
    }
    let compared = Command::new(TOOL)
        .arg("compare")
        .arg(&out)
        .arg(&out)
        .output()
        .expect("a comparison");
    assert!(
        compared.status.success() && text(&compared).contains("1.000"),
        "{}",
        text(&compared)
    );
}

#[test]
fn every_result_stands_beside_its_bound() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let target = format!("sink={}", sink.address);
    // A disk: the folder of temporary files may lie in memory.
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let bounds = disk.path().to_str().expect("a name");
    let more = ["--duration", "2", "--bounds", bounds];
    let output = run(&quick(), &target, &out, &more).output().expect("a run");
    assert!(output.status.success(), "{}", text(&output));
    let table = text(&output);
    for part in ["bound: echo + append", "bound: send from memory"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let result = json(&out);
    let bounds = result["bounds"].as_array().expect("bounds");
    let kinds: Vec<_> = bounds.iter().map(|bound| bound["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("echo"), Some("send"), Some("client")]);
    for bound in bounds {
        assert!(bound["seconds"].as_f64() > Some(0.9), "{bound}");
        assert!(bound["steps"].as_u64() > Some(0) && bound["cpu"].as_f64() > Some(0.0));
        for figure in bound["figures"].as_array().expect("figures") {
            let beside = &figure["targets"][0];
            assert_eq!(beside["target"].as_str(), Some("sink"));
            assert!(figure["value"].as_f64() > Some(0.0), "{figure}");
            // Processor time is counted in hundredths of a second: a short run may have spent none.
            let is_rate = figure["name"]
                .as_str()
                .is_some_and(|name| name.ends_with("/s"));
            assert!(!is_rate || beside["ratio"].as_f64() > Some(0.0), "{figure}");
        }
    }
    assert!(bounds[0]["latency"]["count"].as_u64() > Some(0));
    let left = std::fs::read_dir(disk.path()).expect("the folder").count();
    assert_eq!(left, 0, "files are left");
}

#[test]
fn a_command_is_started_under_its_limit_or_told_why_not() {
    let output = Command::new(TOOL)
        .args(["start", "--memory", "64", "cat", "/proc/self/cgroup"])
        .output()
        .expect("a start");
    if output.status.success() {
        assert!(text(&output).contains("/ringmain-bench-started-"));
    } else {
        assert!(text(&output).contains("--memory needs root"));
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = changed(folder.path(), &[("acks =", "rate = 2000\nacks =")]);
    let out = folder.path().join("out");
    let target = format!("sink={}", sink.address);
    let output = run(&scenario, &target, &out, &["--duration", "3"])
        .output()
        .expect("a run");
    assert!(output.status.success(), "{}", text(&output));
    let records = json(&out)["measurements"][0]["produced_records"]
        .as_u64()
        .expect("a count");
    // What was asked for, and at the ends of the window what was due before and answered in it.
    assert!(
        (5_000..=7_000).contains(&records),
        "{records} records in 3 s at 2,000 a second"
    );
}

/// A run of the quick scenario that goes on until something ends it.
fn endless(sink: &Sink, out: &Path) -> Under {
    let target = format!("sink={}", sink.address);
    let mut run = Under::way(&mut run(&quick(), &target, out, &["--duration", "600"]));
    run.until_it_measures();
    run
}

/// What was measured until a run ended early is stored, says why it is not whole, and has rates.
fn assert_kept(output: &Output, out: &Path, reason: &str) {
    let text = text(output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("INCOMPLETE: "))
        .collect();
    assert!(
        matches!(&lines[..], [line] if line.starts_with("INCOMPLETE: sink round 1: ") && line.contains(reason)),
        "{text}"
    );
    let table = std::fs::read_to_string(out.join("table.txt")).expect("a table");
    assert!(table.contains("produced records/s"), "{table}");
    assert!(table.contains("CPU cores, process"), "{table}");
    let result = json(out);
    assert!(result["incomplete"].is_string(), "{result}");
    let measured = &result["measurements"][0];
    assert!(
        measured["produced_records"].as_u64() > Some(0),
        "{measured}"
    );
    let seconds = measured["seconds"].as_f64().expect("seconds");
    assert!((0.5..60.0).contains(&seconds), "{measured}");
    for spent in ["target_cpu", "generator_cpu"] {
        assert!(measured[spent].as_f64() > Some(0.0), "{measured}");
    }
    assert!(measured["resident_end"].as_u64() > Some(1 << 20));
}

#[test]
fn a_target_that_goes_away_ends_the_run_with_what_was_measured() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let run = endless(&sink, &out);
    drop(sink);
    assert_kept(&run.end(), &out, "");
}

#[test]
fn a_target_that_answers_nothing_any_more_ends_the_run_with_what_was_measured() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let run = endless(&sink, &out);
    signal(&sink.child, Signal::STOP);
    assert_kept(&run.end(), &out, "the target is gone: no answer for 10 s");
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let run = endless(&sink, &out);
    run.interrupt();
    assert_kept(&run.end(), &out, "interrupted");
}

#[test]
fn an_interrupt_ends_a_run_whose_target_answers_nothing_and_a_second_one_at_once() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let (once, mut twice) = (endless(&sink, &first), endless(&sink, &second));
    signal(&sink.child, Signal::STOP);
    once.interrupt();
    twice.interrupt();
    twice.until("interrupted");
    twice.interrupt();
    let twice = twice.end();
    assert_eq!(twice.status.code(), Some(130), "{}", text(&twice));
    assert!(!second.exists(), "it waited for nothing");
    assert_kept(&once.end(), &first, "interrupted");
}

#[test]
fn a_target_that_is_frozen_from_the_start_is_one_line() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    signal(&sink.child, Signal::STOP);
    let target = format!("sink={}", sink.address);
    let output = Under::way(&mut run(&quick(), &target, &out, &[])).end();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let line = format!("error: sink at {0}: {0} does not answer", sink.address);
    assert!(text(&output).contains(&line), "{}", text(&output));
}

#[test]
fn what_fails_between_two_measurements_is_said_in_the_result() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let target = format!("sink={}", sink.address);
    let more = ["--duration", "1", "--target", "none=127.0.0.1:1"];
    let output = run(&quick(), &target, &out, &more).output().expect("a run");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let result = json(&out);
    let measurements = result["measurements"].as_array().expect("measurements");
    assert_eq!(measurements.len(), 1);
    assert!(measurements[0]["incomplete"].is_null(), "this one is whole");
    let reason = result["incomplete"].as_str().expect("a reason");
    assert!(reason.contains("cannot connect to 127.0.0.1:1"), "{reason}");
    let table = std::fs::read_to_string(out.join("table.txt")).expect("a table");
    assert!(
        table.contains("\nINCOMPLETE: none at 127.0.0.1:1"),
        "{table}"
    );
}

#[test]
fn an_interrupt_ends_a_prefill() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("full.toml");
    let quick = std::fs::read_to_string(quick()).expect("the scenario");
    std::fs::write(&scenario, quick + "\n[prefill]\nmebibytes = 1000000000\n").expect("written");
    let target = format!("sink={}", sink.address);
    let mut run = Under::way(&mut run(
        &scenario,
        &target,
        &folder.path().join("out"),
        &[],
    ));
    run.until("sink: filling");
    run.interrupt();
    let output = run.end();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let wanted = "cannot fill the topic: interrupted";
    assert!(text(&output).contains(wanted), "{}", text(&output));
}

#[test]
fn an_interrupt_ends_a_bound_while_it_is_measured() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let bounds = folder.path().to_str().expect("a name");
    let more = ["--duration", "600", "--bounds", bounds];
    let out = folder.path().join("out");
    let mut run = Under::way(&mut run(&quick(), "a=127.0.0.1:1", &out, &more));
    run.until("bound: echo");
    run.interrupt();
    let begin = Instant::now();
    let output = run.end();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("interrupted"), "{}", text(&output));
    // The bound that it was at takes 10 s, in two passes.
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{}",
        text(&output)
    );
}

/// The quick scenario with something else in it.
fn changed(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let mut scenario = std::fs::read_to_string(quick()).expect("the scenario");
    for (from, to) in changes {
        assert!(scenario.contains(from), "{from}");
        scenario = scenario.replace(from, to);
    }
    let path = folder.join("changed.toml");
    std::fs::write(&path, scenario).expect("written");
    path
}

#[test]
fn a_rate_that_nobody_can_send_is_a_warning_in_table_and_result() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    // With so many in flight it is not the sink that it waits for.
    let fast = "rate = 1000000000\nin_flight = 100000\nacks =";
    let scenario = changed(folder.path(), &[("acks =", fast)]);
    let out = folder.path().join("out");
    let target = format!("sink={}", sink.address);
    let output = run(&scenario, &target, &out, &["--duration", "1"])
        .output()
        .expect("a run");
    let warnings = &json(&out)["measurements"][0]["warnings"];
    let warning = warnings[0].as_str().expect("a warning");
    assert!(
        warning.starts_with("the generator itself was late"),
        "{warning}"
    );
    let table = std::fs::read_to_string(out.join("table.txt")).expect("a table");
    let line = format!("\nwarning: sink round 1: {warning}\n");
    assert!(table.contains(&line), "{table}");
    assert!(text(&output).contains(warning), "{}", text(&output));
}

#[test]
fn a_stall_counts_for_every_request_that_was_due_meanwhile() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    // A request every 2 ms, and only one in flight: counted from when they are sent, one alone would be late.
    let changes = [
        ("count = 2", "count = 1"),
        ("batch_records = [1, 20]", "batch_records = 1"),
        ("acks =", "rate = 500\nin_flight = 1\nacks ="),
    ];
    let scenario = changed(folder.path(), &changes);
    let out = folder.path().join("out");
    let target = format!("sink={}", sink.address);
    let mut run = Under::way(&mut run(&scenario, &target, &out, &["--duration", "3"]));
    run.until(": measuring");
    std::thread::sleep(Duration::from_millis(500));
    signal(&sink.child, Signal::STOP);
    std::thread::sleep(Duration::from_millis(600));
    signal(&sink.child, Signal::CONT);
    let output = run.end();
    assert!(output.status.success(), "{}", text(&output));
    let publish = &json(&out)["measurements"][0]["publish"];
    let micros = |name: &str| publish[name].as_u64().expect("a latency");
    assert!(micros("count") > 1200, "{publish}");
    assert!(micros("max") >= 550_000, "{publish}");
    assert!(micros("p99_9") >= 400_000, "{publish}");
    // A fifth of them was due meanwhile, and half of those waited for more than half of it.
    assert!(micros("p90") >= 100_000, "{publish}");
}

#[test]
fn bad_input_is_one_line_that_says_where() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("odd.toml");
    let odd = std::fs::read_to_string(quick())
        .expect("the scenario")
        .replace("acks =", "ack =");
    std::fs::write(&scenario, odd).expect("written");
    let out = folder.path().join("out");
    let fails = |scenario: &Path, target: &str, wanted: &[&str]| {
        let output = run(scenario, target, &out, &[]).output().expect("a run");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        for part in wanted {
            assert!(text(&output).contains(part), "{part}: {}", text(&output));
        }
    };
    fails(&scenario, "a=127.0.0.1:1", &["odd.toml", "ack"]);
    fails(
        &folder.path().join("none.toml"),
        "a=127.0.0.1:1",
        &["none.toml"],
    );
    fails(&quick(), "127.0.0.1:1", &["NAME=HOST:PORT"]);
    fails(
        &quick(),
        "a=127.0.0.1:1",
        &["a at 127.0.0.1:1", "cannot connect"],
    );
    let slash = "--target \"a/b=127.0.0.1:1\": the name becomes part of file names";
    fails(&quick(), "a/b=127.0.0.1:1", &[slash]);
    let long = format!("{}=127.0.0.1:1", "a".repeat(101));
    fails(&quick(), &long, &["at most 100 bytes"]);
    let output = run(
        &quick(),
        "a=127.0.0.1:1",
        &out,
        &["--target", "a=127.0.0.1:2"],
    )
    .output()
    .expect("a run");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let wanted = "error: --target a=127.0.0.1:2: there are two targets named a";
    assert!(text(&output).starts_with(wanted), "{}", text(&output));
}

/// A set of one scenario, and a command that runs it against a sink.
fn short_set(folder: &Path, address: &str, more: &[&str]) -> Command {
    std::fs::copy(quick(), folder.join("quick.toml")).expect("copied");
    let set = "warm_up_seconds = 1\nduration_seconds = 1\nscenarios = [\"quick.toml\"]\n";
    std::fs::write(folder.join("set.toml"), set).expect("written");
    let mut command = Command::new(TOOL);
    command
        .arg("short")
        .arg(folder.join("set.toml"))
        .args(["--target", &format!("sink={address}"), "--rounds", "1"])
        .arg("--recorded")
        .arg(folder.join("recorded"))
        // The sink's figures are not what is tested, and they vary on a machine that others use.
        .args(["--worse", "1000", "--worse-latency", "100000"])
        .args(more);
    command
}

#[test]
fn a_set_is_held_against_what_was_recorded_last() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let short = |more: &[&str]| {
        short_set(folder.path(), &sink.address, more)
            .output()
            .expect("a run")
    };
    let first = short(&["--record", "--commit", "first"]);
    assert!(first.status.success(), "{}", text(&first));
    assert!(
        text(&first).contains("quick, sink: nothing was recorded"),
        "{}",
        text(&first)
    );
    let second = short(&[]);
    assert!(second.status.success(), "{}", text(&second));
    assert!(
        text(&second).contains("quick, sink: against first of 2"),
        "{}",
        text(&second)
    );
    let recorded = std::fs::read_dir(folder.path().join("recorded"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect::<Vec<_>>();
    let [recorded] = &recorded[..] else {
        panic!("only --record records: {recorded:?}");
    };
    // As if it had produced ten million times as much then.
    let then = std::fs::read_to_string(recorded).expect("a record");
    let better = then.replace("\"produced_records\":", "\"produced_records\":10000000");
    std::fs::write(recorded, better).expect("written");
    let worse = short(&[]);
    assert_eq!(worse.status.code(), Some(4), "{}", text(&worse));
    let line = "quick, sink: produced records/s";
    assert!(text(&worse).contains(line), "{}", text(&worse));
    std::fs::write(recorded, &then[..then.len() / 2]).expect("cut");
    let damaged = short(&[]);
    assert_eq!(damaged.status.code(), Some(1), "{}", text(&damaged));
    let name = recorded.file_name().expect("a name").to_string_lossy();
    assert!(text(&damaged).contains(&*name), "{}", text(&damaged));
}

#[test]
fn an_interrupt_keeps_the_scenarios_of_a_set_that_were_measured() {
    let sink = Sink::start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut short = short_set(folder.path(), &sink.address, &["--record", "--commit", "a"]);
    changed(folder.path(), &[("\"quick\"", "\"changed\"")]);
    let set = "warm_up_seconds = 1\nduration_seconds = 1\nscenarios = [\"quick.toml\", \"changed.toml\"]\n";
    std::fs::write(folder.path().join("set.toml"), set).expect("written");
    let mut short = Under::way(&mut short);
    short.until("scenario 2 of 2: changed");
    short.interrupt();
    let output = short.end();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let recorded = std::fs::read_dir(folder.path().join("recorded")).expect("the folder");
    let paths: Vec<_> = recorded
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let [path] = &paths[..] else {
        panic!("{paths:?}: {}", text(&output));
    };
    let bytes = std::fs::read(path).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let reason = record["incomplete"].as_str().expect("a reason");
    assert!(
        reason.starts_with("changed: ") && reason.contains("interrupted"),
        "{reason}"
    );
    let reports = record["reports"].as_array().expect("reports");
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0]["scenario"], "quick");
    let wanted = format!("error: {reason}; the set is incomplete");
    assert!(text(&output).contains(&wanted), "{}", text(&output));
}

#[test]
fn a_set_that_cannot_be_run_is_one_line_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let fails = |more: &[&str], wanted: &str| {
        let output = short_set(folder.path(), "127.0.0.1:1", more)
            .output()
            .expect("a run");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let lines = text(&output);
        assert!(
            lines.contains(wanted) && lines.lines().count() == 1,
            "{lines}"
        );
    };
    fails(&[], "recorded; --record makes it");
    fails(&["--only", "slow"], "--only slow: not in");
    let set = folder.path().join("other.toml");
    let other = "warm_up_seconds = 1\nduration_seconds = 1\nscenarios = [\"none.toml\"]\n";
    std::fs::write(&set, other).expect("written");
    let output = Command::new(TOOL)
        .arg("short")
        .arg(&set)
        .args(["--target", "a=127.0.0.1:1"])
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("none.toml"), "{}", text(&output));
    let output = Command::new(TOOL)
        .arg("short")
        .arg(&set)
        .args(["--target", "a=127.0.0.1:1", "--worse", "0.5"])
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let wanted = "--worse and --worse-latency: at least 1";
    assert!(text(&output).contains(wanted), "{}", text(&output));
}
