//! A world with a broker, which many inputs play against, one after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use protocol::ApiKey;
use shards::signals::Signal;
use shards::sim::{NetworkFaults, NodeId, World};
use shards::{Core, RuntimeOptions};

use crate::broker::Broker;
use crate::choices::Choices;
use crate::generate::Schema;
use crate::link::Link;
use crate::play::Players;
use crate::witness::{self, Witness};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What one input may take beside the broker itself: far more than most take, far less than its budgets.
const MEMORY_MAX: usize = 8 << 20;
/// A broker whose inputs have left so much behind, on its disk too, is given up for a new one.
const LEFT_MAX: usize = 192 << 20;
/// No input takes this long, in the time of the simulation.
const LIMIT: Duration = Duration::from_secs(3600);
/// A start takes no longer.
const START: Duration = Duration::from_secs(20);
const CORES: usize = 2;
const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.num.partitions", "2"),
    ("num.partitions", "2"),
    ("auto.create.topics.enable", "true"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "1"),
    // The simulated disk lies in memory, and a journal is written from end to end when it is made.
    ("ringmain.journal.bytes", "262144"),
];

/// What some inputs came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub inputs: usize,
    pub requests: u64,
    /// Those of the API in focus.
    pub focused: u64,
    pub answers: u64,
    /// The most that one input took.
    pub memory: usize,
}

struct Arena {
    world: World,
    broker: Broker,
    client: NodeId,
}

/// Plays inputs against one broker until all are played or it has grown too large, then stops the broker and starts it
/// once more. Three of four requests are of the API in focus.
pub fn play(schema: &Schema, focus: ApiKey, inputs: Vec<Vec<u8>>) -> Played {
    let arena = Arena::new();
    arena.broker.boot(&arena.world);
    let (address, schema) = (arena.broker.address, schema.clone());
    let played = Rc::new(Cell::new(Played::default()));
    let tally = played.clone();
    let witness = arena.run(&played, move |core| async move {
        let (witness, known) = witness::prepare(core.clone(), address).await;
        let mut players = Players {
            schema: &schema,
            focus,
            attackers: [
                Link::open(&core, address, 0).await,
                Link::open(&core, address, 1 << 20).await,
            ],
            witness,
            known,
        };
        let clean = ALLOCATOR.current_usage();
        for input in inputs {
            ALLOCATOR.reset_peak_usage();
            let before = ALLOCATOR.current_usage();
            if before.saturating_sub(clean) > LEFT_MAX {
                break;
            }
            let one = players.session(Choices::new(&input)).await;
            let memory = ALLOCATOR.peak_usage().saturating_sub(before);
            let length = input.len();
            assert!(
                memory <= MEMORY_MAX,
                "{length} bytes of choices took {memory} bytes of memory"
            );
            let so_far = tally.get();
            tally.set(Played {
                inputs: so_far.inputs + 1,
                requests: so_far.requests + one.requests,
                focused: so_far.focused + one.focused,
                answers: so_far.answers + one.answers,
                memory: so_far.memory.max(memory),
            });
        }
        players.witness.work().await;
        players.witness
    });
    arena.restart(witness);
    played.get()
}

impl Arena {
    fn new() -> Self {
        let world = World::untraced(7);
        world.network().set_faults(NetworkFaults {
            delay: Duration::from_micros(1)..=Duration::from_micros(20),
            ..NetworkFaults::default()
        });
        let broker = Broker::new(&world, CORES, SETTINGS);
        let client = world.node(RuntimeOptions {
            cores: 1,
            ..RuntimeOptions::default()
        });
        Self {
            world,
            broker,
            client,
        }
    }

    /// Runs one task of the client's node to its end.
    fn run<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        played: &Cell<Played>,
        task: impl FnOnce(Core) -> F + 'static,
    ) -> T {
        let result = Rc::new(RefCell::new(None));
        let to = result.clone();
        let boot = self.world.boot(self.client).expect("descriptors");
        boot.run_local(vec![Box::new(move |core| {
            Box::pin(async move {
                let done = task(core).await;
                *to.borrow_mut() = Some(done);
            })
        })])
        .expect("memory");
        while self.world.is_running(self.client) {
            let before = played.get().inputs;
            let on = || played.get().inputs > before || !self.world.is_running(self.client);
            assert!(self.world.run_until(LIMIT, on), "the clients wait for ever");
            assert!(
                self.world.is_running(self.broker.node),
                "the broker has ended"
            );
        }
        result.take().expect("its task has ended")
    }

    fn restart(&self, witness: Witness) {
        let (world, broker) = (&self.world, &self.broker);
        world.signal(broker.node, Signal::Terminate);
        assert!(
            world.run_until_stopped(broker.node, LIMIT),
            "the broker does not stop"
        );
        broker.boot(world);
        world.run_for(START);
        assert!(
            world.is_running(broker.node),
            "cannot start again: {:?}",
            broker.start_failure()
        );
        let address = broker.address;
        self.run(&Cell::default(), move |core| async move {
            witness.after_a_restart(&core, address).await;
        });
    }
}
