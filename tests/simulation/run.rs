//! One run: a broker, its clients, trouble, then calm, and a last look at everything.

use std::rc::Rc;
use std::time::Duration;

use shards::signals::Signal;
use shards::sim::{LocalMain, NodeId, World};
use shards::{Core, RuntimeOptions};

use crate::admin;
use crate::broker::Broker;
use crate::client::Client;
use crate::grouping;
use crate::producing::{self, Kind};
use crate::reading;
use crate::scenario::Scenario;
use crate::stage::{Phase, Stage};
use crate::trouble::Trouble;

/// How long the world runs between two looks at it.
const STEP: Duration = Duration::from_millis(20);
/// Everything that was asked before has been answered or given up after this.
const SETTLE: Duration = Duration::from_secs(5);
/// Work must come to its end in this time once nothing fails any more.
const PROGRESS: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(20);

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of everything that happened: the same seed gives the same.
    pub digest: (u64, u64),
    pub violation: Option<String>,
    pub checks: u64,
    pub simulated: Duration,
}

/// Runs one seed.
pub fn run(seed: u64) -> Outcome {
    let scenario = Scenario::new(seed);
    let world = World::new(seed);
    let settings = scenario.settings();
    let settings: Vec<(&str, &str)> = settings
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let broker = Broker::new(&world, scenario.cores, &settings);
    let stage = Rc::new(Stage::new(scenario, broker.address));
    let run = Run {
        world: &world,
        broker: &broker,
        desk: client_node(&world),
        stage: stage.clone(),
    };
    if let Err(what) = run.play() {
        stage.model.violation(what);
    }
    Outcome {
        digest: world.trace_digest(),
        violation: stage.model.violated(),
        checks: stage.model.checks(),
        simulated: Duration::from_nanos(world.now().as_nanos()),
    }
}

fn client_node(world: &World) -> NodeId {
    world.node(RuntimeOptions {
        cores: 1,
        recv_pool_bytes_per_core: 64 << 10,
        ..RuntimeOptions::default()
    })
}

struct Run<'a> {
    world: &'a World,
    broker: &'a Broker,
    /// The node of who prepares, and looks at the end.
    desk: NodeId,
    stage: Rc<Stage>,
}

/// Why a run ends before its end; what the model found is not said again.
type Verdict = Result<(), String>;

