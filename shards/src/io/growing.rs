use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use bytes::Bytes;

/// A buffer that is appended to while slices of what it holds already are being read: bytes once written never
/// change, so both may go on at the same time, on any cores. It does not grow beyond its capacity.
pub struct GrowingBuf {
    memory: Arc<Memory>,
    /// Bytes written: slices are cut from these alone.
    len: usize,
}

/// The memory, kept by the buffer and by every slice: a box taken apart, so that no reference to all of it exists.
struct Memory {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the buffer writes only behind every byte that a slice was cut from, and slices only read; who gets a slice on
// another thread gets it by means that order the writes before it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        let start = self.start.as_ptr().cast::<MaybeUninit<u8>>();
        let all = std::ptr::slice_from_raw_parts_mut(start, self.capacity);
        // SAFETY: this is the box that `with_capacity` took apart, and neither buffer nor slices are left.
        drop(unsafe { Box::from_raw(all) });
    }
}

/// A slice, as the owner behind a `Bytes`.
struct Part {
    memory: Arc<Memory>,
    from: usize,
    to: usize,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `from ..= to` lies below the buffer's length of when this was cut, thus within the allocation, which
        // `memory` keeps; those bytes were initialised, and are never written again.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.start.as_ptr().add(self.from),
                self.to - self.from,
            )
        }
    }
}

impl GrowingBuf {
    /// Room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        let all = Box::into_raw(Box::<[u8]>::new_uninit_slice(capacity));
        let start = NonNull::new(all.cast()).expect("a box is never null");
        Self {
            memory: Arc::new(Memory { start, capacity }),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn capacity(&self) -> usize {
        self.memory.capacity
    }

    /// Appends a copy of `bytes`, which `change` may still work on: from then on it stays as it is.
    ///
    /// # Panics
    /// When they do not fit in the capacity.
    pub fn append(&mut self, bytes: &[u8], change: impl FnOnce(&mut [u8])) {
        let room = self.capacity() - self.len;
        assert!(bytes.len() <= room, "{} bytes in {room}", bytes.len());
        // SAFETY: the range lies behind `len` and within the allocation, so no slice covers it, and the exclusive borrow
        // of the one buffer of this memory keeps other writers away. It is written before there is a reference to it.
        let target = unsafe {
            let start = self.memory.start.as_ptr().add(self.len);
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            std::slice::from_raw_parts_mut(start, bytes.len())
        };
        change(target);
        self.len += bytes.len();
    }

    /// The bytes so far, for a look.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: as for `Part`: below `len` nothing is written again.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr(), self.len) }
    }

    /// Shares `from .. to` without a copy; the slice keeps the memory.
    ///
    /// # Panics
    /// When the range does not lie within what was written.
    pub fn slice(&self, from: usize, to: usize) -> Bytes {
        assert!(
            from <= to && to <= self.len,
            "{from} .. {to} of {}",
            self.len
        );
        if from == to {
            return Bytes::new();
        }
        Bytes::from_owner(Part {
            memory: self.memory.clone(),
            from,
            to,
        })
    }
}

impl fmt::Debug for GrowingBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrowingBuf({} of {} bytes)", self.len, self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stay_while_the_buffer_grows_and_when_it_is_gone() {
        let mut buffer = GrowingBuf::with_capacity(10);
        buffer.append(b"abc", |_| {});
        let first = buffer.slice(0, 3);
        buffer.append(b"xxx", |bytes| bytes.copy_from_slice(b"def"));
        let both = buffer.slice(1, 6);
        assert_eq!(buffer.as_slice(), b"abcdef");
        drop(buffer);
        assert_eq!(&both[..], b"bcdef");
        assert_eq!(&first[..], b"abc");
    }

    #[test]
    #[should_panic(expected = "bytes in")]
    fn it_does_not_grow_beyond_its_capacity() {
        let mut buffer = GrowingBuf::with_capacity(1);
        let all = vec![1; buffer.capacity()];
        buffer.append(&all, |_| {});
        buffer.append(b"x", |_| {});
    }

    #[test]
    #[should_panic(expected = "of 3")]
    fn what_was_not_written_cannot_be_had() {
        let mut buffer = GrowingBuf::with_capacity(10);
        buffer.append(b"abc", |_| {});
        drop(buffer.slice(0, 4));
    }
}
