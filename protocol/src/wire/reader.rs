use bytes::Bytes;

use super::{DecodeError, DecodeErrorKind, STRING_BYTES_MAX};
use crate::{Array, Str, Uuid};

/// Reads values off the front of some bytes.
///
/// Strings and byte fields are slices that share the memory of what is read: they keep the whole
/// frame alive. Before memory for an array is reserved, its count is checked against the bytes
/// left and the memory against the budget, so no input takes more than the caller allowed.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Bytes,
    at: usize,
    /// Where reading stops: the end of the bytes, or of the tagged field being read.
    end: usize,
    budget: usize,
}

impl Reader {
    /// A budget of 32 times the bytes plus 64 KiB: several times what real messages take.
    pub fn new(bytes: Bytes) -> Self {
        let budget = bytes.len().saturating_mul(32).saturating_add(64 * 1024);
        Self::with_budget(bytes, budget)
    }

    /// `budget`: bytes of memory that arrays may take when decoded, all together.
    pub fn with_budget(bytes: Bytes, budget: usize) -> Self {
        let end = bytes.len();
        Reader {
            bytes,
            at: 0,
            end,
            budget,
        }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes of memory that arrays may still take.
    pub fn budget(&self) -> usize {
        self.budget
    }

    #[cold]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            kind,
            at: self.at,
            message: "",
            version: 0,
        }
    }

    #[cold]
    pub fn null(&self, field: &'static str) -> DecodeError {
        self.error(DecodeErrorKind::NullNotAllowed(field))
    }

    /// Takes `needed` bytes of memory off the budget.
    pub fn charge(&mut self, needed: usize) -> Result<(), DecodeError> {
        match self.budget.checked_sub(needed) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::BudgetExceeded {
                needed,
                left: self.budget,
            })),
        }
    }

    fn need(&self, needed: usize) -> Result<(), DecodeError> {
        let left = self.remaining();
        if needed <= left {
            Ok(())
        } else {
            Err(self.error(DecodeErrorKind::Truncated { needed, left }))
        }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.bytes[self.at..self.end].first_chunk::<N>() {
            Some(chunk) => {
                let chunk = *chunk;
                self.at += N;
                Ok(chunk)
            }
            None => Err(self.need(N).expect_err("fewer than N bytes are left")),
        }
    }

    /// The next `len` bytes, sharing memory.
    pub fn slice(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        self.need(len)?;
        let slice = self.bytes.slice(self.at..self.at + len);
        self.at += len;
        Ok(slice)
    }

    pub fn skip(&mut self, len: usize) -> Result<(), DecodeError> {
        self.need(len)?;
        self.at += len;
        Ok(())
    }

    /// All that is left.
    pub fn rest(&mut self) -> Bytes {
        let rest = self.bytes.slice(self.at..self.end);
        self.at = self.end;
        rest
    }

    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.fixed().map(u8::from_be_bytes)
    }

    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.fixed().map(i8::from_be_bytes)
    }

    /// Any byte but 0 is true.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        self.u8().map(|byte| byte != 0)
    }

    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.fixed().map(u16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.fixed().map(u32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.fixed().map(f64::from_be_bytes)
    }

    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.fixed().map(Uuid)
    }

    /// At most five bytes, seven bits each, the lowest first.
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value: u32 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0x0f {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(DecodeErrorKind::VarintTooLong))
    }

    /// Zigzag, as in record batches.
    pub fn varint(&mut self) -> Result<i32, DecodeError> {
        let raw = self.unsigned_varint()?;
        Ok((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    /// Zigzag, up to ten bytes.
    pub fn varlong(&mut self) -> Result<i64, DecodeError> {
        let mut raw: u64 = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            raw |= bits << shift;
            if byte < 0x80 {
                return Ok((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()));
            }
        }
        Err(self.error(DecodeErrorKind::VarintTooLong))
    }

    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok((self.unsigned_varint()? as usize).checked_sub(1))
    }

    fn signed_length(&self, length: i32) -> Result<Option<usize>, DecodeError> {
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(self.error(DecodeErrorKind::NegativeLength(length.into()))),
        }
    }

    pub fn nullable_string(&mut self, compact: bool) -> Result<Option<Str>, DecodeError> {
        let length = if compact {
            self.compact_length()?
        } else {
            let length = self.i16()?;
            self.signed_length(length.into())?
        };
        let Some(length) = length else {
            return Ok(None);
        };
        if length > STRING_BYTES_MAX {
            return Err(self.error(DecodeErrorKind::StringTooLong(length)));
        }
        let bytes = self.slice(length)?;
        Str::try_from(bytes).map_or_else(|bytes| self.repaired(&bytes), |text| Ok(Some(text)))
    }

    /// As Java does: what is not UTF-8 becomes U+FFFD.
    #[cold]
    fn repaired(&mut self, bytes: &Bytes) -> Result<Option<Str>, DecodeError> {
        self.charge(bytes.len() * 3)?;
        Ok(Some(Str::from(String::from_utf8_lossy(bytes).into_owned())))
    }

    pub fn string(&mut self, compact: bool) -> Result<Str, DecodeError> {
        self.nullable_string(compact)?
            .ok_or_else(|| self.null("string"))
    }

    pub fn nullable_bytes(&mut self, compact: bool) -> Result<Option<Bytes>, DecodeError> {
        match self.length(compact)? {
            Some(length) => self.slice(length).map(Some),
            None => Ok(None),
        }
    }

    pub fn bytes(&mut self, compact: bool) -> Result<Bytes, DecodeError> {
        self.nullable_bytes(compact)?
            .ok_or_else(|| self.null("bytes"))
    }

    /// Length of bytes or count of an array; none is null.
    pub fn length(&mut self, compact: bool) -> Result<Option<usize>, DecodeError> {
        if compact {
            return self.compact_length();
        }
        let length = self.i32()?;
        self.signed_length(length)
    }

    /// Count of an array whose elements take at least `minimum` bytes each; none is null.
    pub fn count(&mut self, compact: bool, minimum: usize) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.length(compact)? else {
            return Ok(None);
        };
        let left = self.remaining();
        if count > left / minimum.max(1) {
            return Err(self.error(DecodeErrorKind::CountTooLarge { count, left }));
        }
        Ok(Some(count))
    }

    pub fn nullable_array<T>(
        &mut self,
        compact: bool,
        minimum: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Array<T>>, DecodeError> {
        let Some(count) = self.count(compact, minimum)? else {
            return Ok(None);
        };
        self.charge(count.saturating_mul(size_of::<T>()))?;
        let mut elements = Array::new();
        for more in (0..count).rev() {
            elements.push_before(element(self)?, more);
        }
        Ok(Some(elements))
    }

    pub fn array<T>(
        &mut self,
        compact: bool,
        minimum: usize,
        element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Array<T>, DecodeError> {
        self.nullable_array(compact, minimum, element)?
            .ok_or_else(|| self.null("array"))
    }

    /// Presence of a nullable struct: a negative byte says null.
    pub fn present(&mut self) -> Result<bool, DecodeError> {
        Ok(self.i8()? >= 0)
    }

    /// Presence of a nullable struct in a tagged field: zero says null.
    pub fn tagged_present(&mut self) -> Result<bool, DecodeError> {
        Ok(self.unsigned_varint()? != 0)
    }

    /// A tag section. `field` is asked for each tag and answers whether it knew it; it must then
    /// have read exactly that field. Unknown ones are skipped.
    pub fn tags(
        &mut self,
        mut field: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let count = self.unsigned_varint()?;
        let mut previous = None;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if let Some(previous) = previous.replace(tag)
                && tag <= previous
            {
                return Err(self.error(DecodeErrorKind::TagOrder { tag, previous }));
            }
            let length = self.unsigned_varint()? as usize;
            self.need(length)?;
            let outer_end = std::mem::replace(&mut self.end, self.at + length);
            let known = field(self, tag)?;
            if !known {
                self.at = self.end;
            } else if self.at != self.end {
                let left = self.remaining();
                return Err(self.error(DecodeErrorKind::TagLength { tag, left }));
            }
            self.end = outer_end;
        }
        Ok(())
    }

    /// A tag section in which no tag is known.
    pub fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(|_, _| Ok(false))
    }
}
