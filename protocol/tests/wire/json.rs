//! Stored records as JSON, against Kafka's own converters.
//!
//! `json_golden.txt` has lines of name, version, bytes in hexadecimal and Kafka's JSON. To write it again after a change of
//! the schema: `WRITE_JSON_CASES=FILE cargo test -p protocol --test wire json` writes name, version and bytes of
//! random values, and `Json.java` adds what Kafka's classes make of them.

use std::fmt::Write as _;

use protocol::stored;
use protocol::wire::Reader;

use crate::interpreter::{Noise, all, generate, write};
use crate::random::Random;
use crate::schema::Versions;

/// Values of each message in each version.
const ROUNDS: u64 = 3;

#[test]
fn records_are_shown_as_kafka_shows_them() {
    if let Some(path) = std::env::var_os("WRITE_JSON_CASES") {
        std::fs::write(path, cases()).unwrap();
        return;
    }
    let golden = include_str!("json_golden.txt");
    let mut checked = 0;
    for line in golden.lines() {
        let mut words = line.splitn(4, ' ');
        let [name, version, hex, json] = [(); 4].map(|()| words.next().unwrap());
        let show = stored::SHOWN.iter().find(|(known, _)| *known == name);
        let (_, show) = show.unwrap_or_else(|| panic!("{name} is not stored"));
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let shown = show(&mut Reader::new(bytes.into()), version.parse().unwrap());
        assert_eq!(shown.unwrap().to_string(), json, "{name} {version} {hex}");
        checked += 1;
    }
    assert!(checked >= 366, "{checked}");
}

fn cases() -> String {
    let mut out = String::new();
    for (message, info) in all() {
        if !stored::SHOWN.iter().any(|(name, _)| *name == info.name) {
            continue;
        }
        let Versions { min, max } = message.versions;
        for version in min..=max {
            for round in 0..ROUNDS {
                let mut random = Random::of(info.name, version, round);
                let value = generate(&message, version, &mut random);
                let bytes =
                    write(&message, &value, version, Noise::None).expect("what the version has");
                let mut hex = String::new();
                for byte in bytes {
                    let _ = write!(hex, "{byte:02x}");
                }
                let _ = writeln!(out, "{} {version} {hex}", info.name);
            }
        }
    }
    out
}
