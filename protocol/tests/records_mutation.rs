//! Hostile bytes: seeded mutations of good batches and message sets, with the checksum made right
//! again half of the time so that damage reaches the code behind it. Nothing may panic, unpack
//! beyond its limit, or call a changed batch unchanged.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

#[path = "../../fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/record_entries.rs"]
mod record_entries;

use bytes::Bytes;
use protocol::records::legacy::{LegacyMagic, write_message_set};
use protocol::records::{
    BatchBuilder, BatchView, Compression, Header, Record, Scratch, TimestampType,
};

use record_entries::{read_all, seal};

const ROUNDS: u64 = 5_000;

/// xorshift64*: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % most.max(1)
    }
}

fn records() -> Vec<Record> {
    (0..12i64)
        .map(|offset| Record {
            offset,
            timestamp: 1_700_000_000_000 + offset * 3,
            key: (offset % 3 > 0).then(|| format!("key-{offset}").into()),
            value: (offset % 4 > 0).then(|| "value ".repeat(offset as usize * 3).into()),
            headers: (0..offset % 3)
                .map(|at| Header {
                    key: "h".into(),
                    value: (at > 0).then(|| "v".into()),
                })
                .collect(),
        })
        .collect()
}

fn sound() -> Vec<Vec<u8>> {
    let records = records();
    let mut all = Vec::new();
    for codec in Compression::ALL {
        let mut builder = BatchBuilder::new(0).codec(codec).producer(1, 0, 0);
        for record in &records {
            builder.append_record(record).unwrap();
        }
        all.push(builder.build().unwrap().to_vec());
        if codec != Compression::Zstd {
            for magic in [LegacyMagic::V0, LegacyMagic::V1] {
                let kind = TimestampType::CreateTime;
                let set = write_message_set(magic, codec.into(), kind, &records);
                all.push(set.unwrap().to_vec());
            }
        }
    }
    all
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => bytes.truncate(at.max(1)),
            4 => {
                let length = random.below(9);
                let filler = random.next().to_le_bytes();
                bytes.splice(at..at, filler[..length.min(8)].iter().copied());
            }
            _ => {
                let from = random.below(bytes.len());
                let end = (from + 8).min(bytes.len());
                let piece = bytes[from..end].to_vec();
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece);
            }
        }
    }
}

#[test]
fn mutated_bytes_are_errors_or_consistent_batches() {
    let corpus = sound();
    let mut scratch = Scratch::default();
    let mut accepted = 0;
    for seed in 1..=ROUNDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = corpus[random.below(corpus.len())].clone();
        mutate(&mut bytes, &mut random);
        if random.below(2) == 0 {
            seal(&mut bytes);
        }
        let bytes = Bytes::from(bytes);
        if BatchView::parse(&bytes).is_ok_and(|batch| batch.crc_ok()) {
            accepted += 1;
        }
        read_all(&bytes, &mut scratch);
    }
    // Otherwise the mutations never got behind the checksum.
    assert!(accepted > ROUNDS / 10, "{accepted}");
}

#[test]
fn every_cut_and_every_changed_byte_of_every_format_is_harmless() {
    let mut scratch = Scratch::default();
    for bytes in sound() {
        for at in 0..bytes.len() {
            read_all(&Bytes::copy_from_slice(&bytes[..at]), &mut scratch);
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(0x80);
            read_all(&changed.into(), &mut scratch);
        }
    }
}

#[test]
fn the_saved_corpus_is_harmless() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let inputs = corpus::read(&folder, "validate");
    assert!(inputs.len() > 100, "{}", inputs.len());
    let mut scratch = Scratch::default();
    for mut bytes in inputs {
        read_all(&Bytes::copy_from_slice(&bytes), &mut scratch);
        seal(&mut bytes);
        read_all(&bytes.into(), &mut scratch);
    }
}

#[test]
fn random_bytes_are_never_a_batch() {
    let mut scratch = Scratch::default();
    let mut random = Random(7);
    for _ in 0..5_000 {
        let length = random.below(300);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        if let Some(magic) = bytes.get_mut(16) {
            *magic %= 3;
            seal(&mut bytes);
        }
        read_all(&bytes.into(), &mut scratch);
    }
}
