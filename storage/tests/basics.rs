//! The promises of a log, one by one.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use bytes::Bytes;
use protocol::records::Compression;
use std::time::Duration;
use storage::{
    AppendError, AppendOrigin, LogConfig, Piece, ProducerError, ReadError, ReadLimits, Shutdown,
    StorageError, TimestampType,
};
use support::*;

#[test]
fn what_is_appended_is_read_before_and_after_a_clean_stop() {
    let directory = TempDir::new("append-read");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, report) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let new = storage::RecoveryReport {
            created: true,
            ..Default::default()
        };
        assert_eq!(report, new);
        assert!(!log.is_busy(), "a new log has nothing to do");
        let first = log
            .append(&[batch(10, b"one")], 3, AppendOrigin::Client)
            .unwrap();
        let second = log
            .append(&[batch(20, b"two")], 3, AppendOrigin::Client)
            .unwrap();
        assert_eq!((first.first_offset, second.first_offset), (0, 1));
        assert_eq!(
            log.log_end_offset(),
            0,
            "offsets are given, nothing is written yet"
        );
        assert_eq!(
            log.read(0, ALL).await.unwrap().bytes,
            0,
            "what is not written is not served"
        );
        second.await.unwrap();
        first.await.unwrap();
        assert_eq!(log.log_end_offset(), 2);
        let expected = vec![(0, 10, b"one".to_vec()), (1, 20, b"two".to_vec())];
        assert_eq!(records_from(&core, &log, 0).await, expected);
        assert_eq!(records_from(&core, &log, 1).await, expected[1..]);
        assert!(matches!(
            log.read(3, ALL).await,
            Err(ReadError::OutOfRange {
                requested: 3,
                start: 0,
                end: 2
            })
        ));
        log.close().await.unwrap();
        assert!(!log.is_busy());
        drop(log);
        let (log, report) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        assert_eq!(
            report,
            storage::RecoveryReport::default(),
            "a clean stop leaves nothing to do"
        );
        assert_eq!(records_from(&core, &log, 0).await, expected);
        assert_eq!(
            log.latest_epoch()
                .map(|entry| (entry.epoch, entry.start_offset)),
            Some((3, 0))
        );
        let third = log
            .append(&[batch(30, b"three")], 4, AppendOrigin::Client)
            .unwrap();
        assert_eq!(third.first_offset, 2);
        third.await.unwrap();
        assert_eq!(
            records_from(&core, &log, 2).await,
            [(2, 30, b"three".to_vec())]
        );
        assert_eq!(log.end_offset_for(3), (3, 2));
    });
}

#[test]
fn files_are_those_of_kafka() {
    let directory = TempDir::new("files");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            segment_bytes: 20_000,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        for at in 0..50 {
            let ticket = log
                .append(&[batch(at, &[7; 1_000])], 0, AppendOrigin::Client)
                .unwrap();
            ticket.await.unwrap();
        }
        log.close().await.unwrap();
        let mut names: Vec<(String, u64)> = std::fs::read_dir(path.join("topic-0"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (
                    entry.file_name().into_string().unwrap(),
                    entry.metadata().unwrap().len(),
                )
            })
            .collect();
        names.sort();
        let size = batch(0, &[7; 1_000]).len() as u64;
        let per_segment = 20_000 / size;
        let in_last = 50 % per_segment;
        let bases = [0, per_segment, 2 * per_segment];
        let mut expected = vec![
            (
                "leader-epoch-checkpoint".to_owned(),
                "0\n1\n0 0\n".len() as u64,
            ),
            (
                "partition.metadata".to_owned(),
                "version: 0\ntopic_id: JGSrYWUcTBKJqrKYrkPzUw".len() as u64,
            ),
            (format!("{:020}.snapshot", 50), 10),
        ];
        for base in bases {
            let count = if base == bases[2] {
                in_last
            } else {
                per_segment
            };
            // More than 4096 bytes after an entry: the fifth batch after each is indexed.
            let entries = (count - 1) / 4;
            let last_is_indexed = (count - 1) % 4 == 0;
            let times = entries + u64::from(!last_is_indexed);
            expected.push((format!("{base:020}.log"), count * size));
            expected.push((format!("{base:020}.index"), entries * 8));
            expected.push((format!("{base:020}.timeindex"), times * 12));
            if base > 0 {
                expected.push((format!("{base:020}.snapshot"), 10));
            }
        }
        expected.sort();
        assert_eq!(names, expected);
    });
}

