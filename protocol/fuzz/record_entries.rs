//! What the fuzz target `validate` and `tests/records_mutation.rs` share: everything that reads record
//! batches from outside.
#![allow(clippy::unwrap_used, reason = "a panic is the finding")]

use bytes::Bytes;
use protocol::records::legacy::{Entry, LegacyMagic, down_convert, split_entries};
use protocol::records::validate::{Origin, Rules};
use protocol::records::{
    BatchView, Compression, Scratch, TimestampType, TopicCompression, validate, validate_old,
};

/// What anything may unpack to.
pub const LIMIT: usize = 256 * 1024;

/// Makes length and checksum of a first entry right, so that the rest is believed.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < 30 {
        return;
    }
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    if bytes[16] == 2 {
        let crc = crc32c_of(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
}

/// The checksum, by the shortest way: bit by bit.
fn crc32c_of(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn rules(compression: TopicCompression) -> Rules {
    Rules {
        origin: Origin::Client,
        max_message_bytes: LIMIT,
        compacted: true,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: 1 << 50,
        timestamp_after_max_ms: 3_600_000,
        compression,
        max_record_bytes: LIMIT,
        max_decompressed: LIMIT,
    }
}

/// Everything that reads bytes from outside. What is accepted must be readable afterwards.
pub fn read_all(bytes: &Bytes, scratch: &mut Scratch) {
    for entry in split_entries(bytes.clone()).flatten() {
        if let Ok(records) = entry.records(LIMIT) {
            for record in records.flatten() {
                std::hint::black_box(record);
            }
        }
        for magic in [LegacyMagic::V0, LegacyMagic::V1] {
            std::hint::black_box(down_convert(&entry, magic, 3, LIMIT).is_ok());
        }
        if let Entry::Batch(batch) = &entry {
            let found = batch.first_at_or_after(1_700_000_000_010, 2, LIMIT, scratch);
            let most = batch.first_of_max_timestamp(LIMIT, scratch);
            std::hint::black_box((found.is_ok(), most.is_ok()));
        }
    }
    let now = 1_700_000_100_000;
    for target in [
        TopicCompression::Producer,
        TopicCompression::To(Compression::Lz4.into()),
    ] {
        let rules = rules(target);
        std::hint::black_box(validate_old(bytes, &rules, now, scratch).is_ok());
        let Ok(validated) = validate(bytes, &rules, now, scratch) else {
            continue;
        };
        let rebuilt = validated.rebuild(&rules).unwrap();
        let mut stored = rebuilt.map_or_else(|| validated.batch().bytes().to_vec(), Into::into);
        validated.assign(&mut stored, 1000, 4);
        let stored = BatchView::parse(&stored.into()).unwrap();
        stored.check_crc().unwrap();
        let offsets: Vec<i64> = stored
            .records(LIMIT)
            .unwrap()
            .map(|record| record.unwrap().offset)
            .collect();
        assert!(
            offsets
                .iter()
                .copied()
                .eq(1000..1000 + i64::from(validated.records_count()))
        );
    }
}
