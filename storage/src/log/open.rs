//! Creating and opening a log.

use super::ahead::Ahead;
use super::close::{EPOCHS_FILE, open_new};
use super::damage::{Damage, DamagedRange, DamagedRanges, is_cut_off, is_lost_write};
use super::indexes::write_index_files;
use super::recovery::{
    self, RecoveryReport, Scan, ScanJob, Truncation, clean_tail, load_snapshot, note_epoch,
    only_zeros, rebuild_epochs, replay_producers, segment_list,
};
use super::startup_files::{FileLengths, SegmentFiles, put_in_order, remove};
use super::state::{State, Status};
use super::{Log, LogInner};
use crate::checkpoint;
use crate::config::LogConfig;
use crate::disk::sync_directory;
use crate::epochs::LeaderEpochs;
use crate::error::StorageError;
use crate::names::{FileKind, TopicPartition, file_name};
use crate::producer::ProducerState;
use crate::segment::index::ActiveIndex;
use crate::segment::roll::{SEGMENT_SIZE_MAX, SegmentPlan};
use crate::segment::{Active, Sealed, segment_path};
use crate::storage::Storage;
use planted::Bug;
use protocol::Uuid;
use shards::Core;
use shards::io::{Durability, OpenOptions as FileOptions, dir};
use shards::sync::Event;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(crate) const METADATA_FILE: &str = "partition.metadata";

/// How the broker that had the directory before ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// It left `.kafka_cleanshutdown`: only the tail of the active segment is read.
    Clean,
    /// Every batch from this offset on is checked (`recovery-point-offset-checkpoint`; 0 where it has no entry).
    Unclean { recovery_point: i64 },
}

/// Which log to open, and how.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub partition: TopicPartition,
    /// Written to `partition.metadata` where that is missing; otherwise it must be the same.
    pub topic_id: Option<Uuid>,
    /// Whether the directory was seen to be of this very topic id since it was locked: then it is not looked at again.
    pub topic_id_seen: bool,
    pub config: Rc<LogConfig>,
    pub shutdown: Shutdown,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry. Where a new log begins, too.
    pub log_start_offset: i64,
}

impl Log {
    /// Opens a partition's directory below a log directory, or makes it. What is made is durable on return, its entry
    /// in the log directory too.
    ///
    /// # Errors
    /// I/O errors; `Corrupt` where the directory belongs to another topic id.
    pub async fn open(
        storage: &Storage,
        log_directory: &Path,
        options: OpenOptions,
    ) -> Result<(Log, RecoveryReport), StorageError> {
        let core = storage.core();
        let directory = log_directory.join(options.partition.directory_name());
        let mut report = RecoveryReport::default();
        let topic_id = match options.topic_id_seen {
            true => options.topic_id,
            false => {
                report.created = ensure(core, log_directory, &directory, &options).await?;
                settle_topic_id(core, &directory, options.topic_id).await?
            }
        };
        let loaded = load(storage, &directory, &options, &mut report).await?;
        storage.count(|counters| {
            counters.recovered_segments += report.recovered_segments;
            counters.recovered_bytes += report.recovered_bytes;
            counters.rebuilt_indexes += report.rebuilt_indexes;
            counters.truncated_bytes += report.truncations.iter().map(|cut| cut.bytes).sum::<u64>();
        });
        let dirty = loaded.dirty;
        let inner = Rc::new(LogInner {
            id: storage.next_log_id(),
            storage: storage.clone(),
            disk: storage.disk(log_directory),
            journal: (options.config.journal && topic_id.is_some())
                .then(|| storage.journal(log_directory))
                .flatten(),
            partition: options.partition.clone(),
            topic_id,
            state: RefCell::new(loaded.into_state(core, directory, options.config)),
            progress: Event::new(),
            quiet: Event::new(),
            counted_producers: std::cell::Cell::new(0),
        });
        storage.register(&inner);
        inner.count_producers();
        if dirty {
            if inner.state.borrow().config.flush_messages <= 1 {
                // What a crash left is read from now on, and with such a setting what was read stays.
                inner.flush().await?;
            }
            // Something was mended: the next rest makes it durable.
            inner.ensure_watched();
        }
        Ok((Log(inner), report))
    }
}