#[test]
fn waiting_batches_share_a_write() {
    let directory = TempDir::new("group-commit");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let tickets: Vec<_> = (0..100)
            .map(|at| {
                log.append(&[batch(at, b"x")], 0, AppendOrigin::Client)
                    .unwrap()
            })
            .collect();
        for ticket in tickets {
            ticket.await.unwrap();
        }
        assert_eq!(storage.counters().writes, 1);
        assert_eq!(records_from(&core, &log, 0).await.len(), 100);
    });
}

#[test]
fn limits_of_a_read_keep_batches_whole() {
    let directory = TempDir::new("limits");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let size = batch(0, &[7; 500]).len() as u32;
        for at in 0..100 {
            log.append(&[batch(at, &[7; 500])], 0, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
        }
        // Once from memory, once from the files of a log at rest.
        for _ in 0..2 {
            let read = |from, max_bytes, up_to_offset, whole_first_batch| {
                let log = log.clone();
                async move {
                    let limits = ReadLimits {
                        max_bytes,
                        up_to_offset,
                        whole_first_batch,
                    };
                    let result = log.read(from, limits).await.unwrap();
                    (result.bytes / size, result.bytes % size, result.next_offset)
                }
            };
            assert_eq!(read(10, 3 * size + 5, i64::MAX, true).await, (3, 0, 13));
            assert_eq!(read(10, 3 * size, 12, true).await, (2, 0, 12));
            assert_eq!(read(10, 1, i64::MAX, true).await, (1, 0, 11));
            assert_eq!(read(10, 1, i64::MAX, false).await, (0, 0, 10));
            assert_eq!(read(10, 1_000_000, 10, true).await, (0, 0, 10));
            assert_eq!(read(0, 1_000_000, i64::MAX, true).await, (100, 0, 100));
            assert_eq!(read(50, 40 * size, 75, true).await, (25, 0, 75));
            assert_eq!(read(50, 20 * size + 1, 75, true).await, (20, 0, 70));
            assert_eq!(read(100, 1_000, i64::MAX, true).await, (0, 0, 100));
            log.close().await.unwrap();
        }
        assert!(storage.counters().file_reads > 0 && storage.counters().memory_reads > 0);
    });
}

#[test]
fn a_log_at_rest_has_no_file_open_and_goes_on_when_written() {
    let directory = TempDir::new("rest");
    let path = directory.path();
    on_core(move |core| async move {
        let options = storage::StorageOptions {
            idle_after: Duration::from_millis(1),
            ..Default::default()
        };
        let storage = storage::Storage::new(core.clone(), options);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        for round in 0..3 {
            for at in 0..200 {
                log.append(&[batch(at, &[7; 997])], 0, AppendOrigin::Client)
                    .unwrap()
                    .await
                    .unwrap();
            }
            assert!(log.is_busy());
            while log.is_busy() {
                core.sleep(Duration::from_millis(20)).await;
            }
            let length = std::fs::metadata(path.join("topic-0/00000000000000000000.log")).unwrap();
            assert_eq!(length.len(), log.size_bytes(), "cut to its exact length");
            assert_eq!(log.recovery_point(), log.log_end_offset());
            assert_eq!(storage.counters().cache_bytes, 0);
            assert_eq!(records_from(&core, &log, 0).await.len(), 200 * (round + 1));
        }
    });
}

