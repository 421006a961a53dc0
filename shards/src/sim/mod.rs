//! The simulation: whole nodes, several cores each, on one thread, from one seed.
//!
//! # What is simulated
//! - **Order.** Each step picks a core that has something to do and one of its ready tasks, both by the
//!   seed. Classes and their shares have no say: any order that the real executor could show is
//!   likely enough here.
//! - **Time.** Every poll takes 0.2 to 2 microseconds and every look at the clock 0.1; when nobody has
//!   anything to do, the clock jumps to the next timer or event. The wall clock goes along, and
//!   [`World::jump_wall_clock`] moves one node's. [`World::stall`] holds up one core.
//! - **Randomness.** `Core::random_u64` is seeded. A program under simulation must not ask for other
//!   randomness: no iteration over a `HashMap` with std's hasher, no addresses, no clocks of its own.
//! - **Network** and **disk**, with what can go wrong: see [`Network`] and [`Disk`], and the models
//!   at the top of `net.rs` and `disk.rs`.
//! - **Crashes.** [`World::kill`] ends a node's process: its sockets close, its disk stays as it was.
//!   [`World::crash`] takes its power: peers hear nothing, unsynced bytes and names may be lost. After
//!   either, the node can [`World::boot`] again.
//!
//! `Core::blocking` runs inline, at no cost in time. The mesh, the executor, timers and all of `sync`
//! are the real ones.
//!
//! # The same again
//! A world made from the same seed and used in the same way does the same, to the byte of its
//! [`World::trace`].

mod connection;
mod content;
mod disk;
mod driver;
mod files;
mod names;
mod net;
mod one_thread;
mod random;
mod shared;
mod socket;
mod tree;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Driver;
use crate::core::{CoreId, CoreParts};
use crate::executor::{CoreShared, TaskClass};
use crate::io::BoundListener;
use crate::mesh::{self, Endpoint};
use crate::metrics::Counters;
use crate::signals::Signal;
use crate::sys::Pool;
use crate::time::Instant;
use crate::{Core, CoreMain, RuntimeOptions, StartError};

pub use disk::{Disk, DiskFaults, PowerLoss};
pub use net::{Network, NetworkFaults, WINDOW};
pub use random::Random;

pub(crate) use driver::SimDriver;
pub(crate) use files::SimFile;
pub(crate) use names::SimLock;
pub(crate) use one_thread::OneThread;
pub(crate) use socket::{SimEnd, SimListener, SimSocket};

use driver::Machine;
use net::Net;
use shared::{Kept, Shared};

/// A node of the world, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// The first task of a simulated core. Like [`CoreMain`], but it may hold `Rc`s of the test.
pub type LocalMain = Box<dyn FnOnce(Core) -> Pin<Box<dyn Future<Output = ()>>>>;

/// A task's poll takes this long, in nanoseconds, at least and at most.
const POLL: (u64, u64) = (200, 2000);
/// Polls of one core before the seed picks a core again.
const POLLS_IN_A_ROW: u64 = 4;

/// All there is: nodes, network, disks, and the clock.
pub struct World {
    seed: u64,
    shared: Rc<Shared>,
    scheduler: Random,
    nodes: RefCell<Vec<Node>>,
}

struct Node {
    address: IpAddr,
    options: RuntimeOptions,
    machine: Rc<Machine>,
    /// How often it was booted: each time with other random numbers.
    boots: u64,
    running: Option<Running>,
}

struct Running {
    cores: Vec<SimCore>,
    mains_left: Rc<Cell<usize>>,
}

