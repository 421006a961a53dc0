//! Appends to logs: many at once, as requests bring them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use protocol::records::{BatchBuilder, Compression};
use shards::{Core, CoreMain, Runtime, RuntimeOptions};
use storage::{
    AppendOrigin, Log, LogConfig, OpenOptions, Shutdown, Storage, StorageOptions, TopicPartition,
};

/// What to append.
#[derive(Clone, Copy)]
pub struct Appends {
    pub name: &'static str,
    pub logs: i32,
    /// Bytes of the one record in each batch.
    pub bytes: usize,
    /// Appends that wait for their writes.
    pub depth: usize,
    pub way: Way,
}

/// Where an append goes before it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To its segment.
    Segment,
    /// To the journal that all logs of the core share.
    Journal,
    /// Likewise, and the disk has it for good: `flush.messages=1`.
    DurableJournal,
}

pub const APPENDS: [Appends; 8] = [
    Appends {
        name: "append 60 KiB, 1 log, 4 under way",
        logs: 1,
        bytes: 60 << 10,
        depth: 4,
        way: Way::Segment,
    },
    Appends {
        name: "append 100 bytes, 1 log, 1 under way",
        logs: 1,
        bytes: 100,
        depth: 1,
        way: Way::Segment,
    },
    Appends {
        name: "append 100 bytes, 1 log, 100 under way",
        logs: 1,
        bytes: 100,
        depth: 100,
        way: Way::Segment,
    },
    Appends {
        name: "append 100 bytes, 100 logs, 100 under way",
        logs: 100,
        bytes: 100,
        depth: 100,
        way: Way::Segment,
    },
    Appends {
        name: "journal 100 bytes, 1 log, 1 under way",
        logs: 1,
        bytes: 100,
        depth: 1,
        way: Way::Journal,
    },
    Appends {
        name: "journal 100 bytes, 100 logs, 100 under way",
        logs: 100,
        bytes: 100,
        depth: 100,
        way: Way::Journal,
    },
    Appends {
        name: "journal 100 bytes for good, 1 log, 1 under way",
        logs: 1,
        bytes: 100,
        depth: 1,
        way: Way::DurableJournal,
    },
    Appends {
        name: "journal 100 bytes for good, 100 logs, 100 under way",
        logs: 100,
        bytes: 100,
        depth: 100,
        way: Way::DurableJournal,
    },
];

/// Appends of each log before those that are timed.
const WARM_UP: u64 = 5;
/// Longest wait for the journal's file.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time for so many appends, on one core, in a folder of its own under `parent`.
pub fn time(appends: Appends, count: u64, parent: &std::path::Path) -> Result<Duration> {
    let folder = tempfile::tempdir_in(parent)?;
    let path = folder.path().to_owned();
    let (sender, receiver) = mpsc::channel();
    let runtime = Runtime::new(RuntimeOptions {
        cores: 1,
        ..RuntimeOptions::default()
    })
    .map_err(|error| anyhow!("{error}"))?;
    let main: CoreMain = Box::new(move |core| {
        Box::pin(async move {
            // Nobody is left to hear it where the receiver is gone.
            let _ = sender.send(run(&core, appends, count, path).await);
        })
    });
    runtime
        .run(vec![main])
        .map_err(|error| anyhow!("{error}"))?;
    receiver.recv().context("the core ended without a figure")?
}

async fn run(core: &Core, appends: Appends, count: u64, path: PathBuf) -> Result<Duration> {
    let storage = Storage::new(core.clone(), StorageOptions::default());
    let config = Rc::new(LogConfig {
        journal: appends.way != Way::Segment,
        flush_messages: match appends.way {
            Way::DurableJournal => 1,
            Way::Segment | Way::Journal => i64::MAX,
        },
        ..LogConfig::default()
    });
    let mut logs = Vec::new();
    for partition in 0..appends.logs {
        let options = OpenOptions {
            partition: TopicPartition::new("bench", partition),
            topic_id: Some(
                "JGSrYWUcTBKJqrKYrkPzUw"
                    .parse()
                    .map_err(|error| anyhow!("{error}"))?,
            ),
            topic_id_seen: false,
            config: config.clone(),
            shutdown: Shutdown::Clean,
            log_start_offset: 0,
        };
        logs.push(
            Log::open(&storage, &path, options)
                .await
                .map_err(|error| anyhow!("{error}"))?
                .0,
        );
    }
    let mut builder = BatchBuilder::new(0).codec(Compression::None);
    builder.append(1, None, Some(&vec![7; appends.bytes]), &[]);
    let batch = builder.build_bytes().map_err(|error| anyhow!("{error}"))?;
    // The journal makes its file when it is first wanted; until then appends go to their segments.
    let written = |storage: &Storage| storage.counters().journal_writes;
    let given_up = Instant::now() + PATIENCE;
    while appends.way != Way::Segment && written(&storage) == 0 {
        ensure!(Instant::now() < given_up, "no journal could be made");
        pump(&logs, &batch, 1, 1).await?;
    }
    // A log's first appends make its files, and room in them.
    pump(&logs, &batch, WARM_UP * logs.len() as u64, appends.depth).await?;
    let (begin, before) = (Instant::now(), written(&storage));
    pump(&logs, &batch, count, appends.depth).await?;
    let took = begin.elapsed();
    let journaled = written(&storage) > before;
    ensure!(
        journaled == (appends.way != Way::Segment),
        "{}: the journal was used, or not, against what is measured",
        appends.name
    );
    Ok(took)
}

async fn pump(logs: &[Log], batch: &Bytes, count: u64, depth: usize) -> Result<()> {
    let mut tickets = VecDeque::new();
    for number in 0..count {
        if tickets.len() == depth {
            let oldest: Option<storage::AppendTicket> = tickets.pop_front();
            if let Some(oldest) = oldest {
                oldest.await.map_err(|error| anyhow!("{error}"))?;
            }
        }
        let log = &logs[number as usize % logs.len()];
        let ticket = log.append(std::slice::from_ref(batch), 0, AppendOrigin::Client);
        tickets.push_back(ticket.map_err(|error| anyhow!("{error}"))?);
    }
    for ticket in tickets {
        ticket.await.map_err(|error| anyhow!("{error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_are_timed() {
        for appends in APPENDS {
            let took = time(appends, 20, &std::env::temp_dir()).expect("a figure");
            assert!(took > Duration::ZERO, "{}", appends.name);
        }
    }
}
