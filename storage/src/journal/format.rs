//! The bytes of the journal's file: a block that names this file's generation, then frames in whole blocks.
//!
//! A frame is one write. It carries the generation, a random number that nobody outside knows, so that record bytes cannot
//! pass for a frame; its number; the number of the oldest frame that is still needed; and a checksum over all of it. What
//! was torn, what is left of an earlier round, and what was written out of order is told apart by these.

use super::ring::Sequence;
use crate::segment::BLOCK;
use bytes::{Buf, Bytes};
use protocol::Uuid;
use shards::io::AlignedBuf;

const FILE_MAGIC: [u8; 8] = *b"RMJRNLF1";
const FRAME_MAGIC: [u8; 8] = *b"RMJRNL01";
/// Magic, generation, number, oldest number, length, checksum.
const FRAME_HEADER: usize = 8 + 16 + 8 + 8 + 4 + 4;
/// Where the checksum stands; it covers what is before it and what comes behind it.
const CHECKSUM_AT: usize = FRAME_HEADER - 4;
/// Kind, topic id, partition, length of the topic's name.
const ENTRY_HEADER: usize = 1 + 16 + 4 + 2;
/// Segment, position, lead, length.
const BYTES_HEADER: usize = 8 + 4 + 4 + 4;

const KIND_BYTES: u8 = 1;
const KIND_CUT: u8 = 2;
const KIND_FIRST: u8 = 3;

/// What tells this file's frames from all others.
pub(crate) type Generation = u128;

/// Whose entry it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub topic: String,
    pub partition: i32,
    pub topic_id: Uuid,
}

/// One entry of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// These bytes stand at `position` of the segment.
    Bytes {
        owner: Owner,
        place: Place,
        bytes: Bytes,
    },
    /// The log was cut or begun anew: earlier entries of it say nothing any more.
    Cut { owner: Owner },
}

/// Where bytes belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Base offset of the segment.
    pub segment: i64,
    pub position: u32,
    /// What stands before was in the segment when this was written. Then it begins where a block does, so that a sector
    /// that power takes from the segment is missing as a whole; otherwise it continues the log's entry before.
    pub first: bool,
    /// How many of the bytes the segment had already: of the block that it begins with.
    pub lead: u32,
}

/// A frame as its header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub sequence: Sequence,
    pub oldest: Sequence,
    /// With the header, without padding.
    pub length: u32,
}

/// The first block of the file.
pub(crate) fn encode_file_header(generation: Generation) -> Bytes {
    let mut block = AlignedBuf::with_capacity(BLOCK as usize);
    block.extend_from_slice(&FILE_MAGIC);
    block.extend_from_slice(&generation.to_be_bytes());
    let checksum = crc32c::crc32c(block.as_slice());
    block.extend_from_slice(&checksum.to_be_bytes());
    block.pad_to_block();
    block.freeze()
}

/// The generation that the first block names; `None` where it is none.
pub(crate) fn decode_file_header(block: &[u8]) -> Option<Generation> {
    let (covered, rest) = block.split_at_checked(24)?;
    let checksum = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
    let sound = covered.starts_with(&FILE_MAGIC) && crc32c::crc32c(covered) == checksum;
    let generation = u128::from_be_bytes(covered[8..].try_into().ok()?);
    sound.then_some(generation)
}

/// What an entry with that many bytes takes in a frame.
pub(crate) fn bytes_entry_size(topic: &str, bytes: usize) -> usize {
    ENTRY_HEADER + topic.len() + BYTES_HEADER + bytes
}

/// What a cut takes in a frame.
pub(crate) fn cut_entry_size(topic: &str) -> usize {
    ENTRY_HEADER + topic.len()
}

/// What a frame with entries of that size takes in the file.
pub(crate) fn frame_size(entries: usize) -> usize {
    (FRAME_HEADER + entries).next_multiple_of(BLOCK as usize)
}

/// A frame being put together.
pub(crate) struct FrameBuilder {
    buffer: AlignedBuf,
}

