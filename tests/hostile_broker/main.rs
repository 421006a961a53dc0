//! Our command-line tools against a broker that answers whatever it likes: each tool ends, soon, with an error or without,
//! never in a panic, and takes no more memory than the answers are worth. See fuzz/README.md for how to play many.
#![allow(clippy::print_stdout, reason = "a test says what it ran")]
#![allow(
    clippy::disallowed_methods,
    reason = "the broker under the tools has threads of its own"
)]

#[path = "../sessions/choices.rs"]
#[allow(dead_code, reason = "an answer is one message")]
mod choices;
#[path = "../sessions/generate.rs"]
#[allow(dead_code, reason = "requests are made by the tools")]
mod generate;
#[path = "../../protocol/tests/wire/interpreter.rs"]
#[allow(dead_code, reason = "shared with the tests of the codec")]
mod interpreter;
#[path = "../sessions/known.rs"]
#[allow(dead_code, reason = "a broker learns nothing here")]
mod known;
mod liar;
#[path = "../../protocol/tests/wire/random.rs"]
#[allow(dead_code, reason = "shared with the tests of the codec")]
mod random;
#[path = "../../protocol/build/schema.rs"]
#[allow(dead_code, reason = "shared with the build script")]
mod schema;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use broker::tools::Tool;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use liar::Liar;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs of each command.
const RUNS: u64 = 60;
/// No run takes this long: the settings below say milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Answers have some kilobytes.
const MEMORY_MAX: usize = 16 << 20;

/// `A` is the broker's address, `F` a file with settings of short patience, `J` one with offsets.
const COMMANDS: &[&str] = &[
    "topics --bootstrap-server A --command-config F --list",
    "topics --bootstrap-server A --command-config F --describe",
    "topics --bootstrap-server A --command-config F --describe --topic one",
    "topics --bootstrap-server A --command-config F --create --topic one --partitions 2",
    "topics --bootstrap-server A --command-config F --alter --topic one --partitions 7",
    "topics --bootstrap-server A --command-config F --delete --topic one",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --list --state",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --describe --all-groups",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --describe --group group --members --verbose",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --describe --group group --state",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --delete --group group",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --delete-offsets --group group --topic one",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --reset-offsets --group group --topic one --to-earliest --dry-run",
    "consumer-groups --bootstrap-server A --command-config F --timeout 20 --reset-offsets --group group --all-topics --shift-by 3 --execute",
    "configs --bootstrap-server A --command-config F --describe --entity-type topics --entity-name one --all",
    "configs --bootstrap-server A --command-config F --describe --entity-type brokers",
    "configs --bootstrap-server A --command-config F --alter --entity-type topics --entity-name one --add-config retention.ms=1",
    "get-offsets --bootstrap-server A --command-config F --topic one",
    "get-offsets --bootstrap-server A --command-config F --time max-timestamp",
    "groups --bootstrap-server A --command-config F --list",
    "log-dirs --bootstrap-server A --command-config F --describe",
    "metadata-quorum --bootstrap-server A --command-config F describe --status",
    "metadata-quorum --bootstrap-server A --command-config F describe --replication --human-readable",
    "cluster cluster-id --bootstrap-server A --command-config F",
    "cluster list-endpoints --bootstrap-server A --command-config F",
    "features --bootstrap-server A --command-config F describe",
    "features --bootstrap-server A --command-config F upgrade --feature metadata.version=20",
    "broker-api-versions --bootstrap-server A --command-config F",
    "delete-records --bootstrap-server A --command-config F --offset-json-file J",
    "doctor A --command-config F --watch 0",
    "consumer-perf-test --bootstrap-server A --command-config F --topic one --num-records 20 --timeout 5",
    "consumer-perf-test --bootstrap-server A --command-config F --include .* --num-records 20 --timeout 5 --group group",
    "producer-perf-test --bootstrap-server A --command-config F --topic one --num-records 3 --record-size 10 --throughput -1",
];

const SETTINGS: &str = "request.timeout.ms=100\ndefault.api.timeout.ms=20\nretry.backoff.ms=1\n\
                        max.block.ms=20\ndelivery.timeout.ms=200\nsession.timeout.ms=1000\n\
                        heartbeat.interval.ms=10\nfetch.max.wait.ms=2\nlinger.ms=0\n";
const OFFSETS: &str = r#"{"partitions":[{"topic":"one","partition":0,"offset":1}],"version":1}"#;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_answer_makes_a_tool_panic_or_stay() {
    let directory = std::env::temp_dir().join(format!("ringmain-liar-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (settings, offsets) = (file("settings", SETTINGS), file("offsets", OFFSETS));
    let liar = Liar::start();
    let (first, runs) = (
        number("RINGMAIN_FUZZ_SEED", 0),
        number("RINGMAIN_FUZZ_INPUTS", RUNS),
    );
    let only = std::env::var("RINGMAIN_FUZZ_TOOL").ok();
    for command in COMMANDS {
        if only.as_ref().is_some_and(|only| !command.contains(only)) {
            continue;
        }
        let words = command.split(' ').map(|word| match word {
            "A" => liar.address(),
            "F" => settings.clone(),
            "J" => offsets.clone(),
            other => other.to_owned(),
        });
        let parser = Tool::augment_subcommands(Command::new("ringmain"));
        let matches = parser
            .try_get_matches_from(std::iter::once("ringmain".to_owned()).chain(words))
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let (mut sound, mut memory) = (0, 0);
        let before = liar.answers();
        for seed in first..first + runs {
            liar.begin(seed);
            ALLOCATOR.reset_peak_usage();
            let held = ALLOCATOR.current_usage();
            sound += u64::from(run(&matches, command, seed));
            let taken = ALLOCATOR.peak_usage().saturating_sub(held);
            memory = memory.max(taken);
            assert!(
                taken <= MEMORY_MAX,
                "{command}, seed {seed}: took {taken} bytes"
            );
        }
        let answers = liar.answers() - before;
        println!(
            "{command}: {runs} runs, {sound} without an error, {answers} answers, {memory} bytes at most"
        );
        assert!(answers > runs, "{command}: {answers} answers");
    }
    std::fs::remove_dir_all(&directory).expect("it was made");
}

/// Whether it ended without an error.
fn run(matches: &ArgMatches, command: &str, seed: u64) -> bool {
    let tool = Tool::from_arg_matches(matches).expect("it was parsed");
    let (done, ended) = channel();
    let thread = thread::spawn(move || {
        let result = tool.run_with(&mut std::io::sink(), &mut std::io::sink());
        let _ = done.send(result);
    });
    match ended.recv_timeout(PATIENCE) {
        Ok(result) => {
            thread.join().expect("it has ended");
            if let Err(failure) = &result
                && std::env::var_os("RINGMAIN_FUZZ_LOG").is_some()
            {
                println!("seed {seed}: {failure}");
            }
            result.is_ok()
        }
        Err(RecvTimeoutError::Timeout) => panic!("{command}, seed {seed}: it does not end"),
        Err(RecvTimeoutError::Disconnected) => {
            panic!("{command}, seed {seed}: it panics, see above")
        }
    }
}
