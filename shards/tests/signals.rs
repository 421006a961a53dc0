//! SIGTERM and SIGINT end a process in order. Its own test binary: signals belong to the process.

mod support;

use std::time::Duration;

use rustix::process::{Signal as Kernel, getpid, kill_process};
use shards::signals::{Signal, termination};
use shards::{BackendChoice, TaskClass};
use support::run;

#[test]
fn signals_wake_who_waits_for_them() {
    for backend in [BackendChoice::Ring, BackendChoice::Epoll] {
        run(backend, |core| async move {
            for (sent, expected) in [
                (Kernel::TERM, Signal::Terminate),
                (Kernel::INT, Signal::Interrupt),
            ] {
                let core_of_task = core.clone();
                let waiting = core.spawn(TaskClass::Network, "signals", async move {
                    termination(&core_of_task).await.expect("installed")
                });
                core.sleep(Duration::from_millis(10)).await;
                assert!(!waiting.is_finished());
                kill_process(getpid(), sent).expect("sent");
                let got = core
                    .timeout(Duration::from_secs(10), waiting)
                    .await
                    .expect("in time");
                assert_eq!(got.expect("not aborted"), expected);
            }
        });
    }
}
