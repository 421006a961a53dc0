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
use std::time::Duration;
use storage::{AppendOrigin, Damage, Log, LogConfig, ReadError, Shutdown, StorageError};
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

/// Flips bits of one byte of a file.
fn flip(file: &Path, at: u64) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at as usize] ^= 0x80;
    std::fs::write(file, &bytes).unwrap();
}

/// Every offset below the end is read, but those that are damaged: they are `Corrupt`, in the right place.
async fn readable_but(log: &Log, damages: &[Damage]) {
    let mut offset = 0;
    while offset < log.log_end_offset() {
        let damage = damages
            .iter()
            .find(|it| (it.first_offset..it.next_offset).contains(&offset));
        match (log.read(offset, ALL).await, damage) {
            (Ok(found), None) => {
                assert_eq!(found.first_offset, offset);
                let until = damages
                    .iter()
                    .map(|it| it.first_offset)
                    .find(|first| *first > offset);
                assert!(found.next_offset <= until.unwrap_or(i64::MAX));
                offset += 1;
            }
            (Err(ReadError::Storage(StorageError::Corrupt { file, at, .. })), Some(damage)) => {
                assert_eq!((file, at), (damage.file.clone(), damage.from));
                offset += 1;
            }
            (Ok(found), Some(_)) => panic!("offset {offset}: {} bytes", found.bytes),
            (Err(error), _) => panic!("offset {offset}: {error}"),
        }
    }
}

#[test]
fn a_garbled_batch_in_the_middle_takes_no_other_with_it() {
    let directory = TempDir::new("garble");
    let path = directory.path();
    on_core(move |core| async move {
        let (starts, base) = make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let length = std::fs::metadata(log_file(&whole, base)).unwrap().len();
        let last = starts.len() - 1;
        for (at, start) in starts.iter().enumerate() {
            // Leader epoch (12..16) lies outside the checksum: Kafka would not notice either.
            for byte in [0, 7, 8, 11, 16, 17, 21, 23, 40, 57, 61, 100] {
                let what = format!("batch {at}, byte {byte}");
                let root = path.join("garbled");
                copy(&whole, &root.join("topic-0"));
                let file = log_file(&root.join("topic-0"), base);
                flip(&file, start + byte);
                let storage = storage(&core);
                let (log, report) = open(&storage, &root, config(), UNCLEAN).await;
                if at == last && byte == 7 {
                    // An offset may jump ahead, and it is not under the checksum: nothing behind it tells.
                    continue;
                }
                if at == last {
                    // Nothing follows: it may have been torn while it was written.
                    assert_eq!(log.log_end_offset(), base + at as i64, "{what}");
                    assert_eq!(report.truncations.len(), 1, "{what}");
                    let cut = &report.truncations[0];
                    assert_eq!((&cut.file, cut.at), (&file, *start), "{what}");
                    assert_eq!((cut.bytes, cut.only_zeros), (length - start, false));
                    assert_eq!(report.damages, [], "{what}");
                } else {
                    assert_eq!(log.log_end_offset(), 30, "{what}");
                    assert_eq!(report.truncations, [], "{what}");
                    assert_eq!(report.damages.len(), 1, "{what}");
                    let damage = &report.damages[0];
                    assert_eq!(damage.file, file, "{what}");
                    assert_eq!((damage.from, damage.to), (*start, starts[at + 1]), "{what}");
                    let offset = base + at as i64;
                    let offsets = (damage.first_offset, damage.next_offset);
                    assert_eq!(offsets, (offset, offset + 1), "{what}");
                    readable_but(&log, &report.damages).await;
                }
                goes_on(&core, &log).await;
            }
        }
    });
}

