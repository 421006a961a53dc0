use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use slab::Slab;

use super::{CLASSES, CoreShared, TaskClass, TaskHeader};

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    header: Arc<TaskHeader>,
    waker: Waker,
    name: &'static str,
    /// Absent while it is being polled.
    future: Option<BoxedTask>,
    aborted: bool,
}

/// One task was polled.
pub(crate) struct Ran {
    pub(crate) class: TaskClass,
    pub(crate) name: &'static str,
}

/// The tasks of one core, and the choice of who runs next.
///
/// Classes share the core by stride scheduling: each has a clock that advances by the time its
/// tasks took divided by its share, and the class whose clock is furthest behind runs next. A
/// class that was idle starts at the others' time, so idling saves nothing up.
pub(crate) struct Executor {
    pub(crate) shared: Arc<CoreShared>,
    tasks: RefCell<Slab<Task>>,
    clocks: [Cell<u64>; CLASSES],
    /// Clock of the class chosen last: where a class that was idle starts.
    floor: Cell<u64>,
}

impl Executor {
    pub(crate) fn new(shared: Arc<CoreShared>) -> Self {
        Self {
            shared,
            tasks: RefCell::new(Slab::new()),
            clocks: Default::default(),
            floor: Cell::new(0),
        }
    }

    pub(crate) fn spawn(
        &self,
        class: TaskClass,
        name: &'static str,
        future: BoxedTask,
    ) -> Arc<TaskHeader> {
        let header = {
            let mut tasks = self.tasks.borrow_mut();
            let entry = tasks.vacant_entry();
            let header = TaskHeader::new(Arc::clone(&self.shared), entry.key(), class);
            let waker = Waker::from(Arc::clone(&header));
            entry.insert(Task {
                header: Arc::clone(&header),
                waker,
                name,
                future: Some(future),
                aborted: false,
            });
            header
        };
        std::task::Wake::wake_by_ref(&header);
        header
    }

    pub(crate) fn abort(&self, header: &Arc<TaskHeader>) {
        let removed = {
            let mut tasks = self.tasks.borrow_mut();
            match tasks.get_mut(header.slot) {
                Some(task) if Arc::ptr_eq(&task.header, header) => {
                    if task.future.is_some() {
                        Some(tasks.remove(header.slot))
                    } else {
                        task.aborted = true;
                        None
                    }
                }
                _ => None,
            }
        };
        drop(removed); // after the borrow: a future's drop may spawn or abort
    }

    pub(crate) fn task_count(&self) -> usize {
        self.tasks.borrow().len()
    }

    fn choose(&self) -> Option<TaskClass> {
        let mut best: Option<(u64, TaskClass)> = None;
        for class in TaskClass::ALL {
            if self.shared.ready_len(class) == 0 {
                continue;
            }
            let clock = &self.clocks[class as usize];
            clock.set(clock.get().max(self.floor.get()));
            if best.is_none_or(|(least, _)| clock.get() < least) {
                best = Some((clock.get(), class));
            }
        }
        let (clock, class) = best?;
        self.floor.set(clock);
        Some(class)
    }

    /// Charges the core time of one poll to its class.
    pub(crate) fn charge(&self, class: TaskClass, nanos: u64) {
        let clock = &self.clocks[class as usize];
        clock.set(
            clock
                .get()
                .saturating_add(nanos.max(1) * 64 / class.share()),
        );
    }

    /// Polls the next ready task, if any. The queue may hold headers of tasks that have ended.
    pub(crate) fn run_one(&self) -> Option<Ran> {
        loop {
            let class = self.choose()?;
            let header = self.shared.pop(class)?;
            if let Some(ran) = self.poll(&header) {
                return Some(ran);
            }
        }
    }

    /// Polls the ready task that `pick` names out of so many, whatever its class.
    #[cfg(feature = "sim")]
    pub(crate) fn run_picked(&self, pick: impl Fn(usize) -> usize) -> Option<Ran> {
        loop {
            let ready = self.shared.all_ready_len();
            if ready == 0 {
                return None;
            }
            let header = self.shared.take_at(pick(ready))?;
            if let Some(ran) = self.poll(&header) {
                return Some(ran);
            }
        }
    }

