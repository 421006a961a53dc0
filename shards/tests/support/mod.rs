//! Runs a test's body on a runtime of its own, on the backend asked for.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use shards::{BackendChoice, Core, CoreMain, Runtime, RuntimeOptions};

pub fn options(backend: BackendChoice, cores: usize) -> RuntimeOptions {
    RuntimeOptions {
        cores,
        backend,
        recv_pool_bytes_per_core: 512 * 1024,
        propagate_panics: true,
        ..RuntimeOptions::default()
    }
}

/// One core, one main.
pub fn run<F, Fut>(backend: BackendChoice, body: F)
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    run_with(options(backend, 1), body);
}

pub fn run_with<F, Fut>(options: RuntimeOptions, body: F)
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let runtime = Runtime::new(options).expect("the runtime starts");
    let main: CoreMain = Box::new(move |core| Box::pin(body(core)));
    runtime.run(vec![main]).expect("the runtime runs");
}

pub fn boxed<Fut: Future<Output = ()> + 'static>(future: Fut) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(future)
}

/// A directory on a real disk (the build directory), not on a tmpfs, so that O_DIRECT is tried.
pub fn disk_dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory")
}

pub fn path_in(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

/// Bytes that differ everywhere, so that a shift or a swap shows.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

/// One test per backend from one async function `fn(Core)`.
#[macro_export]
macro_rules! on_every_backend {
    ($($name:ident),* $(,)?) => {
        mod on_epoll {
            $(#[test] fn $name() { $crate::support::run(shards::BackendChoice::Epoll, super::$name); })*
        }
        mod on_ring {
            $(#[test] fn $name() { $crate::support::run(shards::BackendChoice::Ring, super::$name); })*
        }
    };
}
