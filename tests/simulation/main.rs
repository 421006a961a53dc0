//! The whole broker under simulation: see README.md.

mod admin;
mod broker;
mod bugs;
mod client;
mod fetching;
mod grouping;
mod model;
mod producing;
mod reading;
mod record;
mod run;
mod scenario;
mod seeds;
mod stage;
mod trouble;

use std::time::{SystemTime, UNIX_EPOCH};

use seeds::{Tried, try_all};

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

/// The seeds that once found something, a line each: `SEED what it found`.
fn saved_seeds() -> Vec<u64> {
    let lines = include_str!("seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            line.split(' ')
                .next()
                .and_then(|seed| seed.parse().ok())
                .expect("a seed")
        })
        .collect()
}

/// Fails with the command that shows each violation again.
#[allow(clippy::print_stdout, reason = "called by tests")]
fn must_be_clean(tried: &[Tried]) {
    let checks: u64 = tried.iter().map(|tried| tried.outcome.checks).sum();
    println!("{} seeds, {checks} checks", tried.len());
    let mut bad = 0;
    for Tried { seed, outcome } in tried {
        if let Some(what) = &outcome.violation {
            bad += 1;
            println!(
                "seed {seed}: {what}\n  RINGMAIN_SIMULATION_SEED={seed} cargo test --features sim,planted-bugs \
                 --test simulation one_seed -- --nocapture"
            );
        }
    }
    assert_eq!(bad, 0, "seeds with a violation");
}

/// The seed of `RINGMAIN_SIMULATION_SEED`, with the log of broker and clients on standard error.
#[test]
fn one_seed() {
    let Some(seed) = number("RINGMAIN_SIMULATION_SEED") else {
        return;
    };
    // Set up already where several tests run.
    let _ = ::broker::telemetry::log::set_up();
    println!("{:#?}", scenario::Scenario::new(seed));
    must_be_clean(&[seeds::try_seed(seed)]);
}

#[test]
fn saved_seeds_are_clean() {
    must_be_clean(&try_all(&saved_seeds(), false, || ()));
}

/// `RINGMAIN_SIMULATION_SEEDS` seeds (20), from `RINGMAIN_SIMULATION_FROM` on, else from the clock.
#[test]
fn fresh_seeds_are_clean() {
    let count = number("RINGMAIN_SIMULATION_SEEDS").unwrap_or(20);
    let from = number("RINGMAIN_SIMULATION_FROM").unwrap_or_else(now_ms);
    println!("seeds from {from} on");
    must_be_clean(&try_all(
        &(from..from + count).collect::<Vec<_>>(),
        false,
        || (),
    ));
}

#[allow(
    clippy::disallowed_methods,
    reason = "every run of the tests tries other seeds"
)]
fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

#[test]
fn the_same_seed_does_the_same() {
    for seed in [1, 2] {
        let (first, second) = (run::run(seed), run::run(seed));
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(run::run(1).digest, run::run(2).digest);
}
