use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use shards::{Aborted, Core, Elapsed, TaskClass};

const MS: Duration = Duration::from_millis(1);

pub async fn sleeps_end_in_order(core: Core) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut tasks = Vec::new();
    for (name, ms) in [(3, 30), (1, 10), (2, 20), (0, 0)] {
        let (sleep, order) = (core.sleep(MS * ms), Rc::clone(&order));
        tasks.push(core.spawn(TaskClass::Network, "sleeper", async move {
            sleep.await;
            order.borrow_mut().push(name);
        }));
    }
    let started = core.now();
    for task in tasks {
        task.await.expect("not aborted");
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 3]);
    assert!(core.now() - started >= MS * 29, "no sleep ends early");
}

struct Flag(Rc<Cell<bool>>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

pub async fn timeout_drops_what_is_late(core: Core) {
    assert_eq!(core.timeout(MS * 1000, async { 7 }).await, Ok(7));
    let dropped = Rc::new(Cell::new(false));
    let flag = Flag(Rc::clone(&dropped));
    let late = async move {
        pending::<()>().await;
        drop(flag);
    };
    assert_eq!(core.timeout(MS * 5, late).await, Err(Elapsed));
    assert!(dropped.get());
}

pub async fn a_wake_up_from_another_thread_arrives(core: Core) {
    for round in 0..200u64 {
        assert_eq!(core.blocking(move || round * 2).await, round * 2);
    }
    // Through a bare waker too, woken while the core sleeps and while it is busy.
    for _ in 0..200 {
        let mut sent = false;
        let woken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        poll_fn(|context| {
            if !std::mem::replace(&mut sent, true) {
                let (waker, woken) = (context.waker().clone(), woken.clone());
                drop(core.blocking(move || {
                    woken.store(true, std::sync::atomic::Ordering::SeqCst);
                    waker.wake();
                }));
            }
            if woken.load(std::sync::atomic::Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

pub async fn abort_ends_a_task_and_join_says_so(core: Core) {
    let dropped = Rc::new(Cell::new(false));
    let flag = Flag(Rc::clone(&dropped));
    let task = core.spawn(TaskClass::Background, "endless", async move {
        let _flag = flag;
        pending::<()>().await;
    });
    core.yield_now().await;
    core.sleep(MS).await;
    assert!(!task.is_finished());
    task.abort();
    assert!(dropped.get(), "abort drops the future at once");
    assert_eq!(task.await, Err(Aborted));

    // A task may abort itself: it ends at its next await.
    let handle: Rc<RefCell<Option<shards::JoinHandle<()>>>> = Rc::default();
    let own = Rc::clone(&handle);
    let core_of_task = core.clone();
    let reached = Rc::new(Cell::new(false));
    let mark = Rc::clone(&reached);
    let task = core.spawn(TaskClass::Network, "suicide", async move {
        core_of_task.yield_now().await;
        own.borrow().as_ref().expect("set by now").abort();
        core_of_task.yield_now().await;
        mark.set(true);
    });
    *handle.borrow_mut() = Some(task);
    core.sleep(MS * 5).await;
    assert!(!reached.get());
    assert!(handle.borrow().as_ref().expect("set").is_finished());
}

fn spin(core: &Core, span: Duration) {
    let until = core.now() + span;
    while core.now() < until {
        std::hint::spin_loop();
    }
}

/// A task that always has work starves nobody, of whatever class.
pub async fn nobody_starves(core: Core) {
    let stop = Rc::new(Cell::new(false));
    for class in [TaskClass::Network, TaskClass::Produce] {
        let (core_of_task, stop) = (core.clone(), Rc::clone(&stop));
        drop(core.spawn(class, "greedy", async move {
            while !stop.get() {
                spin(&core_of_task, Duration::from_micros(20));
                core_of_task.yield_now().await;
            }
        }));
    }
    let core_of_task = core.clone();
    let background = core.spawn(TaskClass::Background, "modest", async move {
        for _ in 0..20 {
            core_of_task.yield_now().await;
        }
        core_of_task.sleep(MS).await;
        core_of_task.blocking(|| 7).await
    });
    let answer = core
        .timeout(MS * 10_000, background)
        .await
        .expect("in time");
    assert_eq!(answer, Ok(7));
    stop.set(true);
}

pub async fn a_stall_is_counted(core: Core) {
    let before = core.metrics().stalls;
    let core_of_task = core.clone();
    core.spawn(TaskClass::Network, "stalls", async move {
        spin(&core_of_task, MS * 60)
    })
    .await
    .expect("not aborted");
    assert_eq!(core.metrics().stalls, before + 1);
    assert!(core.metrics().longest_poll_us >= 60_000);
}
