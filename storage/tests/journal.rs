//! Small appends of many logs through one journal: what is acknowledged from it survives a crash at every step, torn and
//! stale frames are told apart, and what cannot go through it goes to the segments.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

#[path = "journal/damage.rs"]
mod damage;

use shards::Core;
use shards::fault::{FileFault, FileFaults, FileOperation};
use std::cell::RefCell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use storage::journal::{JournalReport, replay};
use storage::{AppendOrigin, Log, LogConfig, Shutdown, Storage, StorageOptions};
use support::*;

const EIO: i32 = 5;
const BLOCK: usize = 4096;
const UNCLEAN: Shutdown = Shutdown::Unclean { recovery_point: 0 };

fn config() -> LogConfig {
    LogConfig {
        journal: true,
        ..LogConfig::default()
    }
}

fn small_journal(core: &Core) -> Storage {
    let options = StorageOptions {
        journal_bytes: 256 << 10,
        ..StorageOptions::default()
    };
    Storage::new(core.clone(), options)
}

async fn open_named(
    storage: &Storage,
    directory: &Path,
    name: &str,
    config: LogConfig,
    shutdown: Shutdown,
) -> Log {
    let opened = Log::open(storage, directory, options(name, config, shutdown)).await;
    opened.unwrap().0
}

async fn append(log: &Log, value: &[u8]) {
    log.append(&[batch(1, value)], 0, AppendOrigin::Client)
        .unwrap()
        .await
        .unwrap();
}

/// Appends until the journal is there and takes batches of this log.
async fn until_journaled(storage: &Storage, log: &Log) {
    let before = storage.counters().journal_writes;
    while storage.counters().journal_writes == before {
        append(log, b"one more").await;
        storage.core().yield_now().await;
    }
}

async fn values(core: &Core, log: &Log) -> Vec<Vec<u8>> {
    let records = records_from(core, log, log.log_start_offset()).await;
    records.into_iter().map(|(_, _, value)| value).collect()
}

/// What a kill at this moment leaves, with only some of the journal's bytes as they are.
fn crash_to(from: &Path, to: &Path, names: &[&str], spoil: impl Fn(&mut Vec<u8>)) {
    std::fs::create_dir_all(to).unwrap();
    for name in names {
        let directory = format!("{name}-0");
        std::fs::create_dir_all(to.join(&directory)).unwrap();
        for entry in std::fs::read_dir(from.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(&directory).join(entry.file_name())).unwrap();
        }
    }
    copy_journals(from, to);
    let path = to.join("ringmain-journal-0");
    let mut bytes = std::fs::read(&path).unwrap();
    spoil(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
}

/// Where the frames of a journal begin.
fn frames(bytes: &[u8]) -> Vec<usize> {
    let blocks = bytes.chunks(BLOCK).enumerate();
    let of_frames = blocks.filter(|(_, block)| block.starts_with(b"RMJRNL01"));
    of_frames.map(|(at, _)| at * BLOCK).collect()
}

/// The journals of `root` put back, and `name` opened.
async fn recover(core: &Core, root: &Path, name: &str) -> (JournalReport, Log) {
    let report = replay(core, root, false).await.unwrap();
    let log = open_named(&small_journal(core), root, name, config(), UNCLEAN).await;
    (report, log)
}

/// One log, `t`, with batches in a journal.
struct Scene {
    core: Core,
    /// The log directory, and a place for what a crash leaves of it.
    before: PathBuf,
    after: PathBuf,
    storage: Storage,
    log: Log,
}

fn with_journal<F, Fut>(name: &str, faults: Option<FileFaults>, test: F)
where
    F: FnOnce(Scene) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let directory = TempDir::new(name);
    let (before, after) = paths(&directory);
    std::fs::create_dir_all(&before).unwrap();
    on_faulty_core(faults, move |core| async move {
        let storage = small_journal(&core);
        let log = open_named(&storage, &before, "t", config(), Shutdown::Clean).await;
        until_journaled(&storage, &log).await;
        test(Scene {
            core,
            before,
            after,
            storage,
            log,
        })
        .await;
    });
}

fn paths(directory: &TempDir) -> (PathBuf, PathBuf) {
    (
        directory.path().join("before"),
        directory.path().join("after"),
    )
}

