use bytes::Bytes;

use super::*;
use crate::error_code::ErrorCode;
use crate::records::{BatchBuilder, NO_PARTITION_LEADER_EPOCH};

pub(super) const NOW: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;

pub(super) fn rules() -> Rules {
    Rules {
        origin: Origin::Client,
        max_message_bytes: 1_048_588,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: HOUR,
        compression: TopicCompression::Producer,
        max_record_bytes: usize::MAX,
        max_decompressed: 1 << 20,
    }
}

fn builder(compression: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new(0).codec(compression).producer(9, 1, 40);
    for at in 0..20 {
        let key = format!("key {at}");
        builder.append(
            NOW - 100 + (at * 7) % 20,
            Some(key.as_bytes()),
            Some(&[b'v'; 90]),
            &[(b"a", Some(b"b"))],
        );
    }
    builder
}

fn check(records: &Bytes, rules: &Rules) -> Result<Validated, Rejection> {
    validate(records, rules, NOW, &mut Scratch::default())
}

fn sample(compression: Compression) -> Bytes {
    builder(compression).build_bytes().unwrap()
}

/// Changes the header and makes the checksum right again.
fn altered(batch: &[u8], alter: impl FnOnce(&mut [u8])) -> Bytes {
    let mut bytes = batch.to_vec();
    alter(&mut bytes);
    rewrite::write_crc(&mut bytes);
    bytes.into()
}

fn put(at: usize, bytes: &[u8]) -> impl FnOnce(&mut [u8]) {
    move |batch| batch[at..at + bytes.len()].copy_from_slice(bytes)
}

#[test]
fn a_good_batch_passes_in_place_and_gets_offsets_and_epoch() {
    for compression in Compression::ALL {
        let bytes = sample(compression);
        let validated = check(&bytes, &rules()).unwrap();
        assert!(validated.is_in_place());
        let ready = validated.append_bytes(&rules()).unwrap();
        assert_eq!(ready.as_ptr(), bytes.as_ptr(), "shared, not copied");
        assert_eq!(validated.records_count(), 20);
        // 17 * 7 % 20 = 19.
        assert_eq!(validated.max_timestamp(), NOW - 81);
        assert_eq!(validated.max_timestamp_offset_delta(), 17);
        let plain = sample(Compression::None);
        assert_eq!(validated.uncompressed_bytes() as usize, plain.len() - 61);

        let mut appended = bytes.to_vec();
        validated.assign(&mut appended, 7000, 3);
        let view = BatchView::parse(&appended.into()).unwrap();
        assert!(view.crc_ok());
        assert_eq!((view.base_offset, view.last_offset()), (7000, 7019));
        assert_eq!(view.partition_leader_epoch, 3);
        assert_eq!(view.records_payload(), bytes.slice(61..));
    }
}

#[test]
fn append_time_replaces_whatever_the_client_said() {
    let append_time = Rules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    let mut far_future = BatchBuilder::new(0).codec(Compression::Lz4);
    far_future.append(NOW + 1000 * HOUR, None, Some(b"v"), &[]);
    let bytes = far_future.build_bytes().unwrap();
    assert!(check(&bytes, &rules()).is_err());
    let validated = check(&bytes, &append_time).unwrap();
    assert!(validated.is_in_place());
    assert_eq!(validated.max_timestamp(), NOW);
    let mut appended = bytes.to_vec();
    validated.assign(&mut appended, 5, 0);
    let view = BatchView::parse(&appended.into()).unwrap();
    assert!(view.crc_ok());
    assert_eq!(view.max_timestamp, NOW);
    assert_eq!(view.timestamp_type(), TimestampType::LogAppendTime);
}