impl FrameBuilder {
    /// For entries of that size in all.
    pub fn new(entries: usize) -> FrameBuilder {
        let mut buffer = AlignedBuf::with_capacity(frame_size(entries));
        buffer.set_len(FRAME_HEADER);
        FrameBuilder { buffer }
    }

    fn owner(&mut self, kind: u8, owner: OwnerRef<'_>) {
        self.buffer.extend_from_slice(&[kind]);
        self.buffer.extend_from_slice(&owner.topic_id.0);
        self.buffer
            .extend_from_slice(&owner.partition.to_be_bytes());
        // Names of topics have at most 249 bytes.
        self.buffer
            .extend_from_slice(&(owner.topic.len() as u16).to_be_bytes());
        self.buffer.extend_from_slice(owner.topic.as_bytes());
    }

    pub fn bytes(&mut self, owner: OwnerRef<'_>, place: Place, bytes: &[u8]) {
        let kind = if place.first { KIND_FIRST } else { KIND_BYTES };
        self.owner(kind, owner);
        self.buffer.extend_from_slice(&place.segment.to_be_bytes());
        self.buffer.extend_from_slice(&place.position.to_be_bytes());
        self.buffer.extend_from_slice(&place.lead.to_be_bytes());
        // A frame is far smaller than 4 GiB.
        self.buffer
            .extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.buffer.extend_from_slice(bytes);
    }

    pub fn cut(&mut self, owner: OwnerRef<'_>) {
        self.owner(KIND_CUT, owner);
    }

    /// The frame, in whole blocks.
    pub fn finish(mut self, generation: Generation, sequence: Sequence, oldest: Sequence) -> Bytes {
        let length = self.buffer.len();
        let frame = self.buffer.as_mut_slice();
        frame[..8].copy_from_slice(&FRAME_MAGIC);
        frame[8..24].copy_from_slice(&generation.to_be_bytes());
        frame[24..32].copy_from_slice(&sequence.to_be_bytes());
        frame[32..40].copy_from_slice(&oldest.to_be_bytes());
        frame[40..44].copy_from_slice(&(length as u32).to_be_bytes());
        let checksum = frame_checksum(frame);
        frame[CHECKSUM_AT..FRAME_HEADER].copy_from_slice(&checksum.to_be_bytes());
        self.buffer.pad_to_block();
        self.buffer.freeze()
    }
}

/// [`Owner`], borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnerRef<'a> {
    pub topic: &'a str,
    pub partition: i32,
    pub topic_id: Uuid,
}

fn frame_checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c(&frame[..CHECKSUM_AT]),
        &frame[FRAME_HEADER..],
    )
}

/// Whether a frame of any generation might stand at the start of `block`.
pub(crate) fn begins_frame(block: &[u8]) -> bool {
    block.starts_with(&FRAME_MAGIC)
}

/// The header of a frame of this generation, if one stands at the start of `block`. Nothing vouches for it yet.
pub(crate) fn frame_header(block: &[u8], generation: Generation) -> Option<FrameHeader> {
    let mut header = block.get(..FRAME_HEADER)?;
    let magic = header.copy_to_bytes(8);
    let of = header.get_u128();
    let (sequence, oldest, length) = (header.get_u64(), header.get_u64(), header.get_u32());
    let plausible = oldest <= sequence && length as usize >= FRAME_HEADER;
    (magic[..] == FRAME_MAGIC && of == generation && plausible).then_some(FrameHeader {
        sequence,
        oldest,
        length,
    })
}

/// Whether the checksum of a whole frame holds.
pub(crate) fn frame_holds(frame: &[u8]) -> bool {
    let Some(stored) = frame.get(CHECKSUM_AT..FRAME_HEADER) else {
        return false;
    };
    u32::from_be_bytes([stored[0], stored[1], stored[2], stored[3]]) == frame_checksum(frame)
}

/// The entries of a frame whose checksum holds; stops where one cannot be.
pub(crate) fn entries(frame: Bytes) -> Vec<Entry> {
    let mut rest = frame.slice(FRAME_HEADER.min(frame.len())..);
    let mut entries = Vec::new();
    while let Some(entry) = next_entry(&mut rest) {
        entries.push(entry);
    }
    entries
}

