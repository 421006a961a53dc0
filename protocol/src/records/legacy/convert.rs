//! Down-conversion for Fetch before version 4.

use bytes::Bytes;

use super::super::builder::BuildError;
use super::super::compress::Compression;
use super::super::error::BatchError;
use super::super::header::TimestampType;
use super::super::record::Record;
use super::Entry;
use super::builder::{LegacyMagic, write_message_set};

/// Why an entry cannot be given to an old client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownConvertError {
    /// Answered as UNSUPPORTED_COMPRESSION_TYPE: no such client reads zstd.
    #[error("zstd batches cannot be converted to formats before v2")]
    Zstd,
    #[error(transparent)]
    Read(#[from] BatchError),
    #[error(transparent)]
    Write(#[from] BuildError),
}

/// The entry as a message set of at most `magic`, with its own compression and real offsets; `None`
/// if nothing of it is left. Control batches and headers are dropped. Of uncompressed entries only
/// the records from `first_offset` on are kept.
///
/// # Errors
/// `Zstd`; or the records cannot be read within `max_decompressed` bytes.
pub fn down_convert(
    entry: &Entry,
    magic: LegacyMagic,
    first_offset: i64,
    max_decompressed: usize,
) -> Result<Option<Bytes>, DownConvertError> {
    if entry.magic() <= magic.value() {
        return Ok(Some(entry.bytes().clone()));
    }
    if matches!(entry, Entry::Batch(batch) if batch.is_control()) {
        return Ok(None);
    }
    let compression = entry.compression()?;
    if compression == Compression::Zstd {
        return Err(DownConvertError::Zstd);
    }
    let all = compression != Compression::None;
    let records: Vec<Record> = entry
        .records(max_decompressed)?
        .filter(|record| all || !matches!(record, Ok(record) if record.offset < first_offset))
        .collect::<Result<_, _>>()?;
    if records.is_empty() {
        return Ok(None);
    }
    let timestamp_type = match magic {
        LegacyMagic::V0 => TimestampType::CreateTime,
        LegacyMagic::V1 => entry.timestamp_type(),
    };
    let set = write_message_set(magic, compression.into(), timestamp_type, &records)?;
    Ok(Some(set.freeze()))
}
