//! Hostile sessions against the whole broker in the simulation: the saved corpus of the fuzz target, and seeded choices for
//! every API. See fuzz/README.md.
#![allow(clippy::print_stdout, reason = "a test says what it ran")]

#[path = "../../protocol/tests/wire/interpreter.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the codec, which use the rest"
)]
mod interpreter;
#[path = "../../protocol/tests/wire/random.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the codec, which use the rest"
)]
mod random;
#[path = "../../protocol/build/schema.rs"]
#[allow(
    dead_code,
    reason = "shared with the build script, which uses the rest"
)]
mod schema;
#[path = "../../fuzz/session/mod.rs"]
mod session;

use std::time::Instant;

use broker::handlers::SUPPORTED;
use random::Random;
use session::Schema;

/// For each API.
const INPUTS: u64 = 10;
/// Bytes of choices at most.
const LENGTH: u64 = 600;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn hostile_sessions_disturb_nobody() {
    let schema = Schema::read();
    let longest = number("RINGMAIN_FUZZ_LENGTH", LENGTH);
    let (inputs, first) = (
        number("RINGMAIN_FUZZ_INPUTS", INPUTS),
        number("RINGMAIN_FUZZ_SEED", 0),
    );
    if std::env::var_os("RINGMAIN_FUZZ_LOG").is_some() {
        broker::telemetry::log::set_up().expect("the first to log");
    }
    let only = std::env::var("RINGMAIN_FUZZ_API").ok();
    for api in SUPPORTED {
        if only.as_ref().is_some_and(|only| only != api.name()) {
            continue;
        }
        let (mut requests, mut answers, mut memory, mut left) = (0, 0, 0, 0);
        let start = now();
        for seed in first..first + inputs {
            let mut random = Random::of(api.name(), 0, seed);
            let length = random.below(longest) as usize;
            let data = random.bytes(length);
            let played = seeded(&schema, &data, *api, seed);
            requests += played.requests;
            answers += played.answers;
            memory = memory.max(played.memory);
            left += played.left;
        }
        println!(
            "{}: {inputs} sessions, {requests} requests, {answers} answers, at most {memory} bytes, {left} left, {:?}",
            api.name(),
            start.elapsed()
        );
        assert!(answers > requests / 4, "{}: {answers} answers", api.name());
    }
}

/// Says which input it was, should it fail.
fn seeded(schema: &Schema, data: &[u8], api: protocol::ApiKey, seed: u64) -> session::Played {
    struct Tell(&'static str, u64);
    impl Drop for Tell {
        fn drop(&mut self) {
            if std::thread::panicking() {
                println!(
                    "RINGMAIN_FUZZ_API={} RINGMAIN_FUZZ_SEED={} repeats it",
                    self.0, self.1
                );
            }
        }
    }
    let _tell = Tell(api.name(), seed);
    session::play(schema, data, Some(api))
}

#[expect(clippy::disallowed_methods, reason = "a test measures real time")]
fn now() -> Instant {
    Instant::now()
}
