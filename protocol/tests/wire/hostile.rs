//! Bytes that lie: never a panic, never more memory than the budget.

use bytes::Bytes;
use protocol::messages::{FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic};
use protocol::records::BatchBuilder;
use protocol::stored::{GroupKey, MetadataRecord, OffsetCommitKey, TopicRecord};
use protocol::wire::{DecodeErrorKind, Reader, Writer};
use protocol::{RecodeError, Uuid, frame};

use crate::entries;
use crate::interpreter::{self, Noise};
use crate::random::Random;

#[test]
fn every_cut_is_an_error() {
    for (message, info) in interpreter::all() {
        for version in message.versions.min..=message.versions.max {
            let mut random = Random::of(&message.name, version, 77);
            let value = interpreter::generate(&message, version, &mut random);
            let whole = interpreter::write(&message, &value, version, Noise::UnknownTags).unwrap();
            let whole = Bytes::from(whole);
            for len in 0..whole.len() {
                let mut reader = Reader::new(whole.slice(..len));
                let result = (info.recode)(&mut reader, version, &mut Writer::new(), version);
                let Err(RecodeError::Decode(error)) = result else {
                    panic!(
                        "{} v{version}, {len} of {whole:?}: {result:?}",
                        message.name
                    );
                };
                assert_eq!((error.message, error.version), (info.name, version));
                assert!(error.at <= len);
            }
        }
    }
}

#[test]
fn mutated_messages_are_read_the_same_twice() {
    let mut readable = 0;
    for (message, info) in interpreter::all() {
        for version in message.versions.min..=message.versions.max {
            for round in 0..60 {
                let mut random = Random::of(&message.name, version, 1000 + round);
                let value = interpreter::generate(&message, version, &mut random);
                let mut bytes = interpreter::write(&message, &value, version, Noise::None).unwrap();
                mutate(&mut bytes, &mut random);
                readable += usize::from(entries::message(&info, version, &bytes.into()));
            }
        }
    }
    assert!(readable > 5_000, "{readable}");
}

type Entry = fn(&[u8]) -> bool;

/// The entries of the fuzz targets, fed as a fuzzer would: seeds, then bytes changed at random.
#[test]
fn mutated_bytes_through_the_entries_of_the_fuzz_targets() {
    let group_key = GroupKey::from(OffsetCommitKey::default()).encode().unwrap();
    let record = MetadataRecord::from(TopicRecord {
        name: "foo".into(),
        topic_id: Uuid::ONE,
    });
    let request = FetchRequest {
        topics: [FetchRequestFetchTopic {
            partitions: vec![FetchRequestFetchPartition::default(); 2].into(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    };
    let frame = frame::encode_request(&request, 18, 1, Some("me".into())).unwrap();
    let mut batch = BatchBuilder::new(0);
    batch.append(1, Some(b"key"), Some(b"value"), &[]);
    let batch = batch.build_bytes().unwrap();
    let mut value = vec![0, 3];
    value.extend([0; 40]);
    // Fetch v18 without its header.
    let fetch = [&[14], &frame[frame::LENGTH_BYTES + 13..]].concat();
    let produce = b"\x06\0\0\x01\0\0\0\x09\x02\x02t\x02\0\0\0\0\x04abc\0\0\0".to_vec();
    let seeds: [(Entry, Vec<u8>); 8] = [
        (entries::any_message, [&[0; 3], &[0; 200][..]].concat()),
        (entries::any_stored, [&[0; 3], &[0; 200][..]].concat()),
        (entries::envelopes, group_key.to_vec()),
        (entries::envelopes, record.encode(0).unwrap().to_vec()),
        (entries::envelopes, value),
        (entries::record_batches, [batch.clone(), batch].concat()),
        (entries::any_produce, produce),
        (entries::any_fetch, fetch),
    ];
    for (index, (entry, seed)) in seeds.iter().enumerate() {
        assert!(entry(seed), "seed {index} cannot be read");
        let mut readable = 0;
        for round in 0..3000 {
            let mut random = Random::new((index as u64) << 32 | round);
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            readable += usize::from(entry(&bytes));
        }
        assert!(
            (1..3000).contains(&readable),
            "{readable} readable of seed {index}"
        );
    }
}

/// What the fuzzers have kept: every edge that a million inputs reached.
#[test]
fn the_saved_corpus_through_the_entries_of_the_fuzz_targets() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let targets: [(&str, Entry); 4] = [
        ("envelopes", entries::envelopes),
        ("records", entries::record_batches),
        ("produce", entries::any_produce),
        ("fetch", entries::any_fetch),
    ];
    for (name, entry) in targets {
        let inputs = crate::corpus::read(&folder, name);
        let readable = inputs.iter().filter(|input| entry(input)).count();
        assert!(
            readable > 10 && readable < inputs.len(),
            "{name}: {readable}"
        );
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at + 1),
            3 => {
                // A count or length that claims a lot, in either form.
                let huge: &[u8] = match random.below(4) {
                    0 => &[0x7f, 0xff, 0xff, 0xff],
                    1 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                    2 => &[0x80, 0, 0, 0],
                    _ => &[0x7f, 0xff],
                };
                for (to, from) in bytes[at..].iter_mut().zip(huge) {
                    *to = *from;
                }
            }
            _ => bytes.insert(at, random.next() as u8),
        }
    }
}