#[test]
fn a_write_that_was_lost_ends_the_log() {
    let directory = TempDir::new("lost");
    let path = directory.path();
    on_core(move |core| async move {
        let (_, base) = make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let length = std::fs::metadata(log_file(&whole, 0)).unwrap().len() as usize;
        // A sector in the middle, and what the file has of its last one.
        let last = length / 512 * 512..length;
        for (segment, lost) in [(0, 512..1024), (base, 512..1024), (0, last)] {
            let root = path.join("lost");
            copy(&whole, &root.join("topic-0"));
            let file = log_file(&root.join("topic-0"), segment);
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[lost.clone()].fill(0);
            std::fs::write(&file, &bytes).unwrap();
            let storage = storage(&core);
            let (log, report) = open(&storage, &root, config(), UNCLEAN).await;
            assert_eq!(report.damages, []);
            assert_eq!(report.truncations.len(), 1);
            let cut = &report.truncations[0];
            assert_eq!(cut.file, file);
            assert!(cut.at <= lost.start as u64 && !cut.only_zeros);
            let end = log.log_end_offset();
            assert!(end >= segment && end < 30);
            assert_eq!(records_from(&core, &log, 0).await.len() as i64, end);
            goes_on(&core, &log).await;
        }
    });
}

/// The length of a file that was not durable when the power went, inside a batch.
#[test]
fn a_segment_cut_inside_a_batch_ends_the_log() {
    let directory = TempDir::new("inside");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let sizes = batch_sizes(&log_file(&whole, 0));
        for kept in [0, 3, sizes.len() - 1] {
            let from = sizes[..kept].iter().sum::<u64>();
            for more in [1, 8, 12, 16, 17, 20, 60, 61, 62, 100, sizes[kept] - 1] {
                for compacted in [false, true] {
                    let what = format!("batch {kept}, {more} bytes of it, compacted: {compacted}");
                    let root = path.join("inside");
                    copy(&whole, &root.join("topic-0"));
                    let file = log_file(&root.join("topic-0"), 0);
                    set_length(&file, from + more);
                    let storage = storage(&core);
                    let config = LogConfig {
                        compacted,
                        ..config()
                    };
                    let (log, report) = open(&storage, &root, config, UNCLEAN).await;
                    assert_eq!(report.damages, [], "{what}");
                    let ends = (log.segment_count(), log.log_end_offset());
                    assert_eq!(ends, (1, kept as i64), "{what}");
                    let cuts = report.truncations.iter();
                    let cuts: Vec<_> = cuts.map(|cut| (&cut.file, cut.at, cut.bytes)).collect();
                    assert_eq!(cuts, [(&file, from, more)], "{what}");
                    let found = records_from(&core, &log, 0).await;
                    assert_eq!(found.len(), kept, "{what}");
                    goes_on(&core, &log).await;
                }
            }
        }
    });
}

/// Below the recovery point, after a clean stop, and before a later segment where each write is durable before the next:
/// there nothing looks like a power loss, and what follows stays.
#[test]
fn power_does_not_take_what_was_durable() {
    let directory = TempDir::new("durable");
    let path = directory.path();
    on_core(move |core| async move {
        let (starts, base) = make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let sizes = batch_sizes(&log_file(&whole, 0));
        let begins = sizes[..2].iter().sum::<u64>();
        let each_durable = LogConfig {
            flush_messages: 1,
            ..config()
        };
        let point = |recovery_point| Shutdown::Unclean { recovery_point };
        let of_first = [("cut", 2..sizes.len() as i64), ("zeros", 2..3)];
        let of_last = [("zeros", base + 1..base + 2)];
        let cases = [
            (0, &of_first[..], begins, each_durable.clone(), UNCLEAN),
            (0, &of_first[..], begins, config(), point(3)),
            (base, &of_last[..], starts[1], each_durable, point(base + 2)),
            (base, &of_last[..], starts[1], config(), point(base + 2)),
            (base, &of_last[..], starts[1], config(), Shutdown::Clean),
        ];
        for (segment, harms, begins, config, shutdown) in cases {
            for (harm, offsets) in harms {
                let what = format!("{segment} {harm} {} {shutdown:?}", config.flush_messages);
                let root = path.join("durable");
                copy(&whole, &root.join("topic-0"));
                // Without an index, so that it is looked at.
                for index in ["index", "timeindex"] {
                    let name = format!("{segment:020}.{index}");
                    std::fs::remove_file(root.join("topic-0").join(name)).unwrap();
                }
                let file = log_file(&root.join("topic-0"), segment);
                let mut bytes = std::fs::read(&file).unwrap();
                match *harm {
                    "cut" => bytes.truncate(begins as usize + 100),
                    _ => bytes[begins as usize..begins as usize + 100].fill(0),
                }
                std::fs::write(&file, &bytes).unwrap();
                let storage = storage(&core);
                let (log, report) = open(&storage, &root, config.clone(), shutdown).await;
                assert_eq!(report.truncations, [], "{what}");
                assert_eq!((log.segment_count(), log.log_end_offset()), (3, 30));
                let [damage] = &report.damages[..] else {
                    panic!("{what}: {:?}", report.damages);
                };
                assert_eq!((&damage.file, damage.from), (&file, begins), "{what}");
                let found = damage.first_offset..damage.next_offset;
                assert_eq!(found, *offsets, "{what}");
                readable_but(&log, &report.damages).await;
                goes_on(&core, &log).await;
            }
        }
    });
}