/// Makes the directory where there is none; says whether it did.
async fn ensure(
    core: &Core,
    log_directory: &Path,
    directory: &Path,
    options: &OpenOptions,
) -> Result<bool, StorageError> {
    match dir::metadata(core, directory).await {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create(core, log_directory, directory, options).await?;
            Ok(true)
        }
        Err(error) => Err(StorageError::io("look at", directory, error)),
    }
}

/// Makes the directory with all that a log needs before its first record, durably.
async fn create(
    core: &Core,
    log_directory: &Path,
    directory: &Path,
    options: &OpenOptions,
) -> Result<(), StorageError> {
    dir::create_dir_all(core, directory)
        .await
        .map_err(|error| StorageError::io("create", directory, error))?;
    let path = segment_path(directory, options.log_start_offset, FileKind::Log);
    open_new(core, &path).await?;
    // Kafka calls a segment without its indexes damaged, also an empty one.
    write_index_files(core, directory, &ActiveIndex::new(options.log_start_offset)).await?;
    // Nothing stands in it yet, and an empty one after a crash is as good: its name is enough to force to disk.
    let path = directory.join(EPOCHS_FILE);
    let text = checkpoint::encode_epochs(&[]).concat();
    open_new(core, &path)
        .await?
        .write_all_at(core, text.into(), 0, Durability::Written)
        .await
        .map_err(|error| StorageError::io("write", &path, error))?;
    match options.topic_id {
        // Forces the directory's entries to disk, too.
        Some(topic_id) => write_topic_id(core, directory, topic_id).await?,
        None => sync_directory(core, directory).await?,
    }
    sync_directory(core, log_directory).await
}

async fn write_topic_id(core: &Core, directory: &Path, id: Uuid) -> Result<(), StorageError> {
    let path = directory.join(METADATA_FILE);
    dir::write_file_atomic(
        core,
        &path,
        checkpoint::encode_partition_metadata(id).into(),
    )
    .await
    .map_err(|error| StorageError::io("write", &path, error))
}

/// The topic id of the directory: read, or written where there is none yet.
async fn settle_topic_id(
    core: &Core,
    directory: &Path,
    wanted: Option<Uuid>,
) -> Result<Option<Uuid>, StorageError> {
    let found = crate::disk::read_topic_id(core, directory).await?;
    match (found, wanted) {
        (Some(found), Some(wanted)) if found != wanted => Err(StorageError::corrupt(
            &directory.join(METADATA_FILE),
            0,
            format!("the directory is of topic id {found}, not {wanted}"),
        )),
        (None, Some(wanted)) => {
            write_topic_id(core, directory, wanted).await?;
            Ok(Some(wanted))
        }
        (found, _) => Ok(found),
    }
}

/// What opening found.
struct Loaded {
    start_offset: i64,
    end_offset: i64,
    recovery_point: i64,
    sealed: Vec<Sealed>,
    active: Active,
    epochs: LeaderEpochs,
    epochs_dirty: bool,
    producers: ProducerState,
    last_snapshot_offset: i64,
    damaged: Vec<DamagedRange>,
    dirty: bool,
}

impl Loaded {
    fn into_state(self, core: &Core, directory: PathBuf, config: Rc<LogConfig>) -> State {
        State {
            directory: directory.into(),
            config,
            status: Status::Open,
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            next_offset: self.end_offset,
            recovery_point: self.recovery_point,
            sealed: self.sealed,
            planned: self.active.plan,
            active: self.active,
            epochs: self.epochs,
            epochs_dirty: self.epochs_dirty,
            epochs_writing: false,
            producers: self.producers,
            last_snapshot_offset: self.last_snapshot_offset,
            queue: VecDeque::new(),
            in_flight: 0,
            writing: false,
            move_wanted: false,
            journal_pin: None,
            held: false,
            hold_waiters: 0,
            refusals: 0,
            watched: false,
            last_append: core.now(),
            // What a crash left may lie in the page cache alone, although whole: the next durable answer stands on it.
            unflushed_messages: self.end_offset - self.recovery_point,
            unflushed_since: None,
            cached: VecDeque::new(),
            truncations: 0,
            damaged: DamagedRanges::new(self.damaged),
        }
    }
}

/// State of a load that its steps pass on.
struct Loader<'a> {
    core: &'a Core,
    directory: &'a Path,
    ahead: &'a Ahead,
    options: &'a OpenOptions,
    report: &'a mut RecoveryReport,
    epochs: LeaderEpochs,
    epochs_dirty: bool,
    damaged: Vec<DamagedRange>,
    changed: bool,
}