    fn poll(&self, header: &Arc<TaskHeader>) -> Option<Ran> {
        let (mut future, waker, name) = {
            let mut tasks = self.tasks.borrow_mut();
            let task = tasks.get_mut(header.slot)?;
            if !Arc::ptr_eq(&task.header, header) {
                return None;
            }
            (task.future.take()?, task.waker.clone(), task.name)
        };
        header.begin_poll();
        let done = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        let removed = {
            let mut tasks = self.tasks.borrow_mut();
            let task = tasks
                .get_mut(header.slot)
                .expect("a running task keeps its slot");
            if done || task.aborted {
                Some((tasks.remove(header.slot), future))
            } else {
                task.future = Some(future);
                None
            }
        };
        drop(removed);
        Some(Ran {
            class: header.class,
            name,
        })
    }

    /// Drops every task, also those that tasks spawn while they are dropped.
    pub(crate) fn clear(&self) {
        loop {
            let all: Vec<Task> = self.tasks.borrow_mut().drain().collect();
            if all.is_empty() {
                return;
            }
            drop(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    fn executor() -> Executor {
        let shared = Arc::new(CoreShared::new().unwrap());
        shared.adopt();
        Executor::new(shared)
    }

    /// A task that always has work.
    fn greedy() -> BoxedTask {
        Box::pin(poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    /// Runs `polls` polls of `nanos` each; gives their number by class.
    fn run(executor: &Executor, polls: usize, nanos: u64) -> [u64; CLASSES] {
        let mut counts = [0; CLASSES];
        for _ in 0..polls {
            let ran = executor.run_one().expect("somebody is ready");
            counts[ran.class as usize] += 1;
            executor.charge(ran.class, nanos);
        }
        counts
    }

    #[test]
    fn busy_classes_get_their_shares() {
        let executor = executor();
        for class in TaskClass::ALL {
            executor.spawn(class, "greedy", greedy());
        }
        let total: u64 = TaskClass::ALL.iter().map(|class| class.share()).sum();
        let counts = run(&executor, 2900, 1000);
        for class in TaskClass::ALL {
            let (got, due) = (counts[class as usize], 2900 * class.share() / total);
            assert!(
                got.abs_diff(due) <= 8,
                "{class:?} ran {got} times, {due} are its share"
            );
        }
    }

    /// What a class does not use while others sleep is not saved up against them.
    #[test]
    fn idling_saves_nothing_up() {
        let executor = executor();
        executor.spawn(TaskClass::Background, "greedy", greedy());
        run(&executor, 10_000, 1000);
        executor.spawn(TaskClass::Network, "greedy", greedy());
        let counts = run(&executor, 900, 1000);
        assert!(
            counts[TaskClass::Background as usize].abs_diff(100) <= 5,
            "{counts:?}"
        );
    }

    /// A wake-up that comes while the task runs makes it run again; several make it run once.
    #[test]
    fn wake_ups_are_counted_once() {
        let executor = executor();
        let mut polls = 0;
        let task = poll_fn(move |context| {
            polls += 1;
            if polls == 1 {
                context.waker().wake_by_ref();
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        executor.spawn(TaskClass::Network, "twice", Box::pin(task));
        assert!(executor.run_one().is_some());
        assert!(executor.run_one().is_some());
        assert!(executor.run_one().is_none());
    }

    #[test]
    fn an_aborted_tasks_place_in_the_queue_is_skipped() {
        let executor = executor();
        let first = executor.spawn(TaskClass::Network, "first", greedy());
        executor.abort(&first);
        // Takes the same slot, with the first one's header still queued.
        executor.spawn(TaskClass::Network, "second", greedy());
        assert_eq!(executor.run_one().map(|ran| ran.name), Some("second"));
        assert_eq!(executor.task_count(), 1);
    }
}
