//! Calls between cores: order, overflow, and that a sleeping core is always woken.

mod support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shards::mesh::{self, Mesh};
use shards::{BackendChoice, Core, CoreId, CoreMain, Runtime, TaskClass};
use support::{boxed, options};

/// What a core has received, for the tests to look at.
#[derive(Default)]
struct State {
    log: RefCell<Vec<(u16, u32)>>,
    count: Cell<u64>,
}

/// Runs `body` on every core, each with its mesh.
fn run_mesh<F, Fut>(backend: BackendChoice, cores: usize, lane_capacity: usize, body: F)
where
    F: Fn(Core, Mesh<State>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let runtime = Runtime::new(options(backend, cores)).expect("the runtime starts");
    let body = Arc::new(body);
    let mains = mesh::endpoints::<State>(&runtime, lane_capacity)
        .into_iter()
        .map(|endpoint| {
            let body = Arc::clone(&body);
            let main: CoreMain = Box::new(move |core| {
                let mesh = endpoint.attach(&core);
                boxed(body(core, mesh))
            });
            main
        })
        .collect();
    runtime.run(mains).expect("the runtime runs");
}

fn on_both(test: fn(BackendChoice)) {
    test(BackendChoice::Ring);
    test(BackendChoice::Epoll);
}

#[test]
fn calls_answer_and_posts_keep_their_order() {
    on_both(|backend| {
        run_mesh(backend, 3, 16, |core, mesh| async move {
            mesh.serve(Rc::new(State::default()));
            let me = core.id().0;
            for to in (0..3).map(CoreId) {
                // Far more than a lane holds, so that most overflow.
                for number in 0..1000u32 {
                    mesh.post(to, TaskClass::Produce, move |state: &Rc<State>| {
                        state.log.borrow_mut().push((me, number));
                        async {}
                    });
                }
                let seen: Vec<u32> = mesh
                    .call(to, TaskClass::Produce, move |state: &Rc<State>| {
                        let log = state.log.borrow();
                        let mine = log.iter().filter(|(from, _)| *from == me);
                        let seen: Vec<u32> = mine.map(|(_, number)| *number).collect();
                        async move { seen }
                    })
                    .await;
                assert!(
                    seen.iter().copied().eq(0..1000),
                    "in order, and before the call"
                );
            }
            assert!(
                core.metrics().lane_overflow > 0,
                "the test has overflowed no lane"
            );
            // The others may still need this core.
            for other in (0..3).map(CoreId) {
                mesh.call(other, TaskClass::Network, |state| {
                    state.count.set(state.count.get() + 1);
                    async {}
                })
                .await;
            }
            let state_count = || {
                mesh.call(core.id(), TaskClass::Network, |state| {
                    let count = state.count.get();
                    async move { count }
                })
            };
            while state_count().await < 3 {
                core.sleep(Duration::from_millis(1)).await;
            }
        });
    });
}

#[test]
fn calls_before_serve_wait() {
    on_both(|backend| {
        run_mesh(backend, 2, 4, |core, mesh| async move {
            if core.id() == CoreId(1) {
                core.sleep(Duration::from_millis(30)).await;
            }
            let own = mesh.call(core.id(), TaskClass::Network, |_| async { 1 });
            let other = CoreId(1 - core.id().0);
            let answer = mesh.call(other, TaskClass::Network, |_| async { 2 });
            mesh.serve(Rc::new(State::default()));
            assert_eq!((own.await, answer.await), (1, 2));
        });
    });
}

#[test]
fn a_dropped_call_still_runs_and_its_answer_is_forgotten() {
    on_both(|backend| {
        run_mesh(backend, 2, 64, |core, mesh| async move {
            mesh.serve(Rc::new(State::default()));
            let other = CoreId(1 - core.id().0);
            for _ in 0..100 {
                drop(mesh.call(other, TaskClass::Network, |state| {
                    state.count.set(state.count.get() + 1);
                    async { vec![7u8; 1000] }
                }));
            }
            let count = mesh
                .call(other, TaskClass::Network, |state| {
                    let count = state.count.get();
                    async move { count }
                })
                .await;
            assert_eq!(count, 100);
        });
    });
}

