//! Whether the broker serves, and how far its start has come.

use std::rc::Rc;

use futures_util::future::join_all;
use shards::TaskClass;

use super::Answer;
use crate::shard::Shard;

pub(super) async fn readiness(shard: &Rc<Shard>) -> Answer {
    if shard.start.is_ready() {
        return Answer::text(200, "ready\n");
    }
    let asked = shard.cores().map(|core| {
        let opened = |shard: &Rc<Shard>| std::future::ready(shard.replicas.len());
        shard.mesh().call(core, TaskClass::Network, opened)
    });
    let opened: usize = join_all(asked).await.into_iter().sum();
    let of = shard.start.partitions();
    Answer::text(
        503,
        format!("starting: {opened} of {of} partitions are open\n"),
    )
}
