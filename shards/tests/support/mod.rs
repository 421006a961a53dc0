//! Runs a test's body on a runtime of its own, on the backend asked for.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use shards::{BackendChoice, BackendKind, Core, CoreMain, Runtime, RuntimeOptions};

/// Seeds for each case in the simulation.
pub const SEEDS: u64 = 3;

pub fn options(backend: BackendChoice, cores: usize) -> RuntimeOptions {
    RuntimeOptions {
        cores,
        backend,
        recv_pool_bytes_per_core: 512 * 1024,
        // Room for four reads.
        cold_read_bytes_per_core: 4 * 1_300_000,
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

/// One simulated core with one main, from a seed; must end within an hour of its own time.
#[cfg(feature = "sim")]
pub fn run_simulated<F, Fut>(seed: u64, body: F) -> String
where
    F: FnOnce(Core) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let world = shards::sim::World::traced(seed);
    let node = world.node(options(BackendChoice::Auto, 1));
    let main: shards::sim::LocalMain = Box::new(move |core| Box::pin(body(core)));
    let boot = world.boot(node).expect("boots");
    boot.run_local(vec![main]).expect("runs");
    let ended = world.run_until_stopped(node, std::time::Duration::from_secs(3600));
    assert!(ended, "seed {seed}: the main hangs");
    world.trace()
}

pub fn boxed<Fut: Future<Output = ()> + 'static>(future: Fut) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(future)
}

/// A directory for one test, gone at its end.
pub struct TestDir {
    path: PathBuf,
    _real: Option<tempfile::TempDir>,
}

impl TestDir {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A directory on a real disk (the build directory), not on a tmpfs, so that O_DIRECT is tried;
/// in the simulation, on its disk.
pub async fn disk_dir(core: &Core) -> TestDir {
    if core.backend() == BackendKind::Sim {
        let path = PathBuf::from("/data/test");
        let made = shards::io::dir::create_dir_all(core, &path).await;
        made.expect("a simulated directory");
        return TestDir { path, _real: None };
    }
    let real = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    TestDir {
        path: real.path().to_owned(),
        _real: Some(real),
    }
}

pub fn path_in(dir: &TestDir, name: &str) -> PathBuf {
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
        #[cfg(feature = "sim")]
        mod on_sim {
            $(#[test] fn $name() {
                for seed in 0..$crate::support::SEEDS {
                    drop($crate::support::run_simulated(seed, super::$name));
                }
            })*
        }
    };
}
