//! The producer snapshot, `<offset>.snapshot`, version 1 as Apache Kafka writes it.
//!
//! int16 version, uint32 CRC-32C of all that follows, int32 count, then per producer: id int64, epoch int16, last
//! sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator epoch int32, first offset of the
//! open transaction int64. Only the last batch of a producer survives a restart.

use super::{BatchMetadata, ProducerEntry, ProducerState};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: i16 = 1;
const HEADER: usize = 10;
const ENTRY: usize = 46;

/// Why a snapshot cannot be used: the state is rebuilt from an older one, or from the batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotFault(pub &'static str);

pub fn encode(state: &ProducerState) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER + state.len() * ENTRY);
    bytes.put_i16(VERSION);
    bytes.put_u32(0);
    bytes.put_i32(i32::try_from(state.len()).unwrap_or(i32::MAX));
    for (producer_id, entry) in state.iter() {
        let last = entry.last_batch();
        bytes.put_i64(producer_id);
        bytes.put_i16(entry.epoch);
        bytes.put_i32(entry.last_sequence());
        bytes.put_i64(last.map_or(-1, |batch| batch.last_offset));
        bytes.put_i32(last.map_or(0, |batch| batch.offset_delta));
        bytes.put_i64(entry.last_timestamp);
        bytes.put_i32(entry.coordinator_epoch);
        bytes.put_i64(entry.transaction_first_offset.unwrap_or(-1));
    }
    let crc = crc32c::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    bytes.freeze()
}

/// # Errors
/// Unknown version, wrong length or checksum.
pub fn decode(mut bytes: &[u8]) -> Result<ProducerState, SnapshotFault> {
    if bytes.len() < HEADER {
        return Err(SnapshotFault("shorter than its header"));
    }
    if bytes.get_i16() != VERSION {
        return Err(SnapshotFault("unknown version"));
    }
    if bytes.get_u32() != crc32c::crc32c(bytes) {
        return Err(SnapshotFault("checksum does not match"));
    }
    let count = usize::try_from(bytes.get_i32()).unwrap_or(usize::MAX);
    if count.checked_mul(ENTRY) != Some(bytes.len()) {
        return Err(SnapshotFault("length does not fit its number of producers"));
    }
    let mut state = ProducerState::default();
    for _ in 0..count {
        let producer_id = bytes.get_i64();
        let mut entry = ProducerEntry::empty();
        entry.epoch = bytes.get_i16();
        let last_sequence = bytes.get_i32();
        let last_offset = bytes.get_i64();
        let offset_delta = bytes.get_i32();
        let timestamp = bytes.get_i64();
        if last_offset >= 0 {
            // A batch begins at offset 0 or later, and not behind its end.
            if offset_delta < 0 || i64::from(offset_delta) > last_offset {
                return Err(SnapshotFault("a batch does not begin where it can"));
            }
            entry.add_batch(BatchMetadata {
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            });
        }
        entry.last_timestamp = timestamp;
        entry.coordinator_epoch = bytes.get_i32();
        entry.transaction_first_offset = Some(bytes.get_i64()).filter(|offset| *offset >= 0);
        state.insert(producer_id, entry);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::opaque_batch;
    use crate::batch::{BatchHeader, place};

    fn state() -> ProducerState {
        let mut state = ProducerState::default();
        for (offset, producer) in [(0, (7, 3, 0)), (5, (7, 3, 5)), (10, (9, 0, 0))] {
            let mut batch = opaque_batch(5, 1, 1_000 + offset, producer);
            place(&mut batch, offset, 0);
            state.apply_batch(&BatchHeader::parse(&batch).unwrap());
        }
        state
    }

    #[test]
    fn the_last_batch_of_each_producer_survives() {
        let bytes = encode(&state());
        assert_eq!(bytes.len(), 10 + 2 * 46);
        assert_eq!(bytes[..2], [0, 1]);
        let read = decode(&bytes).unwrap();
        let entry = read.get(7).unwrap();
        assert_eq!(
            (entry.epoch, entry.last_sequence(), entry.last_timestamp),
            (3, 9, 1_005)
        );
        assert_eq!(entry.batches().len(), 1);
        assert_eq!(entry.batches()[0].first_offset(), 5);
        assert_eq!(encode(&read), bytes);
    }

    #[test]
    fn a_batch_that_cannot_be_is_refused() {
        let bytes = encode(&state());
        let delta = HEADER + 8 + 2 + 4 + 8;
        for wrong in [-1, i32::MIN, 10, i32::MAX] {
            let mut damaged = bytes.to_vec();
            damaged[delta..delta + 4].copy_from_slice(&i32::to_be_bytes(wrong));
            let crc = crc32c::crc32c(&damaged[6..]);
            damaged[2..6].copy_from_slice(&crc.to_be_bytes());
            assert!(decode(&damaged).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = encode(&state());
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "flip at {at}");
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
