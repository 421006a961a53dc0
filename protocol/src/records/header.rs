//! The 61 bytes in front of every batch of format v2 (KIP-98).
//!
//! ```text
//!  0 base offset i64        | 23 last offset delta i32 | 51 producer epoch i16
//!  8 length i32 (after it)  | 27 base timestamp i64    | 53 base sequence i32
//! 12 partition leader epoch | 35 max timestamp i64     | 57 records count i32
//! 16 magic i8 = 2           | 43 producer id i64       | 61 records
//! 17 crc u32 (CRC-32C of everything from 21 on)
//! 21 attributes i16
//! ```
//! All big-endian. Base offset and leader epoch lie outside the checksum, so that the leader can
//! assign them without touching the rest.

use super::compress::Compression;
use super::error::BatchError;

pub const NO_TIMESTAMP: i64 = -1;
pub const NO_PRODUCER_ID: i64 = -1;
pub const NO_PRODUCER_EPOCH: i16 = -1;
pub const NO_SEQUENCE: i32 = -1;
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;

/// Offset and length field, in front of every entry of every format. The length does not count them.
pub const LOG_OVERHEAD: usize = 12;
/// The bytes needed to learn size and magic of any entry.
pub const HEADER_UP_TO_MAGIC: usize = 17;
/// A v2 batch without records.
pub const BATCH_OVERHEAD: usize = 61;

pub(crate) const BASE_OFFSET: usize = 0;
pub(crate) const LENGTH: usize = 8;
pub(crate) const PARTITION_LEADER_EPOCH: usize = 12;
pub(crate) const MAGIC: usize = 16;
pub(crate) const CRC: usize = 17;
pub(crate) const ATTRIBUTES: usize = 21;
pub(crate) const LAST_OFFSET_DELTA: usize = 23;
pub(crate) const BASE_TIMESTAMP: usize = 27;
pub(crate) const MAX_TIMESTAMP: usize = 35;
pub(crate) const PRODUCER_ID: usize = 43;
pub(crate) const PRODUCER_EPOCH: usize = 51;
pub(crate) const BASE_SEQUENCE: usize = 53;
pub(crate) const RECORDS_COUNT: usize = 57;

/// Who set the timestamps: attribute bit 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    #[default]
    CreateTime,
    LogAppendTime,
}

/// The attribute bits of a v2 batch; unknown ones are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    const COMPRESSION: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// # Errors
    /// Ids 5 to 7 are not assigned.
    pub fn compression(self) -> Result<Compression, BatchError> {
        Compression::from_id((self.0 & Self::COMPRESSION) as u8)
    }

    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Then the base timestamp is the time from which on tombstones and markers may go (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// Without the bits that Kafka 4.4 gives no meaning.
    #[must_use]
    pub(crate) fn known(self) -> Self {
        Attributes(self.0 & 0x7f)
    }

    #[must_use]
    pub fn with_compression(self, compression: Compression) -> Self {
        Attributes((self.0 & !Self::COMPRESSION) | i16::from(compression.id()))
    }

    #[must_use]
    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with(
            Self::LOG_APPEND_TIME,
            timestamp_type == TimestampType::LogAppendTime,
        )
    }

    #[must_use]
    pub fn with_transactional(self, on: bool) -> Self {
        self.with(Self::TRANSACTIONAL, on)
    }

    #[must_use]
    pub fn with_control(self, on: bool) -> Self {
        self.with(Self::CONTROL, on)
    }

    #[must_use]
    pub fn with_delete_horizon(self, on: bool) -> Self {
        self.with(Self::DELETE_HORIZON, on)
    }

    fn with(self, bit: i16, on: bool) -> Self {
        Attributes(if on { self.0 | bit } else { self.0 & !bit })
    }
}

/// Size and format of the entry at the start of `bytes`, of any version: the first step of walking
/// a log. Reads at most [`HEADER_UP_TO_MAGIC`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peek {
    /// First offset of a v2 batch; the offset (of the last record, if compressed) in v0 and v1.
    pub offset: i64,
    /// Whole size with the 12 bytes of offset and length. At least the header of its format.
    pub size: usize,
    /// 0, 1 or 2.
    pub magic: i8,
}

