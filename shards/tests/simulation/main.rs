//! The simulation itself: the same seed does the same, and every fault does what its model says.

mod disk;
mod meta;
mod network;
mod nodes;

use std::future::Future;
use std::time::Duration;

use shards::sim::{LocalMain, NodeId, World};
use shards::{Core, RuntimeOptions};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn options(cores: usize) -> RuntimeOptions {
    RuntimeOptions {
        cores,
        recv_pool_bytes_per_core: 512 * 1024,
        ..RuntimeOptions::default()
    }
}

fn local<F, Fut>(body: F) -> LocalMain
where
    F: FnOnce(Core) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    Box::new(move |core| Box::pin(body(core)))
}

/// Boots a node of one core with this main.
fn start<F, Fut>(world: &World, node: NodeId, body: F)
where
    F: FnOnce(Core) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let boot = world.boot(node).expect("boots");
    boot.run_local(vec![local(body)]).expect("starts");
}

/// Boots a node of one core and runs it to its end.
fn run<F, Fut>(world: &World, node: NodeId, body: F)
where
    F: FnOnce(Core) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    start(world, node, body);
    let ended = world.run_until_stopped(node, HOUR);
    assert!(ended, "seed {}: the main hangs", world.seed());
}
