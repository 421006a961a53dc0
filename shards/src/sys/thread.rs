use std::io;
use std::thread::{Builder, JoinHandle};

thread_local! {
    /// Its address differs from that of every other live thread's.
    static MARK: u8 = const { 0 };
}

/// A number that no other live thread has; never 0. Cheaper than `std::thread::current().id()`.
pub(crate) fn thread_token() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

pub(crate) fn spawn_thread<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name).spawn(body)
}

/// Seeds a core's random numbers. They spread timers and pick ids; they are no secrets.
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(super::monotonic().as_nanos())
}

/// Blocks the calling thread, which must not be a core's.
#[allow(
    clippy::disallowed_methods,
    reason = "plays a slow disk on a pool thread"
)]
pub(crate) fn block_thread(span: std::time::Duration) {
    std::thread::sleep(span);
}