impl Run<'_> {
    fn play(&self) -> Verdict {
        self.broker.boot(self.world);
        self.at_desk("desk", |client| async move {
            admin::prepare(&client).await;
            while !grouping::find_coordinator(&client).await.unwrap_or(false) {}
        })?;
        let clients = self.start_clients();
        self.make_trouble(&clients)?;
        self.stage.phase.set(Phase::Settling);
        let settled = self.world.now() + SETTLE;
        while self.world.now() < settled {
            self.world.run_for(STEP);
            self.go_on(Duration::ZERO, || false)?;
        }
        self.stage.phase.set(Phase::Calm);
        let stopped = || clients.iter().all(|client| !self.world.is_running(*client));
        if !self.go_on(PROGRESS, stopped)? {
            return Err(format!(
                "no progress when all is calm: {}",
                self.stage.hanging()
            ));
        }
        self.look_at_the_end()
    }

    /// Runs until `done`, for at most `limit`; whether it was done.
    fn go_on(&self, limit: Duration, done: impl Fn() -> bool) -> Result<bool, String> {
        let model = &self.stage.model;
        let node = self.broker.node;
        let over = || done() || model.is_violated() || !self.world.is_running(node);
        self.world.run_until(limit, over);
        if model.is_violated() {
            return Err(String::new());
        }
        if !self.world.is_running(node) {
            return Err(self.why_it_ended());
        }
        Ok(done())
    }

    fn why_it_ended(&self) -> String {
        match self.broker.start_failure() {
            Some(failure) => format!("the broker does not start: {failure}"),
            None => "the broker ended by itself".to_owned(),
        }
    }

    fn spawn<F>(&self, node: NodeId, name: &str, main: impl FnOnce(Client) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let (stage, name) = (self.stage.clone(), name.to_owned());
        let main: LocalMain =
            Box::new(move |core: Core| Box::pin(main(Client::new(name, core, stage))));
        let boot = self.world.boot(node).expect("descriptors");
        boot.run_local(vec![main]).expect("memory");
    }

    /// Somebody does something alone, and nothing fails meanwhile.
    fn at_desk<F>(&self, name: &str, main: impl FnOnce(Client) -> F + 'static) -> Verdict
    where
        F: Future<Output = ()> + 'static,
    {
        self.spawn(self.desk, name, main);
        match self.go_on(PROGRESS, || !self.world.is_running(self.desk))? {
            true => Ok(()),
            false => Err(format!("no progress: {}", self.stage.hanging())),
        }
    }

    fn start_clients(&self) -> Vec<NodeId> {
        let scenario = &self.stage.scenario;
        let mut clients = Vec::new();
        let mut add = || {
            clients.push(client_node(self.world));
            *clients.last().expect("one")
        };
        self.stage
            .producing
            .set(scenario.plain_producers + scenario.idempotent_producers);
        for index in 0..scenario.plain_producers {
            let acks = if index % 2 == 0 { 1 } else { -1 };
            self.spawn(add(), &format!("producer {index}"), move |client| {
                producing::run(client, Kind::Plain { acks })
            });
        }
        for index in 0..scenario.idempotent_producers {
            let window = 1 + 3 * (index % 2) + 1;
            self.spawn(
                add(),
                &format!("idempotent producer {index}"),
                move |client| producing::run(client, Kind::Idempotent { window }),
            );
        }
        for index in 0..scenario.readers {
            self.spawn(add(), &format!("reader {index}"), reading::run);
        }
        for index in 0..scenario.members {
            self.spawn(add(), &format!("member {index}"), grouping::run);
        }
        self.spawn(add(), "admin", admin::run);
        clients
    }

    fn make_trouble(&self, clients: &[NodeId]) -> Verdict {
        let model = &self.stage.model;
        let trouble = Trouble::new(self.world, &self.stage, self.broker, clients);
        let end = self.world.now() + self.stage.scenario.trouble;
        while self.world.now() < end {
            let next = self.world.now() + trouble.pause();
            while self.world.now() < next {
                self.world.run_for(STEP);
                if model.is_violated() {
                    return Err(String::new());
                }
                trouble.end_due();
                if !trouble.down.get() && !self.world.is_running(self.broker.node) {
                    if !trouble.disk_failed.get() {
                        return Err(self.why_it_ended());
                    }
                    trouble.revive();
                }
            }
            trouble.begin();
        }
        trouble.end_all();
        Ok(())
    }

    /// Everything is read again: now, and after another start.
    fn look_at_the_end(&self) -> Verdict {
        let stage = self.stage.clone();
        self.at_desk("last reader", |client| async move {
            reading::read_all(&client).await
        })?;
        self.at_desk("probe", probe_all)?;
        if stage.scenario.seed.is_multiple_of(2) {
            self.world.signal(self.broker.node, Signal::Terminate);
            if !self.world.run_until_stopped(self.broker.node, STOP) {
                return Err("the broker does not stop".to_owned());
            }
        } else {
            self.world.kill(self.broker.node);
        }
        self.stage.model.broker_ended();
        self.broker.boot(self.world);
        self.at_desk("reader after the end", |client| async move {
            reading::read_all(&client).await;
        })
    }
}

/// Looks in every partition whether who waits there is woken.
async fn probe_all(reader: Client) {
    let other =
        |name: &str| Client::new(name.to_owned(), reader.core.clone(), reader.stage.clone());
    let (second, writer) = (other("second probe"), other("probe's writer"));
    for place in reader.stage.places() {
        admin::probe([&reader, &second], &writer, place).await;
    }
}