#[test]
fn counts_are_checked_before_memory_is_reserved() {
    // An array of 16-byte elements: a count that 32 bytes cannot hold, then one they can.
    let bytes = |count: i32| {
        let mut bytes = count.to_be_bytes().to_vec();
        bytes.extend([0; 32]);
        Bytes::from(bytes)
    };
    let read = |count, budget| {
        let mut reader = Reader::with_budget(bytes(count), budget);
        let result = reader
            .array(false, 16, Reader::uuid)
            .map(|array| array.len());
        (result.map_err(|error| error.kind), reader.budget())
    };
    assert_eq!(read(2, 32), (Ok(2), 0));
    let too_many = DecodeErrorKind::CountTooLarge { count: 3, left: 32 };
    assert_eq!(read(3, usize::MAX), (Err(too_many), usize::MAX));
    let too_much = DecodeErrorKind::BudgetExceeded {
        needed: 32,
        left: 31,
    };
    assert_eq!(read(2, 31), (Err(too_much), 31));
    assert_eq!(read(-2, 32).0, Err(DecodeErrorKind::NegativeLength(-2)));
    assert_eq!(
        read(-1, 32).0,
        Err(DecodeErrorKind::NullNotAllowed("array"))
    );
}

#[test]
fn tags_must_ascend_and_fill_their_length() {
    let read = |bytes: &'static [u8]| {
        let mut reader = Reader::new(Bytes::from_static(bytes));
        let mut seen = Vec::new();
        let result = reader.tags(|reader, tag| {
            if tag == 7 {
                seen.push(reader.i16()?);
            }
            Ok(tag == 7)
        });
        result
            .map(|()| (seen, reader.remaining()))
            .map_err(|error| error.kind)
    };
    assert_eq!(read(b"\0rest"), Ok((vec![], 4)));
    assert_eq!(
        read(b"\x03\x01\x01x\x07\x02\0\x09\x08\0!"),
        Ok((vec![9], 1))
    );
    let order = |tag, previous| Err(DecodeErrorKind::TagOrder { tag, previous });
    assert_eq!(read(b"\x02\x08\0\x07\x02\0\x09"), order(7, 8));
    assert_eq!(read(b"\x02\x08\0\x08\0"), order(8, 8));
    assert_eq!(
        read(b"\x01\x07\x03\0\x09\0"),
        Err(DecodeErrorKind::TagLength { tag: 7, left: 1 })
    );
    // A tagged field cannot read beyond its length into what follows.
    let short = DecodeErrorKind::Truncated { needed: 2, left: 1 };
    assert_eq!(read(b"\x01\x07\x01\0\x09\0"), Err(short));
    assert_eq!(
        read(b"\xff\xff\xff\xff\x0f"),
        Err(DecodeErrorKind::Truncated { needed: 1, left: 0 })
    );
}

#[test]
fn varints_have_their_width() {
    let unsigned = |bytes: &'static [u8]| {
        Reader::new(Bytes::from_static(bytes))
            .unsigned_varint()
            .map_err(|error| error.kind)
    };
    assert_eq!(unsigned(b"\xff\xff\xff\xff\x0f"), Ok(u32::MAX));
    assert_eq!(
        unsigned(b"\xff\xff\xff\xff\x1f"),
        Err(DecodeErrorKind::VarintTooLong)
    );
    assert_eq!(
        unsigned(b"\x80\x80\x80\x80\x80\x00"),
        Err(DecodeErrorKind::VarintTooLong)
    );
    assert_eq!(unsigned(b"\x80\x00"), Ok(0));
    let mut random = Random::new(3);
    for shift in 0..64 {
        for _ in 0..20 {
            let long = (random.next() >> shift) as i64;
            let short = long as i32;
            let mut writer = Writer::new();
            writer.varlong(long);
            assert_eq!(writer.len(), protocol::wire::varlong_len(long));
            writer.varint(short);
            writer.unsigned_varint(short as u32);
            let lens = protocol::wire::varint_len(short)
                + protocol::wire::unsigned_varint_len(short as u32);
            assert_eq!(writer.len(), protocol::wire::varlong_len(long) + lens);
            let mut reader = Reader::new(writer.freeze());
            assert_eq!(reader.varlong(), Ok(long));
            assert_eq!(reader.varint(), Ok(short));
            assert_eq!(reader.unsigned_varint(), Ok(short as u32));
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_repaired_as_java_does() {
    let mut reader = Reader::new(Bytes::from_static(b"\0\x04a\xff\xe2b"));
    assert_eq!(reader.string(false).unwrap(), "a\u{fffd}\u{fffd}b");
}
