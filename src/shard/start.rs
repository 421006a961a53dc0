//! How far the start of the broker has come, for those who ask before it serves.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use shards::TaskClass;
use shards::time::Instant;

use super::Shard;

/// Kept on the core that directs the start.
#[derive(Default)]
pub struct Start {
    began: Cell<Option<Instant>>,
    partitions: Cell<usize>,
    ready: Cell<bool>,
}

impl Start {
    /// So many partitions are to be opened, from now on.
    pub fn expect(&self, partitions: usize, now: Instant) {
        self.began.set(Some(now));
        self.partitions.set(partitions);
    }

    /// How many are to be opened, 0 before that is known.
    pub fn partitions(&self) -> usize {
        self.partitions.get()
    }

    /// When opening them began; none before.
    pub fn began(&self) -> Option<Instant> {
        self.began.get()
    }

    /// Clients are accepted.
    pub fn done(&self) {
        self.ready.set(true);
    }

    /// Whether clients are accepted.
    pub fn is_ready(&self) -> bool {
        self.ready.get()
    }
}

/// In words, before it serves.
pub async fn how_far_the_start_is(shard: &Rc<Shard>) -> String {
    let Some(began) = shard.start.began() else {
        return "the log directories and the metadata are read".to_owned();
    };
    let asked = shard.cores().map(|core| {
        let opened = |shard: &Rc<Shard>| {
            let checked = shard.storage.counters().recovered_bytes;
            std::future::ready((shard.replicas.len(), checked))
        };
        shard.mesh().call(core, TaskClass::Network, opened)
    });
    let cores = join_all(asked).await;
    let opened = cores.iter().map(|(opened, _)| opened).sum();
    let checked = cores.iter().map(|(_, checked)| checked).sum();
    let so_far = shard.core.now() - began;
    progress(opened, shard.start.partitions(), checked, so_far)
}

/// What a person who waits wants to know.
fn progress(opened: usize, of: usize, checked: u64, so_far: Duration) -> String {
    let mut text = format!("{opened} of {of} partitions are open");
    if checked > 0 {
        let mib = checked.div_ceil(1 << 20);
        text += &format!(", {mib} MiB checked after an unclean stop");
    }
    let seconds = so_far.as_secs_f64();
    text += &format!("; {seconds:.0} s so far");
    if opened > 0 && opened < of {
        // As if all were alike.
        let left = seconds * (of - opened) as f64 / opened as f64;
        text += &format!(", about {left:.0} s to go");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_words() {
        let told = |opened, of, checked, seconds| {
            progress(opened, of, checked, Duration::from_secs(seconds))
        };
        assert_eq!(
            told(0, 100, 0, 1),
            "0 of 100 partitions are open; 1 s so far"
        );
        assert_eq!(
            told(25, 100, 5 << 20, 10),
            "25 of 100 partitions are open, 5 MiB checked after an unclean stop; 10 s so far, about 30 s to go"
        );
    }
}
