//! What a lane is made of, outside of the model checker.

pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) use crossbeam_utils::CachePadded;

/// `std`'s UnsafeCell with the interface of loom's.
pub(super) struct SlotCell<T>(std::cell::UnsafeCell<T>);

impl<T> SlotCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Lends a pointer to the value; what is done with it is the caller's to justify.
    pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
