//! Segments in the message formats v0 and v1, as brokers before 0.11 left them: read by every client that fetches them
//! today, by time as well, and never rewritten.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use support::broker::Broker;
use support::driver::Client;
use support::record::Record;
use support::segments;
use support::tools::Tools;

const RECORDS: usize = 30;
const FIRST_MS: i64 = 1_400_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Gzip,
}

/// One message of format 0 or 1.
fn message(
    format: u8,
    offset: i64,
    codec: Codec,
    timestamp: i64,
    record: (&[u8], &[u8]),
) -> Vec<u8> {
    let mut summed = vec![format, codec as u8];
    if format == 1 {
        summed.extend(timestamp.to_be_bytes());
    }
    match record.0 {
        [] => summed.extend((-1i32).to_be_bytes()),
        key => put(&mut summed, key),
    }
    put(&mut summed, record.1);
    let mut whole = offset.to_be_bytes().to_vec();
    let length = i32::try_from(summed.len() + 4).expect("small");
    whole.extend(length.to_be_bytes());
    whole.extend(crc32(&summed).to_be_bytes());
    whole.extend(summed);
    whole
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(i32::try_from(bytes.len()).expect("small").to_be_bytes());
    to.extend(bytes);
}

/// CRC-32 (IEEE), which these formats have.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

fn timestamp(offset: usize) -> i64 {
    FIRST_MS + offset as i64 * 1_000
}

/// A segment of thirty records; compressed ones lie in wrappers of five, which bear the last offset inside.
fn segment(format: u8, codec: Codec) -> Vec<u8> {
    let one = |at: usize, offset: i64| {
        let (key, value) = (
            format!("key {at}"),
            format!("value {at} ").repeat(at % 7 + 1),
        );
        let record = (key.as_bytes(), value.as_bytes());
        message(format, offset, Codec::None, timestamp(at), record)
    };
    let mut bytes = Vec::new();
    for first in (0..RECORDS).step_by(5) {
        let all = first..first + 5;
        if codec == Codec::None {
            all.for_each(|at| bytes.extend(one(at, at as i64)));
            continue;
        }
        // Offsets inside are relative since format 1.
        let inside = all.flat_map(|at| one(at, if format == 1 { at - first } else { at } as i64));
        let inside: Vec<u8> = inside.collect();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&inside).expect("memory takes bytes");
        let packed = packer.finish().expect("memory takes bytes");
        let (offset, time) = (first as i64 + 4, timestamp(first + 4));
        bytes.extend(message(format, offset, codec, time, (&[], &packed)));
    }
    bytes
}

const TOPICS: [(&str, u8, Codec); 4] = [
    ("v0-plain", 0, Codec::None),
    ("v0-gzip", 0, Codec::Gzip),
    ("v1-plain", 1, Codec::None),
    ("v1-gzip", 1, Codec::Gzip),
];

/// Puts the old segment in place of the empty one, without the files that its time did not know.
fn put_segment(data: &Path, topic: &str, bytes: &[u8]) {
    let directory = data.join(format!("{topic}-0"));
    for entry in fs::read_dir(&directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if !path.ends_with("partition.metadata") {
            fs::remove_file(path).expect("a file");
        }
    }
    fs::write(directory.join("00000000000000000000.log"), bytes).expect("a file");
}

/// Reads every topic: the old records, and `more` new ones behind them.
fn check(broker: &Broker, tools: &mut Tools, more: usize) {
    for (topic, format, _) in TOPICS {
        let found = tools.ask(&["read", &broker.bootstrap(), topic]);
        assert_eq!(found.len(), RECORDS + more, "{topic}");
        for (at, line) in found.iter().take(RECORDS).enumerate() {
            let time = if format == 1 { timestamp(at) } else { -1 };
            let value = format!("value {at} ").repeat(at % 7 + 1);
            assert_eq!(*line, format!("{at}\t{time}\tkey {at}\t{value}"), "{topic}");
        }
    }
}

#[test]
fn old_segments_are_read_and_never_rewritten() {
    let mut broker = Broker::start("old-formats", &[("auto.create.topics.enable", "false")]);
    let topics = TOPICS.map(|(topic, _, _)| (topic.to_owned(), 1));
    Client::Librdkafka.create_topics(&broker.bootstrap(), &topics);
    assert!(broker.stop().success());
    for (topic, format, codec) in TOPICS {
        put_segment(&broker.data(), topic, &segment(format, codec));
    }
    // With Apache's client: librdkafka 2.12 cannot read them, from any broker.
    let mut tools = Tools::start(&broker.directory);
    broker.restart();
    check(&broker, &mut tools, 0);
    broker.kill();
    broker.restart();
    check(&broker, &mut tools, 0);
    // New records go behind the old ones.
    for (topic, _, _) in TOPICS {
        let record = Record {
            value: Some(b"new".to_vec()),
            timestamp: timestamp(RECORDS),
            ..Record::default()
        };
        let placed = Client::Librdkafka.produce(&broker.bootstrap(), topic, &[], &[record]);
        assert_eq!(placed, [(0, RECORDS as i64)], "{topic}");
    }
    check(&broker, &mut tools, 1);
    broker.kill();
    broker.restart();
    check(&broker, &mut tools, 1);
    assert!(broker.stop().success());
    for (topic, format, codec) in TOPICS {
        let directory = broker.data().join(format!("{topic}-0"));
        let files = segments::files_of(&directory, ".log");
        let now: Vec<u8> = files
            .iter()
            .flat_map(|file| fs::read(file).expect("a segment"))
            .collect();
        let old = segment(format, codec);
        assert!(now.starts_with(&old) && now.len() > old.len(), "{topic}");
    }
    segments::assert_exact(&broker.data());
}
