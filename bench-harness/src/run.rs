//! One measurement: a fresh topic, the load on pinned executors, and the clock and /proc watched meanwhile.

use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};

use crate::cluster::{self, Placed};
use crate::consumer::{self, Role};
use crate::ending::Ending;
use crate::executors::{Job, Patience, ask, join, join_watched, pulses, start};
use crate::hardware::processor_seconds;
use crate::interrupt::Interrupt;
use crate::measure::{Phases, Recorder};
use crate::observe::{Process, machine_busy};
use crate::placement::Cores;
use crate::producer;
use crate::report::Measurement;
use crate::scenario::{Producers, Scenario};

/// Cold readers alone may take so long.
const LONGEST_COLD_READ: Duration = Duration::from_secs(1800);
/// A target may take so long to create a topic with all its leaders, or to say where its partitions end.
const LONGEST_CREATION: Duration = Duration::from_secs(100);
/// It may take so long to delete a topic...
const LONGEST_DELETION: Duration = Duration::from_secs(30);
/// ...and so long where it may be gone.
const LAST_WORD: Duration = Duration::from_secs(3);
/// A connection that stays idle may take so long to be made.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// A generator that is later than this is too small for the rate, in microseconds.
const LATE: u64 = 2000;
/// A cold reader's fetch waits so long for records that are not there, in milliseconds.
const COLD_WAIT: u32 = 500;

/// Whom to measure.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    /// `host:port`.
    pub address: String,
    pub pid: Option<u32>,
}

impl Target {
    /// What its process has spent; nothing where we cannot see it.
    fn process(&self) -> Result<Process> {
        let process = self.pid.map(Process::read).transpose()?;
        Ok(process.unwrap_or_default())
    }
}

/// Measures one target once. What was measured before an error is kept, with the reason.
///
/// # Errors
/// Where nothing was measured.
pub fn measure(
    scenario: &Scenario,
    target: &Target,
    round: u32,
    cores: &Cores,
    interrupt: &Interrupt,
) -> Result<Measurement> {
    let round = Round {
        scenario,
        target,
        number: round,
        cores,
        interrupt,
    };
    round.measure()
}

/// One target, measured once.
struct Round<'a> {
    scenario: &'a Scenario,
    target: &'a Target,
    number: u32,
    cores: &'a Cores,
    interrupt: &'a Interrupt,
}