async fn load(
    storage: &Storage,
    directory: &Path,
    options: &OpenOptions,
    report: &mut RecoveryReport,
) -> Result<Loaded, StorageError> {
    let core = storage.core();
    let mut files = put_in_order(core, directory, report).await?;
    let ahead = Ahead::of(core, directory, &files, options.shutdown).await;
    let (epochs, epochs_known) = read_epochs(core, directory, &ahead, report).await?;
    let mut loader = Loader {
        core,
        directory,
        ahead: &ahead,
        options,
        report,
        epochs,
        epochs_dirty: !epochs_known,
        damaged: Vec::new(),
        changed: false,
    };
    let (sealed, (active_base, scan)) = loader.find_segments(&mut files).await?;
    let (mut epochs, mut epochs_dirty) = (loader.epochs, loader.epochs_dirty);
    let (mut dirty, damaged) = (loader.changed, loader.damaged);
    let end_offset = scan.next_offset;
    let first_base = sealed
        .first()
        .map_or(active_base, |segment| segment.base_offset);
    let start_offset = options.log_start_offset.max(first_base);
    let list = segment_list(&sealed, (active_base, scan.size));
    if !epochs_known {
        epochs = rebuild_epochs(core, directory, &list).await?;
    }
    epochs_dirty |= epochs.truncate_from_end(end_offset);
    epochs_dirty |= epochs.truncate_from_start(start_offset);
    dirty |= epochs_dirty;
    let (producers, last_snapshot_offset) = load_producers(
        storage,
        directory,
        options,
        (&files, &ahead),
        (&list, end_offset),
        report,
    )
    .await?;
    if !report.removed_files.is_empty() {
        // Segments and snapshots above the end would come true again when the log grows there.
        sync_directory(core, directory).await?;
    }
    let recovery_point = match options.shutdown {
        Shutdown::Clean if !dirty => end_offset,
        Shutdown::Clean => active_base.min(end_offset),
        Shutdown::Unclean { recovery_point } => recovery_point.clamp(0, end_offset),
    };
    dirty |= options.shutdown != Shutdown::Clean && recovery_point < end_offset;
    Ok(Loaded {
        start_offset,
        end_offset,
        recovery_point,
        sealed,
        active: Active::resting(plan_of(core, active_base, &options.config, &scan)),
        epochs,
        epochs_dirty,
        producers,
        last_snapshot_offset,
        damaged,
        dirty,
    })
}

/// How the active segment goes on.
fn plan_of(core: &Core, base_offset: i64, config: &LogConfig, scan: &Scan) -> SegmentPlan {
    let now_ms = core.wall_clock_ms();
    let mut plan = SegmentPlan::new(base_offset, now_ms, config, core.random_u64());
    plan.size = scan.size;
    plan.cursor = scan.cursor;
    plan.first_timestamp = scan.first_timestamp;
    plan
}

/// The epoch table; false where its file is unreadable and must be rebuilt.
async fn read_epochs(
    core: &Core,
    directory: &Path,
    ahead: &Ahead,
    report: &mut RecoveryReport,
) -> Result<(LeaderEpochs, bool), StorageError> {
    const EPOCHS_BYTES_MAX: usize = 64 << 20;
    let path = directory.join(EPOCHS_FILE);
    let bytes = match ahead.get(EPOCHS_FILE) {
        Some((_, bytes)) => bytes.clone(),
        None => match dir::read_file(core, &path, EPOCHS_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((LeaderEpochs::default(), false));
            }
            Err(error) => return Err(StorageError::io("read", &path, error)),
        },
    };
    if bytes.is_empty() {
        // Kafka makes it empty before its first write; so does a crash.
        return Ok((LeaderEpochs::default(), false));
    }
    match checkpoint::decode_epochs(&mut &bytes[..]) {
        Ok(entries) => Ok((LeaderEpochs::from_entries(entries), true)),
        Err(fault) => {
            report.repaired.push(format!("{}: {fault}", path.display()));
            Ok((LeaderEpochs::default(), false))
        }
    }
}

