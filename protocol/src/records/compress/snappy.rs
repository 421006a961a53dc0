//! Snappy: written in the xerial framing of Java's snappy library, read in it or as one raw block,
//! which librdkafka and Go clients send.
//!
//! The framing is a 16-byte header (magic, version, least compatible version), then blocks, each
//! with its compressed length as a big-endian i32.

use bytes::{BufMut, BytesMut};

use super::Advanced;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER: usize = 16;
/// What Java's SnappyOutputStream cuts its input into.
const BLOCK: usize = 32 * 1024;
/// No snappy element makes more than 64 bytes out of 3.
const MOST_EXPANSION: usize = 22;

pub(super) fn compress(data: &[u8], out: &mut BytesMut) -> Result<(), String> {
    out.put_slice(&MAGIC);
    out.put_i32(1);
    out.put_i32(1);
    let mut encoder = snap::raw::Encoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(BLOCK.min(data.len()))];
    for piece in data.chunks(BLOCK) {
        let length = encoder
            .compress(piece, &mut block)
            .map_err(|error| error.to_string())?;
        out.put_i32(length as i32);
        out.put_slice(&block[..length]);
    }
    Ok(())
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    framed: bool,
    decoder: snap::raw::Decoder,
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a [u8], buffer: &'a mut Vec<u8>) -> Self {
        let framed = data.len() >= HEADER && data.starts_with(&MAGIC);
        let rest = if framed { &data[HEADER..] } else { data };
        Reader {
            rest,
            framed,
            decoder: snap::raw::Decoder::new(),
            buffer,
            filled: 0,
        }
    }

    /// `most`: the output that the caller still accepts. A block that says it is larger is left
    /// packed.
    pub(super) fn advance(&mut self, most: usize) -> Result<Advanced, String> {
        self.filled = 0;
        while self.filled == 0 {
            let Some(block) = self.next_block()? else {
                return Ok(Advanced::End);
            };
            let length = snap::raw::decompress_len(block).map_err(|error| error.to_string())?;
            if length > block.len().saturating_mul(MOST_EXPANSION) {
                return Err(format!(
                    "a block of {} bytes says it holds {length}",
                    block.len()
                ));
            }
            if length > most {
                return Ok(Advanced::TooLarge);
            }
            if self.buffer.len() < length {
                self.buffer.resize(length, 0);
            }
            self.filled = self
                .decoder
                .decompress(block, &mut self.buffer[..length])
                .map_err(|error| error.to_string())?;
        }
        Ok(Advanced::Chunk)
    }

    fn next_block(&mut self) -> Result<Option<&'a [u8]>, String> {
        if !self.framed {
            let block = std::mem::take(&mut self.rest);
            return Ok((!block.is_empty()).then_some(block));
        }
        // Streams may follow each other, each with its header.
        while self.rest.len() >= HEADER && self.rest.starts_with(&MAGIC) {
            self.rest = &self.rest[HEADER..];
        }
        // Less than a length is the end, as in Java.
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*length);
        let Some(block) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length))
        else {
            return Err(format!(
                "a block of {length} bytes, where {} are left",
                rest.len()
            ));
        };
        self.rest = &rest[block.len()..];
        Ok(Some(block))
    }

    pub(super) fn chunk(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}