#[test]
fn a_lying_maximum_timestamp_in_the_header_is_put_right() {
    let bytes = altered(&sample(Compression::None), put(35, &i64::MAX.to_be_bytes()));
    let validated = check(&bytes, &rules()).unwrap();
    let mut appended = bytes.to_vec();
    validated.assign(&mut appended, 0, 0);
    let ready = BatchView::parse(&validated.append_bytes(&rules()).unwrap()).unwrap();
    assert!(ready.crc_ok());
    assert_eq!(ready.max_timestamp, NOW - 81);
    let view = BatchView::parse(&appended.into()).unwrap();
    assert!(view.crc_ok());
    assert_eq!(view.max_timestamp, NOW - 81);
}

#[test]
fn one_batch_of_magic_2_and_nothing_else() {
    let good = sample(Compression::None);
    let rejection = |bytes: Vec<u8>| check(&bytes.into(), &rules()).unwrap_err();
    assert_eq!(rejection(vec![]), Rejection::NoBatch);
    assert_eq!(
        rejection(good[..good.len() - 1].to_vec()),
        Rejection::NoBatch
    );
    assert_eq!(
        rejection([&good[..], &good[..]].concat()),
        Rejection::SeveralBatches
    );
    let mut old = good.to_vec();
    old[16] = 1;
    assert_eq!(rejection(old.clone()), Rejection::Magic { magic: 1 });
    old[16] = 3;
    assert_eq!(rejection(old).error_code(), ErrorCode::CorruptMessage);
    for kind in [
        Rejection::NoBatch,
        Rejection::SeveralBatches,
        Rejection::Magic { magic: 0 },
    ] {
        assert_eq!(kind.error_code(), ErrorCode::InvalidRecord);
    }
    // The start of another entry, cut off by the client's buffer, is not part of the batch.
    let with_tail = [&good[..], &good[..70]].concat();
    let validated = check(&with_tail.into(), &rules()).unwrap();
    assert_eq!(validated.batch().bytes(), &good);
}

#[test]
fn every_bit_flip_outside_of_what_the_leader_assigns_is_seen() {
    let good = sample(Compression::None);
    let mut scratch = Scratch::default();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.to_vec();
            bytes[at] ^= 1 << bit;
            let result = validate(&bytes.into(), &rules(), NOW, &mut scratch);
            // The leader epoch is overwritten.
            assert_eq!(
                result.is_ok(),
                (12..16).contains(&at),
                "byte {at} bit {bit}"
            );
        }
    }
}

#[test]
fn the_checksum_is_reported_with_both_values() {
    let mut bytes = sample(Compression::Zstd).to_vec();
    let stored = bytes[17..21].to_vec();
    *bytes.last_mut().unwrap() ^= 0x10;
    let rejection = check(&bytes.into(), &rules()).unwrap_err();
    assert_eq!(rejection.error_code(), ErrorCode::CorruptMessage);
    let Rejection::Corrupt(BatchError::Crc {
        stored: told,
        computed,
    }) = rejection
    else {
        panic!("{rejection:?}");
    };
    assert_eq!(told.to_be_bytes()[..], stored[..]);
    assert_ne!(told, computed);
}

#[test]
fn headers_that_no_client_may_write() {
    let good = sample(Compression::None);
    let cases: [(&str, Bytes); 7] = [
        ("base offset", altered(&good, put(0, &1i64.to_be_bytes()))),
        ("range", altered(&good, put(23, &(-1i32).to_be_bytes()))),
        ("count 0", altered(&good, put(57, &0i32.to_be_bytes()))),
        (
            "count too high",
            altered(&good, put(57, &21i32.to_be_bytes())),
        ),
        (
            "range too wide",
            altered(&good, put(23, &i32::MAX.to_be_bytes())),
        ),
        ("control", altered(&good, |batch| batch[22] |= 0x20)),
        ("sequence", altered(&good, put(53, &(-1i32).to_be_bytes()))),
    ];
    for (what, bytes) in cases {
        let rejection = check(&bytes, &rules()).unwrap_err();
        assert!(
            matches!(rejection, Rejection::Batch(_)),
            "{what}: {rejection:?}"
        );
        assert_eq!(rejection.error_code(), ErrorCode::InvalidRecord);
        assert_eq!(rejection.error_message("t-0"), None);
    }
    let control = altered(&good, |batch| batch[22] |= 0x20);
    let coordinator = Rules {
        origin: Origin::Coordinator,
        ..rules()
    };
    assert!(check(&control, &coordinator).is_ok());
}

