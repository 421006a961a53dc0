//! Reading what is in no cache, for those who are far behind: straight from the disk into memory that is used again, and
//! from there to the socket.
//!
//! A page that comes through the page cache only to be sent once costs its allocation, its place in the tree and its
//! eviction, which together is more than sending it, and it drives out what others read. What is read a second time belongs
//! into the page cache: then many read the same, and one reading from the disk serves all.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;

use super::{AlignedBuf, BLOCK, File};
use crate::BackendKind;
use crate::Core;
use crate::executor::TaskClass;
use crate::sync::{ByteBudget, Permit};
use crate::time::Instant;

/// Bytes read at a time: what consumers ask for of a partition by default, and the full speed of a disk with one read in
/// flight.
const PIECE: u64 = 1024 * 1024;

/// Bytes read and sent at a time while somebody writes to the disk: the core copies them to a socket in a fraction of a
/// millisecond, and a request passes several such waits.
const PIECE_BESIDE_WRITES: u64 = 256 * 1024;

/// Shorter ranges go through the page cache: the kernel reads ahead for those who take little at a time.
const LEAST: u64 = 128 * 1024;

/// A piece with what would be too short for one of its own, and whole blocks around both ends.
const CHUNK: usize = (PIECE + LEAST) as usize + BLOCK;

/// Reads of one core that a disk has at a time while nobody writes to it.
const DEPTH: u64 = 8;

/// While a core's last write to a disk is not longer ago, it has one cold read at a time there, since a disk does not put
/// behind a write what it has taken already, and leaves the disk alone for as long as that read took.
const WRITES_GO_ON: Duration = Duration::from_millis(100);

/// Memory that nobody used for this long is given back.
const REST: Duration = Duration::from_secs(10);

/// The cold reads of one core: their memory, and their turns at each disk.
pub(crate) struct ColdReads {
    chunks: Arc<Chunks>,
    /// By device number.
    disks: RefCell<Vec<(u64, Rc<Disk>)>>,
    /// When memory was last used; none while there is none.
    used: Cell<Option<Instant>>,
}

struct Disk {
    turns: ByteBudget,
    last_write: Cell<Option<Instant>>,
    /// Beside writes, no read begins before.
    next: Cell<Option<Instant>>,
}

/// A read's turn at a disk.
struct Turn {
    disk: Rc<Disk>,
    began: Instant,
    beside_writes: bool,
    _share: Permit,
}

impl Turn {
    /// The read has come to its end.
    fn end(self, now: Instant) {
        let rests = self.beside_writes.then(|| now + (now - self.began));
        self.disk.next.set(rests);
    }
}

impl ColdReads {
    /// With at most `bytes` of memory, but room for two reads.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            chunks: Arc::new(Chunks::new((bytes / CHUNK).max(2))),
            disks: RefCell::default(),
            used: Cell::new(None),
        }
    }

    /// Bytes of memory held now.
    pub(crate) fn memory(&self) -> usize {
        self.chunks.made.load(Ordering::Relaxed) * CHUNK
    }

    /// Reads that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        let disks = self.disks.borrow();
        disks.iter().map(|(_, disk)| disk.turns.waiting()).sum()
    }

    /// A write to a disk begins.
    pub(crate) fn note_write(&self, device: u64, now: Instant) {
        self.disk(device).last_write.set(Some(now));
    }

    fn disk(&self, device: u64) -> Rc<Disk> {
        let mut disks = self.disks.borrow_mut();
        if let Some((_, disk)) = disks.iter().find(|(known, _)| *known == device) {
            return Rc::clone(disk);
        }
        let disk = Rc::new(Disk {
            turns: ByteBudget::new(DEPTH),
            last_write: Cell::new(None),
            next: Cell::new(None),
        });
        disks.push((device, Rc::clone(&disk)));
        disk
    }

    /// How many bytes to send at a time of a file on this disk.
    pub(super) fn piece(&self, device: u64, now: Instant) -> u64 {
        match self.is_written_to(device, now) {
            true => PIECE_BESIDE_WRITES,
            false => PIECE,
        }
    }

    /// Whether this core writes to the disk.
    fn is_written_to(&self, device: u64, now: Instant) -> bool {
        let last = self.disk(device).last_write.get();
        last.is_some_and(|at| now - at < WRITES_GO_ON)
    }

    /// Waits until the disk may have one more read.
    async fn turn(&self, core: &Core, device: u64) -> Turn {
        let disk = self.disk(device);
        let beside_writes = self.is_written_to(device, core.now());
        let share = if beside_writes { DEPTH } else { 1 };
        let share = disk.turns.reserve(share).await;
        if let Some(next) = disk.next.get().filter(|_| beside_writes) {
            core.sleep_until(next).await;
        }
        Turn {
            disk,
            began: core.now(),
            beside_writes,
            _share: share,
        }
    }

    /// Memory for one read, unless all is in use.
    fn take(core: &Core) -> Option<Chunk> {
        let cold = core.cold_reads();
        let chunk = cold.chunks.take()?;
        if cold.used.replace(Some(core.now())).is_none() {
            let core_of_task = core.clone();
            let give_back = async move { give_back(&core_of_task).await };
            drop(core.spawn(TaskClass::Background, "cold-memory", give_back));
        }
        Some(chunk)
    }
}

