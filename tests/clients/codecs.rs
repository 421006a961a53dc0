//! A client that is told wrong versions sends its records as they are, silently: what counts is what lies on the disk.
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::broker::Broker;
use crate::support::clock;
use crate::support::driver::{Client, python_with};
use crate::support::record::Record;

/// With their numbers in the attributes of a batch.
const CODECS: [(&str, u8); 5] = [
    ("none", 0),
    ("gzip", 1),
    ("snappy", 2),
    ("lz4", 3),
    ("zstd", 4),
];
const ATTRIBUTES_LOW: usize = 22;

/// Codec of the first batch in partition 0 of a topic, as it is stored.
fn stored(broker: &Broker, topic: &str) -> u8 {
    let segment = broker
        .data()
        .join(format!("{topic}-0/00000000000000000000.log"));
    let bytes = fs::read(segment).expect("a segment");
    bytes[ATTRIBUTES_LOW] & 7
}

#[test]
fn what_librdkafka_compresses_is_stored_compressed() {
    let mut broker = Broker::start("codecs", &[("auto.create.topics.enable", "true")]);
    let records: Vec<Record> = (0..500)
        .map(|_| Record {
            timestamp: clock::wall_clock_ms(),
            value: Some(b"the same again ".repeat(20)),
            ..Record::default()
        })
        .collect();
    let client = Client::Librdkafka;
    let topics = CODECS.map(|(codec, _)| (format!("librdkafka-{codec}"), 1));
    client.create_topics(&broker.bootstrap(), &topics);
    let mut expected = Vec::new();
    for ((codec, number), (topic, _)) in CODECS.iter().zip(&topics) {
        let compression = format!("compression.type={codec}");
        let settings = [compression.as_str(), "linger.ms=50"];
        client.produce(&broker.bootstrap(), topic, &settings, &records);
        expected.push((topic.clone(), *number));
    }
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/old_librdkafka"
    ));
    let python = python_with("old_librdkafka", &folder.join("requirements.txt"));
    for (codec, number) in CODECS {
        let topic = format!("librdkafka-2.3-{codec}");
        let output = Command::new(&python)
            .arg(folder.join("produce.py"))
            .args([broker.bootstrap().as_str(), &topic, codec])
            .output()
            .expect("python starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{topic}: {errors}");
        expected.push((topic, number));
    }
    // A clean stop leaves every record in its segment.
    assert!(broker.stop().success());
    for (topic, number) in expected {
        assert_eq!(stored(&broker, &topic), number, "{topic}");
    }
}