#[test]
fn the_cache_is_bounded_and_what_it_gave_up_comes_from_files() {
    let directory = TempDir::new("cache");
    let path = directory.path();
    on_core(move |core| async move {
        let options = storage::StorageOptions {
            cache_bytes: 64 << 10,
            ..Default::default()
        };
        let storage = storage::Storage::new(core.clone(), options);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let (other, _) = storage::Log::open(&storage, &path, options_of_other())
            .await
            .unwrap();
        for at in 0..300 {
            log.append(&[batch(at, &[7; 1_500])], 0, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
            if at % 3 == 0 {
                let ticket = other
                    .append(&[batch(at, b"x")], 0, AppendOrigin::Client)
                    .unwrap();
                ticket.await.unwrap();
            }
            assert!(storage.counters().cache_bytes <= 64 << 10);
        }
        let result = log.read(0, ALL).await.unwrap();
        assert!(matches!(result.pieces.first(), Some(Piece::File { .. })));
        assert!(matches!(result.pieces.last(), Some(Piece::Memory(_))));
        for piece in &result.pieces {
            if let Piece::File { offset, len, .. } = piece {
                let end = offset + u64::from(*len);
                assert!(
                    end <= log.size_bytes() / 4096 * 4096,
                    "never the last block"
                );
            }
        }
        assert_eq!(records_from(&core, &log, 0).await.len(), 300);
        assert_eq!(records_from(&core, &other, 0).await.len(), 100);
    });
}

fn options_of_other() -> storage::OpenOptions {
    options("other", LogConfig::default(), Shutdown::Clean)
}

#[test]
fn idempotent_producers_are_judged_with_batches_under_way() {
    let directory = TempDir::new("producers");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let now = core.wall_clock_ms();
        let of = |sequence, count: usize| {
            let records: Vec<(i64, &[u8])> = vec![(now, b"x"); count];
            batch_of(&records, Compression::None, (7, 0, sequence))
        };
        let append = |bytes: Bytes| log.append(&[bytes], 0, AppendOrigin::Client);
        assert!(
            matches!(
                append(of(5, 1)),
                Err(AppendError::Producer(
                    ProducerError::OutOfOrderSequence { .. }
                ))
            ),
            "a never written partition starts at 0"
        );
        let first = append(of(0, 3)).unwrap();
        let again = append(of(0, 3)).unwrap();
        assert!(again.duplicate && !first.duplicate);
        assert_eq!((again.first_offset, again.last_offset), (0, 2));
        assert!(append(of(4, 1)).is_err());
        again.await.unwrap();
        assert_eq!(
            log.log_end_offset(),
            3,
            "the duplicate waited for the original's write"
        );
        append(of(3, 2)).unwrap().await.unwrap();
        log.close().await.unwrap();
        drop(log);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let again = log.append(&[of(3, 2)], 0, AppendOrigin::Client).unwrap();
        assert!(again.duplicate, "the state outlives a restart");
        assert_eq!(again.first_offset, 3);
        again.await.unwrap();
        assert_eq!(log.log_end_offset(), 5);
    });
}

#[test]
fn the_number_of_producers_is_bounded_and_a_forgotten_one_goes_on() {
    let directory = TempDir::new("many-producers");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            max_producers: 50,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config.clone(), Shutdown::Clean).await;
        let now = core.wall_clock_ms();
        let of = |id, sequence| batch_of(&[(now, b"x")], Compression::None, (id, 0, sequence));
        for id in 0..500 {
            log.append(&[of(id, 0)], 0, AppendOrigin::Client).unwrap();
            assert!(log.producer_count() <= 50);
        }
        let ticket = log.append(&[of(3, 1)], 0, AppendOrigin::Client).unwrap();
        assert!(!ticket.duplicate, "forgotten, so any sequence is its first");
        ticket.await.unwrap();
        let again = log.append(&[of(499, 0)], 0, AppendOrigin::Client).unwrap();
        assert!(again.duplicate, "remembered");
        log.close().await.unwrap();
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        assert!(log.producer_count() <= 50 && log.producer_count() > 40);
        // After all records were deleted the producers go on as well.
        log.trim(log.log_end_offset()).await.unwrap();
        log.append(&[of(499, 1)], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
    });
}