/// Ten million messages between cores that pause at random: SHARDS_WAKE_MESSAGES=10000000. By
/// default fewer. A lost wake-up would leave two cores asleep that wait for each other.
#[test]
fn a_sleeping_core_is_always_woken() {
    let messages: u64 = std::env::var("SHARDS_WAKE_MESSAGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200_000);
    for backend in [BackendChoice::Ring, BackendChoice::Epoll] {
        let sleeps = Arc::new(AtomicU64::new(0));
        let sent = Arc::new(AtomicU64::new(0));
        let (sleeps_of_cores, sent_of_cores) = (Arc::clone(&sleeps), Arc::clone(&sent));
        run_mesh(backend, 2, 8, move |core, mesh| {
            let (sleeps, sent) = (Arc::clone(&sleeps_of_cores), Arc::clone(&sent_of_cores));
            async move {
                mesh.serve(Rc::new(State::default()));
                let mut callers = Vec::new();
                for _ in 0..3 {
                    let calls = messages / 2 / 6; // a call is two messages; 2 cores, 3 callers
                    let task = caller(core.clone(), mesh.clone(), calls);
                    callers.push(core.spawn(TaskClass::Network, "caller", task));
                }
                for caller in callers {
                    caller.await.expect("not aborted");
                }
                // Serve until the other has ended too: its main's end needs nothing of ours, but
                // its calls do.
                let other = CoreId(1 - core.id().0);
                mesh.call(other, TaskClass::Network, |state| {
                    state.count.set(1);
                    async {}
                })
                .await;
                let own = || {
                    mesh.call(core.id(), TaskClass::Network, |state| {
                        let count = state.count.get();
                        async move { count }
                    })
                };
                while own().await == 0 {
                    core.sleep(Duration::from_millis(1)).await;
                }
                let metrics = core.metrics();
                sleeps.fetch_add(metrics.sleeps, Ordering::Relaxed);
                sent.fetch_add(metrics.mesh_sent, Ordering::Relaxed);
            }
        });
        let (sleeps, sent) = (sleeps.load(Ordering::Relaxed), sent.load(Ordering::Relaxed));
        println!("{backend:?}: {sent} messages, {sleeps} sleeps");
        assert!(sent >= messages * 9 / 10);
        assert!(
            sleeps > messages / 1000,
            "the cores have hardly slept: {sleeps}"
        );
    }
}

async fn caller(core: Core, mesh: Mesh<State>, calls: u64) {
    let other = CoreId(1 - core.id().0);
    let mut left = calls;
    while left > 0 {
        let random = core.random_u64();
        // Mostly one call at a time, sometimes a burst that overflows the lane.
        let burst = if random.is_multiple_of(64) {
            left.min(40)
        } else {
            1
        };
        left -= burst;
        let answers: Vec<_> = (0..burst)
            .map(|number| {
                mesh.call(other, TaskClass::Network, move |_| async move {
                    number + random % 7
                })
            })
            .collect();
        for (number, answer) in (0..).zip(answers) {
            // Generous: the machine may be busy. A lost wake-up waits for ever.
            let answer = core.timeout(Duration::from_secs(60), answer).await;
            assert_eq!(answer.expect("a wake-up was lost"), number + random % 7);
        }
        match (random >> 8) % 16 {
            0 => core.yield_now().await,
            1 => {
                let until = core.now() + Duration::from_nanos((random >> 16) % 5_000);
                while core.now() < until {
                    std::hint::spin_loop();
                }
            }
            2 if random.is_multiple_of(16) => {
                core.sleep(Duration::from_micros((random >> 16) % 200))
                    .await;
            }
            _ => {}
        }
    }
}
