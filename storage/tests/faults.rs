//! Disks that fail on purpose: slow writes, I/O errors, and no space at any moment of any operation.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use protocol::records::Compression;
use shards::fault::{FileFault, FileFaults, FileOperation};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use storage::{AppendError, AppendOrigin, LogConfig, ReadError, Shutdown, StorageError};
use support::*;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

#[test]
fn while_a_write_is_slow_others_gather_behind_it_and_nobody_sees_them() {
    let directory = TempDir::new("slow");
    let path = directory.path();
    let on = Arc::new(AtomicBool::new(false));
    let switch = on.clone();
    let faults = Arc::new(move |operation, path: &Path| {
        let of_log = path.extension().is_some_and(|extension| extension == "log");
        if operation == FileOperation::Write && of_log && on.load(Ordering::Relaxed) {
            FileFault::Delay(Duration::from_millis(150))
        } else {
            FileFault::None
        }
    });
    on_faulty_core(Some(faults), move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        log.append(&[batch(1, b"first")], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
        switch.store(true, Ordering::Relaxed);
        let slow = log
            .append(&[batch(2, b"slow")], 0, AppendOrigin::Client)
            .unwrap();
        core.sleep(Duration::from_millis(20)).await;
        let gathered: Vec<_> = (0..10)
            .map(|at| {
                log.append(&[batch(at, b"more")], 0, AppendOrigin::Client)
                    .unwrap()
            })
            .collect();
        core.sleep(Duration::from_millis(20)).await;
        assert_eq!((log.log_end_offset(), log.next_offset()), (1, 12));
        assert_eq!(
            records_from(&core, &log, 0).await.len(),
            1,
            "unwritten batches are not served"
        );
        assert!(matches!(
            log.read(2, ALL).await,
            Err(ReadError::OutOfRange { end: 1, .. })
        ));
        slow.await.unwrap();
        assert_eq!(log.log_end_offset(), 2);
        for ticket in gathered {
            ticket.await.unwrap();
        }
        assert_eq!(log.log_end_offset(), 12);
        assert_eq!(storage.counters().writes, 3, "the ten went out together");
    });
}

