//! The pieces of work that are measured: by `benches/micro.rs` in time, and by `ringmain-perf instructions` in
//! instructions. Both run the same code, so that their figures speak of the same thing.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "measures time")]

pub mod disk;
pub mod hop;
pub mod steady;
