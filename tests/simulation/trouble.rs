//! Faults, one after the other or several at a time, chosen by the seed.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use shards::CoreId;
use shards::fault::FileOperation;
use shards::signals::Signal;
use shards::sim::{DiskFaults, NetworkFaults, NodeId, Random, World};
use shards::time::Instant;

use crate::broker::Broker;
use crate::stage::Stage;

const EIO: i32 = 5;
/// A disk that is not full.
const CAPACITY: u64 = 1 << 30;
/// Record timestamps may be an hour ahead of the broker's clock.
const CLOCK_MS: i64 = 50 * 60 * 1000;

/// Ends one fault.
type End<'a> = Box<dyn FnOnce(&Trouble<'a>) + 'a>;

pub struct Trouble<'a> {
    world: &'a World,
    stage: &'a Stage,
    broker: &'a Broker,
    clients: &'a [NodeId],
    random: Random,
    /// What ends when.
    ends: RefCell<Vec<(Instant, End<'a>)>>,
    clock_ms: Cell<i64>,
    /// The broker is meant to be down.
    pub down: Cell<bool>,
    /// The disk said that it failed: partitions may be offline until the next start.
    pub disk_failed: Cell<bool>,
    /// It fails now.
    disk_fails: Cell<bool>,
}

impl<'a> Trouble<'a> {
    pub fn new(
        world: &'a World,
        stage: &'a Stage,
        broker: &'a Broker,
        clients: &'a [NodeId],
    ) -> Self {
        Self {
            world,
            stage,
            broker,
            clients,
            random: Random::new(stage.scenario.seed, 10_001),
            ends: RefCell::default(),
            clock_ms: Cell::new(0),
            down: Cell::new(false),
            disk_failed: Cell::new(false),
            disk_fails: Cell::new(false),
        }
    }

    /// How long until the next fault.
    pub fn pause(&self) -> Duration {
        self.random
            .span(&(Duration::from_millis(20)..=Duration::from_millis(700)))
    }

    /// Ends what is due.
    pub fn end_due(&self) {
        let now = self.world.now();
        let mut ends = self.ends.borrow_mut();
        let due = ends
            .extract_if(.., |(at, _)| *at <= now)
            .collect::<Vec<_>>();
        drop(ends);
        for (_, end) in due {
            end(self);
        }
    }

    /// Ends everything; the broker runs after this, with an ordinary clock, network and disk.
    pub fn end_all(&self) {
        let ends = std::mem::take(&mut *self.ends.borrow_mut());
        for (_, end) in ends {
            end(self);
        }
        self.world.network().heal();
        self.set_clock(0);
        if self.disk_failed.get() && !self.down.get() {
            self.end_process(false);
        }
        self.start_broker();
    }

    /// The process is gone by itself, as it may be when its disk failed: somebody starts it again.
    pub fn revive(&self) {
        self.down.set(true);
        self.stage.model.broker_ended();
        self.for_a_while(1000, |trouble| trouble.start_broker());
    }

    pub fn start_broker(&self) {
        if self.down.replace(false) {
            self.broker.boot(self.world);
        }
    }

