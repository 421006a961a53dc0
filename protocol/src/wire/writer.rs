use bytes::{BufMut, Bytes, BytesMut};

use super::{EncodeError, EncodeErrorKind, STRING_BYTES_MAX};
use crate::{Array, Uuid};

/// A piece of a writer in pieces ends here, but for the few bytes of a value that begins before.
const PIECE_BYTES: usize = 32 * 1024;
/// What fixed-length values may overrun a piece by.
const OVERRUN_BYTES: usize = 512;

/// Appends values to a growing buffer, or to several of bounded size: see [`Writer::in_pieces`].
#[derive(Debug)]
pub struct Writer {
    /// Pieces that are complete; none in a writer of one piece.
    sealed: Vec<BytesMut>,
    sealed_bytes: usize,
    buffer: BytesMut,
    piece_bytes: usize,
}

impl Default for Writer {
    fn default() -> Self {
        BytesMut::new().into()
    }
}

impl From<BytesMut> for Writer {
    /// Appends after what is in `buffer`.
    fn from(buffer: BytesMut) -> Self {
        Writer {
            sealed: Vec::new(),
            sealed_bytes: 0,
            buffer,
            piece_bytes: usize::MAX,
        }
    }
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(bytes: usize) -> Self {
        BytesMut::with_capacity(bytes).into()
    }

    /// A writer that takes memory in pieces of some 32 KiB, however much is written: for messages that have something for
    /// each partition of a cluster. What it wrote comes out of [`Writer::into_pieces`]. `bytes` are expected.
    pub fn in_pieces(bytes: usize) -> Self {
        Writer {
            piece_bytes: PIECE_BYTES,
            ..Self::with_capacity(bytes.min(PIECE_BYTES))
        }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.sealed_bytes + self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that was written, in one piece. A writer in pieces copies them together.
    pub fn freeze(mut self) -> Bytes {
        if self.sealed.is_empty() {
            return self.buffer.freeze();
        }
        self.seal();
        self.sealed.concat().into()
    }

    /// All that was written; no piece is empty.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        self.seal();
        self.sealed.into_iter().map(BytesMut::freeze).collect()
    }

    /// Ends the piece at hand, if there is anything in it; how many pieces that makes. What is written next may share
    /// memory with it.
    pub fn seal(&mut self) -> usize {
        if !self.buffer.is_empty() {
            let piece = self.buffer.split();
            self.sealed_bytes += piece.len();
            self.sealed.push(piece);
        }
        self.sealed.len()
    }

    /// Begins a new piece if the one at hand is full. Called between the elements of an array.
    pub fn turn_the_page(&mut self) {
        if self.buffer.len() >= self.piece_bytes {
            self.seal();
            self.buffer.reserve(PIECE_BYTES + OVERRUN_BYTES);
        }
    }

    /// Overwrites the first four bytes: for a length that is known later.
    ///
    /// # Panics
    /// If those bytes have not been written.
    pub fn patch_front(&mut self, value: i32) {
        let piece = self.sealed.first_mut().unwrap_or(&mut self.buffer);
        piece[..4].copy_from_slice(&value.to_be_bytes());
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        while left.len() > self.piece_bytes.saturating_sub(self.buffer.len()) {
            let (now, later) = left.split_at(self.piece_bytes.saturating_sub(self.buffer.len()));
            self.buffer.put_slice(now);
            self.turn_the_page();
            left = later;
        }
        self.buffer.put_slice(left);
    }

    pub fn u8(&mut self, value: u8) {
        self.buffer.put_u8(value);
    }