#[test]
fn the_producers_of_all_logs_together_are_bounded() {
    let directory = TempDir::new("all-producers");
    let path = directory.path();
    on_core(move |core| async move {
        let options = storage::StorageOptions {
            producers_max: 1_000,
            ..Default::default()
        };
        let storage = storage::Storage::new(core.clone(), options);
        let mut logs = Vec::new();
        for topic in ["flooded", "also", "quiet"] {
            let named = support::options(topic, LogConfig::default(), Shutdown::Clean);
            logs.push(storage::Log::open(&storage, &path, named).await.unwrap().0);
        }
        let now = core.wall_clock_ms();
        let of = |id, sequence| batch_of(&[(now, b"x")], Compression::None, (id, 0, sequence));
        let counts = |logs: &[storage::Log]| -> Vec<usize> {
            logs.iter().map(storage::Log::producer_count).collect()
        };
        for id in 0..10 {
            logs[2]
                .append(&[of(id, 0)], 0, AppendOrigin::Client)
                .unwrap();
        }
        for id in 0..5_000 {
            let flooded = usize::from(id % 3 == 0);
            logs[flooded]
                .append(&[of(id, 0)], 0, AppendOrigin::Client)
                .unwrap();
            let counts = counts(&logs);
            assert!(counts.iter().sum::<usize>() <= 1_000, "{counts:?}");
        }
        assert_eq!(counts(&logs)[2], 10, "who has few keeps them");
        let again = logs[2]
            .append(&[of(3, 0)], 0, AppendOrigin::Client)
            .unwrap();
        assert!(again.duplicate, "remembered");
        // What a log remembered counts no more when it is gone, and again when it is back.
        drop(logs.remove(0));
        for id in 0..400 {
            logs[0]
                .append(&[of(id, 0)], 0, AppendOrigin::Client)
                .unwrap();
        }
        assert!(counts(&logs)[0] >= 400);
        logs[0]
            .append(&[of(0, 1)], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
    });
}

#[test]
fn idle_producers_are_forgotten_in_time_and_may_go_on() {
    let directory = TempDir::new("expiry");
    let path = directory.path();
    on_core(move |core| async move {
        let options = storage::StorageOptions {
            producer_check_interval: Duration::from_millis(10),
            ..Default::default()
        };
        let storage = storage::Storage::new(core.clone(), options);
        let config = LogConfig {
            producer_id_expiration_ms: 60_000,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        let now = core.wall_clock_ms();
        for (id, at) in [(1, now - 70_000), (2, now)] {
            let bytes = batch_of(&[(at, b"x")], Compression::None, (id, 0, 0));
            log.append(&[bytes], 0, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
        }
        while log.producer_count() > 1 {
            core.sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(log.producers()[0].0, 2);
        let late = batch_of(&[(now, b"x")], Compression::None, (1, 0, 17));
        log.append(&[late], 0, AppendOrigin::Client)
            .unwrap()
            .await
            .unwrap();
    });
}

#[test]
fn log_append_time_stamps_what_is_stored() {
    let directory = TempDir::new("append-time");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            timestamp_type: TimestampType::LogAppendTime,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        let before = core.wall_clock_ms();
        let future = batch_of(
            &[(i64::MAX / 2, b"x"), (5, b"y")],
            Compression::Gzip,
            (-1, -1, -1),
        );
        let ticket = log.append(&[future], 0, AppendOrigin::Client).unwrap();
        let stamp = ticket.log_append_time_ms.unwrap();
        ticket.await.unwrap();
        assert!(stamp >= before && stamp <= core.wall_clock_ms());
        let records = records_from(&core, &log, 0).await;
        assert!(records.iter().all(|(_, timestamp, _)| *timestamp == stamp));
        let found = log.offset_for_timestamp(stamp).await.unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (0, stamp));
        assert_eq!(log.offset_for_timestamp(stamp + 1).await.unwrap(), None);
    });
}

#[test]
fn offsets_by_timestamp_are_exact_inside_compressed_batches() {
    let directory = TempDir::new("timestamps");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            segment_bytes: 4_000,
            index_interval_bytes: 0,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        // 20 batches of 100 records: timestamps 1..=2000, out of order within each pair of batches.
        for round in 0..20_i64 {
            let base = (round ^ 1) * 100;
            let values: Vec<Vec<u8>> = (1..=100)
                .map(|at| (base + at).to_be_bytes().to_vec())
                .collect();
            let records: Vec<(i64, &[u8])> = values
                .iter()
                .zip(1..)
                .map(|(value, at)| (base + at, value.as_slice()))
                .collect();
            let bytes = batch_of(&records, Compression::Gzip, (-1, -1, -1));
            log.append(&[bytes], 5, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
        }
        assert!(log.segment_count() > 2);
        for rested in [false, true] {
            if rested {
                log.close().await.unwrap();
            }
            let records = records_from(&core, &log, 0).await;
            for timestamp in [
                -1, 0, 1, 50, 100, 101, 150, 200, 201, 999, 1_500, 1_999, 2_000,
            ] {
                let found = log.offset_for_timestamp(timestamp).await.unwrap().unwrap();
                let expected = records.iter().find(|(_, at, _)| *at >= timestamp).unwrap();
                assert_eq!(
                    (found.offset, found.timestamp),
                    (expected.0, expected.1),
                    "{timestamp}"
                );
                assert_eq!(found.leader_epoch, Some(5));
            }
            assert_eq!(log.offset_for_timestamp(2_001).await.unwrap(), None);
            let most = log.max_timestamp().await.unwrap().unwrap();
            let expected = records.iter().find(|(_, at, _)| *at == 2_000).unwrap();
            assert_eq!((most.offset, most.timestamp), (expected.0, 2_000));
        }
        assert_eq!(log.earliest().offset, 0);
        assert_eq!(
            (log.latest().offset, log.latest().leader_epoch),
            (2_000, Some(5))
        );
    });
}