fn next_entry(rest: &mut Bytes) -> Option<Entry> {
    if rest.len() < ENTRY_HEADER {
        return None;
    }
    let kind = rest.get_u8();
    let mut id = [0; 16];
    rest.copy_to_slice(&mut id);
    let partition = rest.get_i32();
    let name = usize::from(rest.get_u16());
    if rest.len() < name {
        return None;
    }
    let topic = String::from_utf8(rest.split_to(name).to_vec()).ok()?;
    let owner = Owner {
        topic,
        partition,
        topic_id: Uuid(id),
    };
    match kind {
        KIND_CUT => Some(Entry::Cut { owner }),
        KIND_BYTES | KIND_FIRST if rest.len() >= BYTES_HEADER => {
            let place = Place {
                segment: rest.get_i64(),
                position: rest.get_u32(),
                first: kind == KIND_FIRST,
                lead: rest.get_u32(),
            };
            let length = rest.get_u32() as usize;
            (rest.len() >= length).then(|| Entry::Bytes {
                owner,
                place,
                bytes: rest.split_to(length),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Owner {
        pub fn borrowed(&self) -> OwnerRef<'_> {
            OwnerRef {
                topic: &self.topic,
                partition: self.partition,
                topic_id: self.topic_id,
            }
        }
    }

    fn owner(topic: &str) -> Owner {
        Owner {
            topic: topic.to_owned(),
            partition: 3,
            topic_id: Uuid([7; 16]),
        }
    }

    fn build(entries: &[Entry], generation: Generation) -> Bytes {
        let size = entries.iter().map(|entry| match entry {
            Entry::Bytes { owner, bytes, .. } => bytes_entry_size(&owner.topic, bytes.len()),
            Entry::Cut { owner } => ENTRY_HEADER + owner.topic.len(),
        });
        let mut builder = FrameBuilder::new(size.sum());
        for entry in entries {
            match entry {
                Entry::Bytes {
                    owner,
                    place,
                    bytes,
                } => builder.bytes(owner.borrowed(), *place, bytes),
                Entry::Cut { owner } => builder.cut(owner.borrowed()),
            }
        }
        builder.finish(generation, 9, 4)
    }

    #[test]
    fn the_first_block_names_the_generation() {
        let block = encode_file_header(0x1234);
        assert_eq!(block.len(), BLOCK as usize);
        assert_eq!(decode_file_header(&block), Some(0x1234));
        let mut broken = block.to_vec();
        broken[23] ^= 1;
        assert_eq!(decode_file_header(&broken), None);
        assert_eq!(decode_file_header(&[]), None);
    }

    #[test]
    fn a_frame_of_another_generation_is_none() {
        let frame = build(&[Entry::Cut { owner: owner("t") }], 1);
        assert!(frame_header(&frame, 1).is_some());
        assert!(frame_header(&frame, 2).is_none());
    }

    proptest! {
        #[test]
        fn entries_come_back(sizes in proptest::collection::vec(0_usize..3_000, 0..20), flip in any::<prop::sample::Index>()) {
            let entries: Vec<Entry> = sizes.iter().enumerate().map(|(at, size)| {
                if *size == 0 {
                    return Entry::Cut { owner: owner("cut") };
                }
                Entry::Bytes {
                    owner: owner(&"n".repeat(at + 1)),
                    place: Place { segment: at as i64, position: at as u32 * 7, first: at % 2 == 0, lead: at as u32 },
                    bytes: vec![at as u8; *size].into(),
                }
            }).collect();
            let frame = build(&entries, 5);
            let header = frame_header(&frame, 5).unwrap();
            prop_assert_eq!((header.sequence, header.oldest), (9, 4));
            let whole = frame.slice(..header.length as usize);
            prop_assert!(frame_holds(&whole));
            prop_assert_eq!(super::entries(whole.clone()), entries);
            let mut torn = whole.to_vec();
            let at = flip.index(torn.len());
            torn[at] ^= 0x10;
            prop_assert!(!frame_holds(&torn), "a flipped bit at {} is not seen", at);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = frame_header(&bytes, 1);
            let _ = frame_holds(&bytes);
            let _ = super::entries(bytes.into());
        }
    }
}
