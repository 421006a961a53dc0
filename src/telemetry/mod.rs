//! What the broker tells about itself.

pub mod levels;
pub mod log;
mod rarely;

pub use rarely::Rarely;