#[test]
fn count_and_records_must_agree() {
    for compression in Compression::ALL {
        let good = sample(compression);
        for (count, error) in [
            (19, BatchError::RecordsRemain { declared: 19 }),
            (
                21,
                BatchError::RecordsMissing {
                    declared: 21,
                    found: 20,
                },
            ),
        ] {
            let bytes = altered(&good, |batch| {
                batch[57..61].copy_from_slice(&i32::to_be_bytes(count));
                batch[23..27].copy_from_slice(&i32::to_be_bytes(count - 1));
            });
            let rejection = check(&bytes, &rules()).unwrap_err();
            assert_eq!(rejection, Rejection::Malformed(error), "{compression:?}");
            assert_eq!(rejection.error_code(), ErrorCode::InvalidRecord);
        }
    }
}

#[test]
fn the_size_limit_is_of_the_whole_batch() {
    let good = sample(Compression::None);
    let exact = Rules {
        max_message_bytes: good.len(),
        ..rules()
    };
    assert!(check(&good, &exact).is_ok());
    let less = Rules {
        max_message_bytes: good.len() - 1,
        ..rules()
    };
    let rejection = check(&good, &less).unwrap_err();
    assert_eq!(rejection.error_code(), ErrorCode::MessageTooLarge);
}

#[test]
fn a_record_of_a_compressed_batch_has_a_limit_of_its_own() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new(0).codec(compression);
        builder.append(NOW, None, Some(&[7; 1000]), &[]);
        let bytes = builder.build_bytes().unwrap();
        // Attributes, two deltas, null key, value with its length, no headers.
        let size = 1 + 1 + 1 + 1 + 2 + 1000 + 1;
        assert!(
            check(
                &bytes,
                &Rules {
                    max_record_bytes: size,
                    ..rules()
                }
            )
            .is_ok()
        );
        let less = check(
            &bytes,
            &Rules {
                max_record_bytes: size - 1,
                ..rules()
            },
        );
        if compression == Compression::None {
            assert!(less.is_ok());
        } else {
            assert_eq!(less.unwrap_err().error_code(), ErrorCode::InvalidRecord);
        }
    }
}

#[test]
fn unassigned_compression_is_a_code_of_its_own() {
    let bytes = altered(&sample(Compression::None), |batch| batch[22] |= 5);
    let rejection = check(&bytes, &rules()).unwrap_err();
    assert_eq!(rejection, Rejection::UnknownCompression { id: 5 });
    assert_eq!(
        rejection.error_code(),
        ErrorCode::UnsupportedCompressionType
    );
}

#[test]
fn records_without_key_are_listed_with_kafkas_words() {
    let compacted = Rules {
        compacted: true,
        ..rules()
    };
    for compression in [Compression::None, Compression::Snappy] {
        assert!(check(&sample(compression), &compacted).is_ok());
        let mut builder = builder(compression);
        builder
            .append(NOW, None, Some(b"v"), &[])
            .append(NOW, Some(b""), None, &[]);
        let rejection = check(&builder.build_bytes().unwrap(), &compacted).unwrap_err();
        assert_eq!(rejection.error_code(), ErrorCode::InvalidRecord);
        let text = "Compacted topic cannot accept message without key in topic partition t-3";
        let errors: Vec<_> = rejection.record_errors("t-3").collect();
        assert_eq!(errors, [(20, text.to_owned())]);
        assert_eq!(
            rejection.error_message("t-3").unwrap(),
            format!(
                "One or more records have been rejected due to 1 record errors in total, and \
                 only showing the first three errors at most: [RecordError(batchIndex=20, \
                 message='{text}')]"
            )
        );
    }
}

