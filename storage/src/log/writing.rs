//! The writer: takes the queue to disk, one write at a time, and settles the tickets.

use super::LogInner;
use super::append::Completion;
use super::close::open_new_direct;
use super::journaled::Suits;
use super::state::{Cached, Queued, State, Status};
use crate::disk::sync_directory;
use crate::error::StorageError;
use crate::names::FileKind;
use crate::segment::index::ActiveIndex;
use crate::segment::roll::SegmentPlan;
use crate::segment::tail::Tail;
use crate::segment::writer::{self, WriteBuffer};
use crate::segment::{Active, BLOCK, Sealed, block_start, segment_path};
use crate::storage::LogFailure;
use bytes::Bytes;
use shards::TaskClass;
use shards::io::{Durability, File, OpenOptions};
use std::path::Path;
use std::rc::Rc;

/// Batches gather up to this much for one write; a single larger batch goes alone.
const WRITE_BYTES_MAX: usize = 1 << 20;
/// Index entries gather up to this much before they go to their files.
const INDEX_FLUSH_BYTES: usize = 4096;

enum Step {
    Stop,
    Open,
    /// The journal goes on.
    Hand,
    /// It will, when the segment reaches to `end`.
    Extend {
        file: File,
        end: u32,
    },
    Write {
        file: File,
        write: WriteBuffer,
        count: usize,
        messages: i64,
        segment_bytes: u32,
    },
    Roll {
        plan: SegmentPlan,
        snapshot: Bytes,
    },
}

impl LogInner {
    /// Runs until the queue is empty, somebody wants the files, or the log is offline.
    pub async fn run_writer(self: &Rc<Self>) {
        loop {
            let result = match self.next_step() {
                Step::Stop => return self.quiet.notify_all(),
                Step::Hand if self.offer_to_journal() => return,
                Step::Hand => continue,
                Step::Extend { file, end } => {
                    self.reserve_for_journal(&file, end).await;
                    continue;
                }
                Step::Open => self.wake_active().await,
                Step::Write {
                    file,
                    write,
                    count,
                    messages,
                    segment_bytes,
                } => {
                    self.write(&file, write, count, messages, segment_bytes)
                        .await
                }
                Step::Roll { plan, snapshot } => self.roll(plan, snapshot).await,
            };
            if let Err(error) = result {
                self.fail(error).await;
            }
        }
    }

    fn next_step(&self) -> Step {
        let mut state = self.state.borrow_mut();
        if state.move_wanted && state.queue.is_empty() && state.journal_pin.is_none() {
            state.move_wanted = false;
        }
        if state.nothing_to_write() {
            state.writing = false;
            return Step::Stop;
        }
        if let Some(Queued::Roll { plan, snapshot }) = state.queue.front() {
            return Step::Roll {
                plan: *plan,
                snapshot: snapshot.clone(),
            };
        }
        let Some(file) = state
            .active
            .file
            .clone()
            .filter(|_| state.active.is_awake())
        else {
            return Step::Open;
        };
        match self.suits_journal(&state) {
            Suits::Yes(_) => return Step::Hand,
            Suits::WithSpace { end } => return Step::Extend { file, end },
            Suits::No => {}
        }
        let (count, messages) = state.gather();
        state.in_flight = count;
        let Some(tail) = &state.active.tail else {
            return Step::Open;
        };
        let batches = state
            .queue
            .iter()
            .take(count)
            .filter_map(|queued| match queued {
                Queued::Batch(batch) => Some(&batch.placed),
                Queued::Roll { .. } => None,
            });
        let write = writer::build(tail.start(), tail.as_slice(), batches);
        Step::Write {
            file,
            write,
            count,
            messages,
            segment_bytes: state.config.segment_bytes,
        }
    }