struct SimCore {
    core: Core,
    /// It does nothing before this instant (nanoseconds).
    stalled_until: Cell<u64>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::build(seed, Kept::Digest)
    }

    /// One that keeps the text of its trace.
    pub fn traced(seed: u64) -> Self {
        Self::build(seed, Kept::Text)
    }

    /// One that keeps nothing of its trace: two runs cannot be compared, and each takes half the time.
    pub fn untraced(seed: u64) -> Self {
        Self::build(seed, Kept::Nothing)
    }

    fn build(seed: u64, kept: Kept) -> Self {
        Self {
            seed,
            shared: Shared::new(Net::new(seed), kept),
            scheduler: Random::new(seed, 1),
            nodes: RefCell::default(),
        }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.shared.nanos())
    }

    /// The lines of the trace; empty unless the world is [`World::traced`].
    pub fn trace(&self) -> String {
        self.shared.trace.text()
    }

    /// A fingerprint of everything that has happened, and the number of its lines.
    pub fn trace_digest(&self) -> (u64, u64) {
        (self.shared.trace.digest(), self.shared.trace.lines())
    }

    pub fn network(&self) -> Network {
        Network(Rc::clone(&self.shared))
    }

    /// Adds a node: a machine with power and an empty disk, on which nothing runs yet. Of the
    /// options, those about threads, pinning and the backend mean nothing here.
    pub fn node(&self, options: RuntimeOptions) -> NodeId {
        let mut nodes = self.nodes.borrow_mut();
        let id = NodeId(u16::try_from(nodes.len()).expect("fewer than 65535 nodes"));
        let disk = Disk::new(&self.shared, id, self.seed);
        nodes.push(Node {
            address: self.shared.net.add_host(),
            options,
            machine: Machine::new(id, Rc::clone(&self.shared), disk),
            boots: 0,
            running: None,
        });
        id
    }

    /// The address by which other nodes reach it.
    pub fn address(&self, node: NodeId) -> IpAddr {
        self.nodes.borrow()[node.index()].address
    }

    pub fn disk(&self, node: NodeId) -> Disk {
        self.machine(node).disk.clone()
    }

    fn machine(&self, node: NodeId) -> Rc<Machine> {
        Rc::clone(&self.nodes.borrow()[node.index()].machine)
    }

    /// Gives the node power if it has none, and prepares its next process.
    ///
    /// # Errors
    /// When the real machine has no descriptors left for the cores' events.
    ///
    /// # Panics
    /// When the node still runs.
    pub fn boot(&self, node: NodeId) -> Result<Boot<'_>, StartError> {
        assert!(!self.is_running(node), "{node} runs already");
        self.shared.net.power_on(node);
        self.shared.note(format_args!("{node} boots"));
        let cores = self.nodes.borrow()[node.index()].options.cores;
        let cores = (0..cores)
            .map(|_| CoreShared::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| StartError::new("cannot make a wake-up event", Some(error)))?;
        Ok(Boot {
            world: self,
            node,
            cores,
        })
    }

    pub fn is_running(&self, node: NodeId) -> bool {
        self.nodes.borrow()[node.index()].running.is_some()
    }

    /// What [`crate::signals::termination`] waits for on this node.
    pub fn signal(&self, node: NodeId, signal: Signal) {
        self.shared.note(format_args!("{node} {signal:?}"));
        self.machine(node).send_signal(signal);
    }

    /// Ends the node's process as SIGKILL does.
    pub fn kill(&self, node: NodeId) {
        self.shared.note(format_args!("{node} killed"));
        self.stop(node);
    }

    /// Takes the node's power, see the module.
    pub fn crash(&self, node: NodeId) {
        self.shared.note(format_args!("{node} crashes"));
        // First what destructors of the tasks must not reach any more.
        self.shared.net.power_off(node);
        self.disk(node).power_off();
        self.stop(node);
    }

    /// Moves the node's wall clock, forwards or back.
    pub fn jump_wall_clock(&self, node: NodeId, by_ms: i64) {
        let machine = self.machine(node);
        let offset = machine.wall_clock_offset.get();
        machine.wall_clock_offset.set(offset.saturating_add(by_ms));
    }

    /// Holds up one core, as a machine does that swaps or a hypervisor that has better to do.
    pub fn stall(&self, node: NodeId, core: CoreId, span: Duration) {
        let until = (self.now() + span).as_nanos();
        if let Some(running) = &self.nodes.borrow()[node.index()].running {
            running.cores[core.index()].stalled_until.set(until);
        }
    }

    /// Drops the node's tasks and cores, if any.
    fn stop(&self, node: NodeId) {
        let running = self.nodes.borrow_mut()[node.index()].running.take();
        let Some(running) = running else { return };
        self.machine(node).forget_signals();
        for core in &running.cores {
            core.core.shut_down();
        }
        self.shared.note(format_args!("{node} stopped"));
    }
}