/// A length that was not durable when the power went: the segment ends with a whole batch, and offsets are missing.
#[test]
fn a_segment_without_its_end_ends_the_log() {
    let directory = TempDir::new("short");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path.join("whole"), &config()).await;
        let whole = path.join("whole/topic-0");
        let sizes = batch_sizes(&log_file(&whole, 0));
        // Nothing of the first segment is left, or some of it, or nothing of the active one either.
        for (kept, active_too) in [(0, false), (3, false), (sizes.len() - 1, true)] {
            for compacted in [false, true] {
                let root = path.join("short");
                copy(&whole, &root.join("topic-0"));
                let file = log_file(&root.join("topic-0"), 0);
                let length = sizes[..kept].iter().sum();
                set_length(&file, length);
                if active_too {
                    for later in std::fs::read_dir(root.join("topic-0")).unwrap() {
                        let later = later.unwrap().path();
                        let name = later.file_name().unwrap().to_string_lossy().into_owned();
                        let of_first = name.starts_with(&format!("{:020}", 0));
                        if name.ends_with(".log") && !of_first {
                            set_length(&later, 0);
                        }
                    }
                }
                let storage = storage(&core);
                let config = LogConfig {
                    compacted,
                    ..config()
                };
                let (log, report) = open(&storage, &root, config, UNCLEAN).await;
                assert_eq!(report.damages, []);
                if compacted {
                    assert_eq!(report.truncations, []);
                    assert!(log.segment_count() > 1);
                    continue;
                }
                let end = kept as i64;
                assert_eq!((log.segment_count(), log.log_end_offset()), (1, end));
                let [cut] = &report.truncations[..] else {
                    panic!("{:?}", report.truncations);
                };
                assert_eq!((&cut.file, cut.at, cut.bytes), (&file, length, 0));
                assert_eq!(records_from(&core, &log, 0).await.len() as i64, end);
                goes_on(&core, &log).await;
            }
        }
    });
}

/// Of batches with one record each.
fn batch_sizes(file: &Path) -> Vec<u64> {
    let bytes = std::fs::read(file).unwrap();
    let mut sizes = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap());
        sizes.push(u64::from(length) + 12);
        at += length as usize + 12;
    }
    sizes
}

fn set_length(file: &Path, length: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(length).unwrap();
}

#[test]
fn damage_stays_where_it_is_after_a_clean_stop() {
    let directory = TempDir::new("clean-damage");
    let path = directory.path();
    on_core(move |core| async move {
        let (starts, base) = make_log(&core, &path, &config()).await;
        let partition = path.join("topic-0");
        // A header in the first segment, whose indexes and snapshots go too, and one in the active segment.
        let first = log_file(&partition, 0);
        flip(&first, 16);
        for entry in std::fs::read_dir(&partition).unwrap() {
            let entry = entry.unwrap().path();
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with("index") || name.ends_with(".snapshot") {
                std::fs::remove_file(entry).unwrap();
            }
        }
        flip(&log_file(&partition, base), starts[1] + 8);
        let storage = storage(&core);
        for shutdown in [Shutdown::Clean, Shutdown::Unclean { recovery_point: 30 }] {
            let (log, report) = open(&storage, &path, config(), shutdown).await;
            assert_eq!(report.truncations, []);
            assert_eq!(log.log_end_offset(), 30);
            let of = |file: &Path, from: u64, offset: i64| Damage {
                file: file.to_path_buf(),
                from,
                to: 0,
                first_offset: offset,
                next_offset: offset + 1,
                why: String::new(),
            };
            let second = of(&log_file(&partition, base), starts[1], base + 1);
            readable_but(&log, &[of(&first, 0, 0), second]).await;
            let late = log.offset_for_timestamp(0).await.unwrap().unwrap();
            assert_eq!(late.offset, 1, "the first that can be read");
            goes_on_from(&core, &log, 30).await;
            log.truncate_to(30).await.unwrap();
            log.close().await.unwrap();
        }
    });
}

