//! What the broker tells about itself.

pub mod log;
