//! Hostile clients against the whole broker, which runs in a simulated world: see fuzz/README.md for how to play many.
//!
//! An input is a list of choices: which of two connections asks next, which API in which version, the value of every
//! field, whether the frame is damaged, and whether its answer is awaited before the next request. The broker stays for the
//! next inputs, and so do the connections, mostly. A third connection, the witness, works on a topic that nobody else knows.
//! What must hold:
//! - nothing panics, and the broker still stops cleanly and starts again;
//! - every connection gets answers to its own requests, in their order, each readable in the version that was asked;
//! - requests that the schema allows are answered, and end no connection;
//! - the witness is answered as if it were alone;
//! - an input takes little memory.
#![allow(clippy::print_stdout, reason = "a test says what it ran")]

mod arena;
#[path = "../simulation/broker.rs"]
mod broker;
mod choices;
mod generate;
#[path = "../../protocol/tests/wire/interpreter.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the codec, which use the rest"
)]
mod interpreter;
mod known;
mod link;
mod play;
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
mod witness;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use ::broker::handlers::SUPPORTED;
use ::broker::telemetry;
use arena::Played;
use generate::Schema;
use protocol::ApiKey;
use random::Random;

/// For each API.
const INPUTS: u64 = 100;
/// Against one broker, at most.
const PER_BROKER: usize = 2000;
/// Bytes of choices at most; most inputs have far fewer.
const LENGTH: u64 = 600;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// The seeds to play: `RINGMAIN_FUZZ_SEEDS=3,17`, or `RINGMAIN_FUZZ_INPUTS` from `RINGMAIN_FUZZ_SEED` on.
fn seeds() -> Vec<u64> {
    if let Ok(given) = std::env::var("RINGMAIN_FUZZ_SEEDS") {
        let given = given.split(',');
        return given.map(|seed| seed.parse().expect("a number")).collect();
    }
    let first = number("RINGMAIN_FUZZ_SEED", 0);
    (first..first + number("RINGMAIN_FUZZ_INPUTS", INPUTS)).collect()
}

fn input(api: ApiKey, seed: u64) -> Vec<u8> {
    let mut random = Random::of(api.name(), 0, seed);
    let most = random.below(LENGTH) + 1;
    let length = random.below(most) as usize;
    random.bytes(length)
}

#[test]
fn hostile_sessions_disturb_nobody() {
    if std::env::var_os("RINGMAIN_FUZZ_LOG").is_some() {
        telemetry::log::set_up().expect("the first to log");
    }
    let (schema, seeds) = (Schema::read(), seeds());
    let only = std::env::var("RINGMAIN_FUZZ_API").ok();
    for api in SUPPORTED {
        if only.as_ref().is_some_and(|only| only != api.name()) {
            continue;
        }
        let start = now();
        let all = play_all(&schema, *api, &seeds);
        println!("{}: {all:?}, {:?}", api.name(), start.elapsed());
        let Played {
            requests, answers, ..
        } = all;
        assert!(answers > requests / 4, "{}: {answers} answers", api.name());
    }
}

/// Plays all, each broker as many as it bears; where one fails, says which are enough for that.
fn play_all(schema: &Schema, api: ApiKey, seeds: &[u64]) -> Played {
    let mut all = Played::default();
    while let Some(rest) = seeds.get(all.inputs..).filter(|rest| !rest.is_empty()) {
        let rest = &rest[..rest.len().min(PER_BROKER)];
        let Some(played) = try_these(schema, api, rest) else {
            let few = fewest(schema, api, rest.to_vec());
            let few: Vec<String> = few.iter().map(u64::to_string).collect();
            panic!(
                "RINGMAIN_FUZZ_API={} RINGMAIN_FUZZ_SEEDS={} shows it again",
                api.name(),
                few.join(",")
            );
        };
        all.inputs += played.inputs;
        all.requests += played.requests;
        all.focused += played.focused;
        all.answers += played.answers;
        all.memory = all.memory.max(played.memory);
    }
    all
}

/// None where a promise was broken; what the panic said is on standard error.
fn try_these(schema: &Schema, api: ApiKey, seeds: &[u64]) -> Option<Played> {
    let inputs = seeds.iter().map(|seed| input(api, *seed)).collect();
    catch_unwind(AssertUnwindSafe(|| arena::play(schema, api, inputs))).ok()
}

/// Leaves out what is not needed for a failure: halves, quarters, and so on to single inputs.
fn fewest(schema: &Schema, api: ApiKey, mut seeds: Vec<u64>) -> Vec<u64> {
    let mut part = seeds.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < seeds.len() {
            let mut fewer = seeds.clone();
            fewer.drain(at..seeds.len().min(at + part));
            match fewer.is_empty() || try_these(schema, api, &fewer).is_some() {
                true => at += part,
                false => seeds = fewer,
            }
        }
        part /= 2;
    }
    seeds
}

#[expect(clippy::disallowed_methods, reason = "a test measures real time")]
fn now() -> Instant {
    Instant::now()
}
