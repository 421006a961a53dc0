//! Random operations against a vector of batches: reads, looks by time, truncation, trimming, rest, clean stops, and
//! crashes at random moments. The seed is printed; `MODEL_SEED=n` runs that one alone.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use bytes::{Bytes, BytesMut};
use protocol::records::{Compression, rewrite};
use shards::Core;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use storage::{
    AppendOrigin, AppendTicket, Log, LogConfig, OpenOptions, ReadError, ReadLimits, Shutdown,
    Storage, StorageOptions,
};
use support::*;

const OPERATIONS: u32 = 150;

/// A batch as it must be found again.
#[derive(Clone)]
struct Expected {
    base_offset: i64,
    last_offset: i64,
    epoch: i32,
    timestamps: Vec<i64>,
    bytes: Bytes,
}

struct World {
    core: Core,
    random: Random,
    storage: Storage,
    root: PathBuf,
    generation: u32,
    log: Log,
    config: LogConfig,
    epoch: i32,
    clock: i64,
    start: i64,
    /// Everything appended, acknowledged or not.
    batches: Vec<Expected>,
    tickets: Vec<AppendTicket>,
}

fn model(seed: u64) {
    let directory = TempDir::new(&format!("model-{seed}"));
    let root = directory.path();
    on_core(move |core| async move {
        let mut world = World::new(core, seed, root).await;
        for step in 0..OPERATIONS {
            world.step(step).await;
        }
        world.settle().await;
        world.check_all().await;
        world.log.close().await.unwrap();
    });
}

#[test]
fn a_log_behaves_as_a_vector_of_batches() {
    if let Some(seed) = std::env::var("MODEL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        return model(seed);
    }
    for seed in 0..6 {
        println!("seed {seed}");
        model(seed);
    }
}

impl World {
    async fn new(core: Core, seed: u64, root: PathBuf) -> World {
        let mut random = Random(seed);
        let config = LogConfig {
            segment_bytes: [6_000, 20_000, 300_000][random.below(3) as usize],
            index_interval_bytes: [0, 500, 4_096][random.below(3) as usize],
            segment_index_bytes: [120, 10 << 20][random.below(2) as usize],
            flush_messages: [1, 7, i64::MAX][random.below(3) as usize],
            preallocate: random.below(4) == 0,
            journal: random.below(3) > 0,
            ..LogConfig::default()
        };
        let cache_bytes = [0, 20_000, 1 << 20][random.below(3) as usize];
        let storage = Storage::new(
            core.clone(),
            StorageOptions {
                cache_bytes,
                journal_bytes: [256 << 10, 1 << 20][random.below(2) as usize],
                ..Default::default()
            },
        );
        let first = root.join("0");
        std::fs::create_dir_all(&first).unwrap();
        let (log, _) = open(&storage, &first, config.clone(), Shutdown::Clean).await;
        World {
            core,
            random,
            storage,
            root,
            generation: 0,
            log,
            config,
            epoch: 0,
            clock: 1_000,
            start: 0,
            batches: Vec::new(),
            tickets: Vec::new(),
        }
    }

    async fn step(&mut self, step: u32) {
        match self.random.below(100) {
            0..45 => self.append(),
            45..60 => self.settle().await,
            60..80 => self.check_read().await,
            80..86 => self.check_timestamp().await,
            86..88 => {
                self.log.close().await.unwrap();
                assert_eq!(
                    self.log.log_end_offset(),
                    self.end(),
                    "a close waits for the appends"
                );
            }
            88..90 => self.truncate().await,
            90..92 => self.trim().await,
            92..94 => self.log.flush().await.unwrap(),
            94..97 => self.reopen().await,
            _ => self.crash().await,
        }
        assert!(self.log.offline_reason().is_none(), "step {step}");
    }

