//! The fixed part of a batch as it lies in a segment: enough to walk, index and place it, never its records.
//!
//! Layout v2 (KIP-98): base offset 8, length 4, leader epoch 4, magic 1, crc 4, attributes 2, last offset delta 4,
//! base timestamp 8, max timestamp 8, producer id 8, producer epoch 2, base sequence 4, record count 4.
//! v0 and v1 messages start with offset 8, length 4, crc 4, magic 1, attributes 1, and v1 goes on with timestamp 8.

/// Offset and length: what stands before the part that `length` counts.
pub const LOG_OVERHEAD: usize = 12;
/// Header of a v2 batch, and so the smallest one.
pub const HEADER_V2: usize = 61;
/// Bytes that tell magic, and so how to read on.
pub const PREFIX: usize = 17;
const SMALLEST_V0: usize = 14;
const SMALLEST_V1: usize = 22;
const NO_TIMESTAMP: i64 = -1;
/// The byte that names the format, in all of them.
pub const MAGIC_AT: usize = 16;
pub const CRC_AT: usize = 17;
/// Where the part of a v2 batch begins that its checksum covers.
pub const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;
const TIMESTAMP_TYPE_BIT: u16 = 0x08;
const TRANSACTIONAL_BIT: u16 = 0x10;
const CONTROL_BIT: u16 = 0x20;

/// What a log needs to know of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// First offset. Of a v0 or v1 message, compressed or not: its own offset, which is the last one inside.
    pub base_offset: i64,
    pub last_offset: i64,
    /// Whole size in the segment, overhead included.
    pub size: usize,
    /// -1 for v0 and v1.
    pub leader_epoch: i32,
    pub magic: u8,
    pub attributes: u16,
    pub max_timestamp: i64,
    /// -1 where there is none.
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

/// Why bytes are not the start of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// More bytes are needed: this many from the start of the batch.
    Short {
        needed: usize,
    },
    /// Zeros where a batch would start: the unwritten end of a file that was extended ahead.
    Zeros,
    Impossible(&'static str),
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. Needs 61 bytes for v2, up to 26 for older ones; the body may be missing.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, HeaderFault> {
        if bytes.len() < PREFIX {
            return Err(HeaderFault::Short { needed: PREFIX });
        }
        let base_offset = i64_at(bytes, 0);
        let length = i32_at(bytes, 8);
        if base_offset == 0 && length == 0 {
            return Err(HeaderFault::Zeros);
        }
        if base_offset < 0 {
            return Err(HeaderFault::Impossible("negative offset"));
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(HeaderFault::Impossible("negative length"));
        };
        match bytes[16] {
            2 => Self::parse_v2(bytes, base_offset, length),
            0 => Self::parse_old(bytes, base_offset, length, 0, SMALLEST_V0),
            1 => Self::parse_old(bytes, base_offset, length, 1, SMALLEST_V1),
            _ => Err(HeaderFault::Impossible("unknown magic")),
        }
    }

    fn parse_v2(bytes: &[u8], base_offset: i64, length: usize) -> Result<Self, HeaderFault> {
        if length < HEADER_V2 - LOG_OVERHEAD {
            return Err(HeaderFault::Impossible("shorter than a batch header"));
        }
        if bytes.len() < HEADER_V2 {
            return Err(HeaderFault::Short { needed: HEADER_V2 });
        }
        let last_offset_delta = i32_at(bytes, 23);
        if last_offset_delta < 0 {
            return Err(HeaderFault::Impossible("negative last offset delta"));
        }
        let Some(last_offset) = base_offset.checked_add(i64::from(last_offset_delta)) else {
            return Err(HeaderFault::Impossible("last offset overflows"));
        };
        Ok(BatchHeader {
            base_offset,
            last_offset,
            size: length + LOG_OVERHEAD,
            leader_epoch: i32_at(bytes, 12),
            magic: 2,
            attributes: u16::from_be_bytes([bytes[ATTRIBUTES_AT], bytes[ATTRIBUTES_AT + 1]]),
            max_timestamp: i64_at(bytes, MAX_TIMESTAMP_AT),
            producer_id: i64_at(bytes, 43),
            producer_epoch: i16::from_be_bytes([bytes[51], bytes[52]]),
            base_sequence: i32_at(bytes, 53),
            record_count: i32_at(bytes, 57),
        })
    }

    fn parse_old(
        bytes: &[u8],
        base_offset: i64,
        length: usize,
        magic: u8,
        smallest: usize,
    ) -> Result<Self, HeaderFault> {
        if length < smallest {
            return Err(HeaderFault::Impossible("shorter than a message"));
        }
        let timestamp = if magic == 1 {
            if bytes.len() < 26 {
                return Err(HeaderFault::Short { needed: 26 });
            }
            i64_at(bytes, 18)
        } else if bytes.len() < 18 {
            return Err(HeaderFault::Short { needed: 18 });
        } else {
            NO_TIMESTAMP
        };
        Ok(BatchHeader {
            base_offset,
            last_offset: base_offset,
            size: length + LOG_OVERHEAD,
            leader_epoch: -1,
            magic,
            attributes: u16::from(bytes[17]),
            max_timestamp: timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 1,
        })
    }

    pub fn is_control(&self) -> bool {
        self.magic == 2 && self.attributes & CONTROL_BIT != 0
    }

    pub fn is_transactional(&self) -> bool {
        self.magic == 2 && self.attributes & TRANSACTIONAL_BIT != 0
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// Sequence of the last record; wraps at i32::MAX to 0 (KIP-98). -1 where there is no producer.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        // Control batches and compacted ones keep their original delta, so the delta counts, not the records.
        let delta = self.last_offset - self.base_offset;
        let last = (i64::from(self.base_sequence) + delta) % (i64::from(i32::MAX) + 1);
        i32::try_from(last).unwrap_or(0)
    }
}

