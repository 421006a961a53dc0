//! Writes v2 batches.

use bytes::{BufMut, Bytes, BytesMut};

use super::compress::{Codec, CompressError, compress};
use super::header::{
    Attributes, BATCH_OVERHEAD, LOG_OVERHEAD, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TimestampType,
};
use super::record::Record;
use super::rewrite::write_crc;
use super::varint::{varint_len, varlong_len, write_varint, write_varlong};

/// Why a batch cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Lengths in a batch are 32 bits.
    #[error("the batch would be {size} bytes, more than the format can say")]
    TooLarge { size: usize },
    #[error("offset {offset} is not above the offset {last} before it, or too far from {base}")]
    Offset { offset: i64, last: i64, base: i64 },
    #[error(transparent)]
    Compress(#[from] CompressError),
}

/// Collects records and writes them as one batch.
///
/// Timestamps and offsets are stored relative to the first timestamp and the base offset.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    records: Vec<u8>,
    count: i32,
    base_offset: i64,
    last_offset_delta: i32,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    partition_leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    attributes: Attributes,
    log_append_time: Option<i64>,
    codec: Codec,
}

impl BatchBuilder {
    /// Producers send base offset 0; the leader's log assigns the real one.
    pub fn new(base_offset: i64) -> Self {
        BatchBuilder {
            records: Vec::new(),
            count: 0,
            base_offset,
            last_offset_delta: -1,
            base_timestamp: None,
            max_timestamp: NO_TIMESTAMP,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            attributes: Attributes::default(),
            log_append_time: None,
            codec: Codec::NONE,
        }
    }

    #[must_use]
    pub fn codec(mut self, codec: impl Into<Codec>) -> Self {
        self.codec = codec.into();
        self
    }

    #[must_use]
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.partition_leader_epoch = epoch;
        self
    }

    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    #[must_use]
    pub fn transactional(mut self, on: bool) -> Self {
        self.attributes = self.attributes.with_transactional(on);
        self
    }

    #[must_use]
    pub fn control(mut self, on: bool) -> Self {
        self.attributes = self.attributes.with_control(on);
        self
    }

    /// All records get the broker's time, Unix milliseconds.
    #[must_use]
    pub fn log_append_time(mut self, now_ms: i64) -> Self {
        self.attributes = self
            .attributes
            .with_timestamp_type(TimestampType::LogAppendTime);
        self.log_append_time = Some(now_ms);
        self
    }

    /// Set before the first record; otherwise that record's timestamp.
    #[must_use]
    pub fn base_timestamp(mut self, timestamp: i64) -> Self {
        self.base_timestamp = Some(timestamp);
        self
    }

    /// The base timestamp becomes the time from which on tombstones may go (KIP-534). Set before
    /// the first record.
    #[must_use]
    pub fn delete_horizon_ms(mut self, horizon_ms: i64) -> Self {
        self.attributes = self.attributes.with_delete_horizon(true);
        self.base_timestamp(horizon_ms)
    }

    /// Keeps the last offset of a batch whose last records were compacted away.
    pub fn keep_last_offset(&mut self, last_offset: i64) -> &mut Self {
        let delta = last_offset.saturating_sub(self.base_offset);
        self.last_offset_delta = self
            .last_offset_delta
            .max(i32::try_from(delta).unwrap_or(i32::MAX));
        self
    }

    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of the batch so far, before compression.
    pub fn size_in_bytes(&self) -> usize {
        BATCH_OVERHEAD + self.records.len()
    }

    /// Appends one record at the next offset.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> &mut Self {
        self.push(
            self.last_offset_delta + 1,
            timestamp,
            key,
            value,
            headers.iter().copied(),
        );
        self
    }

    /// Appends a record that keeps its offset, as compaction needs it.
    ///
    /// # Errors
    /// `Offset` if it is not above the one before, or more than 2^31 - 1 above the base offset.
    pub fn append_record(&mut self, record: &Record) -> Result<(), BuildError> {
        let last = self
            .base_offset
            .wrapping_add(i64::from(self.last_offset_delta));
        let delta = i32::try_from(record.offset.wrapping_sub(self.base_offset))
            .ok()
            .filter(|delta| *delta > self.last_offset_delta)
            .ok_or(BuildError::Offset {
                offset: record.offset,
                last,
                base: self.base_offset,
            })?;
        let headers = record
            .headers
            .iter()
            .map(|header| (&header.key[..], header.value.as_deref()));
        self.push(
            delta,
            record.timestamp,
            record.key.as_deref(),
            record.value.as_deref(),
            headers,
        );
        Ok(())
    }

    fn push<'a>(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone,
    ) {
        let base_timestamp = *self.base_timestamp.get_or_insert(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let body = 1
            + varlong_len(timestamp_delta)
            + varint_len(offset_delta)
            + nullable_len(key)
            + nullable_len(value)
            + varint_len(headers.len() as i32)
            + headers
                .clone()
                .map(|(k, v)| nullable_len(Some(k)) + nullable_len(v))
                .sum::<usize>();

        let out = &mut self.records;
        out.reserve(body + 5);
        // A length that does not fit makes the whole batch too large, which `build` refuses.
        write_varint(out, body as i32);
        out.push(0);
        write_varlong(out, timestamp_delta);
        write_varint(out, offset_delta);
        write_nullable(out, key);
        write_nullable(out, value);
        write_varint(out, headers.len() as i32);
        for (key, value) in headers {
            write_nullable(out, Some(key));
            write_nullable(out, value);
        }
        self.last_offset_delta = offset_delta;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.count += 1;
    }

    /// The batch, mutable so that offsets can be assigned later; `freeze` it to share.
    ///
    /// # Errors
    /// `TooLarge` above 2^31 - 1 bytes, or that compression failed.
    pub fn build(&self) -> Result<BytesMut, BuildError> {
        if self.size_in_bytes() > i32::MAX as usize {
            return Err(BuildError::TooLarge {
                size: self.size_in_bytes(),
            });
        }
        let mut out = BytesMut::with_capacity(BATCH_OVERHEAD + self.records.len());
        out.put_bytes(0, BATCH_OVERHEAD);
        compress(self.codec, &self.records, &mut out)?;
        let length = i32::try_from(out.len() - LOG_OVERHEAD)
            .map_err(|_| BuildError::TooLarge { size: out.len() })?;
        self.write_header(&mut out[..BATCH_OVERHEAD], length);
        write_crc(&mut out);
        Ok(out)
    }

    /// As [`BatchBuilder::build`], ready to share.
    ///
    /// # Errors
    /// Those of [`BatchBuilder::build`].
    pub fn build_bytes(&self) -> Result<Bytes, BuildError> {
        self.build().map(BytesMut::freeze)
    }

    fn write_header(&self, mut header: &mut [u8], length: i32) {
        let attributes = self.attributes.with_compression(self.codec.compression);
        header.put_i64(self.base_offset);
        header.put_i32(length);
        header.put_i32(self.partition_leader_epoch);
        header.put_i8(2);
        header.put_u32(0);
        header.put_i16(attributes.0);
        header.put_i32(self.last_offset_delta.max(0));
        header.put_i64(self.base_timestamp.unwrap_or(NO_TIMESTAMP));
        header.put_i64(self.log_append_time.unwrap_or(self.max_timestamp));
        header.put_i64(self.producer_id);
        header.put_i16(self.producer_epoch);
        header.put_i32(self.base_sequence);
        header.put_i32(self.count);
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint_len(bytes.len() as i32) + bytes.len(),
        None => 1,
    }
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            write_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
        None => write_varint(out, -1),
    }
}
