//! The `ringmain` binary.
#![forbid(unsafe_code)]

fn main() {}
