//! The handle to one core, and the core's main loop.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::BackendKind;
use crate::backend::{Driver, Wait};
use crate::executor::{
    CoreShared, Executor, JoinGuard, JoinHandle, Pending, PendingValue, TaskClass, TaskHeader,
};
use crate::fault::FileFaults;
use crate::io::ColdReads;
use crate::large_blocks;
use crate::metrics::{CoreMetrics, Counters};
use crate::sys::{self, Pool};
use crate::time::{Elapsed, Instant, Sleep, Timers};

/// The number of a core: 0 up to [`Core::core_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

impl CoreId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Display for CoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A task held its core longer than [`RuntimeOptions::stall_threshold`](crate::RuntimeOptions).
#[derive(Clone, Copy, Debug)]
pub struct StallReport {
    pub core: CoreId,
    /// The name given at [`Core::spawn`].
    pub task: &'static str,
    pub class: TaskClass,
    pub held: Duration,
}

/// Called on the core that stalled.
pub type StallCallback = Arc<dyn Fn(StallReport) + Send + Sync>;

/// Something that brings work to a core beside tasks and the driver: the mesh.
pub(crate) trait Source {
    /// Takes in what has arrived.
    fn take(&self);
    /// Whether something has arrived: looked at once more before the core sleeps.
    fn has_arrived(&self) -> bool;
    /// Messages that have arrived and were not taken, and those that wait here for room.
    fn depths(&self) -> (usize, usize);
    /// Sends what the tasks of this turn left, and wakes the receivers.
    fn flush(&self);
    /// The core stops: lets go of everything that keeps others alive.
    fn stop(&self);
}

pub(crate) struct CoreParts {
    pub(crate) id: CoreId,
    pub(crate) core_count: usize,
    pub(crate) shared: Arc<CoreShared>,
    pub(crate) driver: Driver,
    /// Calls that block: directories, `blocking`.
    pub(crate) pool: Pool,
    pub(crate) seed: u64,
    pub(crate) cold_read_bytes: usize,
    pub(crate) stall_threshold: Duration,
    pub(crate) on_stall: Option<StallCallback>,
    pub(crate) file_faults: Option<FileFaults>,
}

pub(crate) struct CoreInner {
    id: CoreId,
    core_count: usize,
    executor: Executor,
    timers: Timers,
    pending: Rc<Pending>,
    driver: Driver,
    pool: Pool,
    random: Cell<u64>,
    cold_reads: ColdReads,
    sources: RefCell<Vec<Rc<dyn Source>>>,
    pub(crate) counters: Rc<Counters>,
    busy_nanos: [Cell<u64>; 5],
    stall_threshold: Duration,
    on_stall: Option<StallCallback>,
    file_faults: Option<FileFaults>,
}

/// A handle to the executor of this core. Cheap to clone; stays on its core.
#[derive(Clone)]
pub struct Core(Rc<CoreInner>);

/// A task that runs longer in one turn than this lets the driver look at the kernel first.
const TURN: Duration = Duration::from_micros(200);
/// Polls per turn, so that many short tasks do not starve the driver either.
const POLLS_PER_TURN: usize = 256;

impl Core {
    pub(crate) fn new(parts: CoreParts, counters: Rc<Counters>) -> Self {
        Self(Rc::new(CoreInner {
            id: parts.id,
            core_count: parts.core_count,
            executor: Executor::new(parts.shared),
            timers: Timers::default(),
            pending: Rc::new(Pending::default()),
            driver: parts.driver,
            pool: parts.pool,
            random: Cell::new(parts.seed),
            cold_reads: ColdReads::new(parts.cold_read_bytes),
            sources: RefCell::new(Vec::new()),
            counters,
            busy_nanos: Default::default(),
            stall_threshold: parts.stall_threshold,
            on_stall: parts.on_stall,
            file_faults: parts.file_faults,
        }))
    }

    pub fn id(&self) -> CoreId {
        self.0.id
    }

    pub fn core_count(&self) -> usize {
        self.0.core_count
    }

    /// The present instant of the monotonic clock; virtual in the simulation.
    pub fn now(&self) -> Instant {
        self.0.driver.now()
    }

    /// Milliseconds since 1970; virtual in the simulation. May jump; never measure with it.
    pub fn wall_clock_ms(&self) -> i64 {
        self.0.driver.wall_clock_ms()
    }

