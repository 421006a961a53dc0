use super::super::{BatchBuilder, Codec};
use super::*;

const LIMIT: usize = 1 << 20;

fn records(offsets: impl IntoIterator<Item = i64>) -> Vec<Record> {
    let record = |offset: i64| Record {
        offset,
        timestamp: 1000 + offset,
        key: (offset % 2 == 0).then(|| Bytes::from(format!("key {offset}"))),
        value: (offset % 3 != 0).then(|| Bytes::from(vec![b'v'; 50])),
        headers: vec![],
    };
    offsets.into_iter().map(record).collect()
}

fn set(magic: LegacyMagic, codec: Compression, records: &[Record]) -> Vec<u8> {
    let kind = TimestampType::CreateTime;
    write_message_set(magic, codec.into(), kind, records)
        .unwrap()
        .to_vec()
}

fn seal(message: &mut [u8]) {
    let crc = crc32fast::hash(&message[MAGIC..]);
    message[CRC..CRC + 4].copy_from_slice(&crc.to_be_bytes());
}

fn offsets(message: &[u8]) -> Vec<i64> {
    let view = LegacyView::parse(&Bytes::copy_from_slice(message)).unwrap();
    view.check_crc().unwrap();
    view.records(LIMIT)
        .unwrap()
        .map(|record| record.unwrap().offset)
        .collect()
}

fn first_error(message: &[u8]) -> BatchError {
    let view = LegacyView::parse(&Bytes::copy_from_slice(message)).unwrap();
    match view.records(LIMIT) {
        Err(error) => error,
        Ok(mut records) => records.find_map(Result::err).unwrap(),
    }
}

#[test]
fn offsets_in_a_v1_wrapper_count_from_its_first_and_in_v0_are_real() {
    let holes = records([10, 11, 14, 20]);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let mut v1 = set(LegacyMagic::V1, codec, &holes);
        assert_eq!(offsets(&v1), [10, 11, 14, 20]);
        // Assigning an offset to a v1 wrapper moves all, without recompression or a new checksum.
        v1[..8].copy_from_slice(&1020i64.to_be_bytes());
        assert_eq!(offsets(&v1), [1010, 1011, 1014, 1020]);
        // Produced by librdkafka: the wrapper says 0.
        v1[..8].copy_from_slice(&0i64.to_be_bytes());
        assert_eq!(offsets(&v1), [0, 1, 4, 10]);

        let mut v0 = set(LegacyMagic::V0, codec, &holes);
        v0[..8].copy_from_slice(&1020i64.to_be_bytes());
        assert_eq!(offsets(&v0), [10, 11, 14, 20]);
    }
}

#[test]
fn damage_inside_a_wrapper_is_seen() {
    let inner = set(LegacyMagic::V1, Compression::None, &records(0..3));
    let wrap = |inner: &[u8], magic| {
        let wrapped = Record {
            value: Some(Bytes::copy_from_slice(inner)),
            ..records([9])[0].clone()
        };
        let mut message = set(magic, Compression::None, &[wrapped]);
        // Gzip of the inner set in place of the plain one.
        let mut packed = bytes::BytesMut::new();
        super::super::compress::compress(Codec::from(Compression::Gzip), inner, &mut packed)
            .unwrap();
        let value_at = message.len() - inner.len();
        message.truncate(value_at - 4);
        message.extend_from_slice(&(packed.len() as i32).to_be_bytes());
        message.extend_from_slice(&packed);
        let length = (message.len() - LOG_OVERHEAD) as i32;
        message[LENGTH..LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        message[ATTRIBUTES] |= 1;
        seal(&mut message);
        message
    };
    let v1 = LegacyMagic::V1;
    assert_eq!(offsets(&wrap(&inner, v1)), [7, 8, 9]);
    let mut flipped = inner.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(matches!(
        first_error(&wrap(&flipped, v1)),
        BatchError::Record {
            index: 2,
            problem: RecordProblem::Crc { .. }
        }
    ));
    assert_eq!(
        first_error(&wrap(&inner, LegacyMagic::V0)),
        RecordProblem::Magic { found: 1, outer: 0 }.at(0)
    );
    let nested = wrap(&wrap(&inner, v1), v1);
    assert_eq!(first_error(&nested), RecordProblem::NestedCompression.at(0));
    assert!(matches!(
        first_error(&wrap(&[], v1)),
        BatchError::RecordsMissing { .. }
    ));
    // A cut last message is the end, as where an old client's buffer was full.
    assert_eq!(offsets(&wrap(&inner[..inner.len() - 1], v1)), [8, 9]);
}

#[test]
fn a_wrapper_does_not_unpack_beyond_the_limit() {
    let message = set(LegacyMagic::V1, Compression::Gzip, &records(0..1000));
    let view = LegacyView::parse(&message.into()).unwrap();
    assert!(matches!(view.records(1000), Err(BatchError::Decompress(_))));
}

#[test]
fn every_bit_flip_after_the_length_is_seen() {
    for magic in [LegacyMagic::V0, LegacyMagic::V1] {
        let good = set(magic, Compression::None, &records([4]));
        for at in CRC..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let entry = Entry::parse(&bytes.into());
                assert!(
                    entry.and_then(|entry| entry.check_crc()).is_err(),
                    "byte {at} bit {bit}"
                );
            }
        }
    }
}

