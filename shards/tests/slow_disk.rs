//! A disk that stalls delays nothing else on its core.

mod support;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shards::fault::{FileFault, FileOperation};
use shards::io::{Durability, File, OpenOptions, TcpStream, dir};
use shards::{BackendChoice, Core, RuntimeOptions, TaskClass};
use support::{disk_dir, options, path_in, run_with};

const STALL: Duration = Duration::from_millis(1500);
/// What a heartbeat may be late by on a busy test machine; far below the stall.
const LATE: Duration = Duration::from_millis(500);

/// Heartbeats over a socket, every 2 ms; gives their number and the worst round trip.
async fn heartbeats(core: Core, stop: Rc<Cell<bool>>) -> (u32, Duration) {
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let bound = shards::io::BoundListener::bind(any).expect("bound");
    let listener = bound.attach(&core).expect("attached");
    let client = TcpStream::connect(&core, &listener.local_addr())
        .await
        .expect("connected");
    let server = listener
        .accept()
        .await
        .expect("accepted")
        .attach(&core)
        .expect("attached");
    drop(core.spawn(TaskClass::Network, "echo", async move {
        while let Ok(buffer) = server.recv().await {
            if buffer.is_empty() {
                return;
            }
            server
                .send(vec![Bytes::copy_from_slice(&buffer)])
                .await
                .expect("sent");
        }
    }));
    let (mut beats, mut worst) = (0, Duration::ZERO);
    while !stop.get() {
        let started = core.now();
        client
            .send(vec![Bytes::from_static(b"beat")])
            .await
            .expect("sent");
        assert!(!client.recv().await.expect("received").is_empty());
        core.sleep(Duration::from_millis(2)).await;
        worst = worst.max(core.now() - started);
        beats += 1;
    }
    (beats, worst)
}

fn stalling_options(backend: BackendChoice) -> RuntimeOptions {
    RuntimeOptions {
        file_threads: 2,
        file_faults: Some(Arc::new(|operation, path| {
            let slow = path.ends_with("slow") && operation != FileOperation::Open;
            if slow {
                FileFault::Delay(STALL)
            } else {
                FileFault::None
            }
        })),
        ..options(backend, 1)
    }
}

/// More operations stall than there are pool threads, and directory work goes on as well.
#[test]
fn a_stalled_disk_delays_no_heartbeat() {
    for backend in [BackendChoice::Ring, BackendChoice::Epoll] {
        run_with(stalling_options(backend), |core| async move {
            let root = disk_dir(&core).await;
            let slow = path_in(&root, "slow");
            let file = File::open(&core, &slow, &OpenOptions::writing())
                .await
                .expect("opened");
            let stop = Rc::new(Cell::new(false));
            let beating = heartbeats(core.clone(), Rc::clone(&stop));
            let beating = core.spawn(TaskClass::Network, "heart", beating);
            let started = core.now();
            let mut stalled = Vec::new();
            for number in 0..4u64 {
                let (core_of_task, file) = (core.clone(), file.clone());
                stalled.push(core.spawn(TaskClass::Produce, "stalled", async move {
                    let data = Bytes::from_static(b"data");
                    file.write_all_at(&core_of_task, data, number * 4, Durability::Durable)
                        .await
                }));
            }
            let listing = core.now();
            for _ in 0..20 {
                dir::read_dir(&core, root.path()).await.expect("listed");
            }
            assert!(
                core.now() - listing < STALL,
                "directory work does not queue behind the disk"
            );
            for write in stalled {
                write.await.expect("not aborted").expect("written");
            }
            assert!(core.now() - started >= STALL);
            stop.set(true);
            let (beats, worst) = beating.await.expect("not aborted");
            assert!(worst < LATE, "a heartbeat took {worst:?}");
            assert!(beats > 50, "{beats} heartbeats");
        });
    }
}

/// The ring itself, with an operation that the kernel really does not complete: a read from a
/// FIFO that nobody writes to.
#[test]
fn a_ring_read_that_hangs_delays_no_heartbeat() {
    run_with(options(BackendChoice::Ring, 1), |core| async move {
        let root = disk_dir(&core).await;
        let path = path_in(&root, "fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("made");
        let read_write = OpenOptions {
            read: true,
            write: true,
            ..OpenOptions::default()
        };
        let fifo = File::open(&core, &path, &read_write).await.expect("opened");
        let stop = Rc::new(Cell::new(false));
        let beating = core.spawn(
            TaskClass::Network,
            "heart",
            heartbeats(core.clone(), Rc::clone(&stop)),
        );
        let (core_of_task, reader) = (core.clone(), fifo.clone());
        let hanging = core.spawn(TaskClass::Fetch, "hangs", async move {
            reader.read_exact_at(&core_of_task, 0, 4).await
        });
        core.sleep(Duration::from_millis(500)).await;
        assert!(!hanging.is_finished());
        fifo.write_all_at(&core, Bytes::from_static(b"free"), 0, Durability::Written)
            .await
            .expect("written");
        assert_eq!(
            &hanging.await.expect("not aborted").expect("read")[..],
            b"free"
        );
        stop.set(true);
        let (beats, worst) = beating.await.expect("not aborted");
        assert!(worst < LATE, "a heartbeat took {worst:?}");
        assert!(beats > 20, "{beats} heartbeats");
    });
}

#[test]
fn faults_can_fail_an_operation() {
    let failing = RuntimeOptions {
        file_faults: Some(Arc::new(|operation, path| match operation {
            FileOperation::Write if path.ends_with("full") => FileFault::Error(libc::ENOSPC),
            FileOperation::Sync => FileFault::Error(libc::EIO),
            _ => FileFault::None,
        })),
        ..options(BackendChoice::Auto, 1)
    };
    run_with(failing, |core| async move {
        let root = disk_dir(&core).await;
        for (name, fails) in [("full", true), ("fine", false)] {
            let path = path_in(&root, name);
            let file = File::open(&core, &path, &OpenOptions::writing())
                .await
                .expect("opened");
            let data = Bytes::from_static(b"data");
            let written = file.write_all_at(&core, data, 0, Durability::Written).await;
            assert_eq!(written.is_err(), fails);
            let error = file.sync_data(&core).await.expect_err("fails");
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
        }
    });
}

/// Who is told that a write failed may cut the file: nothing of the write may arrive after that.
#[test]
fn a_write_of_which_one_part_fails_is_over_when_it_says_so() {
    const BLOCK: usize = shards::io::BLOCK;
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let failing = RuntimeOptions {
        file_faults: Some(Arc::new(move |operation, _| match operation {
            FileOperation::Write => match counted.fetch_add(1, Ordering::Relaxed) {
                0 => FileFault::Error(libc::EIO),
                _ => FileFault::Delay(Duration::from_millis(100)),
            },
            _ => FileFault::None,
        })),
        ..options(BackendChoice::Ring, 1)
    };
    run_with(failing, |core| async move {
        let root = disk_dir(&core).await;
        let path = path_in(&root, "f");
        let direct = OpenOptions {
            direct: true,
            ..OpenOptions::writing()
        };
        let file = File::open(&core, &path, &direct).await.expect("opened");
        let mut buffer = shards::io::AlignedBuf::zeroed(3 * BLOCK);
        buffer.as_mut_slice().fill(7);
        let error = file
            .write_on_at(&core, buffer.freeze(), 0, BLOCK)
            .await
            .expect_err("a part fails");
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        let there = std::fs::read(&path).expect("read");
        let mut wanted = vec![0; BLOCK];
        wanted.resize(3 * BLOCK, 7);
        assert!(there == wanted, "the other part is there, all of it");
    });
}
