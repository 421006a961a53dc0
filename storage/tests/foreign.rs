//! Directories that real Apache Kafka brokers wrote, opened and read record by record. `KAFKA_LOG_DIRS` names a
//! directory with one subdirectory a broker: its log directory in `node-1/data`, and beside it `records.jsonl` with what
//! its consumers saw. Without it there is nothing to do here; tests/golden.rs has a small one of its own.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use storage::{DirectoryKind, Log, LogConfig, OpenOptions, Shutdown, disk};
use support::*;

#[test]
fn every_record_of_a_foreign_directory_is_found() {
    let Ok(root) = std::env::var("KAFKA_LOG_DIRS") else {
        println!("skipped: KAFKA_LOG_DIRS names no directories");
        return;
    };
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.join("records.jsonl").exists() {
            println!("{}", path.display());
            check(&path);
        }
    }
}

fn check(path: &Path) {
    let copy = TempDir::new("foreign");
    let data = copy.path();
    copy_tree(&path.join("node-1/data"), &data);
    let expected = std::fs::read_to_string(path.join("records.jsonl")).unwrap();
    on_core(move |core| async move {
        let storage = storage(&core);
        let clean = disk::read_clean_marker(&core, &data)
            .await
            .unwrap()
            .is_some();
        let points = disk::read_checkpoint(&core, &data, disk::Checkpoint::RecoveryPoint)
            .await
            .unwrap();
        let starts = disk::read_checkpoint(&core, &data, disk::Checkpoint::LogStartOffset)
            .await
            .unwrap();
        let mut logs: BTreeMap<String, Log> = BTreeMap::new();
        for found in disk::list(&core, &data).await.unwrap() {
            let DirectoryKind::Partition(partition) = found.kind else {
                continue;
            };
            let of = |list: &std::collections::BTreeMap<storage::TopicPartition, i64>| {
                list.get(&partition).copied().unwrap_or(0)
            };
            let shutdown = if clean {
                Shutdown::Clean
            } else {
                Shutdown::Unclean {
                    recovery_point: of(&points),
                }
            };
            let name = partition.directory_name();
            let options = OpenOptions {
                log_start_offset: of(&starts),
                partition,
                topic_id: None,
                topic_id_seen: false,
                config: Rc::new(LogConfig::default()),
                shutdown,
            };
            let (log, report) = Log::open(&storage, &data, options).await.unwrap();
            println!(
                "  {name}: {} to {}, {} segments, {} producers, epochs {:?}, {report:?}",
                log.log_start_offset(),
                log.log_end_offset(),
                log.segment_count(),
                log.producer_count(),
                log.epochs()
                    .iter()
                    .map(|entry| (entry.epoch, entry.start_offset))
                    .collect::<Vec<_>>(),
            );
            logs.insert(name, log);
        }
        let mut count = 0;
        for line in expected.lines() {
            let field = |name: &str| field(line, name);
            let name = format!("{}-{}", field("topic"), field("partition"));
            let offset: i64 = field("offset").parse().unwrap();
            let log = &logs[&name];
            let result = log.read(offset, ALL).await.unwrap();
            let bytes = bytes_of(&core, &result).await;
            let value = field("value");
            if bytes[16] == 2 {
                let batch = protocol::records::split_batches(bytes.into())
                    .next()
                    .unwrap()
                    .unwrap();
                let record = batch
                    .records(1 << 24)
                    .unwrap()
                    .map(|record| record.unwrap())
                    .find(|record| record.offset == offset)
                    .unwrap();
                assert_eq!(record.timestamp.to_string(), field("timestamp"), "{line}");
                assert_eq!(
                    record
                        .value
                        .as_deref()
                        .map_or_else(|| "null".to_owned(), hex),
                    value,
                    "{line}"
                );
            } else {
                let header = storage::BatchHeader::parse(&bytes).unwrap();
                assert!(header.last_offset >= offset, "{line}");
            }
            count += 1;
        }
        println!("  {count} records");
        for (name, log) in &logs {
            log.close().await.unwrap();
            let end = log.log_end_offset();
            let again = OpenOptions {
                log_start_offset: log.log_start_offset(),
                partition: log.partition().clone(),
                topic_id: None,
                topic_id_seen: false,
                config: Rc::new(LogConfig::default()),
                shutdown: Shutdown::Clean,
            };
            let (log, report) = Log::open(&storage, &data, again).await.unwrap();
            assert_eq!(log.log_end_offset(), end, "{name}");
            assert_eq!(report.truncations, [], "{name}");
        }
    });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A field of a flat JSON line: strings without escapes, numbers, null.
fn field(line: &str, name: &str) -> String {
    let (_, after) = line.split_once(&format!("\"{name}\": ")).unwrap();
    match after.strip_prefix('"') {
        Some(text) => text.split_once('"').unwrap().0.to_owned(),
        None => after[..after.find([',', '}']).unwrap()].to_owned(),
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