    /// Opens the active segment for writing: its file, its last block, its index.
    async fn wake_active(self: &Rc<Self>) -> Result<(), StorageError> {
        let core = self.storage.core();
        let (plan, path) = {
            let state = self.state.borrow();
            let plan = state.active.plan;
            (
                plan,
                segment_path(&state.directory, plan.base_offset, FileKind::Log),
            )
        };
        let options = OpenOptions {
            read: true,
            write: true,
            create: true,
            direct: true,
            ..Default::default()
        };
        let file = File::open(core, &path, &options)
            .await
            .map_err(|error| StorageError::io("open", &path, error))?;
        let from = block_start(plan.size);
        let tail = if from < plan.size {
            let reader = self.read_file(plan.base_offset).await?;
            let length = (plan.size - from) as usize;
            reader
                .read_exact_at(core, u64::from(from), length)
                .await
                .map_err(|error| StorageError::io("read", &path, error))?
        } else {
            Bytes::new()
        };
        let index = self.load_active_index(plan).await?;
        let first = self.first_timestamp(plan, &path).await?;
        {
            let mut state = self.state.borrow_mut();
            state.active.file = Some(file.clone());
            state.active.tail = Some(Tail::new(plan.size, tail));
            state.active.index.get_or_insert_with(|| Box::new(index));
            state.active.plan.first_timestamp = first;
            if state.planned.base_offset == plan.base_offset
                && state.planned.first_timestamp.is_none()
            {
                state.planned.first_timestamp = first;
            }
        }
        self.preallocate(&file).await;
        Ok(())
    }

    /// `preallocate=true`: gives the active segment all its space. Without success the file grows as others do.
    async fn preallocate(&self, file: &File) {
        let (wanted, length, all) = {
            let state = self.state.borrow();
            let all = u64::from(state.config.segment_bytes);
            (
                state.config.preallocate,
                u64::from(state.active.plan.size),
                all,
            )
        };
        if wanted
            && all > length
            && file
                .allocate(self.storage.core(), length, all - length)
                .await
                .is_ok()
        {
            self.state.borrow_mut().active.file_length = all;
        }
    }

    /// The first batch's timestamp, for rolling by time; read once after a start.
    async fn first_timestamp(
        &self,
        plan: SegmentPlan,
        path: &std::path::Path,
    ) -> Result<Option<i64>, StorageError> {
        if plan.first_timestamp.is_some() || plan.size == 0 {
            return Ok(plan.first_timestamp);
        }
        let reader = self.read_file(plan.base_offset).await?;
        let head = reader
            .read_at_most(self.storage.core(), 0, 64)
            .await
            .map_err(|error| StorageError::io("read", path, error))?;
        Ok(crate::batch::BatchHeader::parse(&head)
            .ok()
            .map(|header| header.max_timestamp))
    }

    async fn write(
        self: &Rc<Self>,
        file: &File,
        write: WriteBuffer,
        count: usize,
        messages: i64,
        segment_bytes: u32,
    ) -> Result<(), StorageError> {
        let core = self.storage.core();
        self.extend(file, &write, segment_bytes).await;
        let (durability, sync_after) = self.durability(messages);
        self.write_segment(file, &write, durability).await?;
        if sync_after {
            let active_base = self.state.borrow().active.plan.base_offset;
            self.sync_sealed(active_base).await?;
            file.sync_data(core)
                .await
                .map_err(|error| StorageError::io("fdatasync", &self.active_path(), error))?;
            self.storage.count(|counters| counters.syncs += 1);
        }
        let synced = sync_after || matches!(durability, Durability::Durable);
        let done = self.commit(Written::direct(write), count, messages, synced);
        self.all_moved();
        done.into_iter()
            .for_each(|completion| completion.complete(Ok(())));
        self.storage.shrink_cache();
        self.progress.notify_all();
        let unflushed = self
            .state
            .borrow()
            .active
            .index
            .as_ref()
            .map_or(0, |index| index.unflushed());
        if unflushed >= INDEX_FLUSH_BYTES {
            self.flush_index().await?;
        }
        Ok(())
    }