/// Appends go on at the end, with a producer of their own.
async fn goes_on_from(core: &shards::Core, log: &Log, end: i64) {
    let ticket = log.append(&[batch(7, b"next")], 9, AppendOrigin::Client);
    let ticket = ticket.unwrap();
    assert_eq!(ticket.first_offset, end);
    ticket.await.unwrap();
    let found = records_from(core, log, end).await;
    assert_eq!(found, [(end, 7, b"next".to_vec())]);
}

#[test]
fn records_that_look_like_batches_are_not_taken_for_them() {
    let directory = TempDir::new("nested");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let mut starts = Vec::new();
        for at in 0..3_i64 {
            // A whole batch, as if at offset 1 or 2, inside a record.
            let mut inner = batch(5, &[3; 300]).to_vec();
            inner[..8].copy_from_slice(&(at + 1).to_be_bytes());
            starts.push(log.size_bytes());
            let ticket = log.append(&[batch(at, &inner)], 0, AppendOrigin::Client);
            ticket.unwrap().await.unwrap();
        }
        log.close().await.unwrap();
        drop(log);
        let file = log_file(&path.join("topic-0"), 0);
        flip(&file, starts[1] + 40);
        let (log, report) = open(&storage, &path, LogConfig::default(), UNCLEAN).await;
        let places: Vec<_> = report.damages.iter().map(|it| (it.from, it.to)).collect();
        assert_eq!(places, [(starts[1], starts[2])]);
        readable_but(&log, &report.damages).await;
        assert_eq!(records_from(&core, &log, 2).await[0].0, 2);
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
fn damage_at_the_end_of_an_earlier_segment_leaves_the_later_ones() {
    let directory = TempDir::new("middle");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path.join("whole"), &config()).await;
        for damage in ["flipped", "too long", "zeros behind", "garbage behind"] {
            let root = path.join("damaged");
            copy(&path.join("whole/topic-0"), &root.join("topic-0"));
            let file = log_file(&root.join("topic-0"), 0);
            let mut bytes = std::fs::read(&file).unwrap();
            let length = bytes.len();
            let last_batch = length - *batch_sizes(&file).last().unwrap() as usize;
            match damage {
                "flipped" => bytes[length - 1] ^= 1,
                // All of the last batch is there, but it says that it goes on.
                "too long" => bytes[last_batch + 10] ^= 0x40,
                "zeros behind" => bytes.resize(length + 10_000, 0),
                _ => bytes.extend_from_slice(&[0xa5; 700]),
            }
            std::fs::write(&file, &bytes).unwrap();
            let storage = storage(&core);
            let (log, report) = open(&storage, &root, config(), UNCLEAN).await;
            assert_eq!(log.log_end_offset(), 30, "{damage}");
            assert_eq!(log.segment_count(), 3, "{damage}");
            assert_eq!(report.removed_files, Vec::<String>::new(), "{damage}");
            if matches!(damage, "flipped" | "too long") {
                assert_eq!(report.damages.len(), 1, "{damage}");
                assert_eq!(report.damages[0].file, file);
                assert_eq!(report.truncations, [], "{damage}");
            } else {
                assert_eq!(report.damages, [], "{damage}");
                assert_eq!(report.truncations.len(), 1, "{damage}");
                assert_eq!(report.truncations[0].at, length as u64, "{damage}");
                let now = std::fs::metadata(&file).unwrap().len();
                assert_eq!(now, length as u64, "{damage}");
            }
            readable_but(&log, &report.damages).await;
            goes_on(&core, &log).await;
        }
        // Below the recovery point nothing is looked at.
        let storage = storage(&core);
        let point = Shutdown::Unclean { recovery_point: 30 };
        let (log, report) = open(&storage, &path.join("whole"), config(), point).await;
        assert_eq!((log.log_end_offset(), report.recovered_segments), (30, 1));
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
            let mut damages = vec!["gone", "empty", "zeros", "garbled", "short", "long"];
            if name.ends_with(".index") {
                damages.extend(["backwards", "beyond", "between", "early"]);
            }
            for damage in damages {
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
                    // So do the producers, unless a clean stop left no snapshot, as if there never was any.
                    if !(name.ends_with(".snapshot") && damage == "gone") {
                        goes_on(&core, &log).await;
                    }
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
        "backwards" => {
            let entries: Vec<_> = bytes.chunks_exact(8).rev().collect();
            bytes = entries.concat();
        }
        "beyond" => bytes.extend_from_slice(&[0, 0, 1, 0, 0x10, 0, 0, 0]),
        // Between two batches, and at a batch behind the one that the entry names.
        "between" => bytes.chunks_exact_mut(8).for_each(|entry| entry[7] ^= 1),
        "early" => bytes.chunks_exact_mut(8).for_each(|entry| entry[3] -= 1),
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

/// A snapshot has the last batch of each producer; a client may send five of them again.
#[test]
fn batches_sent_again_after_a_crash_are_known_whatever_the_snapshots_say() {
    let directory = TempDir::new("sent-again");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path, &config()).await;
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, config(), UNCLEAN).await;
        for at in 25..30 {
            let again = batch_of(&[(0, b"again")], Compression::None, (7, 0, at));
            let ticket = log.append(&[again], 9, AppendOrigin::Client).unwrap();
            assert_eq!(
                (ticket.duplicate, ticket.first_offset),
                (true, i64::from(at))
            );
        }
    });
}

