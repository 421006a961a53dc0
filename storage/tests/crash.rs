//! What a crash leaves: tails cut or garbled at every interesting byte, companions missing or damaged, halves of
//! interrupted operations. Recovery keeps every whole batch before the damage and nothing torn, and never refuses.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use protocol::records::Compression;
use std::path::{Path, PathBuf};
use storage::{AppendOrigin, Log, LogConfig, Shutdown};
use support::*;

const UNCLEAN: Shutdown = Shutdown::Unclean { recovery_point: 0 };

/// A log of some segments, closed; answers where each batch of the last segment begins, and the segment's base.
async fn make_log(core: &shards::Core, path: &Path, config: &LogConfig) -> (Vec<u64>, i64) {
    let storage = storage(core);
    let (log, _) = open(&storage, path, config.clone(), Shutdown::Clean).await;
    let now = core.wall_clock_ms();
    let mut places = Vec::new();
    for at in 0..30_i64 {
        let value = vec![at as u8; 200 + (at as usize * 37) % 400];
        let producer = (7, 0, at as i32);
        let bytes = batch_of(&[(now + at, &value)], Compression::None, producer);
        let segments = log.segment_count();
        let before = log.size_bytes();
        let ticket = log
            .append(&[bytes], (at / 10) as i32, AppendOrigin::Client)
            .unwrap();
        ticket.await.unwrap();
        if log.segment_count() != segments {
            places = vec![(at, before)];
        } else {
            places.push((at, before));
        }
    }
    log.close().await.unwrap();
    let base = places[0];
    (places.iter().map(|(_, at)| at - base.1).collect(), base.0)
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn log_file(partition: &Path, base: i64) -> PathBuf {
    partition.join(format!("{base:020}.log"))
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 6_000,
        index_interval_bytes: 500,
        ..LogConfig::default()
    }
}

/// Appends go on where the log ends, and the producer's next sequence is the one that follows.
async fn goes_on(core: &shards::Core, log: &Log) {
    let end = log.log_end_offset();
    let now = core.wall_clock_ms();
    let next = batch_of(&[(now, b"next")], Compression::None, (7, 0, end as i32));
    let ticket = log.append(&[next], 9, AppendOrigin::Client).unwrap();
    assert_eq!((ticket.first_offset, ticket.duplicate), (end, false));
    ticket.await.unwrap();
    assert_eq!(
        records_from(core, log, end).await,
        [(end, now, b"next".to_vec())]
    );
    if end > 0 {
        let again = batch_of(&[(now, b"again")], Compression::None, (7, 0, end as i32));
        assert!(
            log.append(&[again], 9, AppendOrigin::Client)
                .unwrap()
                .duplicate
        );
    }
}

#[test]
fn a_tail_cut_anywhere_loses_only_what_is_torn() {
    let directory = TempDir::new("cut");
    let path = directory.path();
    on_core(move |core| async move {
        let (starts, base) = make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let length = std::fs::metadata(log_file(&whole, base)).unwrap().len();
        let mut cuts: Vec<u64> = starts
            .iter()
            .flat_map(|start| [0, 1, 8, 12, 16, 17, 20, 60, 61, 62, 100].map(|more| start + more))
            .chain([length - 1, length])
            .filter(|cut| *cut <= length)
            .collect();
        cuts.sort_unstable();
        for cut in cuts {
            let root = path.join("cut");
            copy(&whole, &root.join("topic-0"));
            let file = log_file(&root.join("topic-0"), base);
            let handle = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
            handle.set_len(cut).unwrap();
            let kept = starts
                .iter()
                .skip(1)
                .chain([&length])
                .filter(|end| **end <= cut)
                .count() as i64;
            let storage = storage(&core);
            let (log, report) = open(&storage, &root, config(), UNCLEAN).await;
            assert_eq!(log.log_end_offset(), base + kept, "cut at {cut}");
            let torn = !starts.contains(&cut) && cut != length;
            assert_eq!(report.truncations.len(), usize::from(torn), "cut at {cut}");
            assert_eq!(records_from(&core, &log, 0).await.len() as i64, base + kept);
            goes_on(&core, &log).await;
        }
    });
}

