//! An allocator that gives large blocks out again: requests, write buffers and answers of the same few sizes come and go all
//! the time, and a general allocator spends a tenth of a broker's time on cutting, joining and faulting them.
//!
//! Each core keeps blocks that were freed on it, by size, up to a limit; everything else is the system's allocator's work.
//! That one is told to map blocks beyond [`MAPPED_BYTES`] one by one and to stay with it: by default it raises that limit
//! with every such block freed, from then on cuts them out of its heaps, and what lies between two of them is lost to both
//! the cores and the machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use crate::io::BLOCK;

/// From here on a block is a large one.
const LARGE_BYTES: usize = 32 << 10;
/// Larger ones than this come one by one, and are not kept.
const LARGEST_BYTES: usize = 4 << 20;
/// Sizes between two powers of two, so that at most an eighth of a block is wasted.
const STEPS: usize = 8;
const DOUBLINGS: usize = (LARGEST_BYTES / LARGE_BYTES).ilog2() as usize;
const SIZES: usize = DOUBLINGS * STEPS + 1;
/// Blocks of this size and more are mappings of their own in the system's allocator: what is freed goes back to the machine.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: libc::c_int = 128 << 10;

/// The allocator; for `#[global_allocator]`.
pub struct LargeBlocks;

/// The blocks that one thread keeps.
struct Kept {
    /// The newest block of each size. The first bytes of a block point to the one before it.
    newest: [Cell<*mut u8>; SIZES],
    bytes: Cell<usize>,
    limit: Cell<usize>,
    /// The size that is given up next when there are too many bytes.
    victim: Cell<usize>,
}

thread_local! {
    // Without a destructor, so that it can be used until the thread is gone. A core lets go by `keep(0)`.
    static KEPT: Kept = const {
        Kept {
            newest: [const { Cell::new(ptr::null_mut()) }; SIZES],
            bytes: Cell::new(0),
            limit: Cell::new(0),
            victim: Cell::new(0),
        }
    };
}

/// Lets this thread keep up to `bytes` of freed blocks. A thread that was not asked to keeps none.
pub(crate) fn keep(bytes: usize) {
    KEPT.with(|kept| {
        kept.limit.set(bytes);
        kept.make_room(0);
    });
}

/// Bytes in the freed blocks that this thread keeps.
pub(crate) fn kept_bytes() -> usize {
    KEPT.with(|kept| kept.bytes.get())
}

/// Fixes what the system's allocator maps block by block, see above.
pub(crate) fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) sets a number, under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}

/// Which of the sizes holds a block of `layout`, where that is a large one.
fn size_index(layout: &Layout) -> Option<usize> {
    let bytes = layout.size();
    if !(LARGE_BYTES..=LARGEST_BYTES).contains(&bytes) || layout.align() > BLOCK {
        return None;
    }
    let doubling = (bytes / LARGE_BYTES).ilog2() as usize;
    let from = LARGE_BYTES << doubling;
    Some(doubling * STEPS + (bytes - from).div_ceil(from / STEPS))
}

/// What a block of a size is allocated as.
fn block_layout(index: usize) -> Layout {
    let from = LARGE_BYTES << (index / STEPS);
    let bytes = from + from / STEPS * (index % STEPS);
    // SAFETY: the alignment is a power of two, and sizes are at most `LARGEST_BYTES`.
    unsafe { Layout::from_size_align_unchecked(bytes, BLOCK) }
}

impl Kept {
    fn take(&self, index: usize) -> Option<*mut u8> {
        let block = self.newest[index].get();
        if block.is_null() {
            return None;
        }
        // SAFETY: blocks in here belong to nobody else, are aligned and larger than a pointer, and begin with one.
        self.newest[index].set(unsafe { block.cast::<*mut u8>().read() });
        self.bytes
            .set(self.bytes.get() - block_layout(index).size());
        Some(block)
    }