#[test]
fn timestamps_out_of_bounds_are_listed_with_kafkas_words() {
    let day = Rules {
        timestamp_before_max_ms: 24 * HOUR,
        ..rules()
    };
    let mut builder = BatchBuilder::new(0).codec(Compression::Gzip);
    for timestamp in [
        NOW,
        NOW + HOUR,
        NOW + HOUR + 1,
        NOW - 24 * HOUR - 1,
        -1,
        NOW - 24 * HOUR,
    ] {
        builder.append(timestamp, Some(b"k"), None, &[]);
    }
    let rejection = check(&builder.build_bytes().unwrap(), &day).unwrap_err();
    assert_eq!(rejection.error_code(), ErrorCode::InvalidTimestamp);
    let errors: Vec<_> = rejection.record_errors("t-0").collect();
    assert_eq!(
        errors,
        [
            (
                2,
                "Timestamp 1700003600001 of message with offset 2 is out of range. The timestamp \
                 should be within [1699913600000, 1700003600000]"
                    .to_owned()
            ),
            (
                3,
                "Timestamp 1699913599999 of message with offset 3 is out of range. The timestamp \
                 should be within [1699913600000, 1700003600000]"
                    .to_owned()
            )
        ]
    );
    assert_eq!(
        rejection.error_message("t-0").as_deref(),
        Some("One or more records have been rejected due to invalid timestamp")
    );
    // Extreme values wrap, and never overflow.
    let mut extreme = BatchBuilder::new(0);
    extreme
        .append(i64::MIN, None, None, &[])
        .append(i64::MAX, None, None, &[]);
    let rejection = check(&extreme.build_bytes().unwrap(), &rules()).unwrap_err();
    assert_eq!(rejection.record_errors("").count(), 2);
}

#[test]
fn only_brokers_set_append_time() {
    let append_time = Rules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    for (compression, record) in [
        (
            Compression::None,
            "DefaultRecord(offset=0, timestamp=5, key=0 bytes, value=1 bytes)",
        ),
        (
            Compression::Gzip,
            "PartialDefaultRecord(offset=0, timestamp=5, key=-1 bytes, value=1 bytes)",
        ),
    ] {
        let mut builder = BatchBuilder::new(0).codec(compression).log_append_time(5);
        builder.append(1, None, Some(b"v"), &[]);
        let rejection = check(&builder.build_bytes().unwrap(), &append_time).unwrap_err();
        assert_eq!(rejection.error_code(), ErrorCode::InvalidTimestamp);
        assert_eq!(
            rejection.record_errors("t-0").next().unwrap().1,
            format!(
                "Invalid timestamp type in message {record}. Producer should not set timestamp \
                 type to LogAppendTime."
            )
        );
    }
}

#[test]
fn the_list_of_refused_records_is_bounded_and_the_count_is_not() {
    let compacted = Rules {
        compacted: true,
        ..rules()
    };
    let mut builder = BatchBuilder::new(0).codec(Compression::Zstd);
    for _ in 0..5000 {
        builder.append(NOW, None, None, &[]);
    }
    let rejection = check(&builder.build_bytes().unwrap(), &compacted).unwrap_err();
    assert_eq!(
        rejection.record_errors("t").count(),
        RecordRejections::LISTED
    );
    assert!(
        rejection
            .error_message("t")
            .unwrap()
            .contains("due to 5000 record errors")
    );
}

#[test]
fn what_unpacks_to_more_than_the_limit_is_refused() {
    for compression in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let mut builder = BatchBuilder::new(0).codec(compression);
        builder.append(NOW, None, Some(&vec![0; 2 << 20]), &[]);
        let rejection = check(&builder.build_bytes().unwrap(), &rules()).unwrap_err();
        assert!(matches!(
            rejection,
            Rejection::Malformed(BatchError::Decompress(_))
        ));
    }
}

