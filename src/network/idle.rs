//! Connections that say nothing for too long are closed.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tracing::info;

use crate::shard::Shard;

/// Closes connections that were silent for `connections.max.idle.ms`, until the broker stops.
pub async fn close_idle(shard: Rc<Shard>) {
    let Some(limit) = shard.config.network.idle_timeout else {
        return;
    };
    let interval = (limit / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
    loop {
        let tick = std::pin::pin!(shard.core.sleep(interval));
        let stop = std::pin::pin!(shard.stopping.wait());
        if let Either::Right(_) = select(tick, stop).await {
            return;
        }
        let now = shard.core.now();
        shard.connections.for_each(|stream, caller| {
            if caller.is_idle() && now.saturating_duration_since(caller.last_active()) > limit {
                if let Some(before) = shard.metrics.closing_lines.tell(now) {
                    info!(
                        peer = %caller.peer, lines_kept_back = before,
                        "closing a connection that was silent for too long (connections.max.idle.ms)"
                    );
                }
                shard.metrics.connections_idle_closed.add(1);
                stream.shutdown();
            }
        });
    }
}