/// Running.
impl World {
    /// Runs until `done` says so; false when `limit` of simulated time has passed before, or
    /// nothing is left that could ever happen.
    pub fn run_until(&self, limit: Duration, mut done: impl FnMut() -> bool) -> bool {
        let deadline = (self.now() + limit).as_nanos();
        loop {
            if done() {
                return true;
            }
            if !self.step(deadline) {
                return done();
            }
        }
    }

    /// Runs for this long; the clock is at its end then even if there was nothing to do.
    pub fn run_for(&self, span: Duration) {
        let deadline = (self.now() + span).as_nanos();
        while self.step(deadline) {}
        self.shared.jump_to(deadline);
    }

    /// Runs until all mains of this node have ended (or it was killed by itself); false as for
    /// [`World::run_until`].
    pub fn run_until_stopped(&self, node: NodeId, limit: Duration) -> bool {
        self.run_until(limit, || !self.is_running(node))
    }

    /// One step of one core, or a jump of the clock; false when there is nothing to do before
    /// the deadline.
    fn step(&self, deadline: u64) -> bool {
        self.shared.run_events();
        let now = self.shared.nanos();
        if now >= deadline {
            return false;
        }
        let (ready, next) = self.look(now);
        if ready.is_empty() {
            let Some(next) = next.filter(|next| *next <= deadline) else {
                return false;
            };
            self.shared.jump_to(next);
            return true;
        }
        let (node, core) = &ready[self.scheduler.index(ready.len())];
        self.run_core(*node, core);
        self.stop_if_ended(*node);
        true
    }

    /// The cores that can go on, and when something happens if there is none.
    fn look(&self, now: u64) -> (Vec<(NodeId, Core)>, Option<u64>) {
        let mut ready = Vec::new();
        let mut next = self.shared.next_event();
        let mut at = |nanos: u64| next = Some(next.map_or(nanos, |next| next.min(nanos)));
        for node in self.nodes.borrow().iter() {
            let cores = node.running.iter().flat_map(|running| &running.cores);
            for SimCore {
                core,
                stalled_until,
            } in cores
            {
                let deadline = core.timers().next_deadline().map(Instant::as_nanos);
                let wants = if core.has_work() { Some(now) } else { deadline };
                let Some(wants) = wants else { continue };
                let when = wants.max(stalled_until.get());
                if when <= now {
                    ready.push((node.machine.node, core.clone()));
                } else {
                    at(when);
                }
            }
        }
        (ready, next)
    }

    fn run_core(&self, node: NodeId, core: &Core) {
        core.take_arrivals();
        for _ in 0..=self.scheduler.below(POLLS_IN_A_ROW) {
            self.shared
                .pass(POLL.0 + self.scheduler.below(POLL.1 - POLL.0));
            let ran = core.run_picked(|ready| self.scheduler.index(ready));
            let Some(ran) = ran else { break };
            self.shared.note(format_args!(
                "{node} core {} ran {:?} {}",
                core.id(),
                ran.class,
                ran.name
            ));
        }
        core.flush_sources();
    }