#[test]
fn a_topic_with_its_own_compression_gets_it() {
    for source in Compression::ALL {
        for name in ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] {
            let compression =
                TopicCompression::from_config(name, |codec| Codec::from(codec).level).unwrap();
            let rules = Rules {
                compression,
                ..rules()
            };
            let bytes = sample(source);
            let validated = check(&bytes, &rules).unwrap();
            let wanted = match name {
                "producer" => source,
                "uncompressed" => Compression::None,
                _ => Compression::from_name(name).unwrap(),
            };
            assert_eq!(
                validated.is_in_place(),
                wanted == source,
                "{source:?} to {name}"
            );
            let rebuilt = validated.rebuild(&rules).unwrap();
            let ready = BatchView::parse(&validated.append_bytes(&rules).unwrap()).unwrap();
            assert!(ready.crc_ok());
            assert_eq!(ready.compression(), Ok(wanted));
            let mut stored = rebuilt.unwrap_or_else(|| bytes.clone().into());
            validated.assign(&mut stored, 50, 2);
            let view = BatchView::parse(&stored.freeze()).unwrap();
            assert!(view.crc_ok());
            assert_eq!(view.compression(), Ok(wanted));
            assert_eq!(
                (view.producer_id, view.producer_epoch, view.base_sequence),
                (9, 1, 40)
            );
            let mut came = bytes.to_vec();
            rewrite::assign(&mut came, 50, 2);
            let came = BatchView::parse(&came.into()).unwrap();
            assert!(
                view.records(1 << 20)
                    .unwrap()
                    .eq(came.records(1 << 20).unwrap())
            );
        }
    }
    assert_eq!(TopicCompression::from_config("none", |_| 0), None);
    assert_eq!(TopicCompression::from_config("brotli", |_| 0), None);
    let gzip = TopicCompression::To(Compression::Gzip.into());
    assert_eq!(
        gzip.target(Compression::None, true),
        None,
        "control batches stay"
    );
}

#[test]
fn a_batch_that_grows_above_the_limit_when_unpacked_is_refused() {
    let bytes = sample(Compression::Zstd);
    let compression = TopicCompression::To(Codec::NONE);
    let rules = Rules {
        compression,
        max_message_bytes: bytes.len() + 100,
        ..rules()
    };
    let rejection = check(&bytes, &rules).unwrap().rebuild(&rules).unwrap_err();
    assert_eq!(rejection.error_code(), ErrorCode::MessageTooLarge);
}

#[test]
fn wrongly_numbered_records_are_numbered_anew() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new(0).codec(compression).producer(4, 0, 8);
        let record = |offset| crate::records::Record {
            offset,
            timestamp: NOW + offset,
            key: Some(Bytes::from(format!("{offset}"))),
            value: None,
            headers: vec![],
        };
        builder.append_record(&record(1)).unwrap();
        builder.append_record(&record(2)).unwrap();
        let bytes = altered(&builder.build().unwrap(), |batch| {
            batch[23..27].copy_from_slice(&[0, 0, 0, 1])
        });
        let validated = check(&bytes, &rules()).unwrap();
        assert!(!validated.is_in_place());
        let mut stored = validated.rebuild(&rules()).unwrap().unwrap();
        validated.assign(&mut stored, 100, 1);
        let view = BatchView::parse(&stored.freeze()).unwrap();
        assert!(view.crc_ok());
        assert_eq!(view.compression(), Ok(compression));
        assert_eq!((view.producer_id, view.base_sequence), (4, 8));
        let records: Vec<_> = view.records(1 << 20).unwrap().map(Result::unwrap).collect();
        assert_eq!(
            records[0],
            crate::records::Record {
                offset: 100,
                ..record(1)
            }
        );
        assert_eq!(
            records[1],
            crate::records::Record {
                offset: 101,
                ..record(2)
            }
        );
    }
}

#[test]
fn the_builder_leaves_the_leader_epoch_open() {
    let view = BatchView::parse(&sample(Compression::None)).unwrap();
    assert_eq!(view.partition_leader_epoch, NO_PARTITION_LEADER_EPOCH);
}
