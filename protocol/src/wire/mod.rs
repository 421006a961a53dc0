//! Kafka's primitives, bounded: what every decoder and encoder of the crate stands on.
//!
//! Numbers are big-endian. A length or count comes in one of two forms: fixed (int16 for strings,
//! int32 else, -1 is null) or, in flexible versions (KIP-482), *compact*: an unsigned varint of
//! length + 1, where 0 is null.

mod error;
mod reader;
mod writer;

pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use reader::Reader;
pub use writer::{TagWriter, Writer, unsigned_varint_len, varint_len, varlong_len};

/// Kafka's own limit for strings, in both forms of the length.
pub const STRING_BYTES_MAX: usize = i16::MAX as usize;
