//! The `ringmain` binary.
#![forbid(unsafe_code)]

/// Requests and write buffers come and go at every turn of a core; glibc's allocator gives their memory back to the kernel and
/// asks for it again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    broker::cli::run()
}
