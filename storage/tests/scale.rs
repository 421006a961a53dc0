//! Many partitions: `cargo test -p storage --release --test scale -- --ignored --nocapture` prints what 10,000 logs cost
//! in time, memory and descriptors.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement, run by hand"
)]

mod support;

use shards::Core;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use storage::{AppendOrigin, Log, LogConfig, OpenOptions, Shutdown, Storage, TopicPartition};
use support::*;

const LOGS: i32 = 10_000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

struct Clock(Core, shards::time::Instant, u64);

impl Clock {
    fn new(core: &Core) -> Clock {
        Clock(core.clone(), core.now(), resident_kib())
    }

    fn print(&mut self, what: &str) {
        let (now, memory) = (self.0.now(), resident_kib());
        println!(
            "{what}: {:?}, resident {memory} KiB ({:+}), {} descriptors",
            now.saturating_duration_since(self.1),
            memory as i64 - self.2 as i64,
            descriptors()
        );
        (self.1, self.2) = (now, memory);
    }
}

async fn open_all(
    storage: &Storage,
    path: &Path,
    config: &Rc<LogConfig>,
    how: Shutdown,
) -> Vec<Log> {
    let (sender, core) = (Rc::new(std::cell::RefCell::new(Vec::new())), storage.core());
    let mut tasks = Vec::new();
    for lane in 0..64 {
        let (storage, path, config, sender) = (
            storage.clone(),
            path.to_path_buf(),
            config.clone(),
            sender.clone(),
        );
        tasks.push(
            core.spawn(shards::TaskClass::Background, "open", async move {
                for partition in (lane..LOGS).step_by(64) {
                    let options = OpenOptions {
                        partition: TopicPartition::new("topic", partition),
                        topic_id: Some("JGSrYWUcTBKJqrKYrkPzUw".parse().unwrap()),
                        topic_id_seen: false,
                        config: config.clone(),
                        shutdown: how,
                        log_start_offset: 0,
                    };
                    let (log, _) = Log::open(&storage, &path, options).await.unwrap();
                    sender.borrow_mut().push(log);
                }
            }),
        );
    }
    for task in tasks {
        let _ = task.await;
    }
    sender.take()
}

#[test]
#[ignore = "a measurement"]
fn ten_thousand_logs() {
    let directory = TempDir::new("scale");
    let path = directory.path();
    on_core(move |core| async move {
        let options = storage::StorageOptions {
            idle_after: Duration::from_millis(100),
            ..Default::default()
        };
        let storage = Storage::new(core.clone(), options);
        let config = Rc::new(LogConfig::default());
        let mut clock = Clock::new(&core);
        let logs = open_all(&storage, &path, &config, Shutdown::Clean).await;
        clock.print("created");
        let tickets: Vec<_> = logs
            .iter()
            .map(|log| {
                log.append(&[batch(1, &[7; 100])], 0, AppendOrigin::Client)
                    .unwrap()
            })
            .collect();
        for ticket in tickets {
            ticket.await.unwrap();
        }
        clock.print("one record each");
        let mut rested = 0;
        while storage.counters().busy_logs > 0 {
            core.sleep(Duration::from_millis(100)).await;
            rested += 1;
        }
        clock.print(&format!("all at rest ({rested} looks)"));
        drop(logs);
        clock.print("dropped");
        let logs = open_all(&storage, &path, &config, Shutdown::Clean).await;
        clock.print("opened after a clean stop");
        drop(logs);
        let unclean = Shutdown::Unclean { recovery_point: 1 };
        let logs = open_all(&storage, &path, &config, unclean).await;
        clock.print("opened after a crash at rest");
        assert!(logs.iter().all(|log| log.log_end_offset() == 1));
        assert_eq!(storage.counters().busy_logs, 0, "nothing to mend");
    });
    println!("the core has ended");
}

/// Appends `count` batches with at most `depth` of them under way; answers bytes a second.
async fn pump(core: &Core, log: &Log, bytes: bytes::Bytes, count: usize, depth: usize) -> f64 {
    let began = core.now();
    let mut tickets = std::collections::VecDeque::new();
    for _ in 0..count {
        if tickets.len() == depth {
            let oldest: storage::AppendTicket = tickets.pop_front().unwrap();
            oldest.await.unwrap();
        }
        let bytes = std::slice::from_ref(&bytes);
        tickets.push_back(log.append(bytes, 0, AppendOrigin::Client).unwrap());
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    (count * bytes.len()) as f64 / core.now().saturating_duration_since(began).as_secs_f64()
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

#[test]
#[ignore = "a measurement"]
fn throughput_of_one_log() {
    let directory = TempDir::new("throughput");
    let path = directory.path();
    on_core(move |core| async move {
        let storage = storage(&core);
        let (log, _) = open(&storage, &path, LogConfig::default(), Shutdown::Clean).await;
        for (size, count, depth) in [
            (1 << 20, 1_000, 4),
            (16 << 10, 60_000, 64),
            (1_000, 200_000, 500),
            (100, 20_000, 1),
        ] {
            let (writes, cpu) = (storage.counters().writes, cpu_seconds());
            let bytes = batch(1, &vec![7; size]);
            let rate = pump(&core, &log, bytes, count, depth).await;
            let (writes, cpu) = (storage.counters().writes - writes, cpu_seconds() - cpu);
            println!(
                "{size} bytes, {depth} under way: {:.1} MB/s, {:.0} appends/s, {writes} writes, \
                 {:.2} us of CPU each",
                rate / 1e6,
                rate / size as f64,
                cpu * 1e6 / count as f64
            );
        }
        let (began, cpu) = (core.now(), cpu_seconds());
        let (mut offset, mut read) = (0, 0_u64);
        loop {
            let limits = storage::ReadLimits {
                max_bytes: 1 << 20,
                up_to_offset: i64::MAX,
                whole_first_batch: true,
            };
            let result = log.read(offset, limits).await.unwrap();
            if result.bytes == 0 {
                break;
            }
            read += u64::from(result.bytes);
            offset = result.next_offset;
        }
        println!(
            "found {:.0} MB as slices in {:?}, {:.2} s of CPU; {:?}",
            read as f64 / 1e6,
            core.now().saturating_duration_since(began),
            cpu_seconds() - cpu,
            storage.counters()
        );
    });
}
