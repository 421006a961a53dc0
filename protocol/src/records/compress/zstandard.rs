//! Zstandard frames (RFC 8878).
//!
//! A frame may ask for a window of up to 128 MiB (the library's own limit, which level 22 of real
//! producers uses). The window is address space until data fills it, so that a small batch which
//! claims a large one costs no memory; the library gives an oversized one back after 128 frames.

use std::io::Read;

use bytes::BytesMut;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

const CHUNK: usize = 64 * 1024;

pub(super) fn compress(level: i32, data: &[u8], out: &mut BytesMut) -> Result<(), String> {
    let compressed = zstd::bulk::compress(data, level).map_err(|error| error.to_string())?;
    out.extend_from_slice(&compressed);
    Ok(())
}

pub(super) struct Reader<'a> {
    decoder: Decoder<'a, &'a [u8]>,
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        data: &'a [u8],
        buffer: &'a mut Vec<u8>,
        context: &'a mut Option<DCtx<'static>>,
    ) -> Self {
        buffer.resize(CHUNK, 0);
        let context = context.get_or_insert_with(DCtx::create);
        Reader {
            decoder: Decoder::with_context(data, context),
            buffer,
            filled: 0,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool, String> {
        self.filled = self
            .decoder
            .read(self.buffer)
            .map_err(|error| error.to_string())?;
        Ok(self.filled > 0)
    }

    pub(super) fn chunk(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}
