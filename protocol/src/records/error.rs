//! What can be wrong with a batch, as values that say where and by how much.

use super::compress::DecompressError;

/// Why bytes are not the record batch they claim to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the header, or the length in it, asks for: a torn or cut batch.
    #[error("the batch needs {needed} bytes and only {available} are there")]
    Truncated { needed: usize, available: usize },
    /// The length field is below what the header of its format takes.
    #[error("the batch says it is {size} bytes long, the least possible is {minimum}")]
    TooSmall { size: i64, minimum: usize },
    /// A format version that this function does not read, or that nobody knows.
    #[error("the batch has magic {magic}, which is not read here")]
    Magic { magic: i8 },
    /// The stored checksum is not that of the bytes.
    #[error("the batch is corrupt (stored crc = {stored}, computed crc = {computed})")]
    Crc { stored: u32, computed: u32 },
    /// Compression ids 5 to 7 mean nothing.
    #[error("unknown compression type id: {id}")]
    UnknownCompression { id: u8 },
    /// The compressed part does not decompress, or to more than the caller allows.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
    /// A record inside the batch does not keep the format.
    #[error("record {index} of the batch: {problem}")]
    Record { index: u32, problem: RecordProblem },
    /// The header declares a negative number of records.
    #[error("the batch declares {count} records")]
    NegativeCount { count: i32 },
    /// Bytes are left after the declared number of records.
    #[error("the batch declares {declared} records, and more bytes follow them")]
    RecordsRemain { declared: i32 },
    /// The batch ends before the declared number of records.
    #[error("the batch declares {declared} records and ends after {found}")]
    RecordsMissing { declared: i32, found: u32 },
}

/// How the bytes of one record break its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    #[error("the bytes end in the middle of it")]
    Truncated,
    #[error("a variable-length integer is longer than its type allows")]
    VarintTooLong,
    #[error("its size is {size}")]
    NegativeSize { size: i32 },
    #[error("it is {size} bytes, the topic takes {max} (max.decompressed.message.bytes)")]
    TooLarge { size: i32, max: usize },
    #[error("it declares {count} headers")]
    HeaderCount { count: i32 },
    #[error("a header key has length {length}")]
    HeaderKey { length: i32 },
    #[error("it declares {declared} bytes and its fields take {read}")]
    SizeMismatch { declared: i32, read: u64 },
    /// Formats v0 and v1: the checksum of one message.
    #[error("its stored crc is {stored}, the computed one {computed}")]
    Crc { stored: u32, computed: u32 },
    /// Formats v0 and v1: a message inside a wrapper has another magic than the wrapper.
    #[error("its magic is {found}, that of the message around it {outer}")]
    Magic { found: i8, outer: i8 },
    /// Formats v0 and v1: a compressed message inside a compressed one.
    #[error("it is compressed and lies in a compressed message already")]
    NestedCompression,
}

impl RecordProblem {
    pub(crate) fn at(self, index: u32) -> BatchError {
        BatchError::Record {
            index,
            problem: self,
        }
    }
}

/// Reading stopped at `position` bytes from the start of what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {position}: {error}")]
pub struct SplitError {
    pub position: usize,
    pub error: BatchError,
}
