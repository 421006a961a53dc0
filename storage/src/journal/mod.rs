//! The journal of one core on one disk: small appends of all its logs, written together.
//!
//! Writes to different files cannot be merged, and a small one costs as much as a large one. So what is small goes into one
//! file first, as one sequential write for all logs that wait, and is acknowledged from there. A log keeps such batches in
//! its tail, which readers see as they see any last block, and writes them to its segment when there are enough of them
//! (`log/journaled.rs`), or when the journal needs the room. A clean stop leaves no journal behind; after a crash
//! [`replay`] puts everything back where it belongs.
//!
//! What goes wrong here costs speed, never a batch: while the file is not there, has no room, or fails, logs write to
//! their segments at once.

mod format;
mod replay;
mod ring;

pub use replay::{JournalReport, replay};

pub(crate) use format::{FrameBuilder, OwnerRef, Place, bytes_entry_size};
pub(crate) use ring::Sequence;

use crate::disk::sync_directory;
use crate::disk_metrics::DiskCounters;
use crate::error::StorageError;
use crate::log::LogInner;
use crate::log::journaled::Share;
use crate::log::open_new_direct;
use crate::segment::BLOCK;
use crate::storage::Storage;
use bytes::Bytes;
use format::{Generation, encode_file_header, frame_size};
use ring::Ring;
use shards::TaskClass;
use shards::io::{AlignedBuf, Durability, File, OpenOptions, dir};
use shards::sync::Event;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

/// Frames are at most this long.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 20;
/// A journal smaller than this is not worth having.
const BYTES_MIN: u64 = 1 << 18;
/// A journal takes at most this part of what is free on its disk.
const FREE_SPACE_PART: u64 = 16;
const NAME_PREFIX: &str = "ringmain-journal-";
/// What is behind the names of journals that are not to be replayed.
const ASIDE_STALE: &str = ".stale";
const ASIDE_DAMAGED: &str = ".damaged";

/// Whether a file of a log directory is a journal.
fn is_journal(name: &str) -> bool {
    name.strip_prefix(NAME_PREFIX)
        .is_some_and(|core| !core.is_empty() && core.bytes().all(|byte| byte.is_ascii_digit()))
}

fn aside_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A journal that could not be made, or failed: its directory goes on without one until the next start.
#[derive(Debug, Clone)]
pub struct JournalFailure {
    pub log_directory: PathBuf,
    pub reason: String,
}

pub(crate) struct Journal {
    log_directory: PathBuf,
    path: PathBuf,
    disk: Rc<DiskCounters>,
    state: RefCell<State>,
    /// A frame was written, or bytes became free.
    progress: Event,
}

/// The journal's file, opened twice.
///
/// A frame that need not be durable goes through the page cache: that survives the process as well, and costs a copy where
/// O_DIRECT waits for the device (`perf/results/2026-11-30-buffered-journal.md`). A durable frame would only pass
/// through it on its way, so it goes past. Frames begin and end with blocks, so no page holds some of both.
struct Files {
    direct: File,
    cached: File,
}

impl Files {
    fn for_frame(&self, durability: Durability) -> &File {
        match durability {
            Durability::Written => &self.cached,
            Durability::Durable => &self.direct,
        }
    }
}

/// Where a frame goes, and when its write is complete.
struct Slot {
    file: File,
    durability: Durability,
    generation: Generation,
    position: u64,
    sequence: Sequence,
    /// The oldest frame that is still needed.
    oldest: Sequence,
}

enum Phase {
    /// There is no file yet.
    Absent,
    Creating,
    Ready {
        files: Files,
        generation: Generation,
    },
    /// A write failed: what the file has may still be needed, and it gets no more.
    Failed,
    /// There is no file, and none will be made before the next start.
    None,
}

struct State {
    phase: Phase,
    ring: Ring<Weak<LogInner>>,
    /// Logs with something for the next frame, in the order of their first batch in it.
    waiting: VecDeque<Rc<LogInner>>,
    running: bool,
}

impl Journal {
    pub fn new(log_directory: &Path, core: usize, disk: Rc<DiskCounters>) -> Journal {
        Journal {
            log_directory: log_directory.to_path_buf(),
            path: log_directory.join(format!("{NAME_PREFIX}{core}")),
            disk,
            state: RefCell::new(State {
                phase: Phase::Absent,
                ring: Ring::new(0),
                waiting: VecDeque::new(),
                running: false,
            }),
            progress: Event::new(),
        }
    }