    /// The write itself, counted.
    pub async fn write_segment(
        &self,
        file: &File,
        write: &WriteBuffer,
        durability: Durability,
    ) -> Result<(), StorageError> {
        let core = self.storage.core();
        let bytes = write.data.len() as u64;
        let begun = core.now();
        let (data, position) = (write.data.clone(), u64::from(write.file_position));
        let written = match durability {
            Durability::Written => file.write_on_at(core, data, position, write.known()).await,
            // Two durable writes would wait for the disk twice.
            Durability::Durable => file.write_all_at(core, data, position, durability).await,
        };
        written.map_err(|error| StorageError::io("write", &self.active_path(), error))?;
        let synced = durability == Durability::Durable;
        self.storage.count(|counters| {
            counters.writes += 1;
            counters.written_bytes += bytes;
            counters.syncs += u64::from(synced);
        });
        let took = core.now().as_nanos() - begun.as_nanos();
        self.disk.written(bytes, synced, took);
        Ok(())
    }

    /// Durable writes where each must be; a sync of the whole file where several writes are due together, because a
    /// durable write vouches for itself alone.
    fn durability(&self, messages: i64) -> (Durability, bool) {
        let state = self.state.borrow();
        match state.config.flush_messages {
            ..=1 => (Durability::Durable, state.unflushed_messages > 0),
            every => (
                Durability::Written,
                state.unflushed_messages.saturating_add(messages) >= every,
            ),
        }
    }

    /// Extends the file ahead of a write that would reach its end. Failure is no matter: the write itself will tell.
    pub async fn extend(&self, file: &File, write: &WriteBuffer, segment_bytes: u32) {
        let end = u64::from(write.file_position) + write.data.len() as u64;
        let length = self.state.borrow().active.file_length;
        if end <= length {
            return;
        }
        let most = self.storage.0.options.extend_bytes_max;
        let ahead = writer::extension(write.end, segment_bytes, most);
        let mut reached = end;
        if ahead > 0 {
            let from = length.next_multiple_of(u64::from(BLOCK));
            let to = end + u64::from(ahead);
            if file
                .allocate(self.storage.core(), from, to - from)
                .await
                .is_ok()
            {
                reached = to;
            }
        }
        self.state.borrow_mut().active.file_length = reached;
    }

    /// The write is done: its batches are part of the log.
    pub fn commit(
        self: &Rc<Self>,
        write: Written,
        count: usize,
        messages: i64,
        synced: bool,
    ) -> Vec<Rc<Completion>> {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        if state.in_flight != count {
            // Taken offline meanwhile: the batches were failed already.
            return Vec::new();
        }
        let interval = state.config.index_interval_bytes;
        let mut done = Vec::new();
        let mut offsets: Option<(i64, i64)> = None;
        for queued in state.queue.drain(..count) {
            let Queued::Batch(batch) = queued else {
                continue;
            };
            let header = &batch.placed.header;
            if batch.placed.position == 0 {
                state.active.plan.first_timestamp = Some(header.max_timestamp);
            }
            let new = state
                .active
                .plan
                .cursor
                .advance(header, batch.placed.position, interval);
            if let Some(index) = &mut state.active.index {
                index.push(new);
            }
            let first = offsets.map_or(header.base_offset, |(first, _)| first);
            offsets = Some((first, header.last_offset));
            if batch.completes {
                done.push(batch.completion);
            }
        }
        state.in_flight = 0;
        if let Some(tail) = write.tail {
            state.active.tail = Some(tail);
        }
        let Some((first_offset, last_offset)) = offsets else {
            return done;
        };
        state.active.plan.size = write.end;
        state.end_offset = last_offset + 1;
        if synced {
            state.unflushed_messages = 0;
            state.unflushed_since = None;
        } else {
            state.unflushed_messages += messages;
            state
                .unflushed_since
                .get_or_insert_with(|| self.storage.core().now());
        }
        let cached = Cached {
            entry: 0,
            segment_base: state.active.plan.base_offset,
            data_position: write.data_position,
            start: write.start,
            end: write.end,
            first_offset,
            last_offset,
            data: write.data,
        };
        self.keep(state, cached);
        done
    }