#[test]
fn appends_of_many_logs_are_one_write_and_survive_a_kill() {
    let directory = TempDir::new("journal-many");
    let (before, after) = paths(&directory);
    std::fs::create_dir_all(&before).unwrap();
    on_core(move |core| async move {
        let storage = small_journal(&core);
        let names: Vec<String> = (0..20).map(|at| format!("t{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut logs = Vec::new();
        for name in &names {
            let log = open_named(&storage, &before, name, config(), Shutdown::Clean).await;
            until_journaled(&storage, &log).await;
            logs.push(log);
        }
        let writes = storage.counters();
        let tickets: Vec<_> = logs
            .iter()
            .map(|log| {
                log.append(&[batch(1, b"together")], 3, AppendOrigin::Client)
                    .unwrap()
            })
            .collect();
        for ticket in tickets {
            ticket.await.unwrap();
        }
        let now = storage.counters();
        assert_eq!(now.writes, writes.writes, "no segment was written");
        assert!(now.journal_writes - writes.journal_writes <= 2, "{now:?}");
        crash_to(&before, &after, &names, |_| {});
        let report = replay(&core, &after, false).await.unwrap();
        assert!(report.written_bytes > 0 && report.gone == 0, "{report:?}");
        assert!(!after.join("ringmain-journal-0").exists());
        for (name, log) in names.iter().zip(&logs) {
            let again = open_named(&small_journal(&core), &after, name, config(), UNCLEAN).await;
            assert_eq!(values(&core, &again).await, values(&core, log).await);
            assert_eq!(again.epochs(), log.epochs());
        }
    });
}

#[test]
fn much_at_one_time_goes_to_its_segment_unless_it_must_be_durable() {
    with_journal("much", None, |scene| async move {
        let Scene {
            core, storage, log, ..
        } = scene;
        let (little, much) = (vec![b'l'; 20 << 10], vec![b'm'; 33 << 10]);
        let counts = || {
            let counters = storage.counters();
            (counters.journal_writes, counters.writes)
        };
        let (journal, segment) = counts();
        append(&log, &little).await;
        assert_eq!(counts(), (journal + 1, segment));
        append(&log, &much).await;
        assert_eq!(counts(), (journal + 1, segment + 1));
        log.set_config(Rc::new(LogConfig {
            flush_messages: 1,
            ..config()
        }));
        log.flush().await.unwrap();
        let (journal, segment) = counts();
        append(&log, &much).await;
        assert_eq!(counts(), (journal + 1, segment));
        let values = values(&core, &log).await;
        assert_eq!(values[values.len() - 3..], [little, much.clone(), much]);
    });
}

#[test]
fn a_torn_frame_takes_only_itself_and_replaying_twice_is_replaying_once() {
    with_journal("journal-torn", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        append(&log, b"whole").await;
        append(&log, b"torn").await;
        let all = values(&core, &log).await;
        let flip = |bytes: &mut Vec<u8>| {
            let last = *frames(bytes).last().unwrap();
            bytes[last + 100] ^= 1;
        };
        crash_to(&before, &after, &["t"], flip);
        let twice = after.join("twice");
        crash_to(&before, &twice, &["t"], |_| {});
        let kept = std::fs::read(twice.join("ringmain-journal-0")).unwrap();
        let (_, log) = recover(&core, &after, "t").await;
        assert_eq!(values(&core, &log).await, all[..all.len() - 1]);
        let first = replay(&core, &twice, false).await.unwrap();
        std::fs::write(twice.join("ringmain-journal-0"), kept).unwrap();
        let (second, log) = recover(&core, &twice, "t").await;
        assert_eq!((first.entries, second.written_bytes), (second.entries, 0));
        assert_eq!(values(&core, &log).await, all);
    });
}

#[test]
fn what_earlier_rounds_left_is_not_replayed() {
    with_journal("journal-rounds", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            log,
        } = scene;
        // Several times around: each frame is a block at least, and the journal has 64.
        for at in 0..400_u32 {
            append(&log, &at.to_be_bytes()).await;
        }
        let all = values(&core, &log).await;
        assert!(storage.counters().journal_writes > 300);
        crash_to(&before, &after, &["t"], |_| {});
        let (report, log) = recover(&core, &after, "t").await;
        assert!(
            report.entries < 64,
            "only what the segment may lack: {report:?}"
        );
        assert_eq!(values(&core, &log).await, all);
    });
}

