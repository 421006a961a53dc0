//! One measurement: a fresh topic, the load on pinned executors, and the clock and /proc watched meanwhile.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};

use crate::cluster::{self, Placed};
use crate::consumer::{self, Role};
use crate::measure::{Phases, Recorder};
use crate::observe::{Process, machine_busy};
use crate::placement::Cores;
use crate::producer;
use crate::report::Measurement;
use crate::scenario::{Producers, Scenario};

/// Cold readers alone may take so long.
const LONGEST_COLD_READ: Duration = Duration::from_secs(1800);
/// nice(2): what is left by everybody else.
const LEAST_PRIORITY: i32 = 19;

/// Whom to measure.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    /// `host:port`.
    pub address: String,
    pub pid: Option<u32>,
}

/// One job of one executor.
enum Job {
    Produce(producer::Lane),
    Consume(consumer::Lane),
}

impl Job {
    fn is_cold(&self) -> bool {
        matches!(self, Job::Consume(lane) if matches!(lane.role, Role::Cold { .. }))
    }
}

/// Measures one target once. What was measured before an error is kept, with the reason.
pub fn measure(
    scenario: &Scenario,
    target: &Target,
    round: u32,
    cores: &Cores,
    interrupted: &AtomicBool,
) -> Result<Measurement> {
    // What the target before left in the page cache would be written out at this one's expense.
    rustix::fs::sync();
    let topic = format!("bench-{}-{}-{round}", scenario.name, std::process::id());
    let placed = on_one_core(cores, {
        let (address, topic, settings) = (
            target.address.clone(),
            topic.clone(),
            scenario.topic.clone(),
        );
        move || async move { cluster::create(&address, &topic, &settings).await }
    })?;
    if let Some(prefill) = &scenario.prefill {
        fill(scenario, &placed, prefill.mebibytes << 20, cores)?;
        if prefill.drop_caches {
            drop_caches()?;
        }
    }
    let ends = on_one_core(cores, {
        let placed = placed.clone();
        move || async move { consumer::ends(&placed).await }
    })?;
    let _idle = idle(scenario, target)?;
    let measurement = load(scenario, target, round, &placed, &ends, cores, interrupted);
    let address = target.address.clone();
    let deleted = on_one_core(cores, move || async move {
        cluster::delete(&address, &topic).await
    });
    if let Err(error) = deleted {
        crate::say(&format!("warning: {}: {error:#}", target.name));
    }
    measurement
}

fn on_one_core<T, F, W>(cores: &Cores, work: W) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + 'static,
    W: FnOnce() -> F + Send + 'static,
{
    let core = cores
        .generator
        .iter()
        .next()
        .copied()
        .context("no core to run on")?;
    spawn(core, work)?
        .join()
        .map_err(|error| anyhow!("{error}"))?
}

fn spawn<T, F, W>(core: usize, work: W) -> Result<ExecutorJoinHandle<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
    W: FnOnce() -> F + Send + 'static,
{
    LocalExecutorBuilder::new(Placement::Fixed(core))
        .name("bench")
        .spawn(work)
        .map_err(|error| anyhow!("cannot start an executor on core {core}: {error}"))
}

fn fill(scenario: &Scenario, placed: &Placed, bytes: u64, cores: &Cores) -> Result<()> {
    let phases = Arc::new(Phases::new(Duration::ZERO, LONGEST_COLD_READ));
    let shape = Producers {
        count: 1,
        rate: None,
        partitions_per_request: 1,
        ..scenario.shape()
    };
    let share = bytes / placed.leaders.len() as u64;
    let jobs = lanes(scenario, &shape, placed, Some(share))
        .into_iter()
        .map(Job::Produce)
        .collect();
    let handles = start(vec![jobs], Patience::Prompt, cores, &phases)?;
    let finished = || handles.iter().all(|handle| handle.thread_is_finished());
    while !finished() {
        progress(&format!(
            "filling: {} of {} MiB",
            phases.acknowledged.load(Ordering::Relaxed) >> 20,
            bytes >> 20
        ));
        std::thread::sleep(Duration::from_millis(100));
    }
    progress_done();
    let recorder = join(
        handles.into_iter().map(|handle| handle.0).collect(),
        &phases,
    )?;
    match recorder.first_error {
        Some(error) => Err(anyhow!("cannot fill the topic: {error}")),
        None => Ok(()),
    }
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
) -> Result<Recorder> {
    let jobs = lanes(scenario, &scenario.shape(), placed, None)
        .into_iter()
        .map(Job::Produce)
        .collect();
    let running = start(vec![jobs], Patience::Prompt, cores, phases)?;
    join(
        running.into_iter().map(|running| running.0).collect(),
        phases,
    )
}

fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("drop_caches needs root")
}

/// Connections that say hello and stay.
fn idle(scenario: &Scenario, target: &Target) -> Result<Vec<TcpStream>> {
    (0..scenario.idle_connections)
        .map(|index| {
            let mut stream = TcpStream::connect(&target.address).with_context(|| {
                format!(
                    "idle connection {index} of {} to {}",
                    scenario.idle_connections, target.address
                )
            })?;
            // ApiVersions v0 with an empty client id.
            stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0, 0])?;
            Ok(stream)
        })
        .collect()
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
                    max_wait_ms: 500,
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

/// An executor that can be asked whether it has ended.
struct Running(ExecutorJoinHandle<Result<Recorder>>, Arc<AtomicBool>);

impl Running {
    fn thread_is_finished(&self) -> bool {
        self.1.load(Ordering::Acquire)
    }
}

/// How executors share the generator's cores with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// They have moments to keep.
    Prompt,
    /// What the others leave: cold readers are busy all the time, and would be what makes producers late.
    Yields,
}

/// Deals the jobs to the generator's cores and starts an executor on each.
fn start(
    groups: Vec<Vec<Job>>,
    patience: Patience,
    cores: &Cores,
    phases: &Arc<Phases>,
) -> Result<Vec<Running>> {
    let cores: Vec<usize> = cores.generator.iter().copied().collect();
    let mut dealt: Vec<Vec<Job>> = cores.iter().map(|_| Vec::new()).collect();
    for group in groups {
        for (index, job) in group.into_iter().enumerate() {
            dealt[index % cores.len()].push(job);
        }
    }
    let start = |(core, jobs): (&usize, Vec<Job>)| {
        let (phases, ended) = (phases.clone(), Arc::new(AtomicBool::new(false)));
        let flag = ended.clone();
        let handle = spawn(*core, move || async move {
            if patience == Patience::Yields {
                // Of this thread alone. Refused only where priorities are, and then all are equal.
                let _ = rustix::process::setpriority_process(None, LEAST_PRIORITY);
            }
            let recorder = work(jobs, phases).await;
            flag.store(true, Ordering::Release);
            recorder
        })?;
        Ok(Running(handle, ended))
    };
    cores.iter().zip(dealt).map(start).collect()
}

