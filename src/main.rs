//! The `ringmain` binary.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    broker::cli::run()
}
