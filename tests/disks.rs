//! Disks that die and disks that fill, under the real binary. They need to mount small filesystems, so they run as root
//! only; elsewhere each says that it was skipped.
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

#[path = "disks/dying.rs"]
mod dying;
#[path = "disks/full.rs"]
mod full;
