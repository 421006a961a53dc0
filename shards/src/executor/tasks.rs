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
