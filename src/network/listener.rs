//! Accepting connections and giving each to the core with the fewest.
//!
//! A listener is bound once, without SO_REUSEPORT: a second broker on the port must fail, and
//! hashing would be lumpy for a few heavy connections.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use protocol::ListenerKind;
use shards::TaskClass;
use shards::io::{AcceptedSocket, TcpListener};
use tracing::{debug, info, warn};

use super::connection;
use crate::shard::{Caller, OpenListener, Park, Shard};

/// How long accepting rests after the system refused a connection (no descriptors, no memory).
const REST_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Accepts until the broker stops or closes the listener; while there are as many connections as there may be, nobody.
pub async fn accept(
    shard: Rc<Shard>,
    listener: TcpListener,
    opened: OpenListener,
    kind: ListenerKind,
) {
    let index = opened.index;
    loop {
        let next = std::pin::pin!(async {
            if kind == ListenerKind::Broker {
                let max = || shard.view().config.network.connections.in_all;
                if shard.door.is_full(max()) {
                    let _waiting = shard.metrics.parks.enter(Park::Connections);
                    shard.door.room(max).await;
                }
            }
            listener.accept().await
        });
        let stops = std::pin::pin!(shard.stopping.wait());
        let closes = std::pin::pin!(opened.closing.wait());
        let stop = select(stops, closes);
        match select(next, stop).await {
            Either::Right(_) => return,
            Either::Left((Ok(socket), _)) => hand_over(&shard, socket, index, kind),
            Either::Left((Err(error), _)) => {
                warn!(listener = %listener.local_addr(), %error, "cannot accept a connection");
                shard.core.sleep(REST_AFTER_FAILURE).await;
            }
        }
    }
}

fn hand_over(shard: &Rc<Shard>, socket: AcceptedSocket, index: usize, kind: ListenerKind) {
    let home = shard.core.id();
    let view = shard.view();
    let limits = &view.config.network.connections;
    let peer = socket.peer_addr();
    let Some(place) = shard.door.enter(peer.ip(), kind, limits) else {
        shard.metrics.connections_refused.add(1);
        if let Some(before) = shard.metrics.closing_lines.tell(shard.core.now()) {
            info!(
                %peer, lines_kept_back = before,
                "closing a connection: its address has as many as it may have (max.connections.per.ip)"
            );
        }
        return;
    };
    shard
        .mesh()
        .post(place.core, TaskClass::Network, move |shard: &Rc<Shard>| {
            let shard = shard.clone();
            async move {
                adopt(&shard, socket, index, kind).await;
                shard
                    .mesh()
                    .post(home, TaskClass::Network, move |shard: &Rc<Shard>| {
                        shard.door.leave(place);
                        std::future::ready(())
                    });
            }
        });
}

/// Serves a connection on this core until it ends.
async fn adopt(shard: &Rc<Shard>, socket: AcceptedSocket, index: usize, kind: ListenerKind) {
    let peer = socket.peer_addr();
    let stream = match socket.attach(&shard.core) {
        Ok(stream) => stream,
        Err(error) => {
            debug!(%peer, %error, "a connection ended before it was served");
            return;
        }
    };
    if let Some(bytes) = shard.view().config.network.send_buffer_bytes
        && let Err(error) = stream.set_send_buffer(bytes as usize)
    {
        debug!(%peer, %error, "a connection keeps the send buffer that the system gave it");
    }
    shard.metrics.connections_accepted.add(1);
    let caller = Rc::new(Caller::new(peer, index, kind, shard.core.now()));
    let number = shard.connections.add(stream.clone(), caller.clone());
    connection::serve(shard.clone(), stream, caller).await;
    shard.connections.remove(number);
}
