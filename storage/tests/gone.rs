//! Logs that come and go beside one that stays leave no memory behind.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::path::Path;
use std::time::Duration;
use storage::{AppendOrigin, Log, LogConfig, Shutdown, Storage};
use support::*;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Recent batches of the log that stays: as many entries of the cache.
const KEPT: usize = 500;
const KEPT_BYTES: usize = 8 << 10;
const GONE: usize = 100;
/// Far less than a log takes.
const LEFT_OF_EACH: usize = 256;

async fn write(log: &Log, bytes: usize) {
    let ticket = log.append(&[batch(0, &vec![b'v'; bytes])], 1, AppendOrigin::Client);
    ticket.unwrap().await.unwrap();
}

/// A log that is written and deleted; the one that stays is written too, since an idle one gives its memory back.
async fn come_and_go(storage: &Storage, path: &Path, stays: &Log, number: usize) {
    write(stays, 1).await;
    let options = options(
        &format!("gone-{number}"),
        LogConfig::default(),
        Shutdown::Clean,
    );
    let (log, _) = Log::open(storage, path, options).await.unwrap();
    write(&log, 1).await;
    let left = log.delete().await.unwrap();
    std::fs::remove_dir_all(left).unwrap();
}

#[test]
fn logs_that_are_gone_leave_nothing_in_memory() {
    let directory = TempDir::new("gone");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (stays, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        for _ in 0..KEPT {
            write(&stays, KEPT_BYTES).await;
        }
        // What tables take once.
        for number in 0..20 {
            come_and_go(&storage, &path, &stays, number).await;
        }
        // Housekeeping looks every second at logs that were busy.
        core.sleep(Duration::from_secs(2)).await;
        let region = Region::new(MEMORY);
        for number in 0..GONE {
            come_and_go(&storage, &path, &stays, 1000 + number).await;
        }
        core.sleep(Duration::from_secs(2)).await;
        let change = region.change();
        let left = change
            .bytes_allocated
            .saturating_sub(change.bytes_deallocated);
        assert!(storage.counters().cache_bytes as usize > KEPT * KEPT_BYTES);
        assert!(left < GONE * LEFT_OF_EACH, "{GONE} logs left {left} bytes");
    });
}

/// Giving much memory back takes a core a while: in turns, and what is not back yet counts.
#[test]
fn what_a_log_kept_for_readers_is_given_back_a_little_at_a_time() {
    const WRITES: usize = 40;
    const AT_ONCE: u64 = 2 << 20;
    let directory = TempDir::new("given-back");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        for _ in 0..WRITES {
            write(&log, 1 << 20).await;
        }
        let kept = storage.counters().cache_bytes;
        assert!(kept > (WRITES as u64) << 20, "{kept}");
        let mut before = kept;
        let region = Region::new(MEMORY);
        drop(log);
        let mut turns = 0;
        loop {
            let now = storage.counters().cache_bytes;
            assert!(
                before - now <= AT_ONCE,
                "from {before} to {now} in one turn"
            );
            if now == 0 {
                break;
            }
            before = now;
            turns += 1;
            core.yield_now().await;
        }
        assert!(turns > WRITES / 3, "{turns}");
        assert!(region.change().bytes_deallocated as u64 >= kept);
    });
}
