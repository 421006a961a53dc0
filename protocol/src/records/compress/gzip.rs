//! Gzip (RFC 1952), one member or several after each other.

use std::io::{Read, Write};

use bytes::{BufMut, BytesMut};
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

const CHUNK: usize = 32 * 1024;

/// Level -1 is the library's default.
pub(super) fn compress(level: i32, data: &[u8], out: &mut BytesMut) -> Result<(), String> {
    let level = u32::try_from(level)
        .map_or_else(|_| flate2::Compression::default(), flate2::Compression::new);
    let mut encoder = GzEncoder::new(out.writer(), level);
    encoder
        .write_all(data)
        .and_then(|()| encoder.finish())
        .map_err(|error| error.to_string())?;
    Ok(())
}

const MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) struct Reader<'a> {
    decoder: GzDecoder<&'a [u8]>,
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a [u8], buffer: &'a mut Vec<u8>) -> Self {
        buffer.resize(CHUNK, 0);
        Reader {
            decoder: GzDecoder::new(data),
            buffer,
            filled: 0,
        }
    }

    /// What follows a member and does not look like another one is ignored, as Java does.
    pub(super) fn advance(&mut self) -> Result<bool, String> {
        loop {
            self.filled = self
                .decoder
                .read(self.buffer)
                .map_err(|error| error.to_string())?;
            if self.filled > 0 {
                return Ok(true);
            }
            let rest: &'a [u8] = self.decoder.get_ref();
            if !rest.starts_with(&MAGIC) {
                return Ok(false);
            }
            self.decoder = GzDecoder::new(rest);
        }
    }

    pub(super) fn chunk(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}