#[test]
fn an_io_error_takes_only_its_log_offline() {
    let directory = TempDir::new("eio");
    let path = directory.path();
    let on = Arc::new(AtomicBool::new(false));
    let switch = on.clone();
    let faults = Arc::new(move |operation, path: &Path| {
        let hit = operation == FileOperation::Write && on.load(Ordering::Relaxed);
        if hit && path.to_string_lossy().contains("topic-0") {
            FileFault::Error(EIO)
        } else {
            FileFault::None
        }
    });
    on_faulty_core(Some(faults), move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let other = options("other", LogConfig::default(), Shutdown::Clean);
        let (other, _) = storage::Log::open(&storage, &path, other).await.unwrap();
        for log in [&log, &other] {
            log.append(&[batch(1, b"x")], 0, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
        }
        switch.store(true, Ordering::Relaxed);
        let first = log
            .append(&[batch(2, b"x")], 0, AppendOrigin::Client)
            .unwrap();
        let second = log
            .append(&[batch(3, b"x")], 0, AppendOrigin::Client)
            .unwrap();
        assert!(matches!(first.await, Err(StorageError::Offline { .. })));
        assert!(matches!(second.await, Err(StorageError::Offline { .. })));
        assert!(log.offline_reason().is_some());
        let refused = log.append(&[batch(4, b"x")], 0, AppendOrigin::Client);
        assert!(matches!(
            refused,
            Err(AppendError::Storage(StorageError::Offline { .. }))
        ));
        assert!(matches!(log.read(0, ALL).await, Err(ReadError::Storage(_))));
        assert!(log.close().await.is_err(), "no clean marker for this one");
        other
            .append(&[batch(2, b"x")], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
        assert_eq!(records_from(&core, &other, 0).await.len(), 2);
        // What was acknowledged is there when the disk is well again.
        switch.store(false, Ordering::Relaxed);
        let unclean = Shutdown::Unclean { recovery_point: 0 };
        let (log, _) = open(&storage, &path, LogConfig::default(), unclean).await;
        assert_eq!(records_from(&core, &log, 0).await.len(), 1);
    });
}

/// Fails a share of all operations for want of space, while switched on.
fn scarce(seed: u64, on: Arc<AtomicBool>) -> FileFaults {
    let state = AtomicU64::new(seed);
    Arc::new(move |operation, _: &Path| {
        let mut random = Random(state.fetch_add(0x1234_5677, Ordering::Relaxed));
        let takes_space = matches!(
            operation,
            FileOperation::Write | FileOperation::Allocate | FileOperation::Open
        );
        if takes_space && on.load(Ordering::Relaxed) && random.below(4) == 0 {
            FileFault::Error(ENOSPC)
        } else {
            FileFault::None
        }
    })
}

#[test]
fn want_of_space_at_any_moment_loses_and_doubles_nothing() {
    for seed in 0..5 {
        let directory = TempDir::new("scarce");
        let path = directory.path();
        let on = Arc::new(AtomicBool::new(false));
        let faults = scarce(seed, on.clone());
        on_faulty_core(Some(faults), move |core| async move {
            let storage = storage(&core);
            let config = LogConfig {
                segment_bytes: 8_000,
                index_interval_bytes: 300,
                ..LogConfig::default()
            };
            let (log, _) = open(&storage, &path, config.clone(), Shutdown::Clean).await;
            on.store(true, Ordering::Relaxed);
            let now = core.wall_clock_ms();
            let mut random = Random(seed);
            let mut written: Vec<i64> = Vec::new();
            // A producer with five batches under way that sends again what failed, in order.
            while written.len() < 100 {
                let next = written.len() as i32;
                let tickets: Vec<_> = (next..next + 5)
                    .map(|sequence| {
                        let value = vec![sequence as u8; 100 + random.below(900) as usize];
                        let records = [(now + i64::from(sequence), value.as_slice())];
                        let bytes = batch_of(&records, Compression::None, (7, 0, sequence));
                        log.append(&[bytes], 0, AppendOrigin::Client).unwrap()
                    })
                    .collect();
                for ticket in tickets {
                    assert!(!ticket.duplicate);
                    let offset = ticket.first_offset;
                    match ticket.await {
                        Ok(()) => written.push(offset),
                        Err(StorageError::Full { .. }) => {}
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
                match random.below(20) {
                    0 => drop(log.close().await),
                    1 => drop(log.flush().await),
                    _ => {}
                }
            }
            on.store(false, Ordering::Relaxed);
            let sequences: Vec<i64> = (0..written.len() as i64).collect();
            assert_eq!(
                written, sequences,
                "offsets without gap or double, seed {seed}"
            );
            assert!(
                storage.counters().full_failures > 0,
                "seed {seed} met no fault"
            );
            let records = records_from(&core, &log, 0).await;
            let stamps: Vec<i64> = records.iter().map(|(_, at, _)| at - now).collect();
            assert_eq!(stamps, sequences, "seed {seed}");
            // As a kill leaves it, from two recovery points.
            for recovery_point in [0, log.recovery_point()] {
                let unclean = Shutdown::Unclean { recovery_point };
                let (after, _) = open(&storage, &path, config.clone(), unclean).await;
                let found = records_from(&core, &after, 0).await;
                assert!(
                    found == records,
                    "seed {seed}: {} of {}",
                    found.len(),
                    records.len()
                );
                let last = after.producers()[0].1.last_sequence();
                assert_eq!(last, written.len() as i32 - 1, "seed {seed}");
            }
        });
    }
}

/// What is cut off a log must not come back with the next power loss, in the middle of what was written since.
#[test]
fn what_is_cut_off_is_cut_off_durably() {
    let directory = TempDir::new("cut-durably");
    let path = directory.path();
    let (note, seen) = channel::<(FileOperation, PathBuf)>();
    let on = Arc::new(AtomicBool::new(false));
    let full = on.clone();
    let faults = Arc::new(move |operation, path: &Path| {
        let _ = note.send((operation, path.to_path_buf()));
        match operation == FileOperation::Write && full.load(Ordering::Relaxed) {
            true => FileFault::Error(ENOSPC),
            false => FileFault::None,
        }
    });
    on_faulty_core(Some(faults), move |core| async move {
        let file = path.join("topic-0/00000000000000000000.log");
        // Whether the file was synced after it was cut.
        let synced = || {
            let of_file = seen.try_iter().filter(|(_, at)| *at == file);
            let mut after = of_file.skip_while(|(what, _)| *what != FileOperation::SetLen);
            assert!(after.next().is_some(), "it was not cut");
            after.any(|(what, _)| what == FileOperation::Sync)
        };
        let unclean = Shutdown::Unclean { recovery_point: 0 };
        let config = LogConfig {
            segment_bytes: 4_000,
            ..LogConfig::default()
        };
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, config.clone(), Shutdown::Clean).await;
        for at in 0..10 {
            let ticket = log.append(&[batch(at, &[7; 900])], 0, AppendOrigin::Client);
            ticket.unwrap().await.unwrap();
        }
        log.close().await.unwrap();
        assert!(log.segment_count() > 2);
        drop(log);
        let length = std::fs::metadata(&file).unwrap().len();
        let set_len = |length| {
            let file = std::fs::OpenOptions::new().write(true).open(&file);
            file.unwrap().set_len(length).unwrap();
        };
        // Space that the file was extended by, and the end of a segment, with the others behind it.
        for (length, cut) in [(length + 4_096, false), (length - 100, true)] {
            set_len(length);
            seen.try_iter().for_each(drop);
            drop(open(&storage, &path, config.clone(), unclean).await);
            assert_eq!(synced(), cut, "{length} bytes");
        }
        let (log, _) = open(&storage, &path, config, unclean).await;
        seen.try_iter().for_each(drop);
        log.truncate_to(1).await.unwrap();
        assert!(synced(), "truncated");
        on.store(true, Ordering::Relaxed);
        let ticket = log.append(&[batch(1, b"refused")], 0, AppendOrigin::Client);
        assert!(matches!(
            ticket.unwrap().await,
            Err(StorageError::Full { .. })
        ));
        assert!(synced(), "refused");
    });
}
