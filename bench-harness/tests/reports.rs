//! What a run reports, and beside what: plots, logs, ratios and the client's limit, against the tool's own sink.
#![allow(clippy::disallowed_methods, reason = "waits for processes")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use serde_json::Value;
use support::{Sink, TOOL, Watched};

fn scenario(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("scenario.toml");
    let head = "about = \"a test\"\nwarm_up_seconds = 0\nduration_seconds = 2\ntopic = { partitions = 2 }\n";
    std::fs::write(&path, format!("{head}{text}")).expect("written");
    path
}

fn run(scenario: &Path, sink: &Sink, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command.arg("run").arg(scenario).arg("--out").arg(out);
    command.args(["--target", &format!("ours={}", sink.address)]);
    command.args(more);
    command
}

/// Runs to the end and gives the result, and the table.
fn result(mut command: Command, out: &Path) -> (Value, String) {
    let output = command.output().expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = std::fs::read_to_string(out.join("result.json")).expect("a result");
    let table = std::fs::read_to_string(out.join("table.txt")).expect("a table");
    (serde_json::from_str(&text).expect("JSON"), table)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

const PRODUCE_AND_CONSUME: &str = "name = \"both\"\n[producers]\ncount = 1\nrecord_bytes = 500\nbatch_records = 20\n\
    acks = \"all\"\n[consumers]\ngroups = 1\n";

#[test]
fn what_was_only_read_has_a_plot_of_it() {
    let (sink, folder) = (Sink::start(), tempfile::tempdir().expect("a folder"));
    let cold = "name = \"cold\"\nprefill = { mebibytes = 8 }\ncold_readers = { count = 1 }\n";
    let (scenario, out) = (scenario(folder.path(), cold), folder.path().join("out"));
    let (_, table) = result(run(&scenario, &sink, &out, &[]), &out);
    assert!(table.contains("cold read MB/s"), "{table}");
    let svg = std::fs::read_to_string(out.join("throughput.svg")).expect("a plot");
    assert!(
        svg.contains(">cold read MB/s<") && svg.contains(">ours<"),
        "{svg}"
    );
    assert!(!svg.contains("produced"), "{svg}");
}

#[test]
fn every_pair_of_rounds_and_every_second_is_written_down() {
    let (sink, folder) = (Sink::start(), tempfile::tempdir().expect("a folder"));
    let (scenario, out) = (
        scenario(folder.path(), PRODUCE_AND_CONSUME),
        folder.path().join("out"),
    );
    let base = format!("base={}", sink.address);
    let more = ["--rounds", "2", "--target", &base];
    let began = std::time::SystemTime::now();
    let (result, table) = result(run(&scenario, &sink, &out, &more), &out);
    for line in [
        "publish max us",
        "end to end p99.99 us",
        "end to end max us",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    let ratios = &result["ratios"][0];
    assert_eq!(
        (&ratios["target"], &ratios["base"]),
        (&"ours".into(), &"base".into())
    );
    let figure = &ratios["figures"][0];
    assert_eq!(figure["name"], "produced records/s");
    let measured = |at: usize| {
        let one = &result["measurements"][at];
        let field = |name: &str| one[name].as_f64().expect("a number");
        field("produced_records") / field("seconds")
    };
    // They were measured in turn: ours, base, ours, base.
    let wanted = [measured(0) / measured(1), measured(2) / measured(3)];
    for (round, (pair, wanted)) in list(&figure["pairs"]).iter().zip(wanted).enumerate() {
        assert_eq!(pair["round"], round);
        let ratio = pair["ratio"].as_f64().expect("a ratio");
        assert!((ratio / wanted - 1.0).abs() < 1e-6, "{ratio} and {wanted}");
    }
    assert_eq!(list(&figure["pairs"]).len(), 2);
    let since = began
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    for kind in ["publish", "end-to-end"] {
        let log = std::fs::read_to_string(out.join(format!("ours-round1-{kind}.hlog")));
        let log = log.expect("a log");
        let start = log.lines().find_map(|line| {
            let (seconds, _) = line.strip_prefix("#[StartTime: ")?.split_once(' ')?;
            seconds.parse::<f64>().ok()
        });
        let late = start.expect("a start") - since.as_secs_f64();
        assert!((0.0..120.0).contains(&late), "{late} s after the run began");
        let intervals: Vec<&str> = log.lines().filter(|line| line.contains("HISTF")).collect();
        assert_eq!(intervals.len(), 2, "one a second: {log}");
        assert!(intervals[1].starts_with("1.000,"), "{}", intervals[1]);
    }
}

#[test]
fn each_target_stands_beside_the_clients_limit() {
    let (sink, folder) = (Sink::start(), tempfile::tempdir().expect("a folder"));
    let (scenario, out) = (
        scenario(folder.path(), PRODUCE_AND_CONSUME),
        folder.path().join("out"),
    );
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let more = ["--bounds", disk.path().to_str().expect("a name")];
    let (result, table) = result(run(&scenario, &sink, &out, &more), &out);
    let limit = list(&result["bounds"])
        .iter()
        .find(|bound| bound["kind"] == "client");
    let figures = list(&limit.expect("the client's limit")["figures"]);
    let names: Vec<_> = figures
        .iter()
        .map(|figure| figure["name"].as_str())
        .collect();
    let wanted = [
        "produced MB/s",
        "consumed MB/s",
        "publish p50 us",
        "publish p99 us",
        "end to end p50 us",
        "end to end p99 us",
    ];
    assert_eq!(names, wanted.map(Some));
    // The target is a sink, too: it is near its own limit.
    let ratio = figures[0]["targets"][0]["ratio"].as_f64().expect("a ratio");
    assert!((0.1..10.0).contains(&ratio), "{ratio}");
    let (_, limit) = table
        .split_once("bound: the client's limit")
        .expect("a paragraph");
    assert!(limit.contains("produced MB/s"), "{table}");
    let svg = std::fs::read_to_string(out.join("throughput.svg")).expect("a plot");
    for name in [
        "bound: the client's limit",
        "bound: send from memory",
        ">ours<",
    ] {
        assert!(svg.contains(name), "{name}: {svg}");
    }
}

#[test]
fn the_sink_of_the_clients_limit_ends_with_the_tool() {
    let (sink, folder) = (Sink::start(), tempfile::tempdir().expect("a folder"));
    let (scenario, out) = (
        scenario(folder.path(), PRODUCE_AND_CONSUME),
        folder.path().join("out"),
    );
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let more = ["--bounds", disk.path().to_str().expect("a name")];
    let mut tool = run(&scenario, &sink, &out, &more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    let errors = BufReader::new(tool.stderr.take().expect("standard error"));
    let is_measured =
        |line: std::io::Result<String>| line.is_ok_and(|line| line == "sink: measuring");
    assert!(errors.lines().any(is_measured), "it ended early");
    let children = format!("/proc/{0}/task/{0}/children", tool.id());
    let children = std::fs::read_to_string(children).expect("children");
    let child = children.trim().parse().ok().and_then(Pid::from_raw);
    let child = Watched::open(child.expect("one child"));
    tool.kill().expect("killed");
    tool.wait().expect("ended");
    assert!(child.ends_within(10), "the sink is still there");
}
