//! A log's side of the journal: which of its batches go there, and how they come to their segment later.

use super::LogInner;
use super::state::{Queued, State, Status};
use super::writing::Written;
use crate::batch;
use crate::error::StorageError;
use crate::journal::{FrameBuilder, Journal, OwnerRef, Place, Sequence, bytes_entry_size};
use crate::segment::tail::Tail;
use crate::segment::writer::{self, WriteBuffer};
use crate::segment::{BLOCK, block_start};
use shards::TaskClass;
use shards::io::{Durability, File};
use std::rc::Rc;

/// A tail of more than this goes to its segment: from this size on a write costs little more than the journal's own.
const TAIL_BYTES_MAX: usize = 64 << 10;

/// More than this at one time goes to its segment at once. The journal would copy it three times more, and the disk would
/// write it twice, which is dearer than a write of its own (`perf/results/2026-11-30-large-batches.md`). Durable frames are
/// another matter: there each write waits for the device, and one for all logs waits once.
const PORTION_BYTES_MAX: usize = 32 << 10;

/// A segment is extended by at least this much before batches of it are acknowledged from the journal, so that there is
/// space for them in any case.
const SPACE_STEP: u32 = 16 << 10;

/// Whether what waits in a log belongs into the journal.
pub(crate) enum Suits {
    No,
    /// When its segment reaches to `end`.
    WithSpace {
        end: u32,
    },
    Yes(Portion),
}

/// The next batches of a log that go into one frame.
pub(crate) struct Share {
    pub log: Rc<LogInner>,
    portion: Portion,
}

/// How much of its queue.
#[derive(Clone, Copy)]
pub(crate) struct Portion {
    count: usize,
    messages: i64,
    bytes: usize,
    /// What the frame repeats of the tail before them.
    lead: usize,
    /// The frame has to be durable.
    durable: bool,
}

impl LogInner {
    /// Whether what waits belongs into the journal.
    pub fn suits_journal(&self, state: &State) -> Suits {
        self.look_at_queue(state).unwrap_or(Suits::No)
    }

    fn look_at_queue(&self, state: &State) -> Option<Suits> {
        let journal = self.journal.as_ref()?;
        let active = &state.active;
        let direct = active
            .file
            .as_ref()
            .is_some_and(shards::io::File::is_direct);
        if state.move_wanted || state.hold_waiters > 0 || !direct || !active.is_awake() {
            return None;
        }
        let tail = active.tail.as_ref()?;
        let (mut count, mut messages, mut bytes) = (0, 0_i64, 0);
        for queued in &state.queue {
            let Queued::Batch(batch) = queued else { break };
            count += 1;
            messages += i64::from(batch.placed.header.record_count.max(0));
            bytes += batch.placed.bytes.len();
            if tail.len() + bytes > TAIL_BYTES_MAX {
                return None;
            }
        }
        let durable = match state.config.flush_messages {
            // A durable frame vouches for its own batches alone.
            ..=1 if state.unflushed_messages > 0 => return None,
            ..=1 => true,
            every if state.unflushed_messages.saturating_add(messages) >= every => return None,
            _ if bytes > PORTION_BYTES_MAX => return None,
            _ => false,
        };
        if count == 0 || !matches!(state.status, Status::Open) || !journal.is_ready(&self.storage) {
            return None;
        }
        let end = tail.end() + bytes as u32;
        if u64::from(end) > active.file_length {
            return Some(Suits::WithSpace { end });
        }
        Some(Suits::Yes(Portion {
            count,
            messages,
            bytes,
            lead: match state.journal_pin {
                Some(_) => 0,
                None => tail.len(),
            },
            durable,
        }))
    }

    /// Hands what waits to the journal, where it belongs there.
    pub fn offer_to_journal(self: &Rc<Self>) -> bool {
        let offered = matches!(self.suits_journal(&self.state.borrow()), Suits::Yes(_));
        if offered && let Some(journal) = &self.journal {
            journal.push(self.clone());
        }
        offered
    }

    /// What goes into the frame being put together.
    pub fn share(self: Rc<Self>) -> Option<Share> {
        let Suits::Yes(portion) = self.suits_journal(&self.state.borrow()) else {
            return None;
        };
        Some(Share { log: self, portion })
    }

    /// Reserves space in the segment up to `end` and some more. Where there is none, the batches go there at once, and
    /// their write tells.
    pub async fn reserve_for_journal(&self, file: &File, end: u32) {
        let core = self.storage.core();
        let from = self.state.borrow().active.file_length;
        let from = from.next_multiple_of(u64::from(BLOCK));
        let most = self.storage.0.options.extend_bytes_max.max(SPACE_STEP);
        let to = u64::from(
            end.saturating_add(end.clamp(SPACE_STEP, most))
                .next_multiple_of(BLOCK),
        );
        let reserved = file.allocate(core, from, to.saturating_sub(from)).await;
        let mut state = self.state.borrow_mut();
        match reserved {
            Ok(()) => state.active.file_length = to,
            Err(_) => state.move_wanted = true,
        }
    }

    /// Goes on without the journal.
    pub fn run_by_itself(self: &Rc<Self>) {
        let log = self.clone();
        let core = self.storage.core();
        drop(core.spawn(TaskClass::Produce, "log-write", async move {
            log.run_writer().await
        }));
    }

    /// The same for batches that the journal has no room for.
    pub fn run_by_itself_now(self: &Rc<Self>) {
        self.state.borrow_mut().move_wanted = true;
        self.run_by_itself();
    }

