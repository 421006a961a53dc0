//! Accepting: on the listeners of the configuration from the start, and later on those that the dynamic setting
//! `listeners` names (KIP-226). As in Kafka, one that comes later is not advertised, and one that stays keeps its address.

use std::collections::BTreeSet;
use std::rc::Rc;

use protocol::ListenerKind;
use shards::io::BoundListener;
use shards::{BackendKind, TaskClass};
use tracing::{error, info};

use super::ServeError;
use super::listeners::{Bound, bind_endpoint};
use crate::config::{BrokerConfig, Endpoint};
use crate::network;
use crate::shard::{OpenListener, Shard, Stopping};

/// Begins to accept on every listener that is bound already.
pub(super) fn open(shard: &Rc<Shard>, listeners: Vec<Bound>) -> Result<(), ServeError> {
    for bound in listeners {
        let opened = match bound.kind {
            ListenerKind::Broker => {
                let name = shard.listener_name(bound.index);
                shard.open_listeners.add(name, bound.index)
            }
            ListenerKind::Controller => OpenListener {
                index: bound.index,
                closing: Rc::new(Stopping::default()),
            },
        };
        accept(shard, bound.socket, &opened, bound.kind)?;
    }
    Ok(())
}

fn accept(
    shard: &Rc<Shard>,
    socket: BoundListener,
    opened: &OpenListener,
    kind: ListenerKind,
) -> Result<(), ServeError> {
    let address = socket.local_addr();
    let listener = socket
        .attach(&shard.core)
        .map_err(|source| ServeError::Listener {
            endpoint: address.to_string(),
            source,
        })?;
    let accept = network::accept(shard.clone(), listener, opened.clone(), kind);
    drop(shard.core.spawn(TaskClass::Network, "accept", accept));
    Ok(())
}

/// Opens and closes listeners so that those of `config` are open. Nothing happens before the broker serves.
pub(super) fn follow(shard: &Rc<Shard>, config: &BrokerConfig, backend: BackendKind) {
    let real = matches!(backend, BackendKind::Ring | BackendKind::Epoll);
    if shard.open_listeners.is_empty() || !real {
        return;
    }
    let names: BTreeSet<&str> = config.listeners.iter().map(|it| it.name.as_str()).collect();
    for (name, gone) in shard
        .open_listeners
        .take_others(|name| names.contains(name))
    {
        info!(listener = %name, "closing a listener: the setting `listeners` no longer names it");
        gone.closing.raise();
        close_connections(shard, gone.index);
    }
    for endpoint in &config.listeners {
        if shard.open_listeners.has(&endpoint.name) {
            continue;
        }
        match open_later(shard, endpoint) {
            Ok(()) => info!(%endpoint, "a listener was opened"),
            Err(problem) => {
                error!(%problem, "a listener of the setting `listeners` cannot be opened")
            }
        }
    }
}

fn open_later(shard: &Rc<Shard>, endpoint: &Endpoint) -> Result<(), ServeError> {
    let sockets = bind_endpoint(endpoint, BoundListener::bind);
    let sockets = sockets.map_err(|source| ServeError::Listener {
        endpoint: endpoint.to_string(),
        source,
    })?;
    let mut from_start = shard.config.listeners.iter();
    let opened = match from_start.position(|it| it.name == endpoint.name) {
        Some(index) => shard.open_listeners.add(&endpoint.name, index),
        None => shard.open_listeners.add_later(&endpoint.name),
    };
    for socket in sockets {
        accept(shard, socket, &opened, ListenerKind::Broker)?;
    }
    Ok(())
}

/// Ends what came by a listener that is gone.
fn close_connections(shard: &Rc<Shard>, index: usize) {
    for core in shard.cores() {
        let close = move |shard: &Rc<Shard>| {
            shard.connections.for_each(|stream, caller| {
                if caller.kind == ListenerKind::Broker && caller.listener == index {
                    stream.shutdown();
                }
            });
            std::future::ready(())
        };
        shard.mesh().post(core, TaskClass::Network, close);
    }
}
