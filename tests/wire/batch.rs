//! Record batches (magic 2) made and read by hand: <https://kafka.apache.org/documentation/#recordbatch>.
use std::io::{Read, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    None = 0,
    Gzip = 1,
    /// Only the mark: the content is not what it says.
    Zstd = 4,
}

/// What to write; the defaults make a plain batch of no producer.
pub struct Batch {
    pub codec: Codec,
    pub producer: i64,
    pub epoch: i16,
    pub sequence: i32,
    /// Timestamp, key and value of each.
    pub records: Vec<(i64, Option<Bytes>, Bytes)>,
}

impl Batch {
    pub fn new(records: Vec<(i64, Option<Bytes>, Bytes)>) -> Self {
        Self {
            codec: Codec::None,
            producer: -1,
            epoch: -1,
            sequence: -1,
            records,
        }
    }

    /// Records of one moment, without keys.
    pub fn of(timestamp: i64, values: &[&str]) -> Self {
        let record = |value: &&str| (timestamp, None, Bytes::copy_from_slice(value.as_bytes()));
        Self::new(values.iter().map(record).collect())
    }

    pub fn by(mut self, producer: i64, epoch: i16, sequence: i32) -> Self {
        (self.producer, self.epoch, self.sequence) = (producer, epoch, sequence);
        self
    }

    pub fn packed(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    pub fn bytes(&self) -> Bytes {
        let base = self.records[0].0;
        let highest = self
            .records
            .iter()
            .map(|record| record.0)
            .max()
            .expect("not empty");
        let count = i32::try_from(self.records.len()).expect("few records");
        let mut summed = BytesMut::new();
        summed.put_i16(self.codec as i16);
        summed.put_i32(count - 1);
        summed.put_i64(base);
        summed.put_i64(highest);
        summed.put_i64(self.producer);
        summed.put_i16(self.epoch);
        summed.put_i32(self.sequence);
        summed.put_i32(count);
        summed.put_slice(&self.content(base));
        let mut batch = BytesMut::new();
        batch.put_i64(0); // base offset: the broker's to say
        batch.put_i32(i32::try_from(summed.len() + 9).expect("a small batch"));
        batch.put_i32(-1); // partition leader epoch: likewise
        batch.put_u8(2);
        batch.put_u32(crc32c::crc32c(&summed));
        batch.put_slice(&summed);
        batch.freeze()
    }

    fn content(&self, base: i64) -> Vec<u8> {
        let mut plain = Vec::new();
        for (number, (timestamp, key, value)) in self.records.iter().enumerate() {
            let mut record = vec![0]; // attributes
            put_varint(&mut record, timestamp - base);
            put_varint(&mut record, i64::try_from(number).expect("few records"));
            put_bytes(&mut record, key.as_deref());
            put_bytes(&mut record, Some(value));
            put_varint(&mut record, 0); // headers
            put_varint(
                &mut plain,
                i64::try_from(record.len()).expect("a small record"),
            );
            plain.extend(record);
        }
        match self.codec {
            Codec::None | Codec::Zstd => plain,
            Codec::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&plain).expect("memory takes bytes");
                encoder.finish().expect("memory takes bytes")
            }
        }
    }
}

/// What stands in front of a batch that a broker sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub attributes: i16,
    pub last_offset: i64,
    pub max_timestamp: i64,
    pub sequence: i32,
    pub values: Vec<Bytes>,
}

/// The batches of an answer, each whole and with its right checksum.
pub fn read(mut records: Bytes) -> Vec<Head> {
    let mut heads = Vec::new();
    while records.has_remaining() {
        let base_offset = records.get_i64();
        let length = usize::try_from(records.get_i32()).expect("a length is not negative");
        assert!(length <= records.len(), "a batch came only in part");
        let mut batch = records.split_to(length);
        let leader_epoch = batch.get_i32();
        assert_eq!(batch.get_u8(), 2, "magic");
        assert_eq!(
            batch.get_u32(),
            crc32c::crc32c(&batch),
            "checksum of the batch at {base_offset}"
        );
        let attributes = batch.get_i16();
        let last_offset = base_offset + i64::from(batch.get_i32());
        let _base_timestamp = batch.get_i64();
        let max_timestamp = batch.get_i64();
        let _producer = (batch.get_i64(), batch.get_i16());
        let sequence = batch.get_i32();
        let count = batch.get_i32();
        let values = if attributes & 7 > 1 {
            Vec::new()
        } else {
            values(batch, attributes & 7 == 1, count)
        };
        heads.push(Head {
            base_offset,
            leader_epoch,
            attributes,
            last_offset,
            max_timestamp,
            sequence,
            values,
        });
    }
    heads
}

fn values(batch: Bytes, gzip: bool, count: i32) -> Vec<Bytes> {
    let mut plain = batch;
    if gzip {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(plain.reader())
            .read_to_end(&mut unpacked)
            .expect("sound gzip");
        plain = unpacked.into();
    }
    let mut values = Vec::new();
    for _ in 0..count {
        let length = get_varint(&mut plain);
        let mut record = plain.split_to(usize::try_from(length).expect("a length"));
        record.advance(1);
        get_varint(&mut record);
        get_varint(&mut record);
        let key = usize::try_from(get_varint(&mut record)).unwrap_or(0);
        record.advance(key);
        let value = usize::try_from(get_varint(&mut record)).unwrap_or(0);
        values.push(record.split_to(value));
    }
    values
}

fn put_bytes(to: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        return put_varint(to, -1);
    };
    put_varint(to, i64::try_from(bytes.len()).expect("small"));
    to.extend(bytes);
}

fn put_varint(to: &mut Vec<u8>, number: i64) {
    let mut zigzag = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        to.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    to.push(zigzag as u8);
}

fn get_varint(from: &mut Bytes) -> i64 {
    let (mut zigzag, mut shift) = (0u64, 0);
    loop {
        let byte = from.get_u8();
        zigzag |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
        }
    }
}