impl Round<'_> {
    fn measure(&self) -> Result<Measurement> {
        // What the target before left in the page cache would be written out at this one's expense.
        rustix::fs::sync();
        let (address, settings) = (self.target.address.clone(), self.scenario.topic.clone());
        let (process, name) = (std::process::id(), &self.scenario.name);
        let topic = format!("bench-{name}-{process}-{}", self.number);
        let create = {
            let (address, topic) = (address.clone(), topic.clone());
            move || async move { cluster::create(&address, &topic, &settings).await }
        };
        let placed = ask(self.cores, LONGEST_CREATION, self.interrupt, create)?;
        let measurement = self.measure_topic(&placed);
        let is_whole = matches!(&measurement, Ok(measured) if measured.incomplete.is_none());
        let limit = if is_whole {
            LONGEST_DELETION
        } else {
            LAST_WORD
        };
        let delete = move || async move { cluster::delete(&address, &topic).await };
        // After an interrupt, too: no topic is left behind.
        if let Err(error) = ask(self.cores, limit, &Interrupt::default(), delete) {
            crate::say(&format!(
                "warning: {}: its topic is not deleted: {error:#}",
                self.target.name
            ));
        }
        measurement
    }

    fn measure_topic(&self, placed: &Placed) -> Result<Measurement> {
        if let Some(prefill) = &self.scenario.prefill {
            // Leaders that do not know of their partitions yet would refuse the first batches.
            self.ends(placed)?;
            self.fill(placed, prefill.mebibytes << 20)?;
            if prefill.drop_caches {
                drop_caches()?;
            }
        }
        let ends = self.ends(placed)?;
        let _idle = self.idle()?;
        self.load(placed, &ends)
    }

    fn ends(&self, placed: &Placed) -> Result<HashMap<i32, i64>> {
        let placed = placed.clone();
        let ends = move || async move { consumer::ends(&placed).await };
        ask(self.cores, LONGEST_CREATION, self.interrupt, ends)
    }

    fn fill(&self, placed: &Placed, bytes: u64) -> Result<()> {
        let phases = Arc::new(Phases::new(Duration::ZERO, Duration::MAX));
        let shape = Producers {
            count: 1,
            rate: None,
            partitions_per_request: 1,
            ..self.scenario.shape()
        };
        let share = bytes / placed.leaders.len() as u64;
        let jobs = lanes(self.scenario, &shape, placed, Some(share))
            .into_iter()
            .map(Job::Produce)
            .collect();
        let running = start(vec![jobs], Patience::Prompt, self.cores, &phases)?;
        crate::say(&format!(
            "{}: filling {} MiB",
            self.target.name,
            bytes >> 20
        ));
        let recorder = join_watched(running, &phases, self.interrupt, || {
            crate::progress(&format!(
                "filling: {} of {} MiB",
                phases.acknowledged.load(Ordering::Relaxed) >> 20,
                bytes >> 20
            ));
        })?;
        crate::progress("");
        match recorder.first_error {
            Some(error) => Err(anyhow!("cannot fill the topic: {error}")),
            None => Ok(()),
        }
    }

    /// Connections that say hello and stay.
    fn idle(&self) -> Result<Vec<TcpStream>> {
        let (address, count) = (&self.target.address, self.scenario.idle_connections);
        let connect = |index| {
            self.interrupt.check()?;
            say_hello(address)
                .with_context(|| format!("idle connection {index} of {count} to {address}"))
        };
        (0..count).map(connect).collect()
    }

    fn load(&self, placed: &Placed, ends: &HashMap<i32, i64>) -> Result<Measurement> {
        let (scenario, target) = (self.scenario, self.target);
        let (warm_up, measured) = match &scenario.producers {
            Some(_) => (
                Duration::from_secs(scenario.warm_up_seconds.into()),
                Duration::from_secs(scenario.duration_seconds.into()),
            ),
            None => (Duration::ZERO, LONGEST_COLD_READ),
        };
        let phases = Arc::new(Phases::new(warm_up, measured));
        let (cold, tail): (Vec<Job>, Vec<Job>) = readers(scenario, placed, ends)
            .into_iter()
            .map(Job::Consume)
            .partition(Job::is_cold);
        let produce = scenario
            .producers
            .iter()
            .flat_map(|shape| lanes(scenario, shape, placed, None))
            .map(Job::Produce)
            .collect();
        let mut measurement = Measurement {
            target: target.name.clone(),
            round: self.number,
            began: phases.window_date(),
            memory_limit: target.pid.and_then(crate::placement::memory_limit),
            ..Measurement::default()
        };
        let before = if scenario.producers.is_none() {
            Some(Spent::now(target.process()?, &phases))
        } else {
            None
        };
        let mut running = start(vec![tail, produce], Patience::Prompt, self.cores, &phases)?;
        if !cold.is_empty() {
            running.extend(start(vec![cold], Patience::Yields, self.cores, &phases)?);
        }
        let patience = longest_wait(scenario);
        let ending = Ending::new(&phases, pulses(&running), patience, self.interrupt);
        watch(target, &phases, ending, before, &mut measurement);
        let recorder = join(running, &phases)?;
        measurement.errors = phases.errors.load(Ordering::Relaxed);
        measurement.take(recorder)?;
        measurement.warnings = warnings(scenario, &measurement);
        for warning in &measurement.warnings {
            crate::say(&format!("warning: {}: {warning}", target.name));
        }
        Ok(measurement)
    }
}