/// Gives back the memory once nobody has used it for a while.
async fn give_back(core: &Core) {
    let cold = core.cold_reads();
    while let Some(used) = cold.used.get() {
        core.sleep_until(used + REST).await;
        if cold.used.get() == Some(used) {
            cold.chunks.give_back();
            // What slow readers still hold keeps the task alive until it has come back.
            let is_empty = cold.memory() == 0;
            cold.used.set((!is_empty).then(|| core.now()));
        }
    }
}

/// Pieces of memory of the same size.
struct Chunks {
    free: ArrayQueue<AlignedBuf>,
    /// Free ones and those in use; at most the capacity of `free`.
    made: AtomicUsize,
}

impl Chunks {
    fn new(most: usize) -> Self {
        Self {
            free: ArrayQueue::new(most),
            made: AtomicUsize::new(0),
        }
    }

    fn take(self: &Arc<Self>) -> Option<Chunk> {
        let buffer = self.free.pop().or_else(|| self.make())?;
        Some(Chunk {
            buffer: Some(buffer),
            home: Arc::clone(self),
        })
    }

    fn make(&self) -> Option<AlignedBuf> {
        let room = |made: usize| (made < self.free.capacity()).then_some(made + 1);
        let made = &self.made;
        made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .ok()?;
        Some(AlignedBuf::with_capacity(CHUNK))
    }

    fn give_back(&self) {
        while let Some(buffer) = self.free.pop() {
            drop(buffer);
            self.made.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Memory for one read; it goes back where it came from, from whichever thread lets go of it last.
pub(crate) struct Chunk {
    /// There until it is dropped.
    buffer: Option<AlignedBuf>,
    home: Arc<Chunks>,
}

impl Chunk {
    fn buffer(&mut self) -> &mut AlignedBuf {
        self.buffer.as_mut().expect("there until it is dropped")
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.buffer().as_mut_slice()
    }

    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], AlignedBuf::as_slice)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // No more are made than have room.
            let kept = self.home.free.push(buffer);
            debug_assert!(kept.is_ok());
        }
    }
}

/// Reads the beginning of `range`: at least [`LEAST`] bytes of it, and all of it or at least [`LEAST`] bytes less.
///
/// None where the page cache should serve it: it is there already, was read before, is too short, or all memory for cold
/// reads is in use.
///
/// # Errors
/// What pread(2) says.
pub(super) async fn read(core: &Core, file: &File, range: Range<u64>) -> io::Result<Option<Bytes>> {
    let least = match core.backend() {
        BackendKind::Sim => 1, // the files of simulations are small
        _ => LEAST,
    };
    let left = range.end.saturating_sub(range.start);
    if left < least || !file.reads_directly(core).await {
        return Ok(None);
    }
    let cold = core.cold_reads();
    let piece = cold.piece(file.device(), core.now());
    let len = if left <= piece + LEAST { left } else { piece };
    if file.is_resident(range.start, len) || file.was_read(range.start, len) {
        return Ok(None);
    }
    let Some(mut chunk) = ColdReads::take(core) else {
        core.counters().cold_reads_without_memory.one();
        return Ok(None);
    };
    let start = range.start - range.start % BLOCK as u64;
    let end = (range.start + len).next_multiple_of(BLOCK as u64);
    chunk.buffer().set_len((end - start) as usize);
    let turn = cold.turn(core, file.device()).await;
    let (chunk, read) = file.read_chunk(core, chunk, start).await?;
    turn.end(core.now());
    core.counters().cold_reads.one();
    let skip = (range.start - start) as usize;
    let wanted = skip..skip + len as usize;
    // Cut short at the end of the file or by a signal: the page cache's way tells which.
    Ok((read >= wanted.end).then(|| chunk.freeze().slice(wanted)))
}