#[test]
fn no_record_bytes_pass_for_a_frame() {
    with_journal("journal-forged", None, |scene| async move {
        let Scene {
            core,
            before,
            after,

            log,
            ..
        } = scene;
        append(&log, b"real").await;
        let all = values(&core, &log).await;
        // A sound frame of another journal, with a higher number, as a client could send it inside a record.
        let elsewhere = after.join("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let storage = small_journal(&core);
        let other = open_named(&storage, &elsewhere, "t", config(), Shutdown::Clean).await;
        until_journaled(&storage, &other).await;
        for _ in 0..20 {
            append(&other, b"forged").await;
        }
        // It says that nothing older is needed.
        other.flush().await.unwrap();
        append(&other, b"forged").await;
        let theirs = std::fs::read(elsewhere.join("ringmain-journal-0")).unwrap();
        let newest = *frames(&theirs).last().unwrap();
        let forge = move |bytes: &mut Vec<u8>| {
            let at = *frames(bytes).last().unwrap() + BLOCK;
            bytes[at..at + BLOCK].copy_from_slice(&theirs[newest..newest + BLOCK]);
        };
        crash_to(&before, &after, &["t"], forge);
        let (_, log) = recover(&core, &after, "t").await;
        assert_eq!(values(&core, &log).await, all);
    });
}

#[test]
fn a_clean_stop_leaves_no_journal_and_whole_segments() {
    with_journal("journal-clean", None, |scene| async move {
        let Scene {
            core,
            before: path,
            storage,
            log,
            ..
        } = scene;
        let all = values(&core, &log).await;
        assert!(storage.counters().journal_used_bytes > 0);
        log.close().await.unwrap();
        assert_eq!(storage.counters().journal_used_bytes, 0);
        assert!(storage.close_journals().await.is_empty());
        assert!(!path.join("ringmain-journal-0").exists());
        let segment = path.join("t-0/00000000000000000000.log");
        assert_eq!(std::fs::metadata(segment).unwrap().len(), log.size_bytes());
        let again = open_named(&small_journal(&core), &path, "t", config(), Shutdown::Clean).await;
        assert_eq!(values(&core, &again).await, all);
    });
}

#[test]
fn after_a_clean_stop_by_another_broker_a_journal_is_set_aside() {
    with_journal("journal-stale", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            ..
        } = scene;
        crash_to(&before, &after, &["t"], |_| {});
        let report = replay(&core, &after, true).await.unwrap();
        assert_eq!((report.journals, report.set_aside.len()), (0, 1));
        assert!(report.set_aside[0].exists());
        let again = replay(&core, &after, false).await.unwrap();
        assert_eq!(again, JournalReport::default(), "not found again");
    });
}

#[test]
fn records_that_another_broker_wrote_since_are_left_alone() {
    with_journal("journal-conflict", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        log.flush().await.unwrap();
        append(&log, b"ours, in the journal alone").await;
        crash_to(&before, &after, &["t"], |_| {});
        // A broker that knows of no journal recovers, and goes on at the same offset.
        let no_journal = LogConfig::default();
        let other = open_named(&small_journal(&core), &after, "t", no_journal, UNCLEAN).await;
        append(&other, b"theirs").await;
        let theirs = values(&core, &other).await;
        drop(other);
        let (report, log) = recover(&core, &after, "t").await;
        assert_eq!(report.conflicts.len(), 1, "{report:?}");
        assert_eq!(values(&core, &log).await, theirs);
    });
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    with_journal("journal-cut", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            log,
        } = scene;
        // Another log's oldest batch keeps every later frame in the journal.
        let pin = open_named(&storage, &before, "pin", config(), Shutdown::Clean).await;
        until_journaled(&storage, &pin).await;
        // Its next entry stands by itself, and would come back but for the cut.
        log.flush().await.unwrap();
        until_journaled(&storage, &log).await;
        let kept = log.log_end_offset();
        append(&log, b"cut off").await;
        log.truncate_to(kept).await.unwrap();
        let cut = values(&core, &log).await;
        crash_to(&before, &after, &["t", "pin"], |_| {});
        let (_, again) = recover(&core, &after, "t").await;
        assert_eq!(values(&core, &again).await, cut);
        append(&log, b"in its place").await;
        until_journaled(&storage, &log).await;
        let all = values(&core, &log).await;
        let later = after.join("later");
        crash_to(&before, &later, &["t", "pin"], |_| {});
        let (_, again) = recover(&core, &later, "t").await;
        assert_eq!(values(&core, &again).await, all);
    });
}

#[test]
fn entries_of_deleted_and_renewed_topics_go_nowhere() {
    with_journal("journal-deleted", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            ..
        } = scene;
        let gone = open_named(&storage, &before, "gone", config(), Shutdown::Clean).await;
        until_journaled(&storage, &gone).await;
        crash_to(&before, &after, &["t"], |_| {});
        let metadata = after.join("t-0/partition.metadata");
        std::fs::write(metadata, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n").unwrap();
        let report = replay(&core, &after, false).await.unwrap();
        assert_eq!((report.gone, report.written_bytes), (report.entries, 0));
        assert!(report.entries >= 2);
    });
}

