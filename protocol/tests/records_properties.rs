//! Properties of record batches over random records: what is written is read back, by us and by
//! another implementation, in both directions; cut batches are never taken for whole ones.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as other;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::records::legacy::{LegacyMagic, split_entries, write_message_set};
use protocol::records::recompress::recompress;
use protocol::records::validate::{Origin, Rules};
use protocol::records::{
    BatchBuilder, BatchView, Codec, Compression, Header, Record, Scratch, TimestampType,
    TopicCompression, split_batches, validate,
};

const LIMIT: usize = 8 << 20;

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    // Random bytes, and runs that compress across block and chunk borders.
    prop_oneof![
        4 => vec(any::<u8>(), 0..most).prop_map(Bytes::from),
        1 => (any::<u8>(), 0..70_000usize).prop_map(|(byte, length)| vec![byte; length].into()),
    ]
}

fn header() -> impl Strategy<Value = Header> {
    // Few different keys: duplicates and their order must stay.
    let key = prop_oneof![Just(""), Just("a"), Just("b"), Just("clé")];
    (key, option::of(bytes(20))).prop_map(|(key, value)| Header {
        key: key.into(),
        value,
    })
}

fn record() -> impl Strategy<Value = Record> {
    let timestamp = prop_oneof![8 => 0..2_000_000_000_000i64, 1 => any::<i64>(), 1 => Just(-1)];
    (
        timestamp,
        option::of(bytes(40)),
        option::of(bytes(300)),
        vec(header(), 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| Record {
            offset: 0,
            timestamp,
            key,
            value,
            headers,
        })
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    (vec(record(), 1..30), 0..1i64 << 40).prop_map(|(mut records, base)| {
        for (at, record) in records.iter_mut().enumerate() {
            record.offset = base + at as i64;
        }
        records
    })
}

fn compression() -> impl Strategy<Value = Compression> {
    proptest::sample::select(Compression::ALL.to_vec())
}

fn build(records: &[Record], codec: impl Into<Codec>) -> BytesMut {
    let mut builder = BatchBuilder::new(records[0].offset)
        .codec(codec)
        .producer(5, 6, i32::MAX);
    for record in records {
        builder.append_record(record).unwrap();
    }
    builder.build().unwrap()
}

fn read(bytes: &Bytes) -> Vec<Record> {
    let mut all = Vec::new();
    for batch in split_batches(bytes.clone()) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        all.extend(batch.records(LIMIT).unwrap().map(Result::unwrap));
    }
    all
}

