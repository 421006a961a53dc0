//! A disk that fills: refused appends leave nothing behind, and writing goes on by itself when space returns.
//! Needs to mount a small tmpfs, so it runs as root only.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and tells one story from start to end"
)]

mod support;

use protocol::records::Compression;
use std::path::Path;
use std::process::Command;
use storage::{AppendOrigin, LogConfig, Shutdown, StorageError};
use support::*;

struct Mount(std::path::PathBuf);

impl Mount {
    fn new(path: &Path, size: &str) -> Option<Mount> {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(path)
            .output()
            .is_ok_and(|output| output.status.success());
        done.then(|| Mount(path.to_path_buf()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_refuses_writes_and_resumes_by_itself() {
    let directory = TempDir::new("full");
    let path = directory.path();
    let Some(_mount) = Mount::new(&path, "4m") else {
        println!("skipped: mounting a tmpfs needs root");
        return;
    };
    on_core(move |core| async move {
        let storage = storage(&core);
        let config = LogConfig {
            segment_bytes: 1 << 20,
            ..LogConfig::default()
        };
        let (log, _) = open(&storage, &path, config.clone(), Shutdown::Clean).await;
        let ballast = path.join("ballast");
        let now = core.wall_clock_ms();
        let mut acknowledged: Vec<i64> = Vec::new();
        let mut next_sequence = 0;
        for round in 0..4 {
            std::fs::write(&ballast, vec![1; 2_200_000 - round * 200_000]).unwrap();
            let mut refused = 0;
            // Several at once, so that a failure takes a whole queue with it.
            while refused < 3 {
                let mut tickets = Vec::new();
                let first = next_sequence;
                for at in 0..5 {
                    let value = [7; 20_000];
                    let bytes = batch_of(&[(now, &value)], Compression::None, (7, 0, first + at));
                    match log.append(&[bytes], 0, AppendOrigin::Client) {
                        Ok(ticket) => tickets.push(ticket),
                        Err(error) => panic!("{error}"),
                    }
                }
                for ticket in tickets {
                    let offset = ticket.first_offset;
                    match ticket.await {
                        Ok(()) => {
                            acknowledged.push(offset);
                            next_sequence += 1;
                        }
                        Err(StorageError::Full { .. }) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                assert_eq!(log.next_offset(), log.log_end_offset());
            }
            assert_eq!(log.offline_reason(), None);
            let offsets: Vec<i64> = records_from(&core, &log, 0)
                .await
                .iter()
                .map(|record| record.0)
                .collect();
            assert_eq!(
                offsets, acknowledged,
                "readable while full, without gap or duplicate"
            );
            std::fs::remove_file(&ballast).unwrap();
            let bytes = batch_of(&[(now, b"again")], Compression::None, (7, 0, next_sequence));
            let ticket = log.append(&[bytes], 0, AppendOrigin::Client).unwrap();
            assert_eq!(ticket.first_offset, log.log_end_offset());
            acknowledged.push(ticket.first_offset);
            next_sequence += 1;
            ticket.await.unwrap();
        }
        // As a kill leaves it: nothing of the refused batches comes back.
        let (after, _) = open(
            &storage,
            &path,
            config.clone(),
            Shutdown::Unclean { recovery_point: 0 },
        )
        .await;
        assert_eq!(after.log_end_offset(), log.log_end_offset());
        drop(after);
        log.close().await.unwrap();
        let (log, report) = open(&storage, &path, config, Shutdown::Clean).await;
        assert_eq!(report, storage::RecoveryReport::default());
        assert_eq!(records_from(&core, &log, 0).await.len(), acknowledged.len());
    });
}
