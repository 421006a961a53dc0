//! Every decoder outside of protocol/ on hostile bytes: the saved corpus of the fuzz targets, and seeded mutations of it
//! and of sound files. Alone in its binary: the memory that is counted is the whole process's.
#![allow(clippy::print_stdout, reason = "a test says what it ran")]

#[path = "../fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/decoders.rs"]
mod decoders;
#[path = "../fuzz/seeds.rs"]
mod seeds;
#[path = "../fuzz/within.rs"]
mod within;

use std::path::Path;

type Entry = fn(&[u8]) -> bool;

/// The fuzz targets, by the names of their binaries and of their folders of the corpus.
const TARGETS: [(&str, Entry); 6] = [
    ("storage_files", decoders::storage_files),
    ("broker_files", decoders::broker_files),
    ("metadata_log", decoders::metadata_log),
    ("group_log", decoders::group_log),
    ("config", decoders::config),
    ("dumped", decoders::dumped),
];

const ROUNDS: u64 = 20_000;

/// `RINGMAIN_FUZZ_TARGET` plays that one alone, `RINGMAIN_FUZZ_INPUTS` as many mutations of it, `RINGMAIN_FUZZ_SEED` others.
fn number(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok()?;
    Some(given.parse().expect("a number"))
}

#[test]
fn hostile_files_are_errors_and_cost_no_memory() {
    let only = std::env::var("RINGMAIN_FUZZ_TARGET").ok();
    for (name, entry) in TARGETS {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let sound = seeds::of(name);
        for (index, seed) in sound.iter().enumerate() {
            assert!(
                within::limit(seed, entry),
                "{name}: seed {index} cannot be read"
            );
        }
        let mut inputs = sound.clone();
        let saved = saved(name);
        assert!(
            name == "config" || name == "dumped" || !saved.is_empty(),
            "{name}: no corpus"
        );
        inputs.extend(saved);
        for input in &inputs {
            within::limit(input, entry);
        }
        let rounds = match name {
            "config" | "dumped" => ROUNDS / 20,
            _ => ROUNDS,
        };
        let rounds = number("RINGMAIN_FUZZ_INPUTS").unwrap_or(rounds);
        let mut random = Random(number("RINGMAIN_FUZZ_SEED").unwrap_or(0x5eed));
        let mut read = 0;
        for round in 0..rounds {
            // Sound ones are few among the saved.
            let from = if round % 2 == 0 { &sound } else { &inputs };
            let mut bytes = from[random.below(from.len())].clone();
            mutate(&mut bytes, &mut random);
            read += u64::from(within::limit(&bytes, entry));
        }
        println!(
            "{name}: {} inputs, {rounds} mutations, {read} of them readable",
            inputs.len()
        );
        assert!(
            read > rounds / 50 && read < rounds,
            "{name}: {read} of {rounds}"
        );
    }
}

fn saved(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    corpus::read(&folder, name)
}

/// splitmix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % most.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let value = match random.below(2) {
            0 => [0, 1, 0x7f, 0x80, 0xff, b'-', b'9', b' '][random.below(8)],
            _ => random.next() as u8,
        };
        match (random.below(5), bytes.get_mut(at)) {
            (0, Some(byte)) => *byte ^= 1 << random.below(8),
            (1 | 2, Some(byte)) => *byte = value,
            (3, Some(_)) => bytes.truncate(at + 1),
            _ => bytes.insert(at, value),
        }
    }
}
