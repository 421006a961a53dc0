//! Writes message sets of v0 and v1, as clients before 0.11 read them.

use bytes::{BufMut, BytesMut};

use super::super::builder::BuildError;
use super::super::compress::{Codec, CompressError, Compression, Lz4Checksum, compress_with};
use super::super::header::{LOG_OVERHEAD, NO_TIMESTAMP, TimestampType};
use super::super::record::Record;
use super::{ATTRIBUTES, CRC, MAGIC, OVERHEAD_V0, OVERHEAD_V1};

/// A format that [`write_message_set`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyMagic {
    V0,
    V1,
}

impl LegacyMagic {
    pub fn value(self) -> i8 {
        self as i8
    }

    fn overhead(self) -> usize {
        match self {
            LegacyMagic::V0 => OVERHEAD_V0,
            LegacyMagic::V1 => OVERHEAD_V1,
        }
    }
}

/// The records, in ascending order of offset, as a message set: one entry each, or one compressed
/// wrapper around all. Headers are lost, and in v0 timestamps too.
///
/// # Errors
/// `TooLarge` above 2^31 - 1 bytes; `Compress` for zstd, which does not exist in these formats.
pub fn write_message_set(
    magic: LegacyMagic,
    codec: Codec,
    timestamp_type: TimestampType,
    records: &[Record],
) -> Result<BytesMut, BuildError> {
    if codec.compression == Compression::Zstd {
        let why = "zstd does not exist in formats before v2".to_owned();
        return Err(CompressError {
            compression: Compression::Zstd,
            why,
        }
        .into());
    }
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Ok(BytesMut::new());
    };
    let compressed = codec.compression != Compression::None;
    let base_offset = if compressed && magic == LegacyMagic::V1 {
        first.offset
    } else {
        0
    };
    let type_bit = type_bit(magic, timestamp_type);
    let mut set = BytesMut::new();
    for record in records {
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let offset = record.offset.wrapping_sub(base_offset);
        let bit = if compressed { 0 } else { type_bit };
        let start = start_message(&mut set, magic, offset, bit, record.timestamp);
        put_nullable(&mut set, key)?;
        put_nullable(&mut set, value)?;
        finish_message(&mut set[start..])?;
    }
    if !compressed {
        return Ok(set);
    }
    let checksum = if magic == LegacyMagic::V0 {
        Lz4Checksum::Magic0
    } else {
        Lz4Checksum::Right
    };
    let max_timestamp = records.iter().map(|record| record.timestamp).max();
    let timestamp = max_timestamp.unwrap_or(NO_TIMESTAMP);
    let mut wrapper = BytesMut::with_capacity(LOG_OVERHEAD + magic.overhead() + set.len() / 2);
    let attributes = type_bit | codec.compression.id();
    start_message(&mut wrapper, magic, last.offset, attributes, timestamp);
    put_nullable(&mut wrapper, None)?;
    let length_at = wrapper.len();
    wrapper.put_i32(0);
    compress_with(codec, &set, &mut wrapper, checksum)?;
    let length =
        i32::try_from(wrapper.len() - length_at - 4).map_err(|_| BuildError::TooLarge {
            size: wrapper.len(),
        })?;
    wrapper[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    finish_message(&mut wrapper)?;
    Ok(wrapper)
}

fn type_bit(magic: LegacyMagic, timestamp_type: TimestampType) -> u8 {
    match (magic, timestamp_type) {
        (LegacyMagic::V1, TimestampType::LogAppendTime) => 0x08,
        _ => 0,
    }
}

/// Gives where the message starts.
fn start_message(
    out: &mut BytesMut,
    magic: LegacyMagic,
    offset: i64,
    attributes: u8,
    timestamp: i64,
) -> usize {
    let start = out.len();
    out.put_i64(offset);
    out.put_i32(0);
    out.put_u32(0);
    out.put_i8(magic.value());
    out.put_u8(attributes);
    debug_assert_eq!(out.len() - start, ATTRIBUTES + 1);
    if magic == LegacyMagic::V1 {
        out.put_i64(timestamp);
    }
    start
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&[u8]>) -> Result<(), BuildError> {
    match bytes {
        Some(bytes) => {
            let length = i32::try_from(bytes.len())
                .map_err(|_| BuildError::TooLarge { size: bytes.len() })?;
            out.put_i32(length);
            out.put_slice(bytes);
        }
        None => out.put_i32(-1),
    }
    Ok(())
}

/// Length and checksum, once the rest is written.
fn finish_message(message: &mut [u8]) -> Result<(), BuildError> {
    let length = i32::try_from(message.len() - LOG_OVERHEAD).map_err(|_| BuildError::TooLarge {
        size: message.len(),
    })?;
    message[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = crc32fast::hash(&message[MAGIC..]);
    message[CRC..CRC + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}