impl Peek {
    /// # Errors
    /// `Truncated` below 17 bytes, `Magic` for unknown ones, `TooSmall` for an impossible length.
    /// The `size` may reach past `bytes`: the caller compares.
    pub fn parse(bytes: &[u8]) -> Result<Peek, BatchError> {
        if bytes.len() < HEADER_UP_TO_MAGIC {
            return Err(BatchError::Truncated {
                needed: HEADER_UP_TO_MAGIC,
                available: bytes.len(),
            });
        }
        let length = get_i32(bytes, LENGTH);
        let magic = bytes[MAGIC] as i8;
        let size = i64::from(length) + LOG_OVERHEAD as i64;
        let least = LOG_OVERHEAD + super::legacy::OVERHEAD_V0;
        if size < least as i64 {
            // Too short for any format: what stands where the magic would be says nothing.
            return Err(BatchError::TooSmall {
                size,
                minimum: least,
            });
        }
        let minimum = match magic {
            0 => LOG_OVERHEAD + super::legacy::OVERHEAD_V0,
            1 => LOG_OVERHEAD + super::legacy::OVERHEAD_V1,
            2 => BATCH_OVERHEAD,
            _ => return Err(BatchError::Magic { magic }),
        };
        match usize::try_from(size) {
            Ok(size) if size >= minimum => Ok(Peek {
                offset: get_i64(bytes, BASE_OFFSET),
                size,
                magic,
            }),
            _ => Err(BatchError::TooSmall { size, minimum }),
        }
    }
}

/// The header of a v2 batch, read out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// The length field: bytes after it, so 12 less than [`BatchHeader::size_in_bytes`]. At least 49.
    pub batch_length: i32,
    /// [`NO_PARTITION_LEADER_EPOCH`] until a leader has assigned it.
    pub partition_leader_epoch: i32,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    /// What the records' timestamps count from; the delete horizon if that flag is set.
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`, which need not hold the whole batch.
    ///
    /// # Errors
    /// `Truncated` below 61 bytes, `Magic` for anything but 2, `TooSmall` for an impossible length.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let peek = Peek::parse(bytes)?;
        if peek.magic != 2 {
            return Err(BatchError::Magic { magic: peek.magic });
        }
        if bytes.len() < BATCH_OVERHEAD {
            return Err(BatchError::Truncated {
                needed: BATCH_OVERHEAD,
                available: bytes.len(),
            });
        }
        Ok(BatchHeader {
            base_offset: peek.offset,
            batch_length: get_i32(bytes, LENGTH),
            partition_leader_epoch: get_i32(bytes, PARTITION_LEADER_EPOCH),
            crc: get_i32(bytes, CRC) as u32,
            attributes: Attributes(get_i16(bytes, ATTRIBUTES)),
            last_offset_delta: get_i32(bytes, LAST_OFFSET_DELTA),
            base_timestamp: get_i64(bytes, BASE_TIMESTAMP),
            max_timestamp: get_i64(bytes, MAX_TIMESTAMP),
            producer_id: get_i64(bytes, PRODUCER_ID),
            producer_epoch: get_i16(bytes, PRODUCER_EPOCH),
            base_sequence: get_i32(bytes, BASE_SEQUENCE),
            records_count: get_i32(bytes, RECORDS_COUNT),
        })
    }

    /// The whole batch, header and records.
    pub fn size_in_bytes(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    /// Wraps on nonsense instead of overflowing; `validate` refuses such batches from clients.
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .wrapping_add(i64::from(self.last_offset_delta))
    }

    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// Sequence of the last record, or [`NO_SEQUENCE`].
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            return NO_SEQUENCE;
        }
        increment_sequence(self.base_sequence, self.last_offset_delta)
    }

    /// # Errors
    /// Compression ids 5 to 7 are not assigned.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        self.attributes.compression()
    }

    pub fn timestamp_type(&self) -> TimestampType {
        self.attributes.timestamp_type()
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    pub fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    /// Unix milliseconds from which on tombstones and markers of this batch may be removed.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.attributes
            .has_delete_horizon()
            .then_some(self.base_timestamp)
    }
}

/// Sequence numbers run from 0 to 2^31 - 1 and start again at 0.
pub fn increment_sequence(sequence: i32, by: i32) -> i32 {
    sequence.wrapping_add(by) & i32::MAX
}

/// The CRC-32C that belongs into the header of this whole batch.
pub(crate) fn compute_crc(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[ATTRIBUTES..])
}

// The callers have checked the length.
pub(crate) fn get_i16(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn get_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn get_i64(bytes: &[u8], at: usize) -> i64 {
    (i64::from(get_i32(bytes, at)) << 32) | i64::from(get_i32(bytes, at + 4) as u32)
}