    fn append(&mut self) {
        if self.random.below(8) == 0 {
            self.epoch += 1;
        }
        let mut batches = Vec::new();
        for _ in 0..=self.random.below(3) {
            let count = 1 + self.random.below(4) as usize;
            let size = [10, 300, 1_500, 5_000][self.random.below(4) as usize] / count;
            let value: Vec<u8> = (0..size).map(|_| self.random.next() as u8).collect();
            let timestamps: Vec<i64> = (0..count)
                .map(|_| {
                    self.clock += self.random.below(3) as i64;
                    self.clock - self.random.below(40) as i64
                })
                .collect();
            let records: Vec<(i64, &[u8])> = timestamps
                .iter()
                .map(|timestamp| (*timestamp, value.as_slice()))
                .collect();
            let codec = [Compression::None, Compression::Lz4][self.random.below(2) as usize];
            batches.push((batch_of(&records, codec, (-1, -1, -1)), timestamps));
        }
        let bytes: Vec<Bytes> = batches.iter().map(|(bytes, _)| bytes.clone()).collect();
        let ticket = self
            .log
            .append(&bytes, self.epoch, AppendOrigin::Client)
            .unwrap();
        let mut offset = ticket.first_offset;
        assert_eq!(offset, self.end(), "offsets follow the call order");
        for (bytes, timestamps) in batches {
            let mut placed = BytesMut::from(bytes.as_ref());
            rewrite::assign(&mut placed, offset, self.epoch);
            let last_offset = offset + timestamps.len() as i64 - 1;
            self.batches.push(Expected {
                base_offset: offset,
                last_offset,
                epoch: self.epoch,
                timestamps,
                bytes: placed.freeze(),
            });
            offset = last_offset + 1;
        }
        self.tickets.push(ticket);
    }

    fn end(&self) -> i64 {
        self.batches
            .last()
            .map_or(self.start, |batch| batch.last_offset + 1)
    }

    async fn settle(&mut self) {
        for ticket in self.tickets.drain(..) {
            ticket.await.unwrap();
        }
        assert_eq!(self.log.log_end_offset(), self.end());
    }

    /// What a read must answer: bytes and next offset.
    fn expected_read(&self, from: i64, limits: ReadLimits, end: i64) -> (Vec<u8>, i64) {
        let mut bytes = Vec::new();
        let mut next = from;
        for batch in self
            .batches
            .iter()
            .skip_while(|batch| batch.last_offset < from)
        {
            let fits = bytes.len() + batch.bytes.len() <= limits.max_bytes as usize;
            let first = bytes.is_empty() && limits.whole_first_batch;
            if batch.last_offset >= limits.up_to_offset.min(end) || !(fits || first) {
                break;
            }
            bytes.extend_from_slice(&batch.bytes);
            next = batch.last_offset + 1;
        }
        (bytes, next)
    }

    async fn check_read(&mut self) {
        let end = self.log.log_end_offset();
        let span = (end - self.start + 1) as u64;
        let from = self.start + self.random.below(span) as i64;
        let limits = ReadLimits {
            max_bytes: [1, 1_000, 7_000, 100_000, 10_000_000][self.random.below(5) as usize],
            up_to_offset: [i64::MAX, self.start + self.random.below(span) as i64]
                [self.random.below(2) as usize],
            whole_first_batch: self.random.below(2) == 0,
        };
        let result = self.log.read(from, limits).await.unwrap();
        // Written while the read ran: the answer may be of any end in between.
        let ends = [end, self.log.log_end_offset()];
        let bytes = bytes_of(&self.core, &result).await;
        let matches = ends.iter().any(|end| {
            self.expected_read(from, limits, *end) == (bytes.clone(), result.next_offset)
        });
        let inside = result.log_end_offset >= ends[0] && result.log_end_offset <= ends[1];
        assert!(inside, "{ends:?} {}", result.log_end_offset);
        let expected = self.expected_read(from, limits, result.log_end_offset);
        assert!(
            matches || expected == (bytes.clone(), result.next_offset),
            "read from {from} with {limits:?}: {} bytes to {}, expected {} to {}",
            bytes.len(),
            result.next_offset,
            expected.0.len(),
            expected.1
        );
        let below = self.log.read(self.start - 1, ALL).await;
        assert!(matches!(below, Err(ReadError::OutOfRange { .. })));
    }

    async fn check_timestamp(&mut self) {
        self.settle().await;
        let timestamp = self.clock - self.random.below(200) as i64 + 20;
        let found = self.log.offset_for_timestamp(timestamp).await.unwrap();
        let records = self.batches.iter().flat_map(|batch| {
            batch
                .timestamps
                .iter()
                .zip(batch.base_offset..)
                .map(|(at, offset)| (offset, *at, batch.epoch))
        });
        let records: Vec<(i64, i64, i32)> = records
            .filter(|(offset, _, _)| *offset >= self.start)
            .collect();
        let expected = records.iter().find(|(_, at, _)| *at >= timestamp);
        assert_eq!(
            found.map(|found| (found.offset, found.timestamp, found.leader_epoch)),
            expected.map(|(offset, at, epoch)| (*offset, *at, Some(*epoch)))
        );
        // The largest timestamp may lie in a batch that straddles the start.
        let most = self
            .batches
            .iter()
            .flat_map(|batch| batch.timestamps.iter())
            .max();
        let first = self.batches.iter().find_map(|batch| {
            let at = batch.timestamps.iter().position(|at| Some(at) == most)?;
            Some(batch.base_offset + at as i64)
        });
        let found = self.log.max_timestamp().await.unwrap();
        assert_eq!(found.map(|found| found.offset), first, "largest timestamp");
    }