/// How long a healthy target may keep a fetch.
fn longest_wait(scenario: &Scenario) -> Duration {
    let consumers = scenario.consumers.as_ref();
    let tail = consumers.map_or(0, |consumers| consumers.max_wait_ms);
    Duration::from_millis(tail.max(COLD_WAIT).into())
}

/// Runs the scenario's producers alone, against leaders that are known, to the end of the phases.
///
/// # Errors
/// Where no executor starts; what the producers met is in the recorder.
pub fn produce(
    scenario: &Scenario,
    placed: &Placed,
    cores: &Cores,
    phases: &Arc<Phases>,
    interrupt: &Interrupt,
) -> Result<Recorder> {
    let jobs = lanes(scenario, &scenario.shape(), placed, None)
        .into_iter()
        .map(Job::Produce)
        .collect();
    let running = start(vec![jobs], Patience::Prompt, cores, phases)?;
    join_watched(running, phases, interrupt, || ())
}

fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("drop_caches needs root")
}

/// A connection over which ApiVersions was asked, and whose answer nobody reads.
fn say_hello(address: &str) -> Result<TcpStream> {
    let mut failed = anyhow!("it has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, LONGEST_CONNECT) {
            Ok(mut stream) => {
                // ApiVersions v0 with an empty client id.
                stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0, 0])?;
                return Ok(stream);
            }
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

fn lanes(
    scenario: &Scenario,
    shape: &Producers,
    placed: &Placed,
    bytes: Option<u64>,
) -> Vec<producer::Lane> {
    let millis = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64);
    let partitions = placed.partitions() as f64;
    let mut lanes = Vec::new();
    for index in 0..shape.count {
        for (address, led) in &placed.leaders {
            let share = led.len() as f64 / partitions / f64::from(shape.count);
            lanes.push(producer::Lane {
                address: address.clone(),
                topic: placed.topic.clone(),
                partitions: led.clone(),
                shape: shape.clone(),
                seed: scenario
                    .seed
                    .wrapping_mul(1_000_003)
                    .wrapping_add(u64::from(index)),
                millis,
                interval: shape.rate.map(|rate| 1e9 / (rate as f64 * share)),
                phase: f64::from(index) / f64::from(shape.count),
                bytes,
            });
        }
    }
    lanes
}

fn readers(scenario: &Scenario, placed: &Placed, ends: &HashMap<i32, i64>) -> Vec<consumer::Lane> {
    let mut readers = Vec::new();
    for (address, led) in &placed.leaders {
        if let Some(consumers) = &scenario.consumers {
            for _ in 0..consumers.groups {
                for member in 0..consumers.per_group {
                    let mine = led
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| *at as u32 % consumers.per_group == member);
                    let from: HashMap<i32, i64> = mine
                        .map(|(_, partition)| {
                            (*partition, ends.get(partition).copied().unwrap_or(0))
                        })
                        .collect();
                    if !from.is_empty() {
                        readers.push(consumer::Lane {
                            address: address.clone(),
                            topic: placed.topic.clone(),
                            from,
                            max_bytes: consumers.max_bytes,
                            min_bytes: consumers.min_bytes,
                            max_wait_ms: consumers.max_wait_ms,
                            role: Role::Tail,
                        });
                    }
                }
            }
        }
        if let Some(cold) = &scenario.cold_readers {
            for _ in 0..cold.count {
                readers.push(consumer::Lane {
                    address: address.clone(),
                    topic: placed.topic.clone(),
                    from: led.iter().map(|partition| (*partition, 0)).collect(),
                    max_bytes: cold.max_bytes,
                    min_bytes: 1,
                    max_wait_ms: COLD_WAIT,
                    role: Role::Cold {
                        ends: ends.clone(),
                        follow: scenario.producers.is_some(),
                    },
                });
            }
        }
    }
    readers
}

/// What was spent up to one moment.
struct Spent {
    at: u64,
    target: Process,
    generator: f64,
    machine: f64,
}

impl Spent {
    fn now(target: Process, phases: &Phases) -> Self {
        Self {
            at: phases.now(),
            target,
            generator: processor_seconds(),
            machine: machine_busy(),
        }
    }
}