    /// Keeps a buffer for readers. It takes the place of earlier ones that it holds whole, as small writes into one
    /// block do: the block is kept once, not once a write.
    fn keep(self: &Rc<Self>, state: &mut State, mut new: Cached) {
        let mut cache = self.storage.0.cache.borrow_mut();
        let mut replaced: Option<(u64, usize)> = None;
        while let Some(last) = state.cached.back() {
            let inside = last.segment_base == new.segment_base && last.start >= new.data_position;
            if !inside {
                break;
            }
            new.start = last.start;
            new.first_offset = last.first_offset;
            if let Some((_, bytes)) = replaced {
                cache.forget(1, bytes);
            }
            replaced = Some((last.entry, last.data.len()));
            state.cached.pop_back();
        }
        new.entry = match replaced {
            Some((entry, bytes)) => {
                cache.resize(bytes, new.data.len());
                entry
            }
            None => cache.insert(&self.storage.0.logs.borrow(), self.id, new.data.len()),
        };
        state.cached.push_back(new);
    }

    /// The cache gives this buffer up; answers its bytes. The last block stays, alone.
    pub fn evict(&self, entry: u64) -> usize {
        let mut state = self.state.borrow_mut();
        let Ok(at) = state
            .cached
            .binary_search_by_key(&entry, |cached| cached.entry)
        else {
            return 0;
        };
        // Oldest go first, so whatever lies before an evicted one goes with it and the rest stays contiguous.
        let mut freed = 0;
        for cached in state.cached.drain(..=at) {
            freed += cached.data.len();
        }
        if state.cached.is_empty()
            && let Some(tail) = &mut state.active.tail
        {
            tail.shrink();
        }
        freed
    }

    pub fn holds_cached(&self, entry: u64) -> bool {
        // Called by the cache while a log inserts: then the state is borrowed, and its entries are young.
        self.state.try_borrow().map_or(true, |state| {
            state
                .cached
                .binary_search_by_key(&entry, |cached| cached.entry)
                .is_ok()
        })
    }

    /// Seals the active segment and begins the planned one.
    async fn roll(self: &Rc<Self>, plan: SegmentPlan, snapshot: Bytes) -> Result<(), StorageError> {
        let core = self.storage.core();
        if !self.state.borrow().active.is_awake() {
            self.wake_active().await?;
        }
        self.move_tail().await?;
        self.finish_active_index();
        self.cut_to_size().await?;
        self.flush_index().await?;
        let directory = self.state.borrow().directory.clone();
        self.write_snapshot(&directory, plan.base_offset, snapshot)
            .await?;
        let path = segment_path(&directory, plan.base_offset, FileKind::Log);
        let file = open_new_direct(core, &path).await?;
        sync_directory(core, &directory).await?;
        if !self.begin_segment(plan, file.clone()) {
            return Ok(());
        }
        self.preallocate(&file).await;
        self.storage.count(|counters| counters.rolls += 1);
        self.flush_behind(plan.base_offset);
        Ok(())
    }

    /// False where the log went offline meanwhile.
    fn begin_segment(&self, plan: SegmentPlan, file: File) -> bool {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        if !matches!(state.status, Status::Open) {
            return false;
        }
        let before = std::mem::replace(&mut state.active, Active::new(plan));
        state.sealed.push(Sealed {
            base_offset: before.plan.base_offset,
            size: before.plan.size,
            max_timestamp: Some((
                before.plan.cursor.max_timestamp,
                before.plan.cursor.max_timestamp_offset,
            )),
        });
        state.active.file = Some(file);
        state.queue.pop_front();
        state.last_snapshot_offset = plan.base_offset;
        true
    }

    /// Makes sealed segments durable in the background; then recovery may start behind them.
    fn flush_behind(self: &Rc<Self>, end_offset: i64) {
        let log = self.clone();
        let core = self.storage.core();
        drop(core.spawn(TaskClass::Background, "log-flush", async move {
            // A full disk only leaves the recovery point where it is, for the next flush to move.
            let result = log.sync_sealed(end_offset).await;
            let _ = log.settle(result);
        }));
    }

    /// A write, or what belongs to it, failed.
    async fn fail(self: &Rc<Self>, error: StorageError) {
        self.disk.failed();
        // A full disk is not asked again until the next append or rest.
        self.state.borrow_mut().move_wanted = false;
        if !matches!(error, StorageError::Full { .. }) {
            self.disk_failed(&error);
            return;
        }
        self.storage.count(|counters| counters.full_failures += 1);
        let failed = self.state.borrow_mut().roll_back();
        // What the failed write left behind the end must not be taken for batches by a later recovery.
        if let Err(error) = self.cut_durably().await {
            self.disk_failed(&error);
        }
        failed
            .into_iter()
            .for_each(|completion| completion.complete(Err(error.clone())));
    }