    fn for_a_while(&self, most_ms: u64, end: impl FnOnce(&Trouble<'a>) + 'a) {
        let span = Duration::from_millis(1 + self.random.below(most_ms));
        let at = self.world.now() + span;
        self.ends.borrow_mut().push((at, Box::new(end)));
    }

    fn some_client(&self) -> NodeId {
        self.clients[self.random.index(self.clients.len())]
    }

    /// Begins one fault.
    pub fn begin(&self) {
        let faults = self.stage.scenario.faults;
        let kind = self.random.below(14);
        tracing::info!(kind, at = ?self.world.now(), "trouble");
        match kind {
            0 | 1 => self.kill_broker(),
            2 if faults.power => self.cut_power(),
            3 => self.stop_broker(),
            4 | 5 => self.cut_network(),
            6 => self
                .world
                .network()
                .reset(self.some_client(), self.broker.node),
            7 => self
                .world
                .network()
                .lose_connections(self.some_client(), self.broker.node),
            8 if faults.slowness => self.slow_network(),
            9 if faults.slowness => self.stall(),
            10 if faults.slowness => self.slow_disk(),
            11 | 12 if faults.disk_errors => self.fail_disk(),
            13 if faults.clock => {
                let at = self.random.below(2 * CLOCK_MS.unsigned_abs()).cast_signed() - CLOCK_MS;
                self.set_clock(at);
            }
            _ => {}
        }
    }

    fn kill_broker(&self) {
        if !self.down.get() {
            self.end_process(false);
            self.for_a_while(1500, |trouble| trouble.start_broker());
        }
    }

    fn cut_power(&self) {
        if !self.down.get() {
            self.end_process(true);
            self.for_a_while(1500, |trouble| trouble.start_broker());
        }
    }

    fn end_process(&self, with_its_power: bool) {
        self.down.set(true);
        self.disk_failed.set(self.disk_fails.get());
        if with_its_power {
            self.world.crash(self.broker.node);
            if !self.stage.scenario.flush_each {
                self.stage.model.lose_unsynced();
            }
        } else {
            self.world.kill(self.broker.node);
        }
        self.stage.model.broker_ended();
    }

    /// An orderly stop; it is waited for elsewhere, and cut short by a kill.
    fn stop_broker(&self) {
        if self.down.replace(true) {
            return;
        }
        self.world.signal(self.broker.node, Signal::Terminate);
        self.for_a_while(8000, |trouble| {
            if trouble.world.is_running(trouble.broker.node) {
                trouble.end_process(false);
            }
            trouble.stage.model.broker_ended();
            trouble.start_broker();
        });
    }

    fn cut_network(&self) {
        let network = self.world.network();
        let (client, broker) = (self.some_client(), self.broker.node);
        match self.random.below(3) {
            0 => network.partition(&[client], &[broker]),
            1 => network.block(client, broker),
            _ => network.block(broker, client),
        }
        self.for_a_while(4000, |trouble| trouble.world.network().heal());
    }

    fn slow_network(&self) {
        self.world.network().set_faults(NetworkFaults {
            slow_per_million: 100_000,
            reset_per_million: 2_000,
            delay: Duration::from_micros(100)..=Duration::from_millis(20),
            ..NetworkFaults::default()
        });
        self.for_a_while(3000, |trouble| {
            trouble.world.network().set_faults(NetworkFaults::default())
        });
    }

    fn stall(&self) {
        let span = Duration::from_millis(self.random.below(1500));
        if self.random.chance(500_000) {
            let core = self.random.index(self.stage.scenario.cores);
            let core = CoreId(u16::try_from(core).expect("few cores"));
            self.world.stall(self.broker.node, core, span);
        } else {
            self.world.stall(self.some_client(), CoreId(0), span * 3);
        }
    }

    fn slow_disk(&self) {
        let disk = self.world.disk(self.broker.node);
        if self.random.chance(300_000) {
            disk.stall_for(Duration::from_millis(self.random.below(3000)));
            return;
        }
        disk.set_faults(DiskFaults {
            slow_per_million: 100_000,
            slow_time: Duration::from_millis(300),
            write_time: Duration::from_micros(100)..=Duration::from_millis(20),
            short_per_million: 200_000,
            ..DiskFaults::default()
        });
        self.for_a_while(3000, |trouble| {
            trouble
                .world
                .disk(trouble.broker.node)
                .set_faults(DiskFaults::default());
        });
    }

    fn fail_disk(&self) {
        let disk = self.world.disk(self.broker.node);
        self.disk_failed.set(true);
        self.disk_fails.set(true);
        let kinds = [
            FileOperation::Write,
            FileOperation::Sync,
            FileOperation::Read,
        ];
        match self.random.below(4) {
            0 => disk.set_capacity(0),
            1 => disk.set_faults(DiskFaults {
                write_error_per_million: 10_000,
                sync_error_per_million: 10_000,
                read_error_per_million: 10_000,
                ..DiskFaults::default()
            }),
            2 => disk.fail(
                kinds[self.random.index(3)],
                Path::new("/data/stays-0-0"),
                EIO,
            ),
            _ => disk.fail(kinds[self.random.index(3)], Path::new("/data"), EIO),
        }
        self.for_a_while(2000, |trouble| {
            let disk = trouble.world.disk(trouble.broker.node);
            disk.mend();
            disk.set_capacity(CAPACITY);
            disk.set_faults(DiskFaults::default());
            trouble.disk_fails.set(false);
        });
    }

    fn set_clock(&self, at_ms: i64) {
        let by = at_ms - self.clock_ms.replace(at_ms);
        self.world.jump_wall_clock(self.broker.node, by);
    }
}
