//! One pass over the records of a batch that allocates nothing for them: keys, values and headers
//! are stepped over. Compressed batches go through one small reused buffer, chunk by chunk.

use std::ops::ControlFlow;

use super::batch::BatchView;
use super::compress::{Chunks, Compression, Lz4Checksum, Scratch};
use super::error::{BatchError, RecordProblem};
use super::header::{BATCH_OVERHEAD, TimestampType};
use super::varint::{read_varint, read_varlong, zigzag_i32, zigzag_i64};

/// What a record says about itself in front of its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordFacts {
    pub(crate) index: u32,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: i64,
    /// -1 (or any negative number) is null.
    pub(crate) key_size: i32,
    pub(crate) value_size: i32,
}

/// What compressed batches may hold, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) decompressed: usize,
    /// Of one record, without the length in front of it.
    pub(crate) record: usize,
}

impl Limits {
    pub(crate) fn decompressed(decompressed: usize) -> Limits {
        Limits {
            decompressed,
            record: usize::MAX,
        }
    }
}

/// Calls `visit` for every record and gives the uncompressed size of all records; `None` if `visit`
/// broke off. The whole batch is checked on the way, unless it does.
pub(crate) fn walk(
    batch: &BatchView,
    limits: Limits,
    scratch: &mut Scratch,
    visit: impl FnMut(RecordFacts) -> ControlFlow<()>,
) -> Result<Option<u64>, BatchError> {
    let declared = batch.records_count;
    if declared < 0 {
        return Err(BatchError::NegativeCount { count: declared });
    }
    let payload = &batch.bytes()[BATCH_OVERHEAD..];
    match batch.compression()? {
        Compression::None => walk_input(
            batch,
            SliceInput {
                bytes: payload,
                at: 0,
            },
            usize::MAX,
            visit,
        ),
        compression => {
            let right = Lz4Checksum::Right;
            let chunks = Chunks::new(compression, payload, limits.decompressed, right, scratch)?;
            let input = ChunkInput {
                chunks,
                at: 0,
                left: 0,
                before: 0,
            };
            walk_input(batch, input, limits.record, visit)
        }
    }
}

fn walk_input<I: Input>(
    batch: &BatchView,
    mut input: I,
    max_record: usize,
    mut visit: impl FnMut(RecordFacts) -> ControlFlow<()>,
) -> Result<Option<u64>, BatchError> {
    let declared = batch.records_count;
    let log_append_time = match batch.timestamp_type() {
        TimestampType::LogAppendTime => Some(batch.max_timestamp),
        TimestampType::CreateTime => None,
    };
    for index in 0..declared as u32 {
        if input.at_end()? {
            return Err(BatchError::RecordsMissing {
                declared,
                found: index,
            });
        }
        let mut facts = read_facts(&mut input, max_record).map_err(|failure| failure.at(index))?;
        facts.index = index;
        facts.timestamp =
            log_append_time.unwrap_or_else(|| batch.base_timestamp.wrapping_add(facts.timestamp));
        if visit(facts).is_break() {
            return Ok(None);
        }
    }
    if input.at_end()? {
        Ok(Some(input.position()))
    } else {
        Err(BatchError::RecordsRemain { declared })
    }
}

/// Steps over one record; `timestamp` is still the delta.
#[inline]
fn read_facts<I: Input>(input: &mut I, max_record: usize) -> Result<RecordFacts, Failure> {
    let size = input.varint()?;
    let start = input.position();
    let end = match u64::try_from(size) {
        Ok(bytes) if bytes > max_record as u64 => {
            return Err(RecordProblem::TooLarge {
                size,
                max: max_record,
            }
            .into());
        }
        Ok(bytes) => start + bytes,
        Err(_) => return Err(RecordProblem::NegativeSize { size }.into()),
    };
    input.skip(1)?;
    let timestamp = input.varlong()?;
    let offset_delta = input.varint()?;
    let key_size = input.varint()?;
    skip_within(input, key_size, end)?;
    let value_size = input.varint()?;
    skip_within(input, value_size, end)?;
    let count = input.varint()?;
    let headers = u64::try_from(count).map_err(|_| RecordProblem::HeaderCount { count })?;
    // A header takes two bytes at least.
    if headers > end.saturating_sub(input.position()) / 2 {
        return Err(RecordProblem::HeaderCount { count }.into());
    }
    for _ in 0..headers {
        let length = input.varint()?;
        if length < 0 {
            return Err(RecordProblem::HeaderKey { length }.into());
        }
        skip_within(input, length, end)?;
        let value_length = input.varint()?;
        skip_within(input, value_length, end)?;
    }
    let read = input.position() - start;
    if input.position() != end {
        return Err(RecordProblem::SizeMismatch {
            declared: size,
            read,
        }
        .into());
    }
    Ok(RecordFacts {
        index: 0,
        offset_delta,
        timestamp,
        key_size,
        value_size,
    })
}

