//! The same batches give the same bytes: a partition that Apache Kafka 4.4 wrote is appended again, batch by batch, and
//! every file must come out as Kafka made it; and indexes rebuilt from its segments must be Kafka's. The partition in
//! `golden/` was written by a 4.4.0 broker; `KAFKA_PARTITION` names another, with its `segment.bytes` after a colon.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use storage::{AppendOrigin, Log, LogConfig, OpenOptions, Shutdown, TopicPartition};
use support::*;

fn partitions() -> Vec<(PathBuf, u32)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/golden-0");
    let mut all = vec![(own, 1 << 20)];
    if let Ok(other) = std::env::var("KAFKA_PARTITION") {
        let (path, segment_bytes) = other.rsplit_once(':').unwrap();
        all.push((path.into(), segment_bytes.parse().unwrap()));
    }
    all
}

fn options(segment_bytes: u32, shutdown: Shutdown) -> OpenOptions {
    let config = LogConfig {
        segment_bytes,
        // The batches are old by now; nobody expires meanwhile.
        producer_id_expiration_ms: i64::MAX,
        ..LogConfig::default()
    };
    OpenOptions {
        partition: TopicPartition::new("copy", 0),
        topic_id: None,
        topic_id_seen: false,
        config: Rc::new(config),
        shutdown,
        log_start_offset: 0,
    }
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "partition.metadata")
        .collect();
    names.sort();
    names
}

fn assert_same_files(kafkas: &Path, ours: &Path) {
    assert_eq!(files(kafkas), files(ours));
    for name in files(kafkas) {
        let (expected, got) = (
            std::fs::read(kafkas.join(&name)).unwrap(),
            std::fs::read(ours.join(&name)).unwrap(),
        );
        let differs = expected.iter().zip(&got).position(|(a, b)| a != b);
        assert!(
            expected == got,
            "{name}: {} and {} bytes, first difference at {differs:?}",
            expected.len(),
            got.len()
        );
    }
}

#[test]
fn appended_again_kafkas_batches_make_kafkas_files() {
    for (kafkas, segment_bytes) in partitions() {
        let directory = TempDir::new("golden-append");
        let path = directory.path();
        let ours = path.join("copy-0");
        let source = kafkas.clone();
        on_core(move |core| async move {
            let storage = storage(&core);
            let (log, _) = Log::open(&storage, &path, options(segment_bytes, Shutdown::Clean))
                .await
                .unwrap();
            let mut batches = 0;
            for name in files(&source).iter().filter(|name| name.ends_with(".log")) {
                let bytes = std::fs::read(source.join(name)).unwrap();
                for batch in protocol::records::split_batches(bytes.into()) {
                    let bytes = batch.unwrap().bytes().clone();
                    let ticket = log.append(&[bytes], -1, AppendOrigin::Replication).unwrap();
                    batches += 1;
                    if batches % 7 == 0 {
                        ticket.await.unwrap();
                    }
                }
            }
            log.close().await.unwrap();
            println!("{} batches, {} segments", batches, log.segment_count());
        });
        assert_same_files(&kafkas, &ours);
    }
}

#[test]
fn rebuilt_companions_are_kafkas() {
    for (kafkas, segment_bytes) in partitions() {
        let directory = TempDir::new("golden-rebuild");
        let path = directory.path();
        let ours = path.join("copy-0");
        std::fs::create_dir_all(&ours).unwrap();
        for name in files(&kafkas) {
            if name.ends_with(".log") {
                std::fs::copy(kafkas.join(&name), ours.join(&name)).unwrap();
            }
        }
        on_core(move |core| async move {
            let storage = storage(&core);
            let unclean = Shutdown::Unclean { recovery_point: 0 };
            let (log, _) = Log::open(&storage, &path, options(segment_bytes, unclean))
                .await
                .unwrap();
            log.close().await.unwrap();
        });
        // Snapshots at the segments' starts are not made anew: only the one at the end.
        for name in files(&ours) {
            let expected = std::fs::read(kafkas.join(&name)).unwrap();
            assert!(
                expected == std::fs::read(ours.join(&name)).unwrap(),
                "{name}"
            );
        }
        for name in files(&kafkas) {
            assert!(
                name.ends_with(".snapshot") || ours.join(&name).exists(),
                "{name}"
            );
        }
    }
}