    fn stop_if_ended(&self, node: NodeId) {
        let ended = {
            let nodes = self.nodes.borrow();
            let running = nodes[node.index()].running.as_ref();
            running.is_some_and(|running| running.mains_left.get() == 0)
        };
        if ended {
            self.stop(node);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let nodes = self.nodes.borrow().len();
        for index in 0..nodes {
            if let Ok(index) = u16::try_from(index) {
                self.stop(NodeId(index));
            }
        }
    }
}

/// A process about to start on a node.
pub struct Boot<'a> {
    world: &'a World,
    node: NodeId,
    cores: Vec<Arc<CoreShared>>,
}

impl Boot<'_> {
    /// As [`mesh::endpoints`].
    pub fn endpoints<S: 'static>(&self, lane_capacity: usize) -> Vec<Endpoint<S>> {
        mesh::endpoints_of(&self.cores, lane_capacity)
    }

    /// As [`BoundListener::bind`], on this node.
    ///
    /// # Errors
    /// When the port is taken, or the address is another node's.
    pub fn listen(&self, address: SocketAddr) -> io::Result<BoundListener> {
        SimListener::bind(&self.world.shared, self.node, address).map(BoundListener::simulated)
    }

    /// Starts one main per core. Nothing runs before the world does; when all mains have ended,
    /// the process has.
    ///
    /// # Errors
    /// When the real machine has no memory for the receive pools.
    ///
    /// # Panics
    /// When the number of mains is not that of the cores.
    pub fn run(self, mains: Vec<CoreMain>) -> Result<(), StartError> {
        self.run_local(mains.into_iter().map(|main| main as LocalMain).collect())
    }

    /// [`Boot::run`] with mains that need not be `Send`.
    ///
    /// # Errors
    /// As for [`Boot::run`].
    ///
    /// # Panics
    /// As for [`Boot::run`].
    pub fn run_local(self, mains: Vec<LocalMain>) -> Result<(), StartError> {
        assert_eq!(mains.len(), self.cores.len(), "one main per core");
        let mut nodes = self.world.nodes.borrow_mut();
        let node = &mut nodes[self.node.index()];
        node.boots += 1;
        let mains_left = Rc::new(Cell::new(mains.len()));
        let mut cores = Vec::new();
        for (index, shared) in self.cores.iter().enumerate() {
            let core = build_core(self.world.seed, node, index, shared)
                .map_err(|error| StartError::new("cannot set up a simulated core", Some(error)))?;
            cores.push(SimCore {
                core,
                stalled_until: Cell::new(0),
            });
        }
        let handles: Vec<Core> = cores.iter().map(|core| core.core.clone()).collect();
        node.running = Some(Running {
            cores,
            mains_left: Rc::clone(&mains_left),
        });
        drop(nodes); // a main may look at the world
        for (core, main) in handles.into_iter().zip(mains) {
            let main = main(core.clone());
            let mains_left = Rc::clone(&mains_left);
            drop(core.spawn(TaskClass::Network, "main", async move {
                main.await;
                mains_left.set(mains_left.get() - 1);
            }));
        }
        Ok(())
    }
}

fn build_core(seed: u64, node: &Node, index: usize, shared: &Arc<CoreShared>) -> io::Result<Core> {
    let options = &node.options;
    let counters = Rc::new(Counters::default());
    let driver = SimDriver::new(
        Rc::clone(&node.machine),
        options.recv_pool_bytes_per_core,
        Rc::clone(&counters),
    )?;
    shared.adopt();
    let stream = (u64::from(node.machine.node.0) << 32) | (node.boots << 16) | index as u64;
    let parts = CoreParts {
        id: CoreId(u16::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?),
        core_count: options.cores,
        shared: Arc::clone(shared),
        driver: Driver::Sim(driver),
        // Nothing is ever given to it: blocking work runs inline.
        pool: Pool::new("sim-blocking", 1),
        seed: Random::new(seed, !stream).next(),
        cold_read_bytes: options.cold_read_bytes_per_core,
        stall_threshold: options.stall_threshold,
        on_stall: options.on_stall.clone(),
        file_faults: options.file_faults.clone(),
    };
    Ok(Core::new(parts, counters))
}
