//! Batches and message sets that Apache Kafka's own classes wrote (`records_golden/Golden.java`):
//! we must read them, and write the same bytes where compression leaves no choice.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::records::legacy::{Entry, LegacyMagic, LegacyView, split_entries, write_message_set};
use protocol::records::validate::{Origin, Rules};
use protocol::records::{
    BatchBuilder, BatchView, Compression, Header, Record, Scratch, TimestampType, TopicCompression,
    rewrite, validate,
};

const T: i64 = 1_700_000_000_000;
const LIMIT: usize = 1 << 20;

fn unhex(hex: &str) -> Bytes {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len())
        .step_by(2)
        .map(byte)
        .collect::<Vec<_>>()
        .into()
}

fn golden() -> BTreeMap<&'static str, Bytes> {
    let split = |line: &'static str| line.split_once(' ').unwrap();
    include_str!("records_golden/golden.txt")
        .lines()
        .map(split)
        .map(|(name, hex)| (name, unhex(hex)))
        .collect()
}

fn rules() -> Rules {
    Rules {
        origin: Origin::Client,
        max_message_bytes: 1_048_588,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        compression: TopicCompression::Producer,
        max_record_bytes: LIMIT,
        max_decompressed: LIMIT,
    }
}

/// What `Golden.java` puts in: `headers` for v2, timestamps as `at` says.
fn expected(headers: bool, at: impl Fn(i64) -> i64) -> Vec<Record> {
    let bytes = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
    let long = "0123456789".repeat(50);
    let mut records: Vec<Record> = [
        (T, bytes("key-0"), bytes("value-0")),
        (T - 5, None, bytes("")),
        (T + 70, bytes(""), None),
        (T + 70, bytes("long"), bytes(&long)),
    ]
    .into_iter()
    .enumerate()
    .map(|(index, (timestamp, key, value))| Record {
        offset: 100 + index as i64,
        timestamp: at(timestamp),
        key,
        value,
        headers: vec![],
    })
    .collect();
    if headers {
        let key = Bytes::from_static(b"h");
        records[0].headers = vec![
            Header {
                key: key.clone(),
                value: bytes("a"),
            },
            Header { key, value: None },
        ];
    }
    records
}

fn codecs(magic: i8) -> impl Iterator<Item = Compression> {
    Compression::ALL
        .into_iter()
        .filter(move |codec| magic == 2 || *codec != Compression::Zstd)
}

