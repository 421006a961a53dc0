//! Record batches made before the run, so that the generator costs little while it measures.

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use crate::content::Contents;
use crate::scenario::{Codec, Producers};

/// Offsets of fields in a batch of format v2.
const CRC: usize = 17;
const CRC_COVERS_FROM: usize = 21;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;

/// Batches of one shape may take this much memory; beyond it they repeat.
const POOL_BYTES: usize = 16 << 20;
/// More different batches than this change nothing.
const POOL_BATCHES: usize = 256;

/// One encoded batch.
#[derive(Clone)]
pub struct Batch {
    pub bytes: Bytes,
    pub records: u32,
}

/// Who writes, for batches with sequences.
#[derive(Clone, Copy)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
}

/// A pool of batches that a producer draws from in turn.
pub struct Batches {
    pool: Vec<Batch>,
    next: usize,
}

impl Batches {
    /// Encodes the pool of one producer; `millis` is the create time of all records.
    pub fn new(shape: &Producers, seed: u64, millis: i64) -> Result<Self> {
        let (least, most) = shape.batch_records.bounds();
        let largest = (shape.record_bytes as usize + 40) * most as usize;
        let count = (POOL_BYTES / largest).clamp(4, POOL_BATCHES);
        let mut contents = Contents::new(shape.content, seed);
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let pool = (0..count)
            .map(|_| encode(shape, random.u32(least..=most), &mut contents, millis))
            .collect::<Result<_>>()?;
        Ok(Self { pool, next: 0 })
    }

    /// Bytes of a batch as it is sent, on average.
    pub fn mean_bytes(&self) -> usize {
        let bytes: usize = self.pool.iter().map(|batch| batch.bytes.len()).sum();
        bytes / self.pool.len()
    }

    pub fn next(&mut self) -> Batch {
        let batch = self.pool[self.next].clone();
        self.next = (self.next + 1) % self.pool.len();
        batch
    }
}

fn encode(shape: &Producers, count: u32, contents: &mut Contents, millis: i64) -> Result<Batch> {
    let records: Vec<Record> = (0..count)
        .map(|index| Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            timestamp_type: TimestampType::Creation,
            offset: i64::from(index),
            // The encoder begins a new batch where sequences do not rise with offsets.
            sequence: index as i32,
            timestamp: millis,
            key: shape.keys.map(|distinct| contents.key(distinct).into()),
            value: Some(contents.value(shape.record_bytes as usize).into()),
            headers: IndexMap::new(),
        })
        .collect();
    let compression = match shape.codec {
        Codec::None => Compression::None,
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(
        &mut bytes,
        &records,
        &RecordEncodeOptions {
            version: 2,
            compression,
        },
    )
    .context("cannot encode a record batch")?;
    let anonymous = Producer {
        id: NO_PRODUCER_ID,
        epoch: NO_PRODUCER_EPOCH,
    };
    Ok(Batch {
        bytes: stamped(bytes, anonymous, -1).freeze(),
        records: count,
    })
}

/// A copy of the batch under a producer's id and sequence.
pub fn with_sequence(batch: &Batch, producer: Producer, sequence: i32) -> Bytes {
    stamped(BytesMut::from(&batch.bytes[..]), producer, sequence).freeze()
}

fn stamped(mut bytes: BytesMut, producer: Producer, sequence: i32) -> BytesMut {
    bytes[PRODUCER_ID..PRODUCER_EPOCH].copy_from_slice(&producer.id.to_be_bytes());
    bytes[PRODUCER_EPOCH..BASE_SEQUENCE].copy_from_slice(&producer.epoch.to_be_bytes());
    bytes[BASE_SEQUENCE..BASE_SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[CRC_COVERS_FROM..]);
    bytes[CRC..CRC_COVERS_FROM].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Where a batch begins and how many records it holds, read from the header alone.
pub struct BatchHeader {
    pub base_offset: i64,
    pub records: u32,
    /// Bytes of the whole batch.
    pub length: usize,
}

impl BatchHeader {
    const LENGTH: usize = 61;

    /// The batch at the start of `bytes`, unless it is cut off.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..Self::LENGTH)?;
        let field = |at: usize| -> Option<[u8; 4]> { header.get(at..at + 4)?.try_into().ok() };
        let length = usize::try_from(i32::from_be_bytes(field(8)?))
            .ok()?
            .checked_add(12)?;
        if length < Self::LENGTH || length > bytes.len() {
            return None;
        }
        Some(Self {
            base_offset: i64::from_be_bytes(header.get(..8)?.try_into().ok()?),
            records: u32::try_from(i32::from_be_bytes(field(57)?)).ok()?,
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Acks, BatchRecords, Content};
    use kafka_protocol::records::RecordBatchDecoder;

    fn shape(codec: Codec) -> Producers {
        Producers {
            count: 1,
            record_bytes: 200,
            batch_records: BatchRecords::Between([1, 10]),
            partitions_per_request: 1,
            acks: Acks::All,
            codec,
            in_flight: 5,
            rate: None,
            keys: Some(10),
            content: Content::JsonLog,
            allow_zeros: false,
            idempotent: true,
        }
    }

    #[test]
    fn batches_are_whole_for_another_decoder_with_and_without_sequences() {
        for codec in [
            Codec::None,
            Codec::Gzip,
            Codec::Snappy,
            Codec::Lz4,
            Codec::Zstd,
        ] {
            let mut batches = Batches::new(&shape(codec), 3, 1_700_000_000_000).expect("batches");
            for _ in 0..20 {
                let batch = batches.next();
                let header = BatchHeader::read(&batch.bytes).expect("a header");
                assert_eq!(
                    (header.length, header.records),
                    (batch.bytes.len(), batch.records)
                );
                let numbered = with_sequence(&batch, Producer { id: 42, epoch: 3 }, 77);
                // The decoder checks the CRC.
                let set = RecordBatchDecoder::decode(&mut numbered.clone()).expect("a valid batch");
                assert_eq!(set.records.len(), batch.records as usize);
                assert_eq!(
                    (set.records[0].producer_id, set.records[0].producer_epoch),
                    (42, 3)
                );
                assert_eq!(set.records[0].sequence, 77);
                assert!(set.records.iter().all(|record| {
                    record
                        .value
                        .as_ref()
                        .is_some_and(|value| value.len() == 200)
                }));
            }
        }
    }

    #[test]
    fn contents_compress_as_real_lines_of_json_do() {
        let mean = |codec, content| {
            let shape = Producers {
                record_bytes: 1024,
                batch_records: BatchRecords::Fixed(60),
                keys: None,
                content,
                ..shape(codec)
            };
            let batches = Batches::new(&shape, 3, 0).expect("batches");
            batches.mean_bytes() as f64
        };
        let ratio = |content| mean(Codec::None, content) / mean(Codec::Zstd, content);
        let (json, random) = (ratio(Content::JsonLog), ratio(Content::Random));
        assert!((3.0..8.0).contains(&json), "JSON: {json}");
        assert!((0.9..1.1).contains(&random), "random: {random}");
    }

    #[test]
    fn a_batch_cut_off_is_none() {
        let batch = Batches::new(&shape(Codec::None), 3, 0)
            .expect("batches")
            .next()
            .bytes;
        for length in 0..batch.len() {
            assert!(BatchHeader::read(&batch[..length]).is_none());
        }
    }
}
