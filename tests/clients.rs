//! Foreign clients against the broker: real input in, every byte back, whoever wrote it and whoever reads it.
//!
//! `RINGMAIN_TEST_BYTES` says how much each client writes, 64 MiB unless given; 358000000 makes 1 GiB in all.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

#[path = "clients/codecs.rs"]
mod codecs;
#[path = "clients/groups.rs"]
mod groups;
mod support;

use std::collections::BTreeMap;

use support::broker::Broker;
use support::corpus::Corpus;
use support::driver::{CLIENTS_ALL, Client};
use support::record::Record;

/// What one topic is written with.
struct Case {
    codec: &'static str,
    partitions: usize,
    /// Whether the client places the records, by their keys.
    by_key: bool,
    settings: &'static [&'static str],
}

const ACKS_0: &[&str] = &["acks=0", "enable.idempotence=false"];
const ACKS_1: &[&str] = &["acks=1", "enable.idempotence=false"];
const ACKS_ALL: &[&str] = &["acks=all", "enable.idempotence=false"];
const IDEMPOTENT: &[&str] = &["acks=all", "enable.idempotence=true"];

/// Every codec with one and with many partitions, every kind of acknowledgement with both.
const CASES: &[Case] = &[
    Case {
        codec: "none",
        partitions: 1,
        by_key: false,
        settings: ACKS_0,
    },
    Case {
        codec: "none",
        partitions: 7,
        by_key: true,
        settings: IDEMPOTENT,
    },
    Case {
        codec: "gzip",
        partitions: 1,
        by_key: false,
        settings: ACKS_1,
    },
    Case {
        codec: "gzip",
        partitions: 7,
        by_key: true,
        settings: ACKS_ALL,
    },
    Case {
        codec: "snappy",
        partitions: 1,
        by_key: true,
        settings: IDEMPOTENT,
    },
    Case {
        codec: "snappy",
        partitions: 7,
        by_key: false,
        settings: ACKS_1,
    },
    Case {
        codec: "lz4",
        partitions: 1,
        by_key: false,
        settings: ACKS_ALL,
    },
    Case {
        codec: "lz4",
        partitions: 7,
        by_key: false,
        settings: ACKS_0,
    },
    Case {
        codec: "zstd",
        partitions: 1,
        by_key: true,
        settings: ACKS_1,
    },
    Case {
        codec: "zstd",
        partitions: 7,
        by_key: true,
        settings: IDEMPOTENT,
    },
];

#[test]
fn librdkafka_gets_every_byte_back() {
    every_byte_back(Client::Librdkafka);
}

#[test]
fn java_gets_every_byte_back() {
    every_byte_back(Client::Java);
}

#[test]
fn kafka_python_gets_every_byte_back() {
    every_byte_back(Client::Python);
}

fn every_byte_back(writer: Client) {
    let bytes = std::env::var("RINGMAIN_TEST_BYTES")
        .map_or(64 << 20, |text| text.parse().expect("a number of bytes"));
    let name = format!("clients-{writer:?}").to_lowercase();
    let mut broker = Broker::start(&name, &[("message.max.bytes", "2000000")]);
    broker.set_override("ringmain.shards", "3");
    let bootstrap = broker.bootstrap();
    let topics: Vec<(String, usize)> = CASES
        .iter()
        .map(|case| (topic_of(case), case.partitions))
        .collect();
    writer.create_topics(&bootstrap, &topics);

    let mut corpus = Corpus::open();
    let mut written = Vec::new();
    for case in CASES {
        let records = corpus.records(bytes / CASES.len(), |count| match case.by_key {
            true => -1,
            false => i32::try_from(count % case.partitions).expect("few partitions"),
        });
        let expected = produce(writer, &bootstrap, case, &records);
        read_back(writer, &bootstrap, case, &expected);
        written.push(expected);
        println!(
            "{writer:?} wrote and read {} records of {}",
            records.len(),
            topic_of(case)
        );
    }
    // The others read it too, and so they do after a restart with another number of shards.
    assert!(broker.stop().success(), "a clean stop");
    broker.restart();
    for (number, (case, expected)) in CASES.iter().zip(&written).enumerate() {
        let reader = CLIENTS_ALL[(writer as usize + 1 + number % 2) % CLIENTS_ALL.len()];
        read_back(reader, &bootstrap, case, expected);
        println!(
            "{reader:?} read what {writer:?} wrote to {}",
            topic_of(case)
        );
    }
}

fn topic_of(case: &Case) -> String {
    let acks = case
        .settings
        .join("-")
        .replace("enable.idempotence=", "")
        .replace("acks=", "");
    format!("{}-{}-{}", case.codec, case.partitions, acks)
}

/// Writes a case and returns what each partition must hold, in order.
fn produce(
    writer: Client,
    bootstrap: &str,
    case: &Case,
    records: &[Record],
) -> BTreeMap<i32, Vec<Record>> {
    let compression = format!("compression.type={}", case.codec);
    let mut settings = vec![compression.as_str(), "linger.ms=20"];
    settings.extend(case.settings);
    let places = writer.produce(bootstrap, &topic_of(case), &settings, records);
    let mut expected: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    let mut of_key: BTreeMap<&[u8], i32> = BTreeMap::new();
    for (record, (partition, offset)) in records.iter().zip(places) {
        let held = expected.entry(partition).or_default();
        let next = i64::try_from(held.len()).expect("fewer than 2^63");
        assert!(
            record.partition < 0 || record.partition == partition,
            "a record went to another partition"
        );
        // With acks=0 nobody told the client.
        if case.settings != ACKS_0 {
            assert_eq!(
                offset,
                next,
                "acknowledged offset in partition {partition} of {}",
                topic_of(case)
            );
        }
        if let Some(key) = record
            .key
            .as_ref()
            .filter(|key| case.by_key && !key.is_empty())
        {
            assert_eq!(
                *of_key.entry(key).or_insert(partition),
                partition,
                "one key, one partition"
            );
        }
        held.push(Record {
            partition,
            offset: next,
            ..record.clone()
        });
    }
    expected
}

/// Reads a case and compares it byte for byte: content, dense offsets, order in each partition.
fn read_back(reader: Client, bootstrap: &str, case: &Case, expected: &BTreeMap<i32, Vec<Record>>) {
    let topic = topic_of(case);
    let mut next: BTreeMap<i32, usize> = BTreeMap::new();
    for record in reader.consume(bootstrap, &topic, case.partitions, &[]) {
        let at = next.entry(record.partition).or_default();
        let wanted = expected
            .get(&record.partition)
            .and_then(|records| records.get(*at));
        let place = format!(
            "{topic}[{}] record {at} as {reader:?} reads it",
            record.partition
        );
        let wanted = wanted.unwrap_or_else(|| panic!("{place}: more than was written"));
        assert_eq!(record.offset, wanted.offset, "{place}: offset");
        if let Some(difference) = record.difference(wanted) {
            panic!("{place}: {difference}");
        }
        *at += 1;
    }
    for (partition, records) in expected {
        assert_eq!(
            next.get(partition),
            Some(&records.len()),
            "{reader:?} reads {topic}[{partition}] to its end"
        );
    }
}
