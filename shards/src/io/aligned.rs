use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;

use bytes::Bytes;

/// Offsets, lengths and memory of direct I/O are multiples of this. It satisfies every disk with
/// sectors of 512 or 4096 bytes.
pub const BLOCK: usize = 4096;

/// Memory of one owner, aligned to [`BLOCK`]. What pads a last block is zeros.
pub struct AlignedBuf {
    memory: NonNull<u8>,
    len: usize,
    /// Bytes from the start that were written, by the owner or with zeros: at least `len`. The rest is not zeroed ahead,
    /// since nearly all of it is written over.
    filled: usize,
    /// Bytes allocated: a multiple of [`BLOCK`], 0 for no memory at all.
    capacity: usize,
}

// SAFETY: the memory has one owner, like that of a Vec<u8>.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// Room for `bytes`, rounded up to whole blocks; its length is 0.
    pub fn with_capacity(bytes: usize) -> Self {
        let capacity = bytes
            .checked_next_multiple_of(BLOCK)
            .expect("capacities fit in memory");
        if capacity == 0 {
            return Self {
                memory: NonNull::dangling(),
                len: 0,
                filled: 0,
                capacity,
            };
        }
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size is not 0.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        Self {
            memory,
            len: 0,
            filled: 0,
            capacity,
        }
    }

    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::with_capacity(len);
        buffer.set_len(len);
        buffer
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, BLOCK).expect("capacities fit in memory")
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are allocated (or len is 0) and were written.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }

    /// Appends `bytes`.
    ///
    /// # Panics
    /// When they do not fit in the capacity: it does not grow.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let room = self.capacity - self.len;
        assert!(bytes.len() <= room, "{} bytes in {room}", bytes.len());
        // SAFETY: the range behind `len` lies within the allocation, and a slice that was borrowed beside the exclusive
        // borrow of this buffer does not.
        unsafe {
            let target = self.memory.as_ptr().add(self.len);
            target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
        self.filled = self.filled.max(self.len);
    }

    /// Sets the length; what is beyond the bytes written so far is zeros, unless a longer
    /// length was set before.
    ///
    /// # Panics
    /// When `len` is beyond the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(
            len <= self.capacity,
            "{len} bytes in a buffer of {}",
            self.capacity
        );
        if len > self.filled {
            // SAFETY: the range lies within the allocation.
            unsafe {
                let target = self.memory.as_ptr().add(self.filled);
                target.write_bytes(0, len - self.filled);
            }
            self.filled = len;
        }
        self.len = len;
    }

    /// Pads with zeros (see [`AlignedBuf::set_len`]) to whole blocks.
    pub fn pad_to_block(&mut self) {
        self.set_len(self.len.next_multiple_of(BLOCK));
    }

    /// Shares the bytes without a copy; slices of them keep the memory.
    pub fn freeze(self) -> Bytes {
        if self.is_empty() {
            Bytes::new()
        } else {
            Bytes::from_owner(self)
        }
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: allocated by `with_capacity` with this layout.
            unsafe { dealloc(self.memory.as_ptr(), Self::layout(self.capacity)) };
        }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} of {} bytes)", self.len, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_is_zeros_also_in_memory_that_was_used_before() {
        for bytes in [1, BLOCK - 1, BLOCK + 1, 9 * BLOCK] {
            // The allocator gives memory of the same size again.
            let mut used = AlignedBuf::with_capacity(bytes);
            used.set_len(used.capacity());
            used.as_mut_slice().fill(7);
            drop(used);
            let mut buffer = AlignedBuf::with_capacity(bytes);
            buffer.extend_from_slice(b"a");
            buffer.pad_to_block();
            assert_eq!(buffer.as_slice()[0], b'a');
            assert!(buffer.as_slice()[1..].iter().all(|byte| *byte == 0));
            assert!(AlignedBuf::zeroed(bytes).as_slice().iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn what_was_written_once_stays_when_it_is_cut_and_lengthened() {
        let mut buffer = AlignedBuf::with_capacity(10);
        buffer.extend_from_slice(b"abc");
        buffer.set_len(1);
        buffer.extend_from_slice(b"x");
        buffer.set_len(5);
        assert_eq!(buffer.as_slice(), b"axc\0\0");
    }

    #[test]
    #[should_panic(expected = "bytes in")]
    fn it_does_not_grow() {
        let mut buffer = AlignedBuf::with_capacity(BLOCK);
        buffer.set_len(BLOCK);
        buffer.extend_from_slice(b"x");
    }
}