/// Watches the run from outside until it ends: progress, memory, and what was spent in the window.
fn watch(
    target: &Target,
    phases: &Phases,
    mut ending: Ending<'_>,
    mut before: Option<Spent>,
    measurement: &mut Measurement,
) {
    let window = phases.window();
    let mut after = None;
    let mut seen = before
        .as_ref()
        .map_or_else(Process::default, |before| before.target);
    loop {
        let finished = ending.have_all_ended();
        if let Some(reason) = ending.look() {
            measurement.incomplete.get_or_insert(reason);
        }
        match target.process() {
            Ok(process) if process.resident > 0 => {
                measurement.resident_most = measurement.resident_most.max(process.resident);
                measurement.resident_end = process.resident;
                seen = process;
            }
            // Not seen, or killed and not buried yet.
            Ok(_) => {}
            Err(error) => {
                let reason = || format!("{error:#}");
                measurement.incomplete.get_or_insert_with(reason);
                phases.stop();
            }
        }
        // Where the process is gone, it has spent what was last seen of it.
        let spent = Spent::now(seen, phases);
        let is_over = spent.at >= window.end || phases.is_stopped() || finished;
        if before.is_none() && !is_over && spent.at >= window.start {
            crate::say(&format!("{}: measuring", target.name));
            before = Some(spent);
        } else if before.is_some() && after.is_none() && is_over {
            after = Some(spent);
        }
        if finished {
            break;
        }
        show(phases, &window);
        std::thread::sleep(until_next_look(phases, is_over, before.is_some()));
    }
    crate::progress("");
    if let (Some(before), Some(after)) = (before, after) {
        put(measurement, &before, &after);
    }
}

/// The two ends of the window are met to the millisecond.
fn until_next_look(phases: &Phases, is_over: bool, has_begun: bool) -> Duration {
    let window = phases.window();
    if is_over {
        return Duration::from_millis(10);
    }
    let next = if has_begun { window.end } else { window.start };
    let wait = next.saturating_sub(phases.now());
    Duration::from_nanos(wait.clamp(1_000_000, 100_000_000))
}

fn put(measurement: &mut Measurement, before: &Spent, after: &Spent) {
    measurement.seconds = (after.at - before.at) as f64 / 1e9;
    measurement.target_cpu = after.target.cpu - before.target.cpu;
    measurement.generator_cpu = after.generator - before.generator;
    measurement.machine_cpu = (after.machine - before.machine - measurement.generator_cpu).max(0.0);
    measurement.switches = after.target.switches.saturating_sub(before.target.switches);
}

fn show(phases: &Phases, window: &std::ops::Range<u64>) {
    let now = phases.now();
    let phase = if now < window.start {
        "warm-up"
    } else {
        "measuring"
    };
    let mebibytes = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed) >> 20;
    crate::progress(&format!(
        "{phase} {:3} s: {} MiB acknowledged, {} MiB consumed, {} MiB cold",
        now / 1_000_000_000,
        mebibytes(&phases.acknowledged),
        mebibytes(&phases.consumed),
        mebibytes(&phases.cold)
    ));
}

/// What makes a measurement less than it seems.
fn warnings(scenario: &Scenario, measurement: &Measurement) -> Vec<String> {
    let producers = scenario.producers.as_ref();
    let Some(rate) = producers.and_then(|producers| producers.rate) else {
        return Vec::new();
    };
    let reached = measurement.records_a_second();
    if measurement.lateness.p99 > LATE {
        vec![format!(
            "the generator itself was late, p99 {:.1} ms: this machine cannot send {rate} records/s this way; lower the rate or give it cores",
            measurement.lateness.p99 as f64 / 1000.0
        )]
    } else if measurement.incomplete.is_none() && reached < 0.98 * rate as f64 {
        vec![format!(
            "the target took {reached:.0} of {rate} records/s: it is saturated"
        )]
    } else {
        Vec::new()
    }
}
