//! Formats v0 and v1: message sets (0.8 to 0.10).

/// A v0 message with null key and value, without offset and length.
pub const OVERHEAD_V0: usize = 14;
/// The same for v1, which adds the timestamp.
pub const OVERHEAD_V1: usize = 22;
