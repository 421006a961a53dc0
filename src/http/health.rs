//! Whether the broker serves, and how far its start has come.

use std::rc::Rc;

use super::Answer;
use crate::shard::{Shard, how_far_the_start_is};

pub(super) async fn readiness(shard: &Rc<Shard>) -> Answer {
    if shard.start.is_ready() {
        return Answer::text(200, "ready\n");
    }
    let told = how_far_the_start_is(shard).await;
    Answer::text(503, format!("starting: {told}\n"))
}
