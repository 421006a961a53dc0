//! The `ringmain` binary.
#![forbid(unsafe_code)]

/// What requests and writes are held in is used again at once.
#[global_allocator]
static ALLOCATOR: shards::LargeBlocks = shards::LargeBlocks;

fn main() -> std::process::ExitCode {
    broker::cli::run()
}