    /// What comes after a frame: the next batches, or rest.
    fn go_on(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            if state.nothing_to_write() {
                state.writing = false;
                drop(state);
                return self.quiet.notify_all();
            }
        }
        if !self.offer_to_journal() {
            self.run_by_itself();
        }
    }

    /// The journal needs the room that this log's oldest batches take.
    pub fn ask_to_move(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            if state.journal_pin.is_none() {
                return;
            }
            state.move_wanted = true;
        }
        self.start_writer();
    }

    /// The file holds everything written: the journal may forget this log's batches.
    pub fn all_moved(&self) {
        let pin = {
            let mut state = self.state.borrow_mut();
            state.move_wanted = false;
            state.journal_pin.take()
        };
        if let (Some(pin), Some(journal)) = (pin, &self.journal) {
            journal.unpin(pin);
        }
    }

    /// Writes what only the journal has to the segment. Call while nothing else writes.
    pub async fn move_tail(self: &Rc<Self>) -> Result<(), StorageError> {
        let (file, write, durability, segment_bytes) = {
            let state = self.state.borrow();
            if state.journal_pin.is_none() {
                return Ok(());
            }
            let (Some(file), Some(tail)) = (&state.active.file, &state.active.tail) else {
                // Offline: the next start puts it back.
                return state.check_open();
            };
            let durability = match state.config.flush_messages {
                ..=1 => Durability::Durable,
                _ => Durability::Written,
            };
            let write = writer::build(tail.start(), tail.as_slice(), std::iter::empty());
            (file.clone(), write, durability, state.config.segment_bytes)
        };
        self.extend(&file, &write, segment_bytes).await;
        self.write_segment(&file, &write, durability).await?;
        {
            let mut state = self.state.borrow_mut();
            if state.active.tail.is_some() {
                state.active.tail = Some(last_block(&write));
            }
        }
        self.all_moved();
        Ok(())
    }

    /// Sees to it that nothing the journal has of this log comes back: before its end is cut.
    pub async fn void_journal(&self) -> Result<(), StorageError> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        if !journal.has_file() {
            return Ok(());
        }
        if let Some(owner) = self.owner() {
            journal.cut(&self.storage, owner).await?;
        }
        self.all_moved();
        Ok(())
    }

    fn owner(&self) -> Option<OwnerRef<'_>> {
        Some(OwnerRef {
            topic: &self.partition.topic,
            partition: self.partition.partition,
            topic_id: self.topic_id?,
        })
    }
}

/// The tail that a write leaves, copied so that the write's buffer can go.
fn last_block(write: &WriteBuffer) -> Tail {
    let from = (block_start(write.end) - write.file_position) as usize;
    let to = (write.end - write.file_position) as usize;
    Tail::new(
        write.end,
        bytes::Bytes::copy_from_slice(&write.data[from..to]),
    )
}

impl Share {
    /// Bytes that it takes in the frame.
    pub fn entry_bytes(&self) -> usize {
        let bytes = self.portion.lead + self.portion.bytes;
        bytes_entry_size(&self.log.partition.topic, bytes)
    }

    /// The frame has to be durable.
    pub fn is_durable(&self) -> bool {
        self.portion.durable
    }

    /// Puts the batches, as they will stand in the segment, into the tail and into the frame.
    pub fn stage(&self, frame: &mut FrameBuilder) {
        let mut guard = self.log.state.borrow_mut();
        let state = &mut *guard;
        state.in_flight = self.portion.count;
        let (Some(tail), Some(owner)) = (&mut state.active.tail, self.log.owner()) else {
            return;
        };
        let from = tail.end();
        tail.reserve(self.portion.bytes);
        for queued in state.queue.iter().take(self.portion.count) {
            let Queued::Batch(batch) = queued else {
                continue;
            };
            let placed = &batch.placed;
            tail.append(&placed.bytes, |copy| {
                batch::place(copy, placed.header.base_offset, placed.header.leader_epoch);
                if let Some(time_ms) = placed.stamp_ms {
                    batch::stamp(copy, time_ms);
                }
            });
        }
        let first = state.journal_pin.is_none();
        let position = if first { tail.start() } else { from };
        let place = Place {
            segment: state.active.plan.base_offset,
            position,
            first,
            lead: from - position,
        };
        let at = (position - tail.start()) as usize;
        frame.bytes(owner, place, &tail.as_slice()[at..]);
    }

    /// The frame is written: its batches are part of the log.
    pub fn commit(self, journal: &Journal, sequence: Sequence) {
        let log = self.log;
        let written = {
            let mut state = log.state.borrow_mut();
            // None where the log was taken offline meanwhile: its batches were failed already.
            let written = state.active.tail.as_ref().map(|tail| Written {
                start: state.active.plan.size,
                end: tail.end(),
                data_position: tail.start(),
                data: tail.slice(tail.start(), tail.end()),
                tail: None,
            });
            if written.is_some() && state.journal_pin.is_none() {
                state.journal_pin = Some(sequence);
                journal.pin(sequence, &log);
            }
            written
        };
        if let Some(written) = written {
            let done = log.commit(
                written,
                self.portion.count,
                self.portion.messages,
                self.portion.durable,
            );
            done.into_iter()
                .for_each(|completion| completion.complete(Ok(())));
        }
        log.progress.notify_all();
        log.go_on();
    }

    /// The frame could not be written: the batches go to their segment at once.
    pub fn take_back(self) {
        {
            let mut state = self.log.state.borrow_mut();
            state.in_flight = 0;
            let end = state.active.plan.size;
            if let Some(tail) = &mut state.active.tail {
                tail.cut(end);
            }
        }
        self.log.run_by_itself_now();
    }
}