#[test]
fn only_what_a_log_can_hold_is_appended() {
    let directory = TempDir::new("refusals");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            segment_bytes: 1_000,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config, Shutdown::Clean).await;
        let append = |bytes: Bytes, origin| log.append(&[bytes], 0, origin).map(|_| ());
        let client = AppendOrigin::Client;
        assert!(matches!(
            append(batch(0, &[0; 2_000]), client),
            Err(AppendError::LargerThanSegment {
                segment_bytes: 1_000,
                ..
            })
        ));
        let whole = batch(0, b"x");
        for cut in [0, 5, 60, whole.len() - 1] {
            let refused = append(whole.slice(..cut), client);
            assert!(
                matches!(refused, Err(AppendError::Malformed { .. })),
                "cut at {cut}"
            );
        }
        append(batch(0, b"x"), client).unwrap();
        assert!(matches!(
            append(batch(0, b"x"), AppendOrigin::Replication),
            Err(AppendError::NotContiguous {
                expected: 1,
                got: 0
            })
        ));
        // Of several batches all or none.
        let refused = log.append(&[batch(0, b"x"), batch(0, &[0; 2_000])], 9, client);
        assert!(refused.is_err());
        assert_eq!(log.next_offset(), 1);
        assert_eq!(log.latest_epoch().map(|entry| entry.epoch), Some(0));
        log.append(&[batch(0, b"a"), batch(0, b"b")], 0, client)
            .unwrap()
            .await
            .unwrap();
        assert_eq!(log.log_end_offset(), 3);
        log.take_offline("the disk failed");
        assert!(matches!(
            append(batch(0, b"x"), client),
            Err(AppendError::Storage(StorageError::Offline { .. }))
        ));
        assert!(log.read(0, ALL).await.is_err());
    });
}