    pub fn i8(&mut self, value: i8) {
        self.buffer.put_i8(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.buffer.put_u8(u8::from(value));
    }

    pub fn i16(&mut self, value: i16) {
        self.buffer.put_i16(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.buffer.put_u16(value);
    }

    pub fn i32(&mut self, value: i32) {
        self.buffer.put_i32(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.buffer.put_u32(value);
    }

    pub fn i64(&mut self, value: i64) {
        self.buffer.put_i64(value);
    }

    pub fn f64(&mut self, value: f64) {
        self.buffer.put_f64(value);
    }

    pub fn uuid(&mut self, value: Uuid) {
        self.raw(&value.0);
    }

    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buffer.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.put_u8(value as u8);
    }

    /// Zigzag, as in record batches.
    pub fn varint(&mut self, value: i32) {
        self.unsigned_varint(zigzag(value));
    }

    /// Zigzag, up to ten bytes.
    pub fn varlong(&mut self, value: i64) {
        let mut raw = zigzag_long(value);
        while raw >= 0x80 {
            self.buffer.put_u8((raw & 0x7f) as u8 | 0x80);
            raw >>= 7;
        }
        self.buffer.put_u8(raw as u8);
    }

    pub fn string(&mut self, compact: bool, text: &str) -> Result<(), EncodeError> {
        self.nullable_string(compact, Some(text))
    }

    pub fn nullable_string(
        &mut self,
        compact: bool,
        text: Option<&str>,
    ) -> Result<(), EncodeError> {
        let Some(text) = text else {
            if compact {
                self.u8(0);
            } else {
                self.i16(-1);
            }
            return Ok(());
        };
        if text.len() > STRING_BYTES_MAX {
            return Err(EncodeErrorKind::TooLong(text.len()).into());
        }
        if compact {
            self.unsigned_varint(text.len() as u32 + 1);
        } else {
            self.i16(text.len() as i16);
        }
        self.raw(text.as_bytes());
        Ok(())
    }

    /// Length of bytes or count of an array; none is null.
    pub fn length(&mut self, compact: bool, length: Option<usize>) -> Result<(), EncodeError> {
        let Some(length) = length else {
            if compact {
                self.u8(0);
            } else {
                self.i32(-1);
            }
            return Ok(());
        };
        let Ok(signed) = i32::try_from(length) else {
            return Err(EncodeErrorKind::TooLong(length).into());
        };
        if compact {
            self.unsigned_varint(signed.cast_unsigned() + 1);
        } else {
            self.i32(signed);
        }
        Ok(())
    }

    pub fn bytes(&mut self, compact: bool, bytes: &[u8]) -> Result<(), EncodeError> {
        self.nullable_bytes(compact, Some(bytes))
    }

    pub fn nullable_bytes(
        &mut self,
        compact: bool,
        bytes: Option<&[u8]>,
    ) -> Result<(), EncodeError> {
        self.length(compact, bytes.map(<[u8]>::len))?;
        self.raw(bytes.unwrap_or_default());
        Ok(())
    }

    pub fn array<T>(
        &mut self,
        compact: bool,
        elements: &Array<T>,
        element: impl FnMut(&mut Self, &T) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.nullable_array(compact, Some(elements), element)
    }

    pub fn nullable_array<T>(
        &mut self,
        compact: bool,
        elements: Option<&Array<T>>,
        mut element: impl FnMut(&mut Self, &T) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.length(compact, elements.map(Array::len))?;
        for one in elements.into_iter().flatten() {
            self.turn_the_page();
            element(self, one)?;
        }
        Ok(())
    }

    /// Presence of a nullable struct: a varint in a tagged field, else a signed byte.
    pub fn presence(&mut self, tagged: bool, present: bool) {
        self.i8(match (present, tagged) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => -1,
        });
    }

    /// A tag section without tags.
    pub fn no_tags(&mut self) {
        self.u8(0);
    }
}

/// Gathers the tagged fields that differ from their defaults.
#[derive(Debug, Default)]
pub struct TagWriter {
    count: u32,
    fields: Writer,
}

impl TagWriter {
    /// Tags have to be put in ascending order.
    pub fn put(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut field = Writer::new();
        write(&mut field)?;
        let Ok(length) = i32::try_from(field.len()) else {
            return Err(EncodeErrorKind::TooLong(field.len()).into());
        };
        self.count += 1;
        self.fields.unsigned_varint(tag);
        self.fields.unsigned_varint(length.cast_unsigned());
        self.fields.raw(&field.freeze());
        Ok(())
    }

    /// Writes the section: how many, then the fields.
    pub fn finish(self, writer: &mut Writer) -> Result<(), EncodeError> {
        writer.unsigned_varint(self.count);
        writer.raw(&self.fields.freeze());
        Ok(())
    }
}

fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

fn zigzag_long(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Bytes that [`Writer::unsigned_varint`] writes for `value`.
pub fn unsigned_varint_len(value: u32) -> usize {
    let bits = 32 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Bytes that [`Writer::varint`] writes for `value`.
pub fn varint_len(value: i32) -> usize {
    unsigned_varint_len(zigzag(value))
}

/// Bytes that [`Writer::varlong`] writes for `value`.
pub fn varlong_len(value: i64) -> usize {
    let bits = 64 - (zigzag_long(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}
