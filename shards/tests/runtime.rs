//! Starting, idling and ending.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shards::io::{BoundListener, TcpStream};
use shards::{BackendChoice, BackendKind, CoreMain, Runtime, RuntimeOptions, TaskClass};
use support::{boxed, options, run, run_with};

#[test]
fn more_cores_than_the_machine_has_all_run() {
    for backend in [BackendChoice::Ring, BackendChoice::Epoll] {
        let ran = Arc::new(AtomicU64::new(0));
        let cores = 9;
        let runtime = Runtime::new(RuntimeOptions {
            pin: true,
            ..options(backend, cores)
        });
        let mains = (0..cores)
            .map(|_| {
                let ran = Arc::clone(&ran);
                let main: CoreMain = Box::new(move |core| {
                    boxed(async move {
                        core.sleep(Duration::from_millis(core.random_u64() % 20))
                            .await;
                        assert_eq!(core.core_count(), 9);
                        ran.fetch_add(1 << core.id().0, Ordering::Relaxed);
                    })
                });
                main
            })
            .collect();
        runtime.expect("starts").run(mains).expect("runs");
        assert_eq!(ran.load(Ordering::Relaxed), 0b1_1111_1111);
    }
}

#[test]
fn a_panic_on_one_core_stops_all() {
    let runtime = Runtime::new(options(BackendChoice::Auto, 2)).expect("starts");
    let mains: Vec<CoreMain> = vec![
        Box::new(|_| boxed(std::future::pending())),
        Box::new(|core| {
            boxed(async move {
                core.sleep(Duration::from_millis(5)).await;
                panic!("on purpose");
            })
        }),
    ];
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.run(mains)));
    let payload = caught.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
}

#[test]
fn a_panic_in_blocking_work_reaches_who_waits() {
    let caught = std::panic::catch_unwind(|| {
        run(BackendChoice::Auto, |core| async move {
            core.blocking(|| panic!("in the pool")).await
        });
    });
    let payload = caught.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"in the pool"));
}

#[test]
fn the_backend_asked_for_is_the_one_that_runs() {
    let epoll = Runtime::new(options(BackendChoice::Epoll, 1)).expect("starts");
    assert_eq!(
        (epoll.backend(), epoll.fallback_reason()),
        (BackendKind::Epoll, None)
    );
    let auto = Runtime::new(options(BackendChoice::Auto, 1)).expect("starts");
    assert_eq!(
        auto.backend() == BackendKind::Epoll,
        auto.fallback_reason().is_some()
    );
    let error = Runtime::new(options(BackendChoice::Auto, 0))
        .err()
        .expect("refused");
    assert!(error.to_string().contains("cores"));
}

#[test]
fn stalls_are_reported_by_name() {
    let reported = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&reported);
    let reporting = RuntimeOptions {
        stall_threshold: Duration::from_millis(10),
        on_stall: Some(Arc::new(move |report| {
            if report.task == "the culprit" {
                assert_eq!(report.class, TaskClass::Background);
                assert!(report.held >= Duration::from_millis(20));
                count.fetch_add(1, Ordering::Relaxed);
            }
        })),
        ..options(BackendChoice::Auto, 1)
    };
    run_with(reporting, |core| async move {
        let core_of_task = core.clone();
        let culprit = core.spawn(TaskClass::Background, "the culprit", async move {
            let until = core_of_task.now() + Duration::from_millis(20);
            while core_of_task.now() < until {
                std::hint::spin_loop();
            }
        });
        culprit.await.expect("not aborted");
    });
    assert_eq!(reported.load(Ordering::Relaxed), 1);
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("proc");
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .expect("field")
        .parse()
        .expect("number");
    pages * 4096
}

/// A thousand connections that wait for bytes: little memory, no buffer, and no turn of the core.
#[test]
fn idle_connections_cost_almost_nothing() {
    for backend in [BackendChoice::Ring, BackendChoice::Epoll] {
        run(backend, |core| async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = BoundListener::bind(any)
                .expect("bound")
                .attach(&core)
                .expect("a");
            let mut clients = Vec::new();
            let mut readers = Vec::new();
            let mut before = 0;
            let count = 400;
            for number in 0..count + 50 {
                if number == 50 {
                    core.sleep(Duration::from_millis(20)).await;
                    before = resident_bytes();
                }
                let client = TcpStream::connect(&core, &listener.local_addr())
                    .await
                    .expect("c");
                let server = listener
                    .accept()
                    .await
                    .expect("accepted")
                    .attach(&core)
                    .expect("a");
                readers.push(core.spawn(TaskClass::Network, "reader", async move {
                    server.recv().await.expect("received").len()
                }));
                clients.push(client);
            }
            core.sleep(Duration::from_millis(20)).await;
            let each = resident_bytes().saturating_sub(before) / count;
            println!(
                "{:?}: {each} bytes resident per connection and its client",
                core.backend()
            );
            assert!(each < 8 * 1024, "{each} bytes per idle connection");
            assert_eq!(core.metrics().recv_pool_in_use, 0);

            let turns = core.metrics().turns;
            core.sleep(Duration::from_millis(300)).await;
            let turned = core.metrics().turns - turns;
            assert!(turned <= 5, "an idle core made {turned} turns");

            for client in &clients {
                client
                    .send(vec![Bytes::from_static(b"hi")])
                    .await
                    .expect("sent");
            }
            for reader in readers {
                assert_eq!(reader.await.expect("not aborted"), 2);
            }
        });
    }
}