    /// A pseudo-random number, from the seed in the simulation. Not for secrets.
    pub fn random_u64(&self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014): one state word, full period.
        let state = self.0.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.random.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Two of them in one: for names that nobody else may have or guess.
    pub fn random_u128(&self) -> u128 {
        u128::from(self.random_u64()) << 64 | u128::from(self.random_u64())
    }

    /// Starts a task on this core. `name` shows up in stall reports.
    pub fn spawn<T: 'static>(
        &self,
        class: TaskClass,
        name: &'static str,
        future: impl Future<Output = T> + 'static,
    ) -> JoinHandle<T> {
        let guard = JoinGuard::new();
        let state = guard.state();
        let body = async move {
            let result = future.await;
            guard.finish(result);
        };
        let header = self.0.executor.spawn(class, name, Box::pin(body));
        JoinHandle::new(self.clone(), header, state)
    }

    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }

    pub fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep::new(self.clone(), at)
    }

    /// Runs `future` for at most `span`, counted from this call. On [`Elapsed`] it is dropped.
    pub fn timeout<F: Future>(
        &self,
        span: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        let sleep = self.sleep(span);
        async move {
            let mut future = pin!(future);
            let mut sleep = pin!(sleep);
            poll_fn(|context| {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                sleep.as_mut().poll(context).map(|()| Err(Elapsed))
            })
            .await
        }
    }

    /// Lets every other ready task of the class, and the driver, go first.
    pub fn yield_now(&self) -> impl Future<Output = ()> + use<> {
        let mut yielded = false;
        poll_fn(move |context| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Runs `work` on a thread of the bounded pool, away from the cores; inline in the simulation.
    /// Starts at once, also when never awaited; dropping the future forgets the result only.
    pub fn blocking<R: Send + 'static, W>(&self, work: W) -> impl Future<Output = R> + use<R, W>
    where
        W: FnOnce() -> R + Send + 'static,
    {
        self.on_pool(&self.0.pool, work)
    }

    pub(crate) fn on_pool<R: Send + 'static, W>(
        &self,
        pool: &Pool,
        work: W,
    ) -> impl Future<Output = R> + use<R, W>
    where
        W: FnOnce() -> R + Send + 'static,
    {
        let answer: PendingValue<sys::JobResult<R>> = self.0.pending.ask();
        if self.0.driver.runs_blocking_inline() {
            self.0.pending.answer(
                answer.key(),
                Box::new(Ok::<R, Box<dyn std::any::Any + Send>>(work())),
            );
        } else {
            pool.run(Arc::clone(self.shared()), answer.key(), work);
        }
        async move {
            match answer.await {
                Ok(result) => result,
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    pub fn backend(&self) -> BackendKind {
        self.0.driver.kind()
    }

    /// A copy of this core's counters.
    pub fn metrics(&self) -> CoreMetrics {
        let mut metrics = CoreMetrics::default();
        let mut depths = (0, 0);
        self.0.counters.fill(&mut metrics);
        metrics.tasks_alive = self.0.executor.task_count() as u64;
        metrics.cold_reads_waiting = self.0.cold_reads.waiting() as u64;
        metrics.cold_read_memory = self.0.cold_reads.memory() as u64;
        metrics.large_block_memory = large_blocks::kept_bytes() as u64;
        metrics.operations_in_flight = self.0.driver.operations_in_flight() as u64;
        metrics.wakeups_received = self.shared().wakeups();
        self.each_source(|source| {
            let (arrived, waiting) = source.depths();
            depths = (depths.0 + arrived, depths.1 + waiting);
        });
        metrics.mailbox_depth = depths.0 as u64;
        metrics.lane_overflow_waiting = depths.1 as u64;
        for (copy, live) in metrics.busy_nanos.iter_mut().zip(&self.0.busy_nanos) {
            *copy = live.get();
        }
        metrics
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.0.timers
    }

    pub(crate) fn pending(&self) -> &Rc<Pending> {
        &self.0.pending
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.0.driver
    }

    pub(crate) fn cold_reads(&self) -> &ColdReads {
        &self.0.cold_reads
    }

    pub(crate) fn file_faults(&self) -> Option<&FileFaults> {
        self.0.file_faults.as_ref()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    pub(crate) fn shared(&self) -> &Arc<CoreShared> {
        &self.0.executor.shared
    }

    pub(crate) fn abort_task(&self, header: &Arc<TaskHeader>) {
        self.0.executor.abort(header);
    }

    pub(crate) fn add_source(&self, source: Rc<dyn Source>) {
        self.0.sources.borrow_mut().push(source);
    }
}

/// The main loop, in the pieces that a backend's scheduler needs.
impl Core {
    /// Takes in everything that has arrived from elsewhere and fires the timers that are due.
    pub(crate) fn take_arrivals(&self) {
        self.shared().take_remote();
        while let Some((key, value)) = self.shared().take_answer() {
            self.0.pending.answer(key, value);
        }
        self.each_source(|source| source.take());
        if self.0.timers.next_deadline().is_some() {
            let fired = self.0.timers.fire(self.now());
            self.0.counters.timers_fired.add(fired as u64);
        }
    }

    /// Runs ready tasks for one turn's time.
    pub(crate) fn run_ready(&self) {
        let started = self.now();
        let mut before = started;
        for _ in 0..POLLS_PER_TURN {
            let Some(ran) = self.0.executor.run_one() else {
                break;
            };
            let after = self.now();
            self.account(&ran, after - before);
            before = after;
            if after - started >= TURN {
                break;
            }
        }
    }

    /// Runs one ready task, the one that `pick` names out of so many; none when none is ready.
    #[cfg(feature = "sim")]
    pub(crate) fn run_picked(&self, pick: impl Fn(usize) -> usize) -> Option<crate::executor::Ran> {
        let before = self.now();
        let ran = self.0.executor.run_picked(pick)?;
        self.account(&ran, self.now() - before);
        Some(ran)
    }

    fn account(&self, ran: &crate::executor::Ran, held: Duration) {
        let nanos = held.as_nanos() as u64;
        let counters = &self.0.counters;
        self.0.executor.charge(ran.class, nanos);
        let busy = &self.0.busy_nanos[ran.class as usize];
        busy.set(busy.get() + nanos);
        counters.tasks_run.one();
        counters.longest_poll_us.raise_to(nanos / 1000);
        if held > self.0.stall_threshold {
            counters.stalls.one();
            if let Some(report) = &self.0.on_stall {
                report(StallReport {
                    core: self.0.id,
                    task: ran.name,
                    class: ran.class,
                    held,
                });
            }
        }
    }

    pub(crate) fn flush_sources(&self) {
        self.each_source(|source| source.flush());
    }

    /// A source may add another while it works, so the list is not borrowed meanwhile.
    fn each_source(&self, mut visit: impl FnMut(&dyn Source)) {
        let mut index = 0;
        loop {
            let source = self.0.sources.borrow().get(index).cloned();
            let Some(source) = source else { return };
            visit(&*source);
            index += 1;
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.shared().has_ready()
            || self.shared().has_remote_work()
            || self
                .0
                .sources
                .borrow()
                .iter()
                .any(|source| source.has_arrived())
    }

    /// One pass: arrivals, tasks, sends, then the kernel, waiting there when nothing is left.
    pub(crate) fn turn(&self) {
        self.0.counters.turns.one();
        self.take_arrivals();
        self.run_ready();
        self.flush_sources();
        if self.shared().has_ready() {
            self.0.driver.turn(self, Wait::No);
            return;
        }
        self.shared().announce_sleep();
        if self.has_work() {
            self.shared().end_sleep();
            self.0.driver.turn(self, Wait::No);
            return;
        }
        let wait = match self.0.timers.next_deadline() {
            Some(at) => Wait::Until(at),
            None => Wait::Forever,
        };
        self.0.counters.sleeps.one();
        self.0.driver.turn(self, wait);
        self.shared().end_sleep();
    }

    /// Drops all tasks and waits until the kernel has let go of their memory.
    pub(crate) fn shut_down(&self) {
        self.0.executor.clear();
        self.each_source(|source| source.stop());
        let sources = std::mem::take(&mut *self.0.sources.borrow_mut());
        drop(sources);
        self.0.executor.clear();
        self.0.timers.clear();
        self.0.driver.shut_down(self);
        self.0.executor.clear();
        self.shared().abandon();
    }
}