#[test]
fn entries_of_all_formats_may_follow_each_other() {
    let v0 = set(LegacyMagic::V0, Compression::None, &records(0..2));
    let v1 = set(LegacyMagic::V1, Compression::Gzip, &records(2..5));
    let v2 = BatchBuilder::new(5)
        .append(1, None, None, &[])
        .build()
        .unwrap();
    let log = [&v0[..], &v1, &v2, &v1[..40]].concat();
    let mut entries = split_entries(log.into());
    let read: Vec<_> = entries.by_ref().take(4).map(Result::unwrap).collect();
    let facts = |entry: &Entry| (entry.magic(), entry.last_offset());
    assert_eq!(
        read.iter().map(facts).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (1, 4), (2, 5)]
    );
    assert_eq!(read[2].max_timestamp(), 1004);
    let error = entries.next().unwrap().unwrap_err();
    assert_eq!(error.position, v0.len() + v1.len() + v2.len());
    assert!(entries.next().is_none());
}

fn batch(codec: Compression, from: i64) -> BatchBuilder {
    let mut builder = BatchBuilder::new(from).codec(codec);
    for record in records(from..from + 4) {
        builder.append_record(&record).unwrap();
    }
    builder
}

fn entry(builder: &BatchBuilder) -> Entry {
    Entry::parse(&builder.build_bytes().unwrap()).unwrap()
}

#[test]
fn old_clients_get_the_same_records_at_the_same_offsets() {
    for codec in Compression::ALL {
        for (magic, value) in [(LegacyMagic::V0, 0), (LegacyMagic::V1, 1)] {
            let converted = down_convert(&entry(&batch(codec, 30)), magic, 0, LIMIT);
            if codec == Compression::Zstd {
                assert_eq!(converted, Err(DownConvertError::Zstd));
                continue;
            }
            let mut read = Vec::new();
            for entry in split_entries(converted.unwrap().unwrap()) {
                let entry = entry.unwrap();
                assert_eq!((entry.magic(), entry.compression()), (value, Ok(codec)));
                entry.check_crc().unwrap();
                read.extend(entry.records(LIMIT).unwrap().map(Result::unwrap));
            }
            let timestamp = |t| if value == 0 { NO_TIMESTAMP } else { t };
            let expected: Vec<_> = records(30..34)
                .into_iter()
                .map(|record| Record {
                    timestamp: timestamp(record.timestamp),
                    ..record
                })
                .collect();
            assert_eq!(read, expected);
        }
    }
}

#[test]
fn down_conversion_leaves_out_markers_and_what_lies_before_the_fetch_offset() {
    let plain = entry(&batch(Compression::None, 30));
    let converted = down_convert(&plain, LegacyMagic::V1, 32, LIMIT)
        .unwrap()
        .unwrap();
    let first = LegacyView::parse(&converted).unwrap();
    assert_eq!(first.offset, 32);
    assert_eq!(down_convert(&plain, LegacyMagic::V1, 34, LIMIT), Ok(None));
    // What is old enough stays as it is.
    let old = Entry::parse(&converted).unwrap();
    assert_eq!(
        down_convert(&old, LegacyMagic::V1, 0, LIMIT),
        Ok(Some(first.bytes().clone()))
    );
    let marker = entry(
        &batch(Compression::None, 30)
            .control(true)
            .transactional(true),
    );
    assert_eq!(down_convert(&marker, LegacyMagic::V1, 0, LIMIT), Ok(None));
    let appended = entry(&batch(Compression::Gzip, 30).log_append_time(77));
    let converted = down_convert(&appended, LegacyMagic::V1, 0, LIMIT)
        .unwrap()
        .unwrap();
    let wrapper = LegacyView::parse(&converted).unwrap();
    assert_eq!(
        (wrapper.timestamp_type(), wrapper.timestamp),
        (TimestampType::LogAppendTime, 77)
    );
}