    /// Whether frames can be written. Where there is no file yet it is made, for later.
    pub fn is_ready(self: &Rc<Self>, storage: &Storage) -> bool {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::Ready { .. } => true,
            Phase::Creating | Phase::Failed | Phase::None => false,
            Phase::Absent => {
                state.phase = Phase::Creating;
                let (journal, storage) = (self.clone(), storage.clone());
                let core = storage.core().clone();
                let create = async move { journal.create(&storage).await };
                drop(core.spawn(TaskClass::Background, "journal-create", create));
                false
            }
        }
    }

    /// Whether there is a file that may hold entries.
    pub fn has_file(&self) -> bool {
        matches!(
            self.state.borrow().phase,
            Phase::Ready { .. } | Phase::Failed
        )
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.state.borrow().ring.used()
    }

    /// Makes the file, written from end to end: later writes then change no metadata of the filesystem.
    async fn create(&self, storage: &Storage) {
        let phase = match self.try_create(storage).await {
            Ok((files, generation, length)) => {
                self.state.borrow_mut().ring = Ring::new(length);
                Phase::Ready { files, generation }
            }
            Err(error) => {
                let _ = dir::remove_file(storage.core(), &self.path).await;
                self.tell(storage, &error);
                Phase::None
            }
        };
        self.state.borrow_mut().phase = phase;
        self.progress.notify_all();
    }

    /// From now on small appends go to their segments one by one.
    fn tell(&self, storage: &Storage, error: &StorageError) {
        storage.count(|counters| counters.journal_failures += 1);
        storage.tell_journal_failure(JournalFailure {
            log_directory: self.log_directory.clone(),
            reason: error.to_string(),
        });
    }

    async fn try_create(
        &self,
        storage: &Storage,
    ) -> Result<(Files, Generation, u64), StorageError> {
        let core = storage.core();
        let io = |error| StorageError::io("write", &self.path, error);
        let space = dir::free_space(core, &self.log_directory)
            .await
            .map_err(io)?;
        let wanted = storage
            .0
            .options
            .journal_bytes
            .min(space.free / FREE_SPACE_PART);
        let length = wanted - wanted % u64::from(BLOCK);
        if length < BYTES_MIN {
            let path = self.path.clone();
            return Err(StorageError::Full { path });
        }
        let direct = open_new_direct(core, &self.path).await?;
        let block = u64::from(BLOCK);
        direct.allocate(core, 0, block + length).await.map_err(io)?;
        let zeros = AlignedBuf::zeroed(FRAME_BYTES_MAX).freeze();
        let mut position = 0;
        while position < block + length {
            let piece = zeros.len().min((block + length - position) as usize);
            direct
                .write_all_at(core, zeros.slice(..piece), position, Durability::Written)
                .await
                .map_err(io)?;
            position += piece as u64;
        }
        let generation = core.random_u128();
        direct
            .write_all_at(core, encode_file_header(generation), 0, Durability::Durable)
            .await
            .map_err(io)?;
        direct.sync_all(core).await.map_err(io)?;
        sync_directory(core, &self.log_directory).await?;
        let cached = File::open(core, &self.path, &OpenOptions::writing())
            .await
            .map_err(io)?;
        Ok((Files { direct, cached }, generation, length))
    }

    /// A log has batches for the next frame. It counts as writing until its share is written or handed back.
    pub fn push(self: &Rc<Self>, log: Rc<LogInner>) {
        let storage = log.storage.clone();
        let mut state = self.state.borrow_mut();
        state.waiting.push_back(log);
        if !std::mem::replace(&mut state.running, true) {
            let journal = self.clone();
            let core = storage.core().clone();
            let run = async move { journal.run(&storage).await };
            drop(core.spawn(TaskClass::Produce, "journal", run));
        }
    }

    /// Writes frames until nothing waits.
    async fn run(self: &Rc<Self>, storage: &Storage) {
        loop {
            let shares = self.gather();
            if shares.is_empty() {
                if self.state.borrow().waiting.is_empty() {
                    self.state.borrow_mut().running = false;
                    return;
                }
                continue;
            }
            self.write(storage, shares).await;
            self.press();
        }
    }

    /// What the next frame carries: shares of the logs that wait, in their order. A log whose batches no longer suit goes
    /// on by itself.
    fn gather(&self) -> Vec<Share> {
        let mut shares = Vec::new();
        let mut bytes = 0;
        loop {
            let Some(log) = self.state.borrow_mut().waiting.pop_front() else {
                return shares;
            };
            let Some(share) = log.clone().share() else {
                log.run_by_itself();
                continue;
            };
            if !shares.is_empty() && frame_size(bytes + share.entry_bytes()) > FRAME_BYTES_MAX {
                self.state.borrow_mut().waiting.push_front(log);
                return shares;
            }
            bytes += share.entry_bytes();
            shares.push(share);
        }
    }

    async fn write(self: &Rc<Self>, storage: &Storage, shares: Vec<Share>) {
        let size: usize = shares.iter().map(Share::entry_bytes).sum();
        let durability = if shares.iter().any(Share::is_durable) {
            Durability::Durable
        } else {
            Durability::Written
        };
        let Some(slot) = self.reserve(size, durability) else {
            storage.count(|counters| counters.journal_refusals += 1);
            shares
                .into_iter()
                .for_each(|share| share.log.run_by_itself_now());
            return;
        };
        let mut frame = FrameBuilder::new(size);
        shares.iter().for_each(|share| share.stage(&mut frame));
        let sequence = slot.sequence;
        let frame = frame.finish(slot.generation, sequence, slot.oldest);
        let written = self.write_frame(storage, &slot, frame).await;
        if let Err(error) = &written {
            self.disk.failed();
            self.state.borrow_mut().phase = Phase::Failed;
            self.tell(storage, error);
        }
        for share in shares {
            match &written {
                Ok(()) => share.commit(self, sequence),
                Err(_) => share.take_back(),
            }
        }
        self.state.borrow_mut().ring.unpin(sequence);
        self.progress.notify_all();
        storage.shrink_cache();
    }

    fn reserve(&self, size: usize, durability: Durability) -> Option<Slot> {
        let mut state = self.state.borrow_mut();
        let Phase::Ready { files, generation } = &state.phase else {
            return None;
        };
        let (file, generation) = (files.for_frame(durability).clone(), *generation);
        let bytes = frame_size(size) as u64;
        let position = state.ring.room_for(bytes)?;
        let oldest = state.ring.oldest();
        let sequence = state.ring.push(position, bytes);
        Some(Slot {
            file,
            durability,
            generation,
            position: u64::from(BLOCK) + position,
            sequence,
            oldest,
        })
    }

    async fn write_frame(
        &self,
        storage: &Storage,
        slot: &Slot,
        frame: Bytes,
    ) -> Result<(), StorageError> {
        let core = storage.core();
        let bytes = frame.len() as u64;
        let begun = core.now();
        slot.file
            .write_all_at(core, frame, slot.position, slot.durability)
            .await
            .map_err(|error| StorageError::io("write", &self.path, error))?;
        let synced = slot.durability == Durability::Durable;
        let took = core.now().as_nanos() - begun.as_nanos();
        self.disk.written(bytes, synced, took);
        storage.count(|counters| {
            counters.journal_writes += 1;
            counters.journal_written_bytes += bytes;
            counters.syncs += u64::from(synced);
        });
        Ok(())
    }

    /// Beyond half of the room in use, the logs with the oldest entries move theirs.
    fn press(&self) {
        let logs = {
            let mut state = self.state.borrow_mut();
            let most = state.ring.length() / 2;
            state.ring.must_move(most)
        };
        for log in logs.iter().filter_map(Weak::upgrade) {
            log.ask_to_move();
        }
    }

    /// A log has its oldest unmoved batch in this frame.
    pub fn pin(&self, sequence: Sequence, log: &Rc<LogInner>) {
        self.state
            .borrow_mut()
            .ring
            .pin(sequence, Rc::downgrade(log));
    }

    /// It has moved all.
    pub fn unpin(&self, sequence: Sequence) {
        self.state.borrow_mut().ring.unpin(sequence);
        self.progress.notify_all();
    }

    /// Makes it known, durably, that all earlier entries of a log say nothing any more: before its end is cut.
    ///
    /// # Errors
    /// I/O errors, and a journal that failed before: then nothing may be cut.
    pub async fn cut(&self, storage: &Storage, owner: OwnerRef<'_>) -> Result<(), StorageError> {
        let size = format::cut_entry_size(owner.topic);
        let slot = loop {
            if let Some(slot) = self.reserve(size, Durability::Durable) {
                break slot;
            }
            if !matches!(self.state.borrow().phase, Phase::Ready { .. }) {
                let error = std::io::Error::other("the journal failed; start the broker again");
                return Err(StorageError::io("write", &self.path, error));
            }
            self.press();
            self.progress.wait().await;
        };
        let mut frame = FrameBuilder::new(size);
        frame.cut(owner);
        let frame = frame.finish(slot.generation, slot.sequence, slot.oldest);
        let written = self.write_frame(storage, &slot, frame).await;
        self.unpin(slot.sequence);
        written
    }

    /// Removes the file of a journal that no log needs any more: for a clean stop.
    ///
    /// # Errors
    /// I/O errors. A journal that is still needed stays, and that is no error.
    pub async fn close(&self, storage: &Storage) -> Result<(), StorageError> {
        while matches!(self.state.borrow().phase, Phase::Creating) {
            self.progress.wait().await;
        }
        let idle = {
            let mut state = self.state.borrow_mut();
            let idle = !state.running && state.ring.used() == 0;
            if idle {
                state.phase = Phase::None;
            }
            idle
        };
        if !idle {
            return Ok(());
        }
        let core = storage.core();
        match dir::remove_file(core, &self.path).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StorageError::io("remove", &self.path, error)),
        }
        sync_directory(core, &self.log_directory).await
    }
}