/// Which parts of a file were read once: a second reading goes through the page cache.
#[derive(Default)]
pub(crate) struct ReadOnce(std::sync::OnceLock<Box<[AtomicU64]>>);

/// Bytes that one bit stands for; every range of [`LEAST`] bytes holds one of these wholly.
const PART: u64 = LEAST / 2;
/// Bytes of a file that have bits: the most that a segment can have.
const COVERED: u64 = 1 << 31;
const WORDS: usize = (COVERED / PART / 64) as usize;

impl ReadOnce {
    /// Notes a range as read, as far as whole parts lie in it; answers whether any of these was read before.
    pub(crate) fn note(&self, offset: u64, len: u64) -> bool {
        let words = self
            .0
            .get_or_init(|| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
        let parts = offset.div_ceil(PART)..(offset + len).min(COVERED) / PART;
        let mut known = false;
        for part in parts {
            let bit = 1 << (part % 64);
            let before = words[(part / 64) as usize].fetch_or(bit, Ordering::Relaxed);
            known |= before & bit != 0;
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_reading_is_known_and_what_lies_beside_is_not() {
        let read = ReadOnce::default();
        assert!(!read.note(1000, PIECE));
        // The next piece begins where that one ended, within one part.
        assert!(!read.note(1000 + PIECE, PIECE));
        assert!(read.note(1000, LEAST));
        assert!(read.note(PIECE, LEAST), "of both pieces a little");
        assert!(!read.note(1 << 30, LEAST));
        assert!(!read.note(COVERED - 1, 10 * PIECE), "beyond what has bits");
    }

    #[test]
    fn every_range_that_is_long_enough_is_known_again() {
        for offset in [0, 1, PART - 1, PART, PART + 1, 12_345_678] {
            let read = ReadOnce::default();
            assert!(!read.note(offset, LEAST), "{offset}");
            assert!(read.note(offset, LEAST), "{offset}");
        }
    }

    #[test]
    fn beside_writes_the_disk_rests_for_as_long_as_a_read_took() {
        let cold = ColdReads::new(0);
        let (disk, began) = (cold.disk(1), Instant::default());
        let later = |millis| began + Duration::from_millis(millis);
        let turn = |beside_writes| Turn {
            disk: Rc::clone(&disk),
            began,
            beside_writes,
            _share: disk.turns.try_reserve(1).expect("free"),
        };
        turn(true).end(later(5));
        assert_eq!(disk.next.get(), Some(later(10)));
        turn(false).end(later(20));
        assert_eq!(disk.next.get(), None);
        cold.note_write(1, later(30));
        assert_eq!(cold.piece(1, later(129)), PIECE_BESIDE_WRITES);
        assert_eq!(cold.piece(1, later(130)), PIECE);
        assert_eq!(cold.piece(2, later(31)), PIECE, "another disk");
    }

    #[test]
    fn memory_is_bounded_and_used_again() {
        let chunks = Arc::new(Chunks::new(2));
        let first = chunks.take().expect("one");
        let memory = first.as_ref().as_ptr();
        let second = chunks.take().expect("two");
        assert!(chunks.take().is_none());
        drop(second.freeze());
        let dropping = move || drop(first.freeze());
        let elsewhere = crate::sys::spawn_thread("elsewhere".to_owned(), dropping);
        elsewhere.expect("started").join().expect("dropped");
        let again = [chunks.take(), chunks.take()].map(|chunk| chunk.expect("back"));
        assert!(again.iter().any(|chunk| chunk.as_ref().as_ptr() == memory));
        drop(again);
        chunks.give_back();
        assert_eq!(chunks.made.load(Ordering::Relaxed), 0);
    }
}
