//! The wire: frames, every API version, record formats and stored records. Pure, no I/O.
#![forbid(unsafe_code)]

pub mod records;