async fn load_producers(
    storage: &Storage,
    directory: &Path,
    options: &OpenOptions,
    (files, ahead): (&SegmentFiles, &Ahead),
    (segments, end_offset): (&recovery::SegmentList, i64),
    report: &mut RecoveryReport,
) -> Result<(ProducerState, i64), StorageError> {
    let core = storage.core();
    // Snapshots above the end would come true again when the log grows there.
    for offset in files
        .snapshots
        .keys()
        .filter(|offset| **offset > end_offset)
    {
        let name = file_name(*offset, FileKind::ProducerSnapshot);
        remove(core, directory, &name, report).await?;
    }
    // After a crash from where the recovery began: a snapshot has the last batch of each producer only, and what a
    // client sends again may be one of the batches before.
    let newest = match options.shutdown {
        Shutdown::Clean => end_offset,
        Shutdown::Unclean { recovery_point } => recovery_point.clamp(0, end_offset),
    };
    let found = load_snapshot(core, directory, (files, ahead), newest, report).await?;
    let clean = options.shutdown == Shutdown::Clean;
    let (from_offset, mut state) = match found {
        Some(found) => found,
        // A clean directory without any snapshot never had a producer id (Kafka assumes so too).
        None if clean && files.snapshots.is_empty() => return Ok((ProducerState::default(), 0)),
        None => (0, ProducerState::default()),
    };
    if from_offset < end_offset && !planted::here(Bug::ProducersNotRestored) {
        replay_producers(
            core,
            directory,
            segments,
            from_offset,
            end_offset,
            &mut state,
        )
        .await?;
    }
    let expiration = options.config.producer_id_expiration_ms;
    state.remove_expired(core.wall_clock_ms(), expiration);
    state.enforce_limit(options.config.max_producers);
    Ok((state, from_offset))
}

pub(crate) fn empty_scan(base_offset: i64) -> Scan {
    Scan {
        index: ActiveIndex::new(base_offset),
        cursor: crate::segment::index::IndexCursor::new(base_offset),
        size: 0,
        next_offset: base_offset,
        first_timestamp: None,
        fault: None,
        damages: Vec::new(),
        files_had: None,
        trusted: 0,
    }
}

