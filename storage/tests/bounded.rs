//! Many logs with small appends through one journal: what they hold in memory follows from the budgets, not from what was
//! appended.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use rustix::process::{Resource, getrlimit, setrlimit};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::path::Path;
use storage::{AppendOrigin, Log, LogConfig, Shutdown, Storage, StorageOptions};
use support::*;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LOGS: usize = 2_000;
const ROUNDS: usize = 40;
const VALUE_BYTES: usize = 1_000;
const CACHE_BYTES: usize = 1 << 20;
const JOURNAL_BYTES: usize = 8 << 20;
const BLOCK: usize = 4_096;
/// Of batches: what a log has in the journal and the block before, in a buffer that grows by doubling; what readers may find; and
/// a frame with what waits for the next.
const BUDGET: usize = 2 * (JOURNAL_BYTES + LOGS * BLOCK) + CACHE_BYTES + (2 << 20);

async fn open_many(storage: &Storage, path: &Path) -> Vec<Log> {
    let config = LogConfig {
        journal: true,
        ..LogConfig::default()
    };
    let mut logs = Vec::new();
    for number in 0..LOGS {
        let options = options(&format!("t{number}"), config.clone(), Shutdown::Clean);
        logs.push(Log::open(storage, path, options).await.unwrap().0);
    }
    logs
}

async fn append_to_all(logs: &[Log]) {
    let batch = [batch(1, &[7; VALUE_BYTES])];
    let tickets: Vec<_> = logs
        .iter()
        .map(|log| log.append(&batch, 0, AppendOrigin::Client).unwrap())
        .collect();
    for ticket in tickets {
        ticket.await.unwrap();
    }
}

#[test]
fn many_logs_in_a_journal_hold_no_more_than_the_budgets_say() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let directory = TempDir::new("bounded");
    let path = directory.path();
    on_core(move |core| async move {
        let options = StorageOptions {
            cache_bytes: CACHE_BYTES,
            journal_bytes: JOURNAL_BYTES as u64,
            ..StorageOptions::default()
        };
        let storage = Storage::new(core.clone(), options);
        let logs = open_many(&storage, &path).await;
        // Their first appends make their files and the journal's, and tables that stay.
        append_to_all(&logs).await;
        append_to_all(&logs).await;
        let before = storage.counters();
        let region = Region::new(MEMORY);
        let mut most = 0;
        for _ in 0..ROUNDS {
            append_to_all(&logs).await;
            let change = region.change();
            let held = change
                .bytes_allocated
                .saturating_sub(change.bytes_deallocated);
            most = most.max(held);
        }
        let now = storage.counters();
        let appended = LOGS * ROUNDS * VALUE_BYTES;
        let journaled = (now.journal_written_bytes - before.journal_written_bytes) as usize;
        assert!(journaled > appended / 2, "{journaled} through the journal");
        assert!(now.journal_used_bytes as usize <= JOURNAL_BYTES);
        assert!(2 * BUDGET < appended);
        assert!(most < BUDGET, "{LOGS} logs hold {most} bytes");
    });
}
