//! The memory that received bytes land in: bounded per core, shared by its connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use io_uring::types::BufRingEntry;
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
    fn new(bytes: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a fresh private mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and all buffers hold the pool alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The kernel's name for the ring of provided buffers.
pub(crate) const RECV_GROUP: u16 = 0;

pub(crate) struct RecvPool {
    // Before `memory`, which it points into, so that it goes first.
    free: Free,
    memory: Memory,
    waiting: RefCell<Waiters>,
    counters: Rc<Counters>,
}

/// Where the buffers are that nobody holds.
enum Free {
    /// Here.
    List(RefCell<Vec<u16>>),
    /// With the kernel, which takes one when bytes have arrived.
    Provided(ProvidedRing),
}

impl RecvPool {
    /// A pool whose buffers are taken before a receive.
    pub(crate) fn listed(bytes: usize, counters: Rc<Counters>) -> io::Result<Rc<Self>> {
        let buffers = Self::buffers_for(bytes);
        let free = Free::List(RefCell::new((0..buffers).rev().collect()));
        Self::new(buffers, free, counters)
    }

    /// A pool whose buffers the kernel takes; `register` tells it the address and the number of
    /// entries of their ring.
    pub(crate) fn provided(
        bytes: usize,
        counters: Rc<Counters>,
        register: impl FnOnce(u64, u16) -> io::Result<()>,
    ) -> io::Result<Rc<Self>> {
        let buffers = Self::buffers_for(bytes);
        let pool = Self::new(
            buffers,
            Free::Provided(ProvidedRing::new(buffers)?),
            counters,
        )?;
        let Free::Provided(ring) = &pool.free else {
            unreachable!("just made")
        };
        register(ring.memory.base.as_ptr().addr() as u64, buffers)?;
        for index in 0..buffers {
            ring.give(index, pool.address(index));
        }
        Ok(pool)
    }

    fn new(buffers: u16, free: Free, counters: Rc<Counters>) -> io::Result<Rc<Self>> {
        let memory = Memory::new(usize::from(buffers) * BUFFER_BYTES)?;
        Ok(Rc::new(Self {
            free,
            memory,
            waiting: RefCell::default(),
            counters,
        }))
    }

    /// Power of two (the ring of provided buffers asks for it), at least 8.
    fn buffers_for(bytes: usize) -> u16 {
        let wanted = (bytes / BUFFER_BYTES).clamp(8, 1 << 15);
        let power = 1usize << wanted.ilog2();
        u16::try_from(power).expect("clamped to 2^15")
    }

    fn in_turn(&self, number: &Cell<Option<u64>>) -> bool {
        match self.waiting.borrow().first() {
            None => true,
            first => first == number.get(),
        }
    }

    /// Takes a place in the queue for a buffer, or renews its waker.
    pub(crate) fn queue_up(&self, context: &mut Context<'_>, number: &Cell<Option<u64>>) {
        if number.get().is_none() {
            self.counters.recv_pool_limit_hits.one();
        }
        let place = self
            .waiting
            .borrow_mut()
            .wait(number.get(), context.waker());
        number.set(Some(place));
    }

    /// Gives up the place in the queue for a buffer, and lets the next one try.
    pub(crate) fn leave(&self, number: &Cell<Option<u64>>) {
        if let Some(number) = number.take() {
            let waker = self.waiting.borrow_mut().remove(number);
            drop(waker);
            self.wake_first();
        }
    }

    fn has_free(&self) -> bool {
        match &self.free {
            Free::List(list) => !list.borrow().is_empty(),
            Free::Provided(ring) => ring.available.get() > ring.set_aside.get(),
        }
    }

    fn wake_first(&self) {
        if self.has_free() {
            let waker = self.waiting.borrow().first_waker();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Listed pools: a buffer to receive into, first come first served; or the task is woken when
    /// it may be its turn. `number` keeps its place in the queue, see [`RecvPool::leave`].
    pub(crate) fn poll_take(
        self: &Rc<Self>,
        context: &mut Context<'_>,
        number: &Cell<Option<u64>>,
    ) -> Poll<FreeBuf> {
        let Free::List(list) = &self.free else {
            unreachable!("a listed pool")
        };
        let index = if self.in_turn(number) {
            list.borrow_mut().pop()
        } else {
            None
        };
        let Some(index) = index else {
            self.queue_up(context, number);
            return Poll::Pending;
        };
        self.leave(number);
        Poll::Ready(self.hold(index))
    }

    /// Provided pools: for a connection in the queue, ready (and out of the queue) once a buffer
    /// is set aside for it, until [`RecvPool::end_set_aside`]. Others do not come before it.
    pub(crate) fn poll_set_aside(
        &self,
        context: &mut Context<'_>,
        number: &Cell<Option<u64>>,
    ) -> Poll<bool> {
        let Free::Provided(ring) = &self.free else {
            unreachable!("a provided pool")
        };
        if !self.in_turn(number) || !self.has_free() {
            self.queue_up(context, number);
            return Poll::Pending;
        }
        ring.set_aside.set(ring.set_aside.get() + 1);
        self.leave(number);
        Poll::Ready(true)
    }

    pub(crate) fn end_set_aside(&self) {
        let Free::Provided(ring) = &self.free else {
            unreachable!("a provided pool")
        };
        ring.set_aside.set(ring.set_aside.get() - 1);
        self.wake_first();
    }

    /// Provided pools: the kernel has filled this buffer.
    pub(crate) fn taken(self: &Rc<Self>, index: u16) -> FreeBuf {
        let Free::Provided(ring) = &self.free else {
            unreachable!("a provided pool")
        };
        ring.available.set(ring.available.get() - 1);
        self.hold(index)
    }

    fn hold(self: &Rc<Self>, index: u16) -> FreeBuf {
        self.counters.recv_pool_in_use.add(BUFFER_BYTES as u64);
        FreeBuf {
            pool: Rc::clone(self),
            index,
        }
    }

    fn give_back(&self, index: u16) {
        self.counters.recv_pool_in_use.sub(BUFFER_BYTES as u64);
        match &self.free {
            Free::List(list) => list.borrow_mut().push(index),
            Free::Provided(ring) => ring.give(index, self.address(index)),
        }
        self.wake_first();
    }

    fn address(&self, index: u16) -> NonNull<u8> {
        // SAFETY: indices come from `new` and stay below the number of buffers.
        unsafe { self.memory.base.add(usize::from(index) * BUFFER_BYTES) }
    }
}

/// The ring through which buffers are given to the kernel: entries, and a tail that it reads.
struct ProvidedRing {
    memory: Memory,
    entries: u16,
    tail: Cell<u16>,
    /// Buffers that the kernel has, as far as its completions have been taken.
    available: Cell<u32>,
    /// Of these, promised to connections that queued for them.
    set_aside: Cell<u32>,
}

impl ProvidedRing {
    fn new(entries: u16) -> io::Result<Self> {
        let memory = Memory::new(usize::from(entries) * size_of::<BufRingEntry>())?;
        let (available, set_aside) = (Cell::new(0), Cell::new(0));
        Ok(Self {
            memory,
            entries,
            tail: Cell::new(0),
            available,
            set_aside,
        })
    }

    fn give(&self, index: u16, address: NonNull<u8>) {
        let slot = usize::from(self.tail.get() & (self.entries - 1));
        let first: NonNull<BufRingEntry> = self.memory.base.cast();
        // SAFETY: the slot is inside the mapping, which is page-aligned and zeroed (a valid
        // entry). The kernel reads entries from its head to the tail only, and there are as many
        // slots as buffers, so it does not read this one now. The fields are written one by one:
        // in the first entry, the bytes of the tail must stay.
        unsafe {
            let entry = &mut *first.as_ptr().add(slot);
            entry.set_addr(address.as_ptr().addr() as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(index);
        }
        self.tail.set(self.tail.get().wrapping_add(1));
        // SAFETY: the tail is a field of the first entry, aligned for u16, and nobody but this
        // thread writes it. Release: the kernel sees the entry before the tail that covers it.
        unsafe {
            let tail = BufRingEntry::tail(first.as_ptr())
                .cast_mut()
                .cast::<AtomicU16>();
            (*tail).store(self.tail.get(), Ordering::Release);
        }
        self.available.set(self.available.get() + 1);
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