#[test]
fn a_garbled_byte_ends_the_log_there_and_says_so() {
    let directory = TempDir::new("garble");
    let path = directory.path();
    on_core(move |core| async move {
        let (starts, base) = make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let length = std::fs::metadata(log_file(&whole, base)).unwrap().len();
        for (at, start) in starts.iter().enumerate() {
            // Leader epoch (12..16) lies outside the checksum: Kafka would not notice either.
            for byte in [0, 7, 8, 11, 16, 17, 21, 23, 40, 57, 61, 100] {
                let root = path.join("garbled");
                copy(&whole, &root.join("topic-0"));
                let file = log_file(&root.join("topic-0"), base);
                let mut bytes = std::fs::read(&file).unwrap();
                bytes[*start as usize + byte] ^= 0x80;
                std::fs::write(&file, &bytes).unwrap();
                let storage = storage(&core);
                let (log, report) = open(&storage, &root, config(), UNCLEAN).await;
                // A garbled base offset may jump ahead within what a segment can hold; it is not under the checksum.
                if byte == 7 && log.log_end_offset() > base + at as i64 {
                    continue;
                }
                assert_eq!(
                    log.log_end_offset(),
                    base + at as i64,
                    "batch {at}, byte {byte}"
                );
                assert_eq!(report.truncations.len(), 1);
                assert_eq!(report.truncations[0].file, file);
                assert_eq!(report.truncations[0].at, *start);
                assert_eq!(report.truncations[0].bytes, length - start);
                assert!(!report.truncations[0].only_zeros);
                goes_on(&core, &log).await;
            }
        }
    });
}

#[test]
fn zeros_behind_the_end_are_space_not_damage() {
    let directory = TempDir::new("zeros");
    let path = directory.path();
    on_core(move |core| async move {
        let (_, base) = make_log(&core, &path, &config()).await;
        let file = log_file(&path.join("topic-0"), base);
        let length = std::fs::metadata(&file).unwrap().len();
        let handle = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        handle.set_len(length + 1_000_000).unwrap();
        let storage = storage(&core);
        let (log, report) = open(&storage, &path, config(), UNCLEAN).await;
        assert_eq!(log.log_end_offset(), 30);
        assert!(report.truncations[0].only_zeros);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), length);
        goes_on(&core, &log).await;
        log.close().await.unwrap();
        drop(log);
        // The same behind a clean marker, as another broker may have left it.
        let length = std::fs::metadata(&file).unwrap().len();
        std::fs::OpenOptions::new()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(length + 5_000)
            .unwrap();
        let (log, report) = open(&storage, &path, config(), Shutdown::Clean).await;
        assert_eq!(log.log_end_offset(), 31);
        assert!(report.truncations[0].only_zeros);
        assert_eq!(records_from(&core, &log, 0).await.len(), 31);
    });
}

#[test]
fn damage_in_an_earlier_segment_removes_the_later_ones() {
    let directory = TempDir::new("middle");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path, &config()).await;
        let file = log_file(&path.join("topic-0"), 0);
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.len() - 1;
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let storage = storage(&core);
        // Above the recovery point nothing is trusted; below, everything.
        let end = {
            let trusted = path.join("trusted");
            copy(&path.join("topic-0"), &trusted.join("topic-0"));
            let point = Shutdown::Unclean { recovery_point: 30 };
            let (log, _) = open(&storage, &trusted, config(), point).await;
            assert_eq!(log.log_end_offset(), 30);
            log.segment_count()
        };
        assert!(end > 2);
        let (log, report) = open(&storage, &path, config(), UNCLEAN).await;
        assert_eq!(log.segment_count(), 1);
        assert!(log.log_end_offset() > 0 && log.log_end_offset() < 30);
        assert!(
            report
                .removed_files
                .iter()
                .any(|name| name.ends_with(".log"))
        );
        assert_eq!(
            records_from(&core, &log, 0).await.len() as i64,
            log.log_end_offset()
        );
        goes_on(&core, &log).await;
    });
}

