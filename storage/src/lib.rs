//! The log: record batches in segments on disk. It knows files and time, not sockets or requests.
#![forbid(unsafe_code)]