    /// An I/O error that is no want of space: the log is offline, and whoever watches the disks learns of it.
    pub fn disk_failed(&self, error: &StorageError) {
        self.storage.count(|counters| counters.io_failures += 1);
        let reason = error.to_string();
        if self.go_offline(&reason) {
            let directory = self.state.borrow().directory.to_path_buf();
            self.storage.tell_failure(LogFailure {
                partition: self.partition.clone(),
                log_directory: directory
                    .parent()
                    .map(Path::to_path_buf)
                    .unwrap_or_default(),
                reason,
            });
        }
    }

    /// No more appends: those under way fail. Reads fail too, as Kafka's do for a failed directory. False where the log
    /// was offline already.
    pub fn go_offline(&self, reason: &str) -> bool {
        let (failed, error, cached) = {
            let mut state = self.state.borrow_mut();
            if !matches!(state.status, Status::Open) {
                return false;
            }
            state.status = Status::Offline {
                reason: reason.into(),
            };
            let error = StorageError::Offline {
                path: state.directory.to_path_buf(),
                reason: reason.to_string(),
            };
            let failed = state.roll_back();
            state.active.file = None;
            state.active.index = None;
            state.active.tail = None;
            state.watched = false;
            (failed, error, state.take_cached())
        };
        self.storage.let_go(cached);
        self.storage.0.files.borrow_mut().remove_log(self.id);
        self.storage.0.indexes.borrow_mut().remove_log(self.id);
        failed
            .into_iter()
            .for_each(|completion| completion.complete(Err(error.clone())));
        self.progress.notify_all();
        true
    }
}

/// A write that is done, to a segment or to the journal.
pub(crate) struct Written {
    /// Positions in the segment where its batches begin and end.
    pub start: u32,
    pub end: u32,
    /// What is kept for readers, and where in the segment it begins.
    pub data_position: u32,
    pub data: Bytes,
    /// The tail from now on; `None` where it has the batches already.
    pub tail: Option<Tail>,
}

impl Written {
    fn direct(write: WriteBuffer) -> Written {
        let tail_at = (block_start(write.end) - write.file_position) as usize;
        let tail_end = (write.end - write.file_position) as usize;
        let data = kept_form(&write.data, tail_end);
        Written {
            start: write.start,
            end: write.end,
            data_position: write.file_position,
            tail: Some(Tail::new(write.end, data.slice(tail_at..tail_end))),
            data,
        }
    }
}

/// What is kept of a write buffer of which the first `used` bytes count. One that is mostly padding is kept as a small
/// copy, so that a log with little in it costs little; whole blocks would be 4 KiB each for ten thousand of them.
fn kept_form(data: &Bytes, used: usize) -> Bytes {
    if data.len() == BLOCK as usize && used <= data.len() / 2 {
        Bytes::copy_from_slice(&data[..used])
    } else {
        data.clone()
    }
}

impl State {
    /// How many of the queue's first batches go into one write, and their records.
    fn gather(&self) -> (usize, i64) {
        let (mut count, mut bytes, mut messages) = (0, 0, 0);
        for queued in &self.queue {
            let Queued::Batch(batch) = queued else { break };
            let size = batch.placed.bytes.len();
            if count > 0 && bytes + size > WRITE_BYTES_MAX {
                break;
            }
            count += 1;
            bytes += size;
            messages += i64::from(batch.placed.header.record_count.max(0));
        }
        (count, messages)
    }
}

impl Active {
    /// Everything that a write needs is in memory.
    pub fn is_awake(&self) -> bool {
        self.file.is_some() && self.tail.is_some() && self.index.is_some()
    }

    /// The index, made if the log was at rest with an empty segment.
    pub fn index_mut(&mut self) -> &mut ActiveIndex {
        let base = self.plan.base_offset;
        self.index
            .get_or_insert_with(|| Box::new(ActiveIndex::new(base)))
    }
}