impl Loader<'_> {
    /// The sealed segments and the active one, which is made where there is none.
    async fn find_segments(
        &mut self,
        files: &mut SegmentFiles,
    ) -> Result<(Vec<Sealed>, (i64, Scan)), StorageError> {
        let mut segments = self.find_ends(files).await?;
        let log_start = self.options.log_start_offset;
        if segments
            .last()
            .is_some_and(|(_, scan)| scan.next_offset < log_start)
        {
            // Segment files are missing: what is left lies below the start (Kafka does the same).
            self.remove_segments(&mut segments).await?;
        }
        let active = match segments.pop() {
            Some(active) => active,
            None => {
                open_new(
                    self.core,
                    &segment_path(self.directory, log_start, FileKind::Log),
                )
                .await?;
                self.changed = true;
                (log_start, empty_scan(log_start))
            }
        };
        let sealed = segments.iter().map(|(base_offset, scan)| Sealed {
            base_offset: *base_offset,
            size: scan.size,
            max_timestamp: None,
        });
        Ok((sealed.collect(), active))
    }

    /// Sizes of all segments, and the end of the last one. After a crash this checks, mends and cuts.
    async fn find_ends(
        &mut self,
        files: &mut SegmentFiles,
    ) -> Result<Vec<(i64, Scan)>, StorageError> {
        let mut found: Vec<(i64, Scan)> = Vec::new();
        let bases: Vec<i64> = files.segments.keys().copied().collect();
        let unchecked = match self.options.shutdown {
            Shutdown::Clean => bases.len(),
            Shutdown::Unclean { recovery_point } => bases
                .partition_point(|base| *base <= recovery_point)
                .saturating_sub(1),
        };
        for (at, base_offset) in bases.iter().copied().enumerate() {
            let lengths = files.segments[&base_offset];
            if at < unchecked && at + 1 < bases.len() {
                found.push((
                    base_offset,
                    sealed_scan(self.directory, base_offset, lengths)?,
                ));
                continue;
            }
            if at < unchecked
                && let Some(scan) =
                    clean_tail(self.core, self.directory, base_offset, lengths, self.ahead).await?
            {
                found.push((base_offset, scan));
                continue;
            }
            // A segment that begins below the end of the one before is what a failed roll left.
            let expected = found.last().map_or(0, |(_, scan)| scan.next_offset);
            if lengths.log == 0 && base_offset < expected {
                self.remove_segment(base_offset).await?;
                continue;
            }
            if lengths.is_empty() && at + 1 == bases.len() {
                found.push((base_offset, empty_scan(base_offset)));
                continue;
            }
            let holds_bytes = |later: &&i64| files.segments[later].log > 0;
            let next_base = bases[at + 1..].iter().find(holds_bytes).copied();
            let scan = self.recover(base_offset, lengths, next_base).await?;
            let lacks_its_end = self.lacks_its_end(&scan, bases.get(at + 1).copied());
            let ends = lacks_its_end || scan.fault.is_some() && next_base != Some(scan.next_offset);
            found.push((base_offset, scan));
            if ends {
                for later in &bases[at + 1..] {
                    self.remove_segment(*later).await?;
                }
                break;
            }
        }
        Ok(found)
    }

    /// Whether a segment of whole batches ends before the next one begins: the power went before its last length was
    /// durable. As with a write that was lost, the log ends there.
    fn lacks_its_end(&mut self, scan: &Scan, next_base: Option<i64>) -> bool {
        let next_base = next_base.filter(|next| *next > scan.next_offset);
        let (None, false, Some(next_base)) =
            (&scan.fault, self.options.config.compacted, next_base)
        else {
            return false;
        };
        self.report.truncations.push(Truncation {
            file: segment_path(self.directory, scan.index.base_offset, FileKind::Log),
            at: scan.size.into(),
            bytes: 0,
            why: format!(
                "offsets {} to {} are missing behind it",
                scan.next_offset,
                next_base - 1
            ),
            only_zeros: false,
        });
        true
    }

    /// Checks a segment batch by batch, cuts it behind the last good one, rewrites its indexes. `next_base` is that of
    /// the next segment that holds anything.
    async fn recover(
        &mut self,
        base_offset: i64,
        lengths: FileLengths,
        next_base: Option<i64>,
    ) -> Result<Scan, StorageError> {
        let path = segment_path(self.directory, base_offset, FileKind::Log);
        // What lies beyond the largest possible segment is cut off with the rest.
        let length = u32::try_from(lengths.log)
            .unwrap_or(SEGMENT_SIZE_MAX)
            .min(SEGMENT_SIZE_MAX);
        let trusted_below = match self.options.shutdown {
            Shutdown::Clean => 0,
            Shutdown::Unclean { recovery_point } => recovery_point,
        };
        let job = ScanJob {
            core: self.core,
            directory: self.directory,
            base_offset,
            length,
            trusted_below,
            power_takes_from: self.power_takes_from(next_base),
            interval_bytes: self.options.config.index_interval_bytes,
        };
        let (epochs, mut noted) = (&mut self.epochs, false);
        let mut scan = recovery::scan(&job, |header| noted |= note_epoch(epochs, header)).await?;
        self.epochs_dirty |= noted;
        self.report.recovered_segments += 1;
        self.report.recovered_bytes += u64::from(scan.size - scan.trusted);
        self.note_damages(&job, &path, &mut scan, next_base).await?;
        if u64::from(scan.size) < lengths.log && planted::here(Bug::SkippedTruncation) {
            scan.size = length;
        } else if u64::from(scan.size) < lengths.log {
            self.changed = true;
            self.cut(&path, &mut scan, lengths.log).await?;
        }
        if self.options.shutdown != Shutdown::Clean {
            let part = scan.trusted..scan.size;
            recovery::write_what_the_disk_lacks(self.core, &path, part).await?;
        }
        if let Some(entry) = scan.cursor.time_entry_due() {
            scan.index.push_time(entry);
        }
        if lengths.offset_index.is_none() || lengths.time_index.is_none() {
            self.report.rebuilt_indexes += 1;
        }
        if !scan.index_is_on_disk() {
            self.changed = true;
            write_index_files(self.core, self.directory, &scan.index).await?;
        }
        Ok(scan)
    }

    /// From which offset on a power loss may have taken what a segment lacks.
    fn power_takes_from(&self, next_base: Option<i64>) -> i64 {
        let each_write_durable = self.options.config.flush_messages <= 1;
        match self.options.shutdown {
            Shutdown::Clean => i64::MAX,
            Shutdown::Unclean { .. } if each_write_durable && next_base.is_some() => i64::MAX,
            Shutdown::Unclean { recovery_point } => recovery_point,
        }
    }

    /// Takes note of what cannot be read any more. A bad end of a segment is damage, too, where the next one goes on
    /// behind it and power cannot have taken it.
    async fn note_damages(
        &mut self,
        job: &ScanJob<'_>,
        path: &Path,
        scan: &mut Scan,
        next_base: Option<i64>,
    ) -> Result<(), StorageError> {
        if let (Some(fault), Some(next_offset)) = (&scan.fault, next_base)
            && next_offset > scan.next_offset
            && !(scan.next_offset >= job.power_takes_from
                && (is_lost_write(self.core, path, fault.at, job.length).await?
                    || is_cut_off(self.core, path, fault.at, job.length).await?))
        {
            let range = DamagedRange {
                segment_base: scan.index.base_offset,
                from: fault.at,
                to: job.length,
                first_offset: scan.next_offset,
                next_offset,
            };
            scan.damages.push((range, fault.why));
            scan.size = job.length;
            scan.next_offset = next_offset;
            scan.fault = None;
        }
        for (range, why) in &scan.damages {
            self.damaged.push(*range);
            self.report.damages.push(Damage {
                file: path.to_path_buf(),
                from: u64::from(range.from),
                to: u64::from(range.to),
                first_offset: range.first_offset,
                next_offset: range.next_offset,
                why: (*why).to_owned(),
            });
        }
        Ok(())
    }

    async fn cut(&mut self, path: &Path, scan: &mut Scan, length: u64) -> Result<(), StorageError> {
        let (at, why) = match &scan.fault {
            Some(fault) => (fault.at, fault.why.to_owned()),
            None => (scan.size, "beyond the largest segment".to_owned()),
        };
        let zeros = only_zeros(self.core, path, scan.size, length).await?;
        self.report.truncations.push(Truncation {
            file: path.to_path_buf(),
            at: u64::from(at),
            bytes: length - u64::from(scan.size),
            why: if zeros {
                "space the file was extended by".to_owned()
            } else {
                why
            },
            only_zeros: zeros,
        });
        let size = u64::from(scan.size);
        match zeros {
            true => set_length(self.core, path, size).await,
            false => cut_durably(self.core, path, size).await,
        }
    }

    async fn remove_segments(
        &mut self,
        segments: &mut Vec<(i64, Scan)>,
    ) -> Result<(), StorageError> {
        for (base_offset, _) in segments.drain(..) {
            self.remove_segment(base_offset).await?;
        }
        self.epochs.clear();
        self.epochs_dirty = true;
        Ok(())
    }

    async fn remove_segment(&mut self, base_offset: i64) -> Result<(), StorageError> {
        self.changed = true;
        for kind in SEGMENT_FILES {
            remove(
                self.core,
                self.directory,
                &file_name(base_offset, kind),
                self.report,
            )
            .await?;
        }
        Ok(())
    }
}