async fn work(jobs: Vec<Job>, phases: Arc<Phases>) -> Result<Recorder> {
    let recorder = Rc::new(RefCell::new(Recorder::new(&phases)?));
    let tasks: Vec<_> = jobs
        .into_iter()
        .map(|job| {
            let (phases, recorder) = (phases.clone(), recorder.clone());
            glommio::spawn_local(async move {
                let done = match job {
                    Job::Produce(lane) => {
                        producer::run(lane, phases.clone(), recorder.clone()).await
                    }
                    Job::Consume(lane) => {
                        if let Role::Cold { .. } = lane.role {
                            let wait = phases.window().start.saturating_sub(phases.now());
                            glommio::timer::sleep(Duration::from_nanos(wait)).await;
                        }
                        consumer::run(lane, phases.clone(), recorder.clone()).await
                    }
                };
                // One that fails ends the measurement: its figures would be of another load.
                if let Err(error) = done {
                    recorder.borrow_mut().failed(&error);
                    phases.stop();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    let empty = Recorder::new(&phases)?;
    Ok(recorder.replace(empty))
}

fn join(handles: Vec<ExecutorJoinHandle<Result<Recorder>>>, phases: &Phases) -> Result<Recorder> {
    let mut all = Recorder::new(phases)?;
    for handle in handles {
        all.absorb(handle.join().map_err(|error| anyhow!("{error}"))??)?;
    }
    Ok(all)
}

/// What was spent up to one moment.
struct Spent {
    at: u64,
    target: Process,
    generator: f64,
    machine: f64,
}

impl Spent {
    fn now(target: &Target, phases: &Phases) -> Result<Self> {
        let process = target
            .pid
            .map(Process::read)
            .transpose()?
            .unwrap_or_default();
        Ok(Self {
            at: phases.now(),
            target: process,
            generator: Process::own()?.cpu,
            machine: machine_busy(),
        })
    }
}

fn load(
    scenario: &Scenario,
    target: &Target,
    round: u32,
    placed: &Placed,
    ends: &HashMap<i32, i64>,
    cores: &Cores,
    interrupted: &AtomicBool,
) -> Result<Measurement> {
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
        round,
        began: phases.window_date(),
        memory_limit: target.pid.and_then(crate::placement::memory_limit),
        ..Measurement::default()
    };
    let before = if scenario.producers.is_none() {
        Some(Spent::now(target, &phases)?)
    } else {
        None
    };
    let mut running = start(vec![tail, produce], Patience::Prompt, cores, &phases)?;
    if !cold.is_empty() {
        running.extend(start(vec![cold], Patience::Yields, cores, &phases)?);
    }
    watch(
        target,
        &phases,
        &running,
        before,
        &mut measurement,
        interrupted,
    );
    let recorder = join(
        running.into_iter().map(|running| running.0).collect(),
        &phases,
    )?;
    measurement.errors = phases.errors.load(Ordering::Relaxed);
    measurement.take(recorder)?;
    warn(scenario, &measurement);
    Ok(measurement)
}

/// Watches the run from outside until it ends: progress, memory, and what was spent in the window.
fn watch(
    target: &Target,
    phases: &Phases,
    running: &[Running],
    before: Option<Spent>,
    measurement: &mut Measurement,
    interrupted: &AtomicBool,
) {
    let window = phases.window();
    let mut before = before;
    let mut after = None;
    loop {
        let finished = running.iter().all(Running::thread_is_finished);
        if interrupted.load(Ordering::Relaxed) && !phases.is_stopped() {
            measurement.incomplete = Some("interrupted".to_owned());
            phases.stop();
        }
        match Spent::now(target, phases) {
            Err(error) => {
                measurement
                    .incomplete
                    .get_or_insert_with(|| format!("{error:#}"));
                phases.stop();
            }
            Ok(spent) => {
                measurement.resident_most = measurement.resident_most.max(spent.target.resident);
                measurement.resident_end = spent.target.resident;
                if before.is_none() && spent.at >= window.start {
                    crate::say(&format!("{}: measuring", target.name));
                    before = Some(spent);
                } else if after.is_none()
                    && (spent.at >= window.end || phases.is_stopped() || finished)
                {
                    after = Some(spent);
                }
            }
        }
        if finished {
            break;
        }
        show(phases, &window);
        let next = if before.is_none() {
            window.start
        } else {
            window.end
        };
        let wait = next
            .saturating_sub(phases.now())
            .clamp(1_000_000, 100_000_000);
        std::thread::sleep(Duration::from_nanos(wait));
    }
    progress_done();
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
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
    progress(&format!(
        "{phase} {:3} s: {} MiB acknowledged, {} MiB consumed, {} MiB cold",
        now / 1_000_000_000,
        mebibytes(&phases.acknowledged),
        mebibytes(&phases.consumed),
        mebibytes(&phases.cold)
    ));
}

/// Says what makes a measurement less than it seems.
fn warn(scenario: &Scenario, measurement: &Measurement) {
    let Some(rate) = scenario
        .producers
        .as_ref()
        .and_then(|producers| producers.rate)
    else {
        return;
    };
    let reached = measurement.records_a_second();
    if measurement.lateness.p99 > 2_000 {
        crate::say(&format!(
            "warning: {}: the generator itself was late, p99 {:.1} ms: this machine cannot send {rate} records/s this way; lower the rate or give it cores",
            measurement.target,
            measurement.lateness.p99 as f64 / 1000.0
        ));
    } else if measurement.incomplete.is_none() && reached < 0.98 * rate as f64 {
        crate::say(&format!(
            "warning: {} took {reached:.0} of {rate} records/s: it is saturated",
            measurement.target
        ));
    }
}

/// A line that replaces the one before, on terminals only.
fn progress(line: &str) {
    use std::io::IsTerminal;
    let mut error = std::io::stderr();
    if error.is_terminal() {
        let _ = write!(error, "\r\x1b[K{line}");
    }
}

fn progress_done() {
    progress("");
}