/// Recovery starts behind the segments that the first sync after a crash made durable, and the next syncs leave them alone.
#[test]
fn segments_that_a_crash_left_are_synced_once() {
    let directory = TempDir::new("synced-once");
    let path = directory.path();
    on_core(move |core| async move {
        let (_, base) = make_log(&core, &path.join("whole"), &config()).await;
        for (flush_messages, before_first_sync) in [(3, 0), (100, 69)] {
            let root = path.join("crashed");
            copy(&path.join("whole/topic-0"), &root.join("topic-0"));
            let config = LogConfig {
                flush_messages,
                segment_bytes: 100_000,
                ..config()
            };
            let storage = storage(&core);
            let (log, _) = open(&storage, &root, config, UNCLEAN).await;
            assert_eq!((log.segment_count(), log.recovery_point()), (3, 0));
            let append = async || {
                let ticket = log.append(&[batch(7, b"next")], 9, AppendOrigin::Client);
                ticket.unwrap().await.unwrap();
            };
            for _ in 0..before_first_sync {
                append().await;
                assert_eq!(log.recovery_point(), 0, "nothing was synced yet");
            }
            append().await;
            assert_eq!(log.recovery_point(), base, "every {flush_messages}");
            let syncs = storage.counters().syncs;
            for _ in 0..2 * flush_messages {
                append().await;
            }
            assert_eq!(storage.counters().syncs, syncs + 2);
            assert_eq!(log.recovery_point(), base);
        }
    });
}

/// With every write durable, what a crash left is so too before anybody reads it.
#[test]
fn what_a_crash_left_is_durable_before_it_is_read_where_writes_are() {
    let directory = TempDir::new("durable-tail");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path, &config()).await;
        let storage = storage(&core);
        for (flush_messages, point) in [(i64::MAX, 0), (1, 30)] {
            let config = LogConfig {
                flush_messages,
                ..config()
            };
            let (log, _) = open(&storage, &path, config, UNCLEAN).await;
            assert_eq!((log.recovery_point(), log.log_end_offset()), (point, 30));
        }
    });
}

/// Once the log rolls, too: the last sealed segment is not all that a crash may have left.
#[test]
fn a_roll_moves_the_recovery_point_over_what_a_crash_left() {
    let directory = TempDir::new("rolled-over");
    let path = directory.path();
    on_core(move |core| async move {
        make_log(&core, &path, &config()).await;
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, config(), UNCLEAN).await;
        let segments = log.segment_count();
        while log.segment_count() == segments {
            let ticket = log.append(&[batch(7, &[1; 900])], 9, AppendOrigin::Client);
            ticket.unwrap().await.unwrap();
        }
        let base = log.log_end_offset() - 1;
        let deadline = core.now() + Duration::from_secs(20);
        while log.recovery_point() == 0 && core.now() < deadline {
            core.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(log.recovery_point(), base);
    });
}
