//! Bringing a batch to the compression that its topic asks for.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::batch::BatchView;
use super::builder::{BatchBuilder, BuildError};
use super::compress::{Codec, Compression, compress, decompress};
use super::error::BatchError;
use super::header::{ATTRIBUTES, BATCH_OVERHEAD, LENGTH, LOG_OVERHEAD, TimestampType};
use super::rewrite::write_crc;

/// A topic's `compression.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TopicCompression {
    /// `producer`: batches stay as they come.
    #[default]
    Producer,
    /// `uncompressed` or the name of a codec. Batches that have this codec already stay, whatever
    /// their level was.
    To(Codec),
}

impl TopicCompression {
    /// `level` gives the topic's level of a codec (`compression.gzip.level` and so on). `None` for
    /// names that Kafka does not know; `none` is such a name.
    pub fn from_config(
        name: &str,
        level: impl FnOnce(Compression) -> i32,
    ) -> Option<TopicCompression> {
        match name {
            "producer" => Some(TopicCompression::Producer),
            "uncompressed" => Some(TopicCompression::To(Codec::NONE)),
            "none" => None,
            _ => {
                let compression = Compression::from_name(name)?;
                Some(TopicCompression::To(Codec::new(
                    compression,
                    level(compression),
                )))
            }
        }
    }

    /// What a batch of this compression has to become; `None` if it stays. Control batches that
    /// came uncompressed stay so.
    pub fn target(self, source: Compression, is_control: bool) -> Option<Codec> {
        match self {
            TopicCompression::Producer => None,
            TopicCompression::To(codec) if codec.compression == source => None,
            TopicCompression::To(_) if is_control && source == Compression::None => None,
            TopicCompression::To(codec) => Some(codec),
        }
    }
}

/// Why a batch could not be written anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecompressError {
    #[error(transparent)]
    Read(#[from] BatchError),
    #[error(transparent)]
    Write(#[from] BuildError),
}

/// The same batch with its records compressed by `codec`. Nothing else changes but length,
/// attributes and checksum.
///
/// # Errors
/// The records do not decompress within `max_decompressed` bytes, or become longer than 2^31 - 1.
pub fn recompress(
    batch: &BatchView,
    codec: Codec,
    max_decompressed: usize,
) -> Result<BytesMut, RecompressError> {
    let payload = &batch.bytes()[BATCH_OVERHEAD..];
    let records = match batch.compression()? {
        Compression::None => Cow::Borrowed(payload),
        compression => {
            let records = decompress(compression, payload, max_decompressed);
            Cow::Owned(records.map_err(BatchError::from)?)
        }
    };
    let mut out = BytesMut::with_capacity(batch.size_in_bytes());
    out.put_slice(&batch.bytes()[..BATCH_OVERHEAD]);
    compress(codec, &records, &mut out).map_err(BuildError::from)?;
    let length = i32::try_from(out.len() - LOG_OVERHEAD)
        .map_err(|_| BuildError::TooLarge { size: out.len() })?;
    let attributes = batch.attributes.with_compression(codec.compression);
    out[LENGTH..LENGTH + 4].copy_from_slice(&length.to_be_bytes());
    out[ATTRIBUTES..ATTRIBUTES + 2].copy_from_slice(&attributes.0.to_be_bytes());
    write_crc(&mut out);
    Ok(out)
}

/// The same records at consecutive offsets from the base offset on, whatever offsets they said.
/// For clients that number the records of a batch wrongly: their batches are put right, not
/// refused, as Kafka does.
///
/// # Errors
/// As [`recompress`].
pub fn renumber(
    batch: &BatchView,
    codec: Codec,
    max_decompressed: usize,
) -> Result<BytesMut, RecompressError> {
    let mut builder = BatchBuilder::new(batch.base_offset)
        .codec(codec)
        .partition_leader_epoch(batch.partition_leader_epoch)
        .producer(batch.producer_id, batch.producer_epoch, batch.base_sequence)
        .transactional(batch.is_transactional())
        .control(batch.is_control());
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(batch.max_timestamp);
    }
    for (at, record) in batch.records(max_decompressed)?.enumerate() {
        let mut record = record?;
        record.offset = batch.base_offset.wrapping_add(at as i64);
        builder.append_record(&record)?;
    }
    Ok(builder.build()?)
}