#[test]
fn companions_may_be_missing_or_wrong() {
    let directory = TempDir::new("companions");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let names: Vec<String> = std::fs::read_dir(&whole)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".log") && name != "partition.metadata")
            .collect();
        assert!(names.len() > 8);
        let everything = {
            let storage = storage(&core);
            let (log, _) = open(&storage, &path.join("whole"), config(), Shutdown::Clean).await;
            records_from(&core, &log, 0).await
        };
        for name in names {
            for damage in ["gone", "empty", "zeros", "garbled", "short", "long"] {
                for shutdown in [
                    Shutdown::Clean,
                    UNCLEAN,
                    Shutdown::Unclean { recovery_point: 17 },
                ] {
                    let root = path.join("damaged");
                    copy(&whole, &root.join("topic-0"));
                    harm(&root.join("topic-0").join(&name), damage);
                    let what = format!("{name} {damage} {shutdown:?}");
                    let storage = storage(&core);
                    let (log, _) = open(&storage, &root, config(), shutdown).await;
                    assert_eq!(records_from(&core, &log, 0).await, everything, "{what}");
                    for record in [0, 5, 11, 17, 23, 29] {
                        let expected = &everything[record];
                        let found = log.read(expected.0, ALL).await.unwrap();
                        assert_eq!(found.first_offset, expected.0, "{what}");
                        if !name.ends_with(".timeindex") || damage == "gone" {
                            let found =
                                log.offset_for_timestamp(expected.1).await.unwrap().unwrap();
                            assert_eq!(found.offset, expected.0, "{what}");
                        }
                    }
                    // The epochs come from their file or from the batches.
                    assert_eq!(log.end_offset_for(1), (1, 20), "{what}");
                }
            }
        }
    });
}

fn harm(path: &Path, damage: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    match damage {
        "gone" => return std::fs::remove_file(path).unwrap(),
        "empty" => bytes.clear(),
        "zeros" => bytes.fill(0),
        "garbled" => bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7)),
        "short" => bytes.truncate(bytes.len().saturating_sub(3)),
        _ => bytes.extend_from_slice(&[0; 1_000]),
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn halves_of_interrupted_work_are_finished_or_undone() {
    let directory = TempDir::new("halves");
    let path = directory.path();
    on_core(move |core| async move {
        let (_, base) = make_log(&core, &path, &config()).await;
        let partition = path.join("topic-0");
        let everything = {
            let storage = storage(&core);
            let (log, _) = open(&storage, &path, config(), Shutdown::Clean).await;
            records_from(&core, &log, 0).await
        };
        // A deletion that was not finished, a cleaning that was not either, an orphaned index.
        for name in [
            "00000000000000000900.log.deleted",
            "00000000000000000000.log.cleaned",
        ] {
            std::fs::write(partition.join(name), b"x").unwrap();
        }
        std::fs::write(partition.join("00000000000000000700.index"), [0; 8]).unwrap();
        // A swap that had begun: the new file stands ready, the old one is still there.
        let first = log_file(&partition, 0);
        std::fs::copy(&first, partition.join(format!("{:020}.log.swap", base))).unwrap();
        std::fs::remove_file(partition.join(format!("{:020}.log.swap", base))).unwrap();
        let storage = storage(&core);
        let (log, report) = open(&storage, &path, config(), UNCLEAN).await;
        assert_eq!(report.removed_files.len(), 3, "{:?}", report.removed_files);
        assert_eq!(records_from(&core, &log, 0).await, everything);
        log.close().await.unwrap();
        drop(log);
        std::fs::copy(&first, partition.join("00000000000000000000.log.swap")).unwrap();
        let (log, report) = open(&storage, &path, config(), UNCLEAN).await;
        assert!(
            report
                .removed_files
                .contains(&"00000000000000000000.log".to_owned())
        );
        assert_eq!(records_from(&core, &log, 0).await, everything);
        assert!(!partition.join("00000000000000000000.log.swap").exists());
    });
}

#[test]
fn a_clean_start_reads_no_more_of_a_larger_log() {
    let directory = TempDir::new("clean-start");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        for at in 0..2_000 {
            log.append(&[batch(at, &[7; 5_000])], 0, AppendOrigin::Client)
                .unwrap();
        }
        log.append(&[batch(0, b"x")], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
        log.close().await.unwrap();
        drop(log);
        // Garbage in the middle goes unnoticed, because nobody looks there.
        let file = log_file(&path.join("topic-0"), 0);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[5_000_000..5_001_000].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let (log, report) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        assert_eq!(log.log_end_offset(), 2_001);
        assert_eq!(report, storage::RecoveryReport::default());
        let point = Shutdown::Unclean {
            recovery_point: 2_001,
        };
        drop(log);
        let (log, report) = open(&storage, &path, LogConfig::default(), point).await;
        assert_eq!(
            log.log_end_offset(),
            2_001,
            "nor after a crash, below the recovery point"
        );
        assert!(report.truncations.is_empty());
    });
}
