//! LZ4 frames, in the subset that Java clients read: version 1, independent blocks, no dictionary.
//!
//! Frames that Java consumers could not read (linked blocks, no end mark) are refused, so that no
//! producer can put them into a log. The levels 1 to 17 of `compression.lz4.level` are accepted and
//! make no difference: the library has one fast encoder.

use bytes::{BufMut, BytesMut};
use lz4_flex::block;
use twox_hash::XxHash32;

const MAGIC: u32 = 0x184D_2204;
const BLOCK: usize = 64 * 1024;
const NOT_COMPRESSED: u32 = 0x8000_0000;

const VERSION_MASK: u8 = 0xc0;
const VERSION_1: u8 = 0x40;
const INDEPENDENT_BLOCKS: u8 = 0x20;
const BLOCK_CHECKSUM: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
const RESERVED: u8 = 0x02;
const DICTIONARY: u8 = 0x01;
/// Block size id 4: 64 KiB.
const BLOCKS_OF_64_KIB: u8 = 0x40;

/// How the checksum byte of the frame descriptor is made (KAFKA-3160).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lz4Checksum {
    Right,
    /// With messages of magic 0: clients of 0.8 and 0.9 hash the frame's magic number too and
    /// expect that. Reading ignores the byte.
    Magic0,
}

pub(super) fn compress(
    data: &[u8],
    out: &mut BytesMut,
    checksum: Lz4Checksum,
) -> Result<(), String> {
    let start = out.len();
    out.put_u32_le(MAGIC);
    out.put_u8(VERSION_1 | INDEPENDENT_BLOCKS);
    out.put_u8(BLOCKS_OF_64_KIB);
    let hashed = match checksum {
        Lz4Checksum::Right => &out[start + 4..],
        Lz4Checksum::Magic0 => &out[start..],
    };
    let checksum = descriptor_checksum(hashed);
    out.put_u8(checksum);
    let mut buffer = vec![0; block::get_maximum_output_size(BLOCK.min(data.len()))];
    for piece in data.chunks(BLOCK) {
        let length = block::compress_into(piece, &mut buffer).map_err(|error| error.to_string())?;
        if length < piece.len() {
            out.put_u32_le(length as u32);
            out.put_slice(&buffer[..length]);
        } else {
            out.put_u32_le(piece.len() as u32 | NOT_COMPRESSED);
            out.put_slice(piece);
        }
    }
    out.put_u32_le(0);
    Ok(())
}

fn descriptor_checksum(descriptor: &[u8]) -> u8 {
    (XxHash32::oneshot(0, descriptor) >> 8) as u8
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    max_block: usize,
    block_checksums: bool,
    /// Present if the frame carries a checksum of its content.
    content: Option<XxHash32>,
    buffer: &'a mut Vec<u8>,
    chunk: Chunk<'a>,
    ended: bool,
}

enum Chunk<'a> {
    Stored(&'a [u8]),
    /// So many bytes of the buffer.
    Unpacked(usize),
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        data: &'a [u8],
        checksum: Lz4Checksum,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, String> {
        let mut rest = data;
        if take_u32(&mut rest)? != MAGIC {
            return Err("no LZ4 frame starts here".to_owned());
        }
        let descriptor = rest;
        let [flags, block_size] = *take::<2>(&mut rest)?;
        if flags & VERSION_MASK != VERSION_1 || flags & RESERVED != 0 {
            return Err(format!(
                "frame flags {flags:#04x} are not those of version 1"
            ));
        }
        if flags & INDEPENDENT_BLOCKS == 0 {
            return Err("blocks that depend on each other are not supported".to_owned());
        }
        if flags & DICTIONARY != 0 {
            return Err("dictionaries are not supported".to_owned());
        }
        let max_block = match block_size {
            0x40 | 0x50 | 0x60 | 0x70 => 1 << (2 * (block_size >> 4) + 8),
            _ => return Err(format!("block size code {block_size:#04x} is not assigned")),
        };
        if flags & CONTENT_SIZE != 0 {
            take::<8>(&mut rest)?;
        }
        let hashed = &descriptor[..descriptor.len() - rest.len()];
        let [stored] = *take::<1>(&mut rest)?;
        if checksum == Lz4Checksum::Right && stored != descriptor_checksum(hashed) {
            return Err("the frame descriptor does not match its checksum".to_owned());
        }
        Ok(Reader {
            rest,
            max_block,
            block_checksums: flags & BLOCK_CHECKSUM != 0,
            content: (flags & CONTENT_CHECKSUM != 0).then(|| XxHash32::with_seed(0)),
            buffer,
            chunk: Chunk::Unpacked(0),
            ended: false,
        })
    }

    /// What follows the end mark is ignored, as Java does.
    pub(super) fn advance(&mut self) -> Result<bool, String> {
        self.chunk = Chunk::Unpacked(0);
        while !self.ended && self.chunk().is_empty() {
            let word = take_u32(&mut self.rest)?;
            if word == 0 {
                self.end()?;
            } else {
                self.read_block(
                    (word & !NOT_COMPRESSED) as usize,
                    word & NOT_COMPRESSED == 0,
                )?;
            }
        }
        Ok(!self.ended)
    }

    fn read_block(&mut self, length: usize, compressed: bool) -> Result<(), String> {
        if length > self.max_block {
            return Err(format!(
                "a block of {length} bytes, above the {} set",
                self.max_block
            ));
        }
        let Some((block, rest)) = self.rest.split_at_checked(length) else {
            return Err(format!(
                "a block of {length} bytes, where {} are left",
                self.rest.len()
            ));
        };
        self.rest = rest;
        if self.block_checksums && take_u32(&mut self.rest)? != XxHash32::oneshot(0, block) {
            return Err("a block does not match its checksum".to_owned());
        }
        self.chunk = if compressed {
            // No block unpacks to more than 255 times its size.
            let most = self.max_block.min(length * 255);
            if self.buffer.len() < most {
                self.buffer.resize(most, 0);
            }
            let unpacked = block::decompress_into(block, &mut self.buffer[..most])
                .map_err(|error| error.to_string())?;
            Chunk::Unpacked(unpacked)
        } else {
            Chunk::Stored(block)
        };
        if let Some(mut hasher) = self.content.take() {
            std::hash::Hasher::write(&mut hasher, self.chunk());
            self.content = Some(hasher);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        self.ended = true;
        match &self.content {
            Some(hasher) if take_u32(&mut self.rest)? != hasher.finish_32() => {
                Err("the content does not match its checksum".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn chunk(&self) -> &[u8] {
        match self.chunk {
            Chunk::Stored(block) => block,
            Chunk::Unpacked(length) => &self.buffer[..length],
        }
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], String> {
    let (taken, after) = rest
        .split_first_chunk::<N>()
        .ok_or_else(|| "the frame is cut".to_owned())?;
    *rest = after;
    Ok(taken)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, String> {
    take::<4>(rest).map(|bytes| u32::from_le_bytes(*bytes))
}
