//! Values that stay on the simulation's thread, inside types that have to be `Send` because on
//! the real backends they travel between cores (`File`, `AcceptedSocket`, `BoundListener`).

use std::mem::ManuallyDrop;

use crate::sys::thread_token;

/// Gives its value to the thread that made it only. Dropped elsewhere, the value is leaked.
pub(crate) struct OneThread<T> {
    thread: usize,
    value: ManuallyDrop<T>,
}

// SAFETY: the value is reached in `get` and `drop` only, both of which check that they run on the
// thread that made it (a token belongs to one live thread at a time).
unsafe impl<T> Send for OneThread<T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for OneThread<T> {}

impl<T> OneThread<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            thread: thread_token(),
            value: ManuallyDrop::new(value),
        }
    }

    /// # Panics
    /// On another thread: a simulation has taken its files or sockets elsewhere.
    pub(crate) fn get(&self) -> &T {
        assert_eq!(
            self.thread,
            thread_token(),
            "what a simulation made is used on its thread only"
        );
        &self.value
    }
}

impl<T> Drop for OneThread<T> {
    fn drop(&mut self) {
        if self.thread == thread_token() {
            // SAFETY: dropped once, here, and not touched after.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T> std::fmt::Debug for OneThread<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("simulated")
    }
}
