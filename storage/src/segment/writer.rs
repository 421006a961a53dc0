//! One write to a segment: batches copied once into an aligned buffer, behind what their first block already holds.

use super::{BLOCK, block_start};
use crate::batch::{self, BatchHeader, HEADER_V2};
use bytes::Bytes;
use shards::io::AlignedBuf;

/// A batch with its place, ready to be written.
pub(crate) struct PlacedBatch {
    /// As it will stand in the file: offsets, epoch and, for LogAppendTime, timestamp are final.
    pub header: BatchHeader,
    /// As it came.
    pub bytes: Bytes,
    /// LogAppendTime: the broker's time to stamp it with.
    pub stamp_ms: Option<i64>,
    pub position: u32,
}

/// What one write carries.
pub(crate) struct WriteBuffer {
    /// Whole blocks; goes to the file at `file_position`.
    pub data: Bytes,
    pub file_position: u32,
    /// Positions in the segment where the batches begin and end.
    pub start: u32,
    pub end: u32,
}

impl WriteBuffer {
    /// How many bytes from the start lie in a block that the segment has already, where writing them by themselves
    /// may be seen. What is left of a write of which only the rest arrived must begin with zeros where its first batch
    /// does, as a lost write leaves it; so the block must have room for that batch's header.
    pub fn known(&self) -> usize {
        let before = (self.start - self.file_position) as usize;
        let block = BLOCK as usize;
        let cuts_header = (block - HEADER_V2 + 1..=block).contains(&before);
        if before == 0 || cuts_header { 0 } else { block }
    }
}

/// Builds a write. `tail` holds what stands from `file_position`, the start of a block, up to the batches.
pub(crate) fn build<'a>(
    file_position: u32,
    tail: &[u8],
    batches: impl Iterator<Item = &'a PlacedBatch> + Clone,
) -> WriteBuffer {
    debug_assert_eq!(file_position, block_start(file_position));
    let start = file_position + tail.len() as u32;
    let content = batches
        .clone()
        .map(|batch| batch.bytes.len())
        .sum::<usize>();
    let used = tail.len() + content;
    let whole = used.next_multiple_of(BLOCK as usize);
    let mut buffer = AlignedBuf::with_capacity(whole);
    buffer.extend_from_slice(tail);
    for placed in batches {
        let at = buffer.len();
        buffer.extend_from_slice(&placed.bytes);
        let copy = &mut buffer.as_mut_slice()[at..];
        batch::place(copy, placed.header.base_offset, placed.header.leader_epoch);
        if let Some(time_ms) = placed.stamp_ms {
            batch::stamp(copy, time_ms);
        }
    }
    let padding = [0_u8; BLOCK as usize];
    buffer.extend_from_slice(&padding[..whole - used]);
    WriteBuffer {
        data: buffer.freeze(),
        file_position,
        start,
        end: start + content as u32,
    }
}

/// How far ahead of `end` a file is extended: in steps that grow with the segment, so that a small log takes little
/// and a large one is extended rarely. Small logs are not extended ahead at all.
pub(crate) fn extension(end: u32, segment_bytes: u32, most: u32) -> u32 {
    const SMALL: u32 = 64 << 10;
    if end < SMALL {
        return 0;
    }
    let room = segment_bytes.saturating_sub(end);
    end.min(most).min(room).next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::opaque_batch;

    #[test]
    fn a_write_repeats_its_first_block_and_fills_its_last() {
        let bytes = Bytes::from(opaque_batch(3, 5_000, 9, (-1, -1, -1)));
        let mut header = BatchHeader::parse(&bytes).unwrap();
        header.base_offset = 40;
        header.last_offset = 42;
        header.leader_epoch = 6;
        let placed = PlacedBatch {
            header,
            bytes,
            stamp_ms: None,
            position: 4_196,
        };
        let tail = [7_u8; 100];
        let write = build(4_096, &tail, [&placed].into_iter());
        assert_eq!(
            (write.file_position, write.start, write.end),
            (4_096, 4_196, 4_196 + 5_061)
        );
        assert_eq!(write.data.len(), 8_192);
        assert_eq!(write.data[..100], tail);
        let written = BatchHeader::parse(&write.data[100..]).unwrap();
        assert_eq!(
            (
                written.base_offset,
                written.last_offset,
                written.leader_epoch
            ),
            (40, 42, 6)
        );
        assert!(batch::checksum_holds(&write.data[100..5_161]));
        assert!(write.data[5_161..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_first_block_stands_by_itself_where_a_header_has_room_in_it() {
        let known = |before: u32| {
            let write = WriteBuffer {
                data: Bytes::new(),
                file_position: 8_192,
                start: 8_192 + before,
                end: 100_000,
            };
            write.known()
        };
        let header = HEADER_V2 as u32;
        assert_eq!(known(0), 0, "nothing is written again");
        assert_eq!(known(1), 4_096);
        assert_eq!(known(4_096 - header), 4_096);
        assert_eq!(known(4_096 - header + 1), 0);
        assert_eq!(known(4_095), 0);
        assert_eq!(known(4_096), 0);
        assert_eq!(known(60_000), 4_096, "the journal has what precedes");
    }

    #[test]
    fn extension_grows_with_the_segment() {
        assert_eq!(extension(1_000, 1 << 30, 16 << 20), 0);
        assert_eq!(extension(64 << 10, 1 << 30, 16 << 20), 64 << 10);
        assert_eq!(extension(512 << 20, 1 << 30, 16 << 20), 16 << 20);
        assert_eq!(extension((1 << 30) - 5_000, 1 << 30, 16 << 20), 8_192);
    }
}