/// The files of a segment in the order they are removed: without its `.log` the rest are orphans.
pub(crate) const SEGMENT_FILES: [FileKind; 4] = [
    FileKind::Log,
    FileKind::OffsetIndex,
    FileKind::TimeIndex,
    FileKind::TransactionIndex,
];

/// A segment below the recovery point: nothing of it is read.
fn sealed_scan(
    directory: &Path,
    base_offset: i64,
    lengths: FileLengths,
) -> Result<Scan, StorageError> {
    let mut scan = empty_scan(base_offset);
    scan.size = u32::try_from(lengths.log)
        .ok()
        .filter(|size| *size <= SEGMENT_SIZE_MAX)
        .ok_or_else(|| {
            let path = segment_path(directory, base_offset, FileKind::Log);
            StorageError::corrupt(&path, lengths.log, "longer than a segment can be")
        })?;
    Ok(scan)
}

async fn set_length(core: &Core, path: &Path, length: u64) -> Result<(), StorageError> {
    cut_file(core, path, length).await.map(drop)
}

/// Cuts batches, or halves of them, off a file. Were that not durable, a later power loss could bring them back in the
/// middle of what was written since.
pub(crate) async fn cut_durably(core: &Core, path: &Path, length: u64) -> Result<(), StorageError> {
    let file = cut_file(core, path, length).await?;
    let synced = file.sync_data(core).await;
    synced.map_err(|error| StorageError::io("fdatasync", path, error))
}

async fn cut_file(core: &Core, path: &Path, length: u64) -> Result<shards::io::File, StorageError> {
    let options = FileOptions {
        read: true,
        write: true,
        ..Default::default()
    };
    let failed = |error| StorageError::io("truncate", path, error);
    let file = shards::io::File::open(core, path, &options)
        .await
        .map_err(failed)?;
    file.set_len(core, length).await.map_err(failed)?;
    Ok(file)
}
