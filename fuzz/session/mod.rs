//! Hostile clients against the whole broker, which runs in a simulated world of its own for each input.
//!
//! The input is a list of choices: which of two connections asks next, which API in which version, the value of every
//! field, whether the frame is damaged, and whether its answer is awaited before the next request. A third connection,
//! the witness, works on a topic that nobody else knows. What must hold:
//! - nothing panics, and the broker still stops cleanly and starts again;
//! - every connection gets answers to its own requests, in their order, each readable in the version that was asked;
//! - requests that the schema allows are answered, and end no connection;
//! - the witness is answered as if it were alone;
//! - memory stays below [`MEMORY_MAX`].

mod choices;
mod generate;
mod known;
mod link;
mod node;
mod play;
mod witness;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use protocol::ApiKey;
use shards::signals::Signal;
use shards::sim::World;
use shards::{Core, RuntimeOptions};

use choices::Choices;
pub use generate::Schema;
use node::Node;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What a few kilobytes of requests may take beside the broker itself: a fraction of its budgets.
const MEMORY_MAX: usize = 48 << 20;
/// Nothing takes this long, in the time of the simulation.
const LIMIT: Duration = Duration::from_secs(3600);
/// A start takes no longer.
const START: Duration = Duration::from_secs(20);

/// What an input came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub requests: u64,
    pub answers: u64,
    pub memory: usize,
    /// Bytes that are still taken when the world has ended.
    pub left: usize,
}

/// Plays one input; three of four requests are of the API in focus, if there is one.
pub fn play(schema: &Schema, data: &[u8], focus: Option<ApiKey>) -> Played {
    let before = ALLOCATOR.current_usage();
    let mut played = play_in_a_world(schema, data, focus);
    played.left = ALLOCATOR.current_usage().saturating_sub(before);
    played
}

fn play_in_a_world(schema: &Schema, data: &[u8], focus: Option<ApiKey>) -> Played {
    let world = World::new(7);
    let node = Node::new(&world);
    node.boot(&world);
    let client = world.node(RuntimeOptions {
        cores: 1,
        ..RuntimeOptions::default()
    });
    let address = node.address;
    let prepared = run(&world, client, move |core| witness::prepare(core, address));
    let (witness, known) = prepared;

    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let (input, schema_of_task) = (data.to_vec(), schema.clone());
    let (mut played, witness) = run(&world, client, move |core| async move {
        let choices = Choices::new(&input);
        play::session(
            &core,
            address,
            &schema_of_task,
            choices,
            focus,
            known,
            witness,
        )
        .await
    });
    played.memory = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(
        played.memory <= MEMORY_MAX,
        "{} bytes of choices took {} bytes of memory",
        data.len(),
        played.memory
    );
    assert!(world.is_running(node.id), "the broker has ended");
    world.signal(node.id, Signal::Terminate);
    assert!(
        world.run_until_stopped(node.id, LIMIT),
        "the broker does not stop"
    );
    if data.first().is_some_and(|first| first % 8 == 0) {
        node.boot(&world);
        world.run_for(START);
        assert!(
            world.is_running(node.id),
            "cannot start again: {:?}",
            node.start_failure()
        );
        run(&world, client, move |core| async move {
            witness.after_a_restart(&core, address).await;
        });
    }
    played
}

/// Runs one task of the client's node to its end.
fn run<T: 'static, F: Future<Output = T> + 'static>(
    world: &World,
    client: shards::sim::NodeId,
    task: impl FnOnce(Core) -> F + 'static,
) -> T {
    let result = Rc::new(RefCell::new(None));
    let to = result.clone();
    let boot = world.boot(client).expect("descriptors");
    boot.run_local(vec![Box::new(move |core| {
        Box::pin(async move {
            let done = task(core).await;
            *to.borrow_mut() = Some(done);
        })
    })])
    .expect("memory");
    assert!(
        world.run_until_stopped(client, LIMIT),
        "the clients wait for ever"
    );
    result.take().expect("its task has ended")
}