fn rules() -> Rules {
    Rules {
        origin: Origin::Coordinator,
        max_message_bytes: usize::MAX,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        compression: TopicCompression::Producer,
        max_record_bytes: LIMIT,
        max_decompressed: LIMIT,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn batches_give_back_their_records(
        first in records(), second in records(), codec in compression(), other in compression()
    ) {
        let mut log = build(&first, codec);
        log.extend_from_slice(&build(&second, other));
        prop_assert_eq!(read(&log.freeze()), [first, second].concat());
    }

    #[test]
    fn the_leaders_pass_sees_the_same_records(records in records(), codec in compression()) {
        let bytes = build(&records, codec).freeze();
        let mut scratch = Scratch::default();
        let now = 1_900_000_000_000i64;
        // Records from the edges of time are refused, all others accepted.
        let fits = |record: &&Record| {
            record.timestamp == -1 || now.checked_sub(record.timestamp).is_some()
        };
        let refused = records.iter().filter(|record| !fits(record)).count();
        match validate(&bytes, &rules(), now, &mut scratch) {
            Ok(validated) => {
                prop_assert_eq!(refused, 0);
                let most = records.iter().map(|record| record.timestamp).max().unwrap();
                prop_assert_eq!(validated.max_timestamp(), most.max(-1));
                let at = records.iter().position(|record| record.timestamp == most).unwrap();
                prop_assert_eq!(validated.max_timestamp_offset_delta(), at as i32);
                let plain = build(&records, Compression::None).len() - 61;
                prop_assert_eq!(validated.uncompressed_bytes() as usize, plain);
                prop_assert!(validated.is_in_place());
            }
            Err(rejection) => prop_assert_eq!(rejection.record_errors("").count(), refused),
        }
    }

    #[test]
    fn search_by_time_finds_the_first_record_late_enough(
        records in records(), codec in compression(), pick in any::<proptest::sample::Index>()
    ) {
        let batch = BatchView::parse(&build(&records, codec).freeze()).unwrap();
        let mut scratch = Scratch::default();
        let timestamp = records[pick.index(records.len())].timestamp;
        let expected = records.iter().find(|record| record.timestamp >= timestamp).unwrap();
        let found = batch.first_at_or_after(timestamp, 0, LIMIT, &mut scratch).unwrap();
        // A batch without any timestamp says -1, and an earlier one is not looked for.
        if timestamp >= -1 {
            prop_assert_eq!(found.unwrap().offset, expected.offset);
        }
        let most = records.iter().map(|record| record.timestamp).max().unwrap().max(-1);
        let expected = records.iter().find(|record| record.timestamp == most);
        let found = batch.first_of_max_timestamp(LIMIT, &mut scratch).unwrap();
        prop_assert_eq!(found.map(|found| found.offset), expected.map(|record| record.offset));
    }

    #[test]
    fn recompression_keeps_everything_else(
        records in records(), from in compression(), to in compression()
    ) {
        let batch = BatchView::parse(&build(&records, from).freeze()).unwrap();
        let again = BatchView::parse(&recompress(&batch, to.into(), LIMIT).unwrap().freeze()).unwrap();
        prop_assert!(again.crc_ok());
        prop_assert_eq!(again.compression(), Ok(to));
        prop_assert!(again.records(LIMIT).unwrap().eq(batch.records(LIMIT).unwrap()));
        let same = BatchView::parse(&recompress(&again, from.into(), LIMIT).unwrap().freeze()).unwrap();
        prop_assert_eq!(same, batch);
    }

    #[test]
    fn a_cut_batch_is_never_a_batch(records in records(), codec in compression()) {
        let bytes = build(&records, codec).freeze();
        for length in (1..bytes.len()).step_by(1 + bytes.len() / 300) {
            let mut batches = split_batches(bytes.slice(..length));
            prop_assert_eq!(batches.next().unwrap().unwrap_err().position, 0);
            prop_assert!(batches.next().is_none());
        }
    }

    #[test]
    fn message_sets_give_back_keys_values_and_times(
        records in records(), codec in compression(), v0 in any::<bool>()
    ) {
        prop_assume!(codec != Compression::Zstd);
        let magic = if v0 { LegacyMagic::V0 } else { LegacyMagic::V1 };
        let kind = TimestampType::CreateTime;
        let set = write_message_set(magic, codec.into(), kind, &records).unwrap().freeze();
        let mut back = Vec::new();
        for entry in split_entries(set) {
            let entry = entry.unwrap();
            entry.check_crc().unwrap();
            back.extend(entry.records(LIMIT).unwrap().map(Result::unwrap));
        }
        let mut expected = records;
        for record in &mut expected {
            record.headers.clear();
            if v0 { record.timestamp = -1 }
        }
        // A wrapper at offset 0 is one that a client numbered; only a single record is there.
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn another_implementation_reads_what_we_write(records in records(), codec in compression()) {
        prop_assume!(ordinary_times(&records));
        let mut bytes = build(&distinct_headers(&records), codec).freeze();
        let set = other::RecordBatchDecoder::decode(&mut bytes).unwrap();
        prop_assert_eq!(set.records.len(), records.len());
        for (theirs, ours) in set.records.iter().zip(distinct_headers(&records)) {
            prop_assert_eq!((theirs.producer_id, theirs.producer_epoch), (5, 6));
            prop_assert_eq!(from_other(theirs), ours);
        }
    }

    #[test]
    fn we_read_what_another_implementation_writes(
        records in records(), codec in compression(), transactional in any::<bool>()
    ) {
        let records = distinct_headers(&records);
        prop_assume!(ordinary_times(&records));
        let theirs: Vec<_> =
            records.iter().map(|record| to_other(record, &records[0], transactional)).collect();
        let options = other::RecordEncodeOptions { version: 2, compression: to_other_codec(codec) };
        let mut out = BytesMut::new();
        other::RecordBatchEncoder::encode(&mut out, &theirs, &options).unwrap();
        let out = out.freeze();
        let batch = BatchView::parse(&out).unwrap();
        prop_assert_eq!(batch.compression(), Ok(codec));
        prop_assert_eq!(batch.is_transactional(), transactional);
        prop_assert_eq!((batch.base_sequence, batch.last_offset()), (3, records.last().unwrap().offset));
        prop_assert_eq!(read(&out), records);
        let validated = validate(&out, &rules(), 1 << 60, &mut Scratch::default());
        prop_assert!(validated.unwrap().is_in_place());
    }
}

/// The other implementation's arithmetic on timestamps does not wrap, as ours and Java's does.
fn ordinary_times(records: &[Record]) -> bool {
    records
        .iter()
        .all(|record| (-1..1 << 60).contains(&record.timestamp))
}

/// The other implementation keeps headers in a map.
fn distinct_headers(records: &[Record]) -> Vec<Record> {
    let mut records = records.to_vec();
    for record in &mut records {
        let mut seen = std::collections::BTreeSet::new();
        record
            .headers
            .retain(|header| seen.insert(header.key.clone()));
    }
    records
}

fn from_other(record: &other::Record) -> Record {
    Record {
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| Header {
                key: Bytes::copy_from_slice(key.as_bytes()),
                value: value.clone(),
            })
            .collect(),
    }
}

fn to_other(record: &Record, first: &Record, transactional: bool) -> other::Record {
    other::Record {
        transactional,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 2,
        producer_id: 9,
        producer_epoch: 1,
        timestamp_type: other::TimestampType::Creation,
        offset: record.offset,
        sequence: 3 + (record.offset - first.offset) as i32,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record
            .headers
            .iter()
            .map(|header| {
                let key = std::str::from_utf8(&header.key).unwrap().to_owned();
                (StrBytes::from_string(key), header.value.clone())
            })
            .collect(),
    }
}

fn to_other_codec(codec: Compression) -> other::Compression {
    match codec {
        Compression::None => other::Compression::None,
        Compression::Gzip => other::Compression::Gzip,
        Compression::Snappy => other::Compression::Snappy,
        Compression::Lz4 => other::Compression::Lz4,
        Compression::Zstd => other::Compression::Zstd,
    }
}
