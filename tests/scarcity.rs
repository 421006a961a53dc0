//! Little memory, disks that fill and disks that die, under the real binary. These tests make control groups and mount
//! small filesystems, so they run as root only; elsewhere each says that it was skipped.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/batch.rs"]
mod batch;
#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/common.rs"]
mod common;

#[path = "scarcity/dying.rs"]
mod dying;
#[path = "scarcity/full.rs"]
mod full;
#[path = "scarcity/memory.rs"]
mod memory;