    async fn truncate(&mut self) {
        self.settle().await;
        let span = (self.end() - self.start + 1) as u64;
        // At batch borders, as a follower does it by epochs.
        let wanted = self.start + self.random.below(span) as i64;
        let offset = self
            .batches
            .iter()
            .map(|batch| batch.base_offset)
            .find(|base| *base >= wanted)
            .unwrap_or_else(|| self.end());
        self.log.truncate_to(offset).await.unwrap();
        self.batches.retain(|batch| batch.last_offset < offset);
        self.epoch += 1;
        assert_eq!(self.log.log_end_offset(), offset);
        if self.batches.is_empty() {
            self.start = offset;
        }
        assert_eq!(self.log.log_start_offset(), self.start);
    }

    async fn trim(&mut self) {
        self.settle().await;
        let offset = self.start + self.random.below((self.end() - self.start + 1) as u64) as i64;
        self.log.trim(offset).await.unwrap();
        self.start = offset;
        // Whole segments go; what is left is asked of the log by reading.
        let kept = self.log.size_bytes();
        while self
            .batches
            .iter()
            .map(|batch| batch.bytes.len() as u64)
            .sum::<u64>()
            > kept
        {
            self.batches.remove(0);
        }
        let first = self
            .batches
            .first()
            .map_or(offset, |batch| batch.base_offset);
        assert!(first <= offset);
    }

    async fn reopen(&mut self) {
        self.settle().await;
        self.log.close().await.unwrap();
        let directory = self
            .log
            .directory()
            .parent()
            .map(Path::to_path_buf)
            .unwrap();
        let epochs = self.log.epochs();
        let (log, report) = Log::open(&self.storage, &directory, self.options(Shutdown::Clean))
            .await
            .unwrap();
        assert!(
            report.truncations.is_empty() && report.recovered_segments == 0,
            "{report:?}"
        );
        assert_eq!(log.epochs(), epochs);
        self.log = log;
        self.check_all().await;
    }

    fn options(&self, shutdown: Shutdown) -> OpenOptions {
        let mut options = options("topic", self.config.clone(), shutdown);
        options.log_start_offset = self.start;
        options.config = Rc::new(self.config.clone());
        options
    }

    /// The directory as a kill at this moment would leave it, opened by a new broker.
    async fn crash(&mut self) {
        let acknowledged = self.log.log_end_offset();
        let recovery_point = if self.random.below(3) == 0 {
            0
        } else {
            self.log.recovery_point()
        };
        self.generation += 1;
        let next = self.root.join(self.generation.to_string());
        copy_directory(&self.log.directory(), &next.join("topic-0"));
        copy_journals(self.log.directory().parent().unwrap(), &next);
        for ticket in self.tickets.drain(..) {
            ticket.await.unwrap();
        }
        let before = self.log.directory();
        let shutdown = Shutdown::Unclean { recovery_point };
        let report = storage::journal::replay(&self.core, &next, false)
            .await
            .unwrap();
        assert!(report.conflicts.is_empty(), "{report:?}");
        let (log, _) = Log::open(&self.storage, &next, self.options(shutdown))
            .await
            .unwrap();
        assert!(
            log.log_end_offset() >= acknowledged,
            "an acknowledged batch is missing"
        );
        let end = log.log_end_offset();
        self.batches.retain(|batch| batch.last_offset < end);
        assert_eq!(self.end().max(self.start), end, "cut between batches");
        self.log = log;
        // The old broker may still write to it.
        let _ = std::fs::remove_dir_all(before);
        self.check_all().await;
    }

    async fn check_all(&self) {
        let mut bytes = Vec::new();
        let mut offset = self.start;
        loop {
            let result = self.log.read(offset, ALL).await.unwrap();
            if result.bytes == 0 {
                break;
            }
            bytes.extend(bytes_of(&self.core, &result).await);
            offset = result.next_offset;
        }
        let expected: Vec<u8> = self
            .batches
            .iter()
            .filter(|batch| batch.last_offset >= self.start)
            .flat_map(|batch| batch.bytes.to_vec())
            .collect();
        assert!(
            bytes == expected,
            "{} bytes instead of {}",
            bytes.len(),
            expected.len()
        );
    }
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match std::fs::copy(entry.path(), to.join(entry.file_name())) {
            // A temporary file that took its final name meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => drop(other.unwrap()),
        }
    }
}
