//! Executors on the generator's cores: the jobs that they are dealt, how they end, and single questions to a target.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};

use crate::consumer::{self, Role};
use crate::ending::Ending;
use crate::interrupt::Interrupt;
use crate::measure::{Phases, Pulse, Recorder};
use crate::placement::Cores;
use crate::producer;

/// nice(2): what is left by everybody else.
const LEAST_PRIORITY: i32 = 19;
/// How often those who run are looked at.
const LOOKS: Duration = Duration::from_millis(100);

/// One job of one executor.
pub enum Job {
    Produce(producer::Lane),
    Consume(consumer::Lane),
}

impl Job {
    pub fn is_cold(&self) -> bool {
        matches!(self, Job::Consume(lane) if matches!(lane.role, Role::Cold { .. }))
    }
}

/// Asks a target from one of the generator's cores, and waits so long for what it answers, or until an interrupt.
///
/// # Errors
/// Those of the work, and where the wait ended first.
pub fn ask<T, F, W>(cores: &Cores, limit: Duration, interrupt: &Interrupt, work: W) -> Result<T>
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
    let interrupt = interrupt.clone();
    let asking = spawn(core, move || async move {
        let gives_up = async { Err(interrupt.or_after(limit).await) };
        futures_lite::future::or(work(), gives_up).await
    })?;
    asking.join().map_err(|error| anyhow!("{error}"))?
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

/// An executor at work, and what can be seen of it from outside.
pub struct Running {
    handle: ExecutorJoinHandle<Result<Recorder>>,
    pulse: Arc<Pulse>,
}

/// Says that an executor has ended, by a panic too.
struct SaysItsEnd(Arc<Pulse>);

impl Drop for SaysItsEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// How executors share the generator's cores with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// They have moments to keep.
    Prompt,
    /// What the others leave: cold readers are busy all the time, and would be what makes producers late.
    Yields,
}

/// Deals the jobs to the generator's cores and starts an executor on each.
pub fn start(
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
        let (phases, pulse) = (phases.clone(), Arc::new(Pulse::default()));
        let mine = pulse.clone();
        let handle = spawn(*core, move || async move {
            let _end = SaysItsEnd(mine.clone());
            if patience == Patience::Yields {
                // Of this thread alone. Refused only where priorities are, and then all are equal.
                let _ = rustix::process::setpriority_process(None, LEAST_PRIORITY);
            }
            work(jobs, phases, mine).await
        })?;
        Ok(Running { handle, pulse })
    };
    cores.iter().zip(dealt).map(start).collect()
}

async fn work(jobs: Vec<Job>, phases: Arc<Phases>, pulse: Arc<Pulse>) -> Result<Recorder> {
    let mut recorder = Recorder::new(&phases)?;
    recorder.pulse = pulse;
    let recorder = Rc::new(RefCell::new(recorder));
    let start = |job| glommio::spawn_local(run(job, phases.clone(), recorder.clone()));
    let mut tasks: Vec<_> = jobs.into_iter().map(start).collect();
    let all = async {
        for task in &mut tasks {
            task.await;
        }
    };
    futures_lite::future::or(all, phases.until_abandoned()).await;
    // Where it was abandoned, some still wait.
    for task in tasks {
        task.cancel().await;
    }
    let empty = Recorder::new(&phases)?;
    Ok(recorder.replace(empty))
}

async fn run(job: Job, phases: Arc<Phases>, recorder: Rc<RefCell<Recorder>>) {
    let done = match job {
        Job::Produce(lane) => producer::run(lane, phases.clone(), recorder.clone()).await,
        Job::Consume(lane) => {
            if let Role::Cold { .. } = lane.role {
                phases.until(phases.window().start).await;
            }
            consumer::run(lane, phases.clone(), recorder.clone()).await
        }
    };
    // One that fails ends the measurement: its figures would be of another load.
    if let Err(error) = done {
        recorder.borrow_mut().failed(&error);
        phases.stop();
    }
}

/// What can be seen of them from outside.
pub fn pulses(running: &[Running]) -> Vec<Arc<Pulse>> {
    running.iter().map(|one| one.pulse.clone()).collect()
}

/// Waits for the end of all, and adds up what they wrote down.
///
/// # Errors
/// Where one panicked.
pub fn join(running: Vec<Running>, phases: &Phases) -> Result<Recorder> {
    let mut all = Recorder::new(phases)?;
    for one in running {
        let recorder = one.handle.join().map_err(|error| anyhow!("{error}"))??;
        all.absorb(recorder)?;
    }
    Ok(all)
}

/// The same, with a look every now and then whether they have to be ended, which is then the first error.
///
/// # Errors
/// Where one panicked.
pub fn join_watched(
    running: Vec<Running>,
    phases: &Phases,
    interrupt: &Interrupt,
    show: impl Fn(),
) -> Result<Recorder> {
    let mut ending = Ending::new(phases, pulses(&running), Duration::ZERO, interrupt);
    let mut reason = None;
    while !ending.have_all_ended() {
        let found = ending.look();
        reason = reason.or(found);
        show();
        std::thread::sleep(LOOKS);
    }
    let mut recorder = join(running, phases)?;
    recorder.first_error = reason.or(recorder.first_error);
    Ok(recorder)
}