#[test]
fn starts_move_up_and_ends_move_back() {
    let directory = TempDir::new("trim-truncate");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            segment_bytes: 5_000,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config.clone(), Shutdown::Clean).await;
        for at in 0..40 {
            let epoch = (at / 10) as i32;
            log.append(&[batch(at, &[7; 900])], epoch, AppendOrigin::Client)
                .unwrap()
                .await
                .unwrap();
        }
        let segments = log.segment_count();
        assert!(log.trim(12).await.unwrap() > 0);
        assert!(log.segment_count() < segments);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (12, 40));
        assert!(matches!(
            log.read(11, ALL).await,
            Err(ReadError::OutOfRange { .. })
        ));
        assert_eq!(records_from(&core, &log, 12).await.len(), 28);
        assert_eq!(log.earliest().leader_epoch, Some(1));
        assert!(matches!(
            log.trim(41).await,
            Err(ReadError::OutOfRange { .. })
        ));
        log.truncate_to(25).await.unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (12, 25));
        assert_eq!(records_from(&core, &log, 12).await.len(), 13);
        assert_eq!(
            log.latest_epoch()
                .map(|entry| (entry.epoch, entry.start_offset)),
            Some((2, 20))
        );
        for at in 25..30 {
            let ticket = log
                .append(&[batch(at, &[8; 900])], 7, AppendOrigin::Client)
                .unwrap();
            assert_eq!(ticket.first_offset, at);
            ticket.await.unwrap();
        }
        let records = records_from(&core, &log, 12).await;
        assert_eq!(
            records.iter().map(|record| record.0).collect::<Vec<_>>(),
            (12..30).collect::<Vec<_>>()
        );
        log.close().await.unwrap();
        drop(log);
        let mut options = options("topic", config, Shutdown::Clean);
        options.log_start_offset = 12;
        let (log, report) = storage::Log::open(&storage, &path, options).await.unwrap();
        assert_eq!(report, storage::RecoveryReport::default());
        assert_eq!(records_from(&core, &log, 12).await, records);
        log.reset_to(1_000).await.unwrap();
        assert_eq!(
            (log.log_start_offset(), log.log_end_offset()),
            (1_000, 1_000)
        );
        let ticket = log
            .append(&[batch(0, b"x")], 8, AppendOrigin::Client)
            .unwrap();
        assert_eq!(ticket.first_offset, 1_000);
        ticket.await.unwrap();
        assert_eq!(records_from(&core, &log, 1_000).await.len(), 1);
        let gone = log.delete().await.unwrap();
        assert!(gone.to_string_lossy().ends_with("-delete") && gone.exists());
        assert!(!path.join("topic-0").exists());
    });
}

#[test]
fn a_log_directory_is_locked_for_every_kind_of_broker() {
    let directory = TempDir::new("lock");
    let path = directory.path();
    on_core(move |core| async move {
        let lock = storage::disk::lock(&core, &path).await.unwrap();
        assert!(
            storage::disk::lock(&core, &path).await.is_err(),
            "held already"
        );
        drop(lock);
        let lock = storage::disk::lock(&core, &path).await.unwrap();
        // Kafka's lock is Java's, which is fcntl's: /proc/locks must show both kinds on the file.
        use std::os::unix::fs::MetadataExt;
        let inode = std::fs::metadata(path.join(".lock")).unwrap().ino();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        for kind in ["FLOCK", "POSIX"] {
            let held = locks
                .lines()
                .any(|line| line.contains(kind) && line.contains(&format!(":{inode} ")));
            assert!(held, "no {kind} on inode {inode} in\n{locks}");
        }
        drop(lock);
    });
}

#[test]
fn holes_in_a_replicated_log_are_stepped_over() {
    let directory = TempDir::new("holes");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        let at = |offset: i64, epoch| {
            let mut bytes = bytes::BytesMut::from(&batch(offset, b"x")[..]);
            protocol::records::rewrite::assign(&mut bytes, offset, epoch);
            bytes.freeze()
        };
        let replicate = |offsets: &[i64]| {
            let batches: Vec<Bytes> = offsets.iter().map(|offset| at(*offset, 4)).collect();
            log.append(&batches, -1, AppendOrigin::Replication).unwrap()
        };
        replicate(&[3, 10]).await.unwrap();
        replicate(&[20]).await.unwrap();
        assert_eq!(
            log.latest_epoch()
                .map(|entry| (entry.epoch, entry.start_offset)),
            Some((4, 3))
        );
        for _ in 0..2 {
            for (from, first) in [(0, 3), (3, 3), (4, 10), (11, 20), (20, 20)] {
                let result = log.read(from, ALL).await.unwrap();
                assert_eq!(
                    (result.first_offset, result.next_offset),
                    (first, 21),
                    "from {from}"
                );
            }
            assert_eq!(log.read(21, ALL).await.unwrap().bytes, 0);
            log.close().await.unwrap();
        }
    });
}