/// Checks the checksum of one whole batch: CRC-32C from the attributes on for v2, CRC-32 from magic on before.
pub fn checksum_holds(batch: &[u8]) -> bool {
    if batch.len() < PREFIX {
        return false;
    }
    if batch[16] == 2 {
        batch.len() >= HEADER_V2 && u32_at(batch, CRC_AT) == crc32c::crc32c(&batch[ATTRIBUTES_AT..])
    } else {
        u32_at(batch, 12) == crc32fast::hash(&batch[16..])
    }
}

/// Writes base offset and leader epoch into a v2 batch. Both lie outside the checksum.
pub fn place(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Stamps a v2 batch with the broker's time: sets the type bit and the max timestamp, recomputes the checksum.
/// Base timestamp and the records' deltas stay (they are ignored for this type).
pub fn stamp(batch: &mut [u8], append_time_ms: i64) {
    let attributes = u16::from_be_bytes([batch[ATTRIBUTES_AT], batch[ATTRIBUTES_AT + 1]]);
    batch[ATTRIBUTES_AT..ATTRIBUTES_AT + 2]
        .copy_from_slice(&(attributes | TIMESTAMP_TYPE_BIT).to_be_bytes());
    batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&append_time_ms.to_be_bytes());
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(crate) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A v2 batch whose body is opaque bytes: good for everything that never looks at records.
    pub(crate) fn opaque_batch(
        records: i32,
        body: usize,
        timestamp: i64,
        producer: (i64, i16, i32),
    ) -> Vec<u8> {
        let mut batch = vec![0_u8; HEADER_V2 + body];
        let length = i32::try_from(batch.len() - LOG_OVERHEAD).unwrap();
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        batch[16] = 2;
        batch[23..27].copy_from_slice(&(records - 1).to_be_bytes());
        batch[27..35].copy_from_slice(&timestamp.to_be_bytes());
        batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
        batch[43..51].copy_from_slice(&producer.0.to_be_bytes());
        batch[51..53].copy_from_slice(&producer.1.to_be_bytes());
        batch[53..57].copy_from_slice(&producer.2.to_be_bytes());
        batch[57..61].copy_from_slice(&records.to_be_bytes());
        for (index, byte) in batch[HEADER_V2..].iter_mut().enumerate() {
            *byte = (index % 251) as u8;
        }
        let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
        batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        batch
    }

    #[test]
    fn a_header_is_read_back() {
        let mut batch = opaque_batch(10, 100, 77, (5, 2, i32::MAX - 3));
        place(&mut batch, 1_000, 9);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(
            (header.base_offset, header.last_offset, header.size),
            (1_000, 1_009, 161)
        );
        assert_eq!((header.leader_epoch, header.max_timestamp), (9, 77));
        assert_eq!((header.producer_id, header.producer_epoch), (5, 2));
        assert_eq!(
            header.last_sequence(),
            5,
            "sequences wrap to 0 after i32::MAX"
        );
        assert!(checksum_holds(&batch));
        batch[70] ^= 1;
        assert!(!checksum_holds(&batch));
    }

    #[test]
    fn a_stamp_keeps_the_checksum_right() {
        let mut batch = opaque_batch(1, 10, 77, (-1, -1, -1));
        stamp(&mut batch, 123_456);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(header.max_timestamp, 123_456);
        assert_eq!(header.attributes & TIMESTAMP_TYPE_BIT, TIMESTAMP_TYPE_BIT);
        assert!(checksum_holds(&batch));
    }

    #[test]
    fn hostile_headers_are_faults() {
        assert_eq!(BatchHeader::parse(&[0; 61]), Err(HeaderFault::Zeros));
        assert_eq!(
            BatchHeader::parse(&[0; 3]),
            Err(HeaderFault::Short { needed: 17 })
        );
        let mut batch = opaque_batch(1, 10, 0, (-1, -1, -1));
        batch[8..12].copy_from_slice(&(-1_i32).to_be_bytes());
        assert!(matches!(
            BatchHeader::parse(&batch),
            Err(HeaderFault::Impossible(_))
        ));
        for byte in 0..61 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut batch = opaque_batch(1, 10, 0, (-1, -1, -1));
                batch[byte] = value;
                let _ = BatchHeader::parse(&batch);
            }
        }
    }
}