    fn put(&self, index: usize, block: *mut u8) {
        let bytes = block_layout(index).size();
        if bytes > self.limit.get() {
            // SAFETY: it was allocated with this layout, and the caller gives it up.
            return unsafe { System.dealloc(block, block_layout(index)) };
        }
        self.make_room(bytes);
        // SAFETY: the caller gives the block up; it is aligned and larger than a pointer.
        unsafe { block.cast::<*mut u8>().write(self.newest[index].get()) };
        self.newest[index].set(block);
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Gives up blocks until `bytes` more are within the limit; of all sizes in turn, so that those no longer asked for go.
    fn make_room(&self, bytes: usize) {
        while self.bytes.get() + bytes > self.limit.get() && self.bytes.get() > 0 {
            let index = self.victim.get();
            self.victim.set((index + 1) % SIZES);
            if let Some(block) = self.take(index) {
                // SAFETY: it was allocated with this layout, and is in no list any more.
                unsafe { System.dealloc(block, block_layout(index)) };
            }
        }
    }
}

// SAFETY: large blocks are blocks of the system's allocator of at least the size and alignment asked for, each either given
// out or in the list of one thread; whether a block is a large one, and of which size, follows from its layout alone, which
// is the same when it is freed. Everything else is passed on. Nothing in here allocates or unwinds.
unsafe impl GlobalAlloc for LargeBlocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(index) = size_index(&layout) else {
            // SAFETY: passed on as it is.
            return unsafe { System.alloc(layout) };
        };
        match KEPT.with(|kept| kept.take(index)) {
            Some(block) => block,
            // SAFETY: the layout's size is not 0.
            None => unsafe { System.alloc(block_layout(index)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match size_index(&layout) {
            Some(index) => KEPT.with(|kept| kept.put(index, block)),
            // SAFETY: passed on as it is.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if size_index(&layout).is_none() {
            // SAFETY: passed on as it is.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's layout; and the block has at least its size.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller sees to it that `bytes` rounded up to the alignment fits in an isize.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (size_index(&layout), size_index(&wanted)) {
            // SAFETY: passed on as it is.
            (None, None) => unsafe { System.realloc(block, layout, bytes) },
            (before, after) if before == after => block,
            // SAFETY: `wanted` is not empty, both blocks have at least the smaller size, and the old one was given out.
            _ => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size().min(bytes));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 1).expect("a layout")
    }

    fn filled(bytes: usize) -> *mut u8 {
        // SAFETY: the layout is not empty, and the block has its size.
        unsafe {
            let block = LargeBlocks.alloc(layout(bytes));
            block.write_bytes(7, bytes);
            block
        }
    }

    fn free(block: *mut u8, bytes: usize) {
        // SAFETY: for blocks of `filled` with the same size.
        unsafe { LargeBlocks.dealloc(block, layout(bytes)) }
    }

    #[test]
    fn every_size_has_a_block_that_holds_it_and_wastes_an_eighth_at_most() {
        for bytes in (LARGE_BYTES..=LARGEST_BYTES).step_by(1_237) {
            let block = block_layout(size_index(&layout(bytes)).expect("a large one")).size();
            assert!(block >= bytes && block - bytes <= bytes / STEPS, "{bytes}");
            assert_eq!(block % BLOCK, 0);
        }
        let index = |bytes, align| size_index(&Layout::from_size_align(bytes, align).expect("one"));
        assert_eq!(index(LARGE_BYTES, 1), Some(0));
        assert_eq!(index(LARGEST_BYTES, BLOCK), Some(SIZES - 1));
        for others in [
            (LARGE_BYTES - 1, 1),
            (LARGEST_BYTES + 1, 1),
            (LARGE_BYTES, 2 * BLOCK),
        ] {
            assert_eq!(index(others.0, others.1), None);
        }
    }

    #[test]
    fn a_freed_block_is_given_out_again_by_the_thread_that_keeps_it() {
        keep(1 << 20);
        let block = filled(100_000);
        free(block, 100_000);
        assert_eq!(kept_bytes(), 104 << 10);
        let elsewhere = crate::sys::spawn_thread("elsewhere".into(), || {
            let other = filled(100_000);
            free(other, 100_000);
            kept_bytes()
        })
        .expect("a thread");
        assert_eq!(elsewhere.join().expect("it ends"), 0);
        let again = filled(99_000);
        assert_eq!((again, kept_bytes()), (block, 0));
        free(again, 99_000);
        keep(0);
        assert_eq!(kept_bytes(), 0);
    }

    #[test]
    fn the_limit_holds_and_sizes_no_longer_asked_for_go() {
        keep(1 << 20);
        let old: Vec<_> = (0..16).map(|_| filled(64 << 10)).collect();
        old.into_iter().for_each(|block| free(block, 64 << 10));
        assert_eq!(kept_bytes(), 1 << 20);
        for _ in 0..100 {
            let pair = [filled(500_000), filled(500_000)];
            pair.into_iter().for_each(|block| free(block, 500_000));
            assert!(kept_bytes() <= 1 << 20);
        }
        let pair = [filled(500_000), filled(500_000)];
        assert_eq!(kept_bytes(), 0, "both are of the size asked for now");
        pair.into_iter().for_each(|block| free(block, 500_000));
        free(filled(2 << 20), 2 << 20);
        assert_eq!(
            kept_bytes(),
            1 << 20,
            "what can never be kept drives nothing out"
        );
        keep(0);
    }

    #[test]
    fn blocks_grow_shrink_and_are_zeroed() {
        keep(8 << 20);
        let sizes = [
            10,
            LARGE_BYTES,
            33_000,
            40_000,
            1 << 20,
            LARGEST_BYTES,
            5 << 20,
            50_000,
            9,
        ];
        let mut before = 1;
        let mut block = filled(before);
        for bytes in sizes {
            // SAFETY: the block has the size `before`, and then `bytes`.
            unsafe {
                block = LargeBlocks.realloc(block, layout(before), bytes);
                let kept = std::slice::from_raw_parts(block, before.min(bytes));
                assert!(kept.iter().all(|byte| *byte == 7), "{before} to {bytes}");
                block.write_bytes(7, bytes);
            }
            before = bytes;
        }
        free(block, before);
        free(filled(40_000), 40_000);
        // SAFETY: the layout is not empty, and the block has its size.
        unsafe {
            let zeroed = LargeBlocks.alloc_zeroed(layout(40_000));
            assert!(
                std::slice::from_raw_parts(zeroed, 40_000)
                    .iter()
                    .all(|byte| *byte == 0)
            );
            LargeBlocks.dealloc(zeroed, layout(40_000));
        }
        keep(0);
    }
}