#[test]
fn a_full_journal_makes_the_oldest_move_and_loses_nothing() {
    let directory = TempDir::new("journal-full");
    let (before, after) = paths(&directory);
    std::fs::create_dir_all(&before).unwrap();
    on_core(move |core| async move {
        let storage = small_journal(&core);
        let names: Vec<String> = (0..30).map(|at| format!("t{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut logs = Vec::new();
        for name in &names {
            logs.push(open_named(&storage, &before, name, config(), Shutdown::Clean).await);
        }
        until_journaled(&storage, &logs[0]).await;
        let mut random = Random(7);
        for round in 0..60_u32 {
            let tickets: Vec<_> = logs
                .iter()
                .map(|log| {
                    let value = vec![round as u8; 1 + random.below(1_500) as usize];
                    log.append(&[batch(1, &value)], 0, AppendOrigin::Client)
                        .unwrap()
                })
                .collect();
            for ticket in tickets {
                ticket.await.unwrap();
            }
        }
        let counters = storage.counters();
        assert!(
            counters.journal_written_bytes > 4 * (256 << 10),
            "{counters:?}"
        );
        assert!(counters.journal_used_bytes <= 256 << 10);
        crash_to(&before, &after, &names, |_| {});
        replay(&core, &after, false).await.unwrap();
        for (name, log) in names.iter().zip(&logs) {
            let again = open_named(&small_journal(&core), &after, name, config(), UNCLEAN).await;
            assert_eq!(values(&core, &again).await, values(&core, log).await);
        }
    });
}

#[test]
fn a_journal_that_fails_costs_no_batch() {
    let on = Arc::new(AtomicBool::new(false));
    let switch = on.clone();
    let faults: FileFaults = Arc::new(move |operation, path: &Path| {
        let hit = operation == FileOperation::Write && on.load(Ordering::Relaxed);
        if hit && path.to_string_lossy().contains("ringmain-journal") {
            FileFault::Error(EIO)
        } else {
            FileFault::None
        }
    });
    with_journal("journal-fails", Some(faults), |scene| async move {
        let Scene {
            core,
            before: path,
            storage,
            log,
            ..
        } = scene;
        let told = Rc::new(RefCell::new(Vec::new()));
        let tells = told.clone();
        storage.watch_journals(move |failure| tells.borrow_mut().push(failure));
        switch.store(true, Ordering::Relaxed);
        for at in 0..20_u32 {
            append(&log, &at.to_be_bytes()).await;
        }
        assert!(log.offline_reason().is_none());
        assert_eq!(storage.counters().journal_failures, 1);
        assert_eq!(told.borrow().len(), 1);
        assert!(
            told.borrow()[0].reason.contains("ringmain-journal-0"),
            "{told:?}"
        );
        assert_eq!(storage.counters().journal_used_bytes, 0, "all moved");
        let all = values(&core, &log).await;
        assert_eq!(all.len() as i64, log.log_end_offset());
        log.close().await.unwrap();
        let again = open_named(&small_journal(&core), &path, "t", config(), Shutdown::Clean).await;
        assert_eq!(values(&core, &again).await, all);
        // What the file has may still be put back, so nothing may be cut off that it knows.
        assert!(log.truncate_to(1).await.is_err());
    });
}

#[test]
fn many_small_frames_are_read_many_at_a_time() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let faults: FileFaults = Arc::new(move |operation, path: &Path| {
        let journal = path.to_string_lossy().contains("ringmain-journal");
        if operation == FileOperation::Read && journal {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        FileFault::None
    });
    with_journal("journal-reads", Some(faults), |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        for at in 0..50_u32 {
            append(&log, &at.to_be_bytes()).await;
        }
        crash_to(&before, &after, &["t"], |_| {});
        let report = replay(&core, &after, false).await.unwrap();
        assert!(report.entries > 10, "{report:?}");
        let reads = reads.load(Ordering::Relaxed);
        assert!(reads < 10, "{reads} reads of a journal of 256 KiB");
    });
}

#[test]
fn one_durable_write_acknowledges_all_that_wait() {
    let directory = TempDir::new("journal-durable");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = small_journal(&core);
        let durable = LogConfig {
            flush_messages: 1,
            ..config()
        };
        let mut logs = Vec::new();
        for at in 0..20 {
            let name = format!("t{at}");
            logs.push(open_named(&storage, &path, &name, durable.clone(), Shutdown::Clean).await);
        }
        for log in &logs {
            until_journaled(&storage, log).await;
        }
        let before = storage.counters();
        let tickets: Vec<_> = logs
            .iter()
            .map(|log| {
                log.append(&[batch(1, b"x")], 0, AppendOrigin::Client)
                    .unwrap()
            })
            .collect();
        for ticket in tickets {
            ticket.await.unwrap();
        }
        let now = storage.counters();
        assert_eq!(
            now.syncs - before.syncs,
            now.journal_writes - before.journal_writes
        );
        assert!(now.syncs - before.syncs <= 2, "{now:?}");
        assert_eq!(now.writes, before.writes);
    });
}

#[test]
fn deleting_a_log_frees_its_part_of_the_journal() {
    with_journal("journal-delete", None, |scene| async move {
        let Scene { storage, log, .. } = scene;
        assert!(storage.counters().journal_used_bytes > 0);
        log.delete().await.unwrap();
        assert_eq!(storage.counters().journal_used_bytes, 0);
    });
}
