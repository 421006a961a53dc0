//! Whether the broker serves, and how far its start has come.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use shards::TaskClass;

use super::Answer;
use crate::shard::Shard;

pub(super) async fn readiness(shard: &Rc<Shard>) -> Answer {
    if shard.start.is_ready() {
        return Answer::text(200, "ready\n");
    }
    let Some(began) = shard.start.began() else {
        return Answer::text(503, "starting: the metadata is read\n");
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
    let of = shard.start.partitions();
    Answer::text(503, progress(opened, of, checked, so_far))
}

/// What a person who waits wants to know.
fn progress(opened: usize, of: usize, checked: u64, so_far: Duration) -> String {
    let mut text = format!("starting: {opened} of {of} partitions are open");
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
    text + "\n"
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
            "starting: 0 of 100 partitions are open; 1 s so far\n"
        );
        assert_eq!(
            told(25, 100, 5 << 20, 10),
            "starting: 25 of 100 partitions are open, 5 MiB checked after an unclean stop; 10 s so far, about 30 s to go\n"
        );
    }
}
