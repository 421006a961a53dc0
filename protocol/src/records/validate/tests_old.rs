use bytes::Bytes;

use super::tests::{NOW, rules};
use super::*;
use crate::error_code::ErrorCode;
use crate::records::Record;
use crate::records::legacy::{LegacyMagic, write_message_set};

fn records(count: i64, timestamp: i64) -> Vec<Record> {
    let record = |offset| Record {
        offset,
        timestamp,
        key: Some(Bytes::from(format!("k{offset}"))),
        value: Some(Bytes::from_static(b"v")),
        headers: vec![],
    };
    (0..count).map(record).collect()
}

fn set(magic: LegacyMagic, codec: Compression, records: &[Record]) -> Bytes {
    let kind = TimestampType::CreateTime;
    write_message_set(magic, codec.into(), kind, records)
        .unwrap()
        .freeze()
}

fn check(records: &Bytes, rules: &Rules) -> Result<ValidatedOld, Rejection> {
    validate_old(records, rules, NOW, &mut Scratch::default())
}

fn converted(records: &Bytes, rules: &Rules) -> BatchView {
    match check(records, rules).unwrap() {
        ValidatedOld::Converted(batch) => BatchView::parse(&batch.freeze()).unwrap(),
        ValidatedOld::Batch(_) => panic!("not converted"),
    }
}

#[test]
fn message_sets_become_one_batch_with_the_same_records() {
    for codec in [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
    ] {
        for (magic, timestamp) in [(LegacyMagic::V0, -1), (LegacyMagic::V1, NOW)] {
            let batch = converted(&set(magic, codec, &records(5, NOW)), &rules());
            assert!(batch.crc_ok());
            assert_eq!(batch.compression(), Ok(codec));
            assert_eq!((batch.base_offset, batch.last_offset_delta), (0, 4));
            assert_eq!(batch.max_timestamp, timestamp);
            let read: Vec<_> = batch
                .records(1 << 20)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(read, records(5, timestamp));
        }
    }
}

#[test]
fn the_topic_decides_compression_and_time_of_the_batch() {
    let sent = set(LegacyMagic::V0, Compression::Gzip, &records(3, NOW));
    let rules = Rules {
        compression: TopicCompression::To(Compression::Zstd.into()),
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    let batch = converted(&sent, &rules);
    assert_eq!(batch.compression(), Ok(Compression::Zstd));
    assert_eq!(
        (batch.timestamp_type(), batch.max_timestamp),
        (TimestampType::LogAppendTime, NOW)
    );
}

#[test]
fn a_v2_batch_in_an_old_request_is_taken_as_it_is() {
    let mut builder = crate::records::BatchBuilder::new(0);
    builder.append(NOW, None, None, &[]);
    let batch = builder.build_bytes().unwrap();
    assert!(matches!(
        check(&batch, &rules()),
        Ok(ValidatedOld::Batch(_))
    ));
}

#[test]
fn old_sets_are_refused_for_the_same_reasons() {
    let good = set(LegacyMagic::V1, Compression::Gzip, &records(3, NOW));
    let kind = |bytes: &[u8], rules: &Rules| {
        check(&Bytes::copy_from_slice(bytes), rules)
            .unwrap_err()
            .error_code()
    };
    assert_eq!(kind(&[], &rules()), ErrorCode::InvalidRecord);
    let mut damaged = good.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(kind(&damaged, &rules()), ErrorCode::CorruptMessage);
    // Two compressed wrappers.
    assert_eq!(
        kind(&[&good[..], &good[..]].concat(), &rules()),
        ErrorCode::InvalidRecord
    );
    let small = Rules {
        max_message_bytes: good.len() - 1,
        ..rules()
    };
    assert_eq!(kind(&good, &small), ErrorCode::MessageTooLarge);
    let late = set(
        LegacyMagic::V1,
        Compression::None,
        &records(2, NOW + (1 << 40)),
    );
    assert_eq!(kind(&late, &rules()), ErrorCode::InvalidTimestamp);
    let mut keyless = records(2, NOW);
    keyless[1].key = None;
    let keyless = set(LegacyMagic::V0, Compression::None, &keyless);
    let compacted = Rules {
        compacted: true,
        ..rules()
    };
    let rejection = check(&keyless, &compacted).unwrap_err();
    assert_eq!(rejection.error_code(), ErrorCode::InvalidRecord);
    assert_eq!(rejection.record_errors("t-0").next().unwrap().0, 1);
    // v0 has no timestamps that could be too late.
    let v0 = set(
        LegacyMagic::V0,
        Compression::None,
        &records(2, NOW + (1 << 40)),
    );
    assert!(check(&v0, &rules()).is_ok());
}