/// The records of all entries, each with a right checksum.
fn read(bytes: &Bytes) -> Vec<Record> {
    split_entries(bytes.clone())
        .flat_map(|entry| {
            let entry = entry.unwrap();
            entry.check_crc().unwrap();
            entry
                .records(LIMIT)
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn java_batches_of_v2_are_read() {
    let golden = golden();
    for codec in codecs(2) {
        let bytes = &golden[format!("v2-{}", codec.name()).as_str()];
        let batch = BatchView::parse(bytes).unwrap();
        assert!(batch.crc_ok());
        assert_eq!(batch.size_in_bytes(), bytes.len());
        assert_eq!(batch.compression(), Ok(codec));
        assert_eq!((batch.base_offset, batch.last_offset()), (100, 103));
        assert_eq!((batch.base_timestamp, batch.max_timestamp), (T, T + 70));
        assert_eq!(
            (batch.producer_id, batch.producer_epoch, batch.base_sequence),
            (7, 3, 11)
        );
        assert_eq!((batch.partition_leader_epoch, batch.records_count), (5, 4));
        assert!(!batch.is_transactional() && !batch.is_control());
        assert_eq!(
            read(bytes),
            expected(true, |timestamp| timestamp),
            "{codec:?}"
        );
    }
}

fn build(codec: Compression, transactional: bool) -> BatchBuilder {
    let mut builder = BatchBuilder::new(100)
        .codec(codec)
        .producer(7, 3, 11)
        .partition_leader_epoch(5)
        .transactional(transactional);
    for record in expected(true, |timestamp| timestamp) {
        builder.append_record(&record).unwrap();
    }
    builder
}

#[test]
fn the_builder_writes_what_java_writes() {
    let golden = golden();
    assert_eq!(
        build(Compression::None, false).build_bytes().unwrap(),
        golden["v2-none"]
    );
    assert_eq!(
        build(Compression::None, true).build_bytes().unwrap(),
        golden["v2-transactional"]
    );
    for (name, kind) in [("v2-abort", 0u8), ("v2-commit", 1)] {
        let mut marker = BatchBuilder::new(100)
            .producer(7, 3, -1)
            .partition_leader_epoch(5)
            .transactional(true)
            .control(true);
        marker.append(T, Some(&[0, 0, 0, kind]), Some(&[0, 0, 0, 0, 0, 9]), &[]);
        assert_eq!(marker.build_bytes().unwrap(), golden[name]);
    }
}

#[test]
fn java_message_sets_are_read() {
    let golden = golden();
    for magic in [0, 1] {
        for codec in codecs(magic) {
            let bytes = &golden[format!("v{magic}-{}", codec.name()).as_str()];
            let at = |timestamp| if magic == 0 { -1 } else { timestamp };
            assert_eq!(read(bytes), expected(false, at), "v{magic} {codec:?}");
            let first = LegacyView::parse(bytes).unwrap();
            assert_eq!(first.magic, magic);
            assert_eq!(first.compression(), Ok(codec));
        }
    }
}

#[test]
fn append_time_of_a_batch_or_wrapper_holds_for_all_its_records() {
    let golden = golden();
    for name in ["v1-append-time", "v2-append-time"] {
        let entry = Entry::parse(&golden[name]).unwrap();
        assert_eq!(entry.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(read(&golden[name]), expected(false, |_| T + 9999));
    }
}

#[test]
fn message_sets_are_written_as_java_writes_them() {
    let golden = golden();
    for (magic, name) in [(LegacyMagic::V0, "v0"), (LegacyMagic::V1, "v1")] {
        let records = expected(false, |timestamp| timestamp);
        for codec in codecs(magic.value()) {
            let kind = TimestampType::CreateTime;
            let ours = write_message_set(magic, codec.into(), kind, &records)
                .unwrap()
                .freeze();
            let theirs = &golden[format!("{name}-{}", codec.name()).as_str()];
            if codec == Compression::None {
                assert_eq!(&ours, theirs);
            }
            assert_eq!(read(&ours), read(theirs));
            let (ours, theirs) = (
                LegacyView::parse(&ours).unwrap(),
                LegacyView::parse(theirs).unwrap(),
            );
            assert_eq!(
                (ours.offset, ours.attributes),
                (theirs.offset, theirs.attributes)
            );
            if codec == Compression::Lz4 {
                // Magic number and frame descriptor with its (in v0 wrong) checksum.
                assert_eq!(ours.value.unwrap()[..7], theirs.value.unwrap()[..7]);
            }
            assert!(magic == LegacyMagic::V0 || ours.timestamp == theirs.timestamp);
        }
    }
}

#[test]
fn java_batches_pass_the_leaders_checks() {
    let rules = rules();
    for (name, bytes) in golden() {
        if !name.starts_with("v2") || name == "v2-append-time" {
            continue;
        }
        let mut sent = bytes.to_vec();
        rewrite::assign(&mut sent, 0, -1);
        let sent = Bytes::from(sent);
        let result = validate(&sent, &rules, T, &mut Scratch::default());
        if name == "v2-commit" || name == "v2-abort" {
            assert!(result.is_err(), "{name} is for brokers to write");
            continue;
        }
        let validated = result.unwrap();
        assert!(validated.is_in_place());
        assert_eq!(validated.max_timestamp(), T + 70);
        assert_eq!(validated.max_timestamp_offset_delta(), 2);
        let mut appended = sent.to_vec();
        validated.assign(&mut appended, 100, 5);
        assert_eq!(appended, bytes, "{name}");
    }
}

/// The verdicts of Kafka 4.4's own validator (`records_golden/Validate.java`) on record sets of every
/// kind of damage: same error code, same texts, same header of what is appended.
#[test]
fn the_leaders_verdicts_are_those_of_kafka() {
    let mut scratch = Scratch::default();
    let mut verdicts = [0, 0];
    for line in include_str!("records_golden/validate.txt").lines() {
        let [mode, input, verdict] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let mode: u8 = mode.parse().unwrap();
        let rules = Rules {
            max_message_bytes: 4000,
            compacted: mode & 1 != 0,
            timestamp_type: match mode & 2 {
                0 => TimestampType::CreateTime,
                _ => TimestampType::LogAppendTime,
            },
            timestamp_before_max_ms: 86_400_000,
            max_record_bytes: 250,
            ..rules()
        };
        let (ours, at) = match validate(&unhex(input), &rules, T, &mut scratch) {
            Ok(validated) => {
                assert!(validated.is_in_place());
                let mut appended = validated.batch().bytes().to_vec();
                validated.assign(&mut appended, 1000, 4);
                let header: String = appended[..61]
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                (format!("OK {} {header}", validated.max_timestamp()), 0)
            }
            Err(rejection) => {
                let errors: Vec<_> = rejection
                    .record_errors("t-0")
                    .map(|(index, message)| format!("{index}:{message}"))
                    .collect();
                let code = rejection.error_code().code();
                (format!("ERROR {code} {}", errors.join(";")), 1)
            }
        };
        assert_eq!(ours, verdict, "{input}");
        verdicts[at] += 1;
    }
    assert!(verdicts[0] > 10 && verdicts[1] > 50, "{verdicts:?}");
}
