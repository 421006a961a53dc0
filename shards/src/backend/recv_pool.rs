//! The memory that received bytes land in: bounded per core, shared by its connections.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::metrics::Counters;
use crate::sync::Waiters;

/// Size of one receive buffer.
pub(crate) const BUFFER_BYTES: usize = 16 * 1024;
/// Buffers that one connection may hold; at the limit it is not read from.
pub(crate) const BUFFERS_PER_CONNECTION: u32 = 4;

/// Anonymous pages, so that buffers never used cost address space only.
struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> std::io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a fresh private mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags)? };
        let base = NonNull::new(base.cast()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and all buffers hold the pool alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

pub(crate) struct RecvPool {
    memory: Memory,
    free: RefCell<Vec<u16>>,
    waiting: RefCell<Waiters>,
    counters: Rc<Counters>,
    return_to: ReturnTo,
}

/// Who takes a buffer that comes back.
pub(crate) enum ReturnTo {
    /// The free list here.
    FreeList,
    /// The kernel's ring of provided buffers.
    Kernel(Box<dyn Fn(u16, NonNull<u8>)>),
}

impl RecvPool {
    pub(crate) fn new(
        bytes: usize,
        counters: Rc<Counters>,
        return_to: ReturnTo,
    ) -> std::io::Result<Rc<Self>> {
        let buffers = Self::buffers_for(bytes);
        Ok(Rc::new(Self {
            memory: Memory::new(usize::from(buffers) * BUFFER_BYTES)?,
            free: RefCell::new((0..buffers).rev().collect()),
            waiting: RefCell::default(),
            counters,
            return_to,
        }))
    }

    /// Power of two (the ring of provided buffers asks for it), at least 8.
    pub(crate) fn buffers_for(bytes: usize) -> u16 {
        let wanted = (bytes / BUFFER_BYTES).clamp(8, 1 << 15);
        let power = 1usize << wanted.ilog2();
        u16::try_from(power).expect("clamped to 2^15")
    }

    /// A buffer to receive into, first come first served; or the task is woken when it may be its
    /// turn. `number` keeps its place in the queue; see [`RecvPool::leave`].
    pub(crate) fn poll_take(
        self: &Rc<Self>,
        context: &mut Context<'_>,
        number: &Cell<Option<u64>>,
    ) -> Poll<FreeBuf> {
        let mut waiting = self.waiting.borrow_mut();
        let in_turn = match waiting.first() {
            None => true,
            first => first == number.get(),
        };
        let index = if in_turn {
            self.free.borrow_mut().pop()
        } else {
            None
        };
        let Some(index) = index else {
            if number.get().is_none() {
                self.counters.recv_pool_limit_hits.one();
            }
            number.set(Some(waiting.wait(number.get(), context.waker())));
            return Poll::Pending;
        };
        drop(waiting);
        self.counters.recv_pool_in_use.add(BUFFER_BYTES as u64);
        self.leave(number);
        Poll::Ready(FreeBuf {
            pool: Rc::clone(self),
            index,
        })
    }

    /// Gives up the place in the queue for a buffer, and lets the next one try.
    pub(crate) fn leave(&self, number: &Cell<Option<u64>>) {
        if let Some(number) = number.take() {
            let waker = self.waiting.borrow_mut().remove(number);
            drop(waker);
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        if self.free.borrow().is_empty() {
            return;
        }
        let waker = self.waiting.borrow().first_waker();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn give_back(&self, index: u16) {
        self.counters.recv_pool_in_use.sub(BUFFER_BYTES as u64);
        match &self.return_to {
            ReturnTo::FreeList => {
                self.free.borrow_mut().push(index);
                self.wake_first();
            }
            ReturnTo::Kernel(give) => give(index, self.address(index)),
        }
    }

    fn address(&self, index: u16) -> NonNull<u8> {
        // SAFETY: indices come from `new` and stay below the number of buffers.
        unsafe { self.memory.base.add(usize::from(index) * BUFFER_BYTES) }
    }
}

/// A pool buffer without contents, owned by the holder.
pub(crate) struct FreeBuf {
    pool: Rc<RecvPool>,
    index: u16,
}

impl FreeBuf {
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let address = self.pool.address(self.index);
        // SAFETY: the buffer is BUFFER_BYTES of mapped, zeroed or received memory, and an index
        // has one holder at a time: this one, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), BUFFER_BYTES) }
    }

    pub(crate) fn filled(self, len: usize, held: Held) -> RecvBuf {
        debug_assert!(len <= BUFFER_BYTES);
        RecvBuf {
            start: 0,
            len,
            memory: BufMemory::Pool {
                buffer: self,
                _held: held,
            },
        }
    }
}

impl Drop for FreeBuf {
    fn drop(&mut self) {
        self.pool.give_back(self.index);
    }
}

/// How many buffers a connection holds, and who waits for one to return.
#[derive(Default)]
pub(crate) struct HeldCount {
    count: Cell<u32>,
    waker: RefCell<Option<Waker>>,
}

impl HeldCount {
    /// Counts one more buffer; to be kept with it.
    pub(crate) fn hold(self: &Rc<Self>) -> Held {
        self.count.set(self.count.get() + 1);
        Held(Rc::clone(self))
    }

    /// Ready while the connection holds fewer buffers than it may.
    pub(crate) fn poll_below_limit(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.count.get() < BUFFERS_PER_CONNECTION {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

pub(crate) struct Held(Rc<HeldCount>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        let waker = self.0.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Bytes received on a connection, usually in a buffer of the core's receive pool: copy what is
/// to be kept and drop this soon, other connections wait for the buffer. A connection that holds
/// four of them is not read from until one is dropped. Empty at the end of the stream.
pub struct RecvBuf {
    start: usize,
    len: usize,
    memory: BufMemory,
}

enum BufMemory {
    Pool { buffer: FreeBuf, _held: Held },
    Owned(Bytes),
    End,
}

impl RecvBuf {
    pub(crate) fn owned(bytes: Bytes) -> Self {
        Self {
            start: 0,
            len: bytes.len(),
            memory: BufMemory::Owned(bytes),
        }
    }

    pub(crate) fn end() -> Self {
        Self {
            start: 0,
            len: 0,
            memory: BufMemory::End,
        }
    }

    /// Drops the first `count` bytes, for a reader that has used them.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "advance beyond the received bytes");
        self.start += count;
        self.len -= count;
    }
}

impl Deref for RecvBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            BufMemory::Pool { buffer, .. } => {
                let address = buffer.pool.address(buffer.index);
                // SAFETY: start + len stays within the buffer (`filled`, `advance`), whose memory
                // is initialised (mapped zeroed) and has this one holder.
                unsafe { std::slice::from_raw_parts(address.as_ptr().add(self.start), self.len) }
            }
            BufMemory::Owned(bytes) => &bytes[self.start..self.start + self.len],
            BufMemory::End => &[],
        }
    }
}

impl std::fmt::Debug for RecvBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecvBuf({} bytes)", self.len)
    }
}