#[inline(always)]
fn skip_within<I: Input>(input: &mut I, length: i32, end: u64) -> Result<(), Failure> {
    match u64::try_from(length) {
        Ok(length) if length > end.saturating_sub(input.position()) => {
            Err(RecordProblem::Truncated.into())
        }
        Ok(length) => input.skip(length as usize),
        Err(_) => Ok(()),
    }
}

/// A problem of the record, or of the compression around it.
enum Failure {
    Record(RecordProblem),
    /// Boxed, so that the results of the small steps stay small.
    Batch(Box<BatchError>),
}

impl Failure {
    fn at(self, index: u32) -> BatchError {
        match self {
            Failure::Record(problem) => problem.at(index),
            Failure::Batch(error) => *error,
        }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Failure::Batch(Box::new(error))
    }
}

impl From<RecordProblem> for Failure {
    fn from(problem: RecordProblem) -> Self {
        Failure::Record(problem)
    }
}

trait Input {
    fn varint(&mut self) -> Result<i32, Failure>;
    fn varlong(&mut self) -> Result<i64, Failure>;
    fn skip(&mut self, length: usize) -> Result<(), Failure>;
    /// Bytes read or skipped so far.
    fn position(&self) -> u64;
    fn at_end(&mut self) -> Result<bool, BatchError>;
}

struct SliceInput<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input for SliceInput<'_> {
    #[inline(always)]
    fn varint(&mut self) -> Result<i32, Failure> {
        Ok(read_varint(self.bytes, &mut self.at)?)
    }

    #[inline(always)]
    fn varlong(&mut self) -> Result<i64, Failure> {
        Ok(read_varlong(self.bytes, &mut self.at)?)
    }

    #[inline(always)]
    fn skip(&mut self, length: usize) -> Result<(), Failure> {
        if length > self.bytes.len() - self.at {
            return Err(RecordProblem::Truncated.into());
        }
        self.at += length;
        Ok(())
    }

    #[inline(always)]
    fn position(&self) -> u64 {
        self.at as u64
    }

    fn at_end(&mut self) -> Result<bool, BatchError> {
        Ok(self.at == self.bytes.len())
    }
}

/// Integers may lie across the border of two chunks.
struct ChunkInput<'a> {
    chunks: Chunks<'a>,
    at: usize,
    /// Bytes of the chunk from `at` on.
    left: usize,
    /// Bytes of the chunks before this one.
    before: u64,
}

/// The longest variable-length integer.
const VARLONG_MOST: usize = 10;

impl ChunkInput<'_> {
    /// False at the end of the data.
    fn fill(&mut self) -> Result<bool, BatchError> {
        while self.left == 0 {
            self.before += self.at as u64;
            self.at = 0;
            if !self.chunks.advance()? {
                return Ok(false);
            }
            self.left = self.chunks.chunk().len();
        }
        Ok(true)
    }

    fn byte(&mut self) -> Result<u8, Failure> {
        if !self.fill()? {
            return Err(RecordProblem::Truncated.into());
        }
        let byte = self.chunks.chunk()[self.at];
        self.at += 1;
        self.left -= 1;
        Ok(byte)
    }

    fn unsigned(&mut self, bits: u32) -> Result<u64, Failure> {
        let mut value = 0u64;
        for shift in (0..bits).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(RecordProblem::VarintTooLong.into())
    }

    /// Reads within the chunk where no integer can cross its end.
    fn within<T>(
        &mut self,
        read: impl FnOnce(&[u8], &mut usize) -> Result<T, RecordProblem>,
    ) -> Result<T, Failure> {
        let before = self.at;
        let value = read(self.chunks.chunk(), &mut self.at)?;
        self.left -= self.at - before;
        Ok(value)
    }
}

impl Input for ChunkInput<'_> {
    fn varint(&mut self) -> Result<i32, Failure> {
        if self.left >= VARLONG_MOST {
            return self.within(read_varint);
        }
        self.unsigned(32).map(|value| zigzag_i32(value as u32))
    }

    fn varlong(&mut self) -> Result<i64, Failure> {
        if self.left >= VARLONG_MOST {
            return self.within(read_varlong);
        }
        self.unsigned(64).map(zigzag_i64)
    }

    fn skip(&mut self, mut length: usize) -> Result<(), Failure> {
        while length > 0 {
            if !self.fill()? {
                return Err(RecordProblem::Truncated.into());
            }
            let step = length.min(self.left);
            self.at += step;
            self.left -= step;
            length -= step;
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    fn at_end(&mut self) -> Result<bool, BatchError> {
        Ok(!self.fill()?)
    }
}
