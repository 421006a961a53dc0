//! Dropping operations in flight: the kernel's memory stays the kernel's, and no byte is lost.

mod support;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use shards::io::{AlignedBuf, BLOCK, BoundListener, Durability, File, OpenOptions, TcpStream};
use shards::{BackendChoice, Core, TaskClass};
use support::{disk_dir, path_in, pattern, run};

const BACKENDS: [BackendChoice; 2] = [BackendChoice::Ring, BackendChoice::Epoll];

/// Polls `future` once, so that its operation is submitted, and drops it, unless it was ready.
async fn start_and_drop<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn aligned(bytes: &[u8]) -> Bytes {
    let mut buffer = AlignedBuf::with_capacity(bytes.len());
    buffer.extend_from_slice(bytes);
    buffer.freeze()
}

/// Waits until the ring holds nothing any more but what waits for ever by design.
async fn settle(core: &Core) {
    for _ in 0..5_000 {
        if core.metrics().operations_in_flight == 0 {
            return;
        }
        core.sleep(Duration::from_millis(1)).await;
    }
    panic!(
        "{} operations are left",
        core.metrics().operations_in_flight
    );
}

/// Reads are dropped in flight while memory of the same sizes is allocated and watched: a read
/// that still wrote to freed memory would change it.
#[test]
fn dropped_reads_do_not_touch_memory_of_others() {
    for backend in BACKENDS {
        run(backend, |core| async move {
            let root = disk_dir(&core).await;
            let direct = OpenOptions {
                direct: true,
                ..OpenOptions::writing()
            };
            let file = File::open(&core, &path_in(&root, "f"), &direct)
                .await
                .expect("opened");
            let data = aligned(&pattern(256 * BLOCK, 1));
            file.write_all_at(&core, data.clone(), 0, Durability::Written)
                .await
                .expect("written");
            let canary = vec![0xA5u8; 16 * BLOCK];
            for round in 0..50u64 {
                for block in 0..16 {
                    let offset = (round * 7 + block * 13) % 240 * BLOCK as u64;
                    let _ = start_and_drop(file.read_exact_at(&core, offset, 16 * BLOCK)).await;
                }
                let watched: Vec<Bytes> = (0..16).map(|_| aligned(&canary)).collect();
                if round % 5 == 0 {
                    settle(&core).await;
                } else {
                    core.yield_now().await;
                }
                assert!(watched.iter().all(|memory| memory[..] == canary[..]));
            }
            settle(&core).await;
            assert_eq!(
                file.read_exact_at(&core, 0, 256 * BLOCK)
                    .await
                    .expect("read"),
                data
            );
        });
    }
}

/// Writes are dropped in flight and their memory is let go at once: each block of the file is
/// afterwards what some write carried, or untouched, never what the memory held later.
#[test]
fn dropped_writes_write_their_own_bytes_or_nothing() {
    for backend in BACKENDS {
        run(backend, |core| async move {
            let root = disk_dir(&core).await;
            let direct = OpenOptions {
                direct: true,
                ..OpenOptions::writing()
            };
            let file = File::open(&core, &path_in(&root, "f"), &direct)
                .await
                .expect("opened");
            file.allocate(&core, 0, 512 * BLOCK as u64)
                .await
                .expect("allocated");
            for block in 0..512u64 {
                let bytes = aligned(&vec![(block % 200) as u8 + 1; BLOCK]);
                let offset = block * BLOCK as u64;
                let _ =
                    start_and_drop(file.write_all_at(&core, bytes, offset, Durability::Written))
                        .await;
                let other = aligned(&[0xEE; BLOCK]); // most likely the same memory
                assert!(other.iter().all(|byte| *byte == 0xEE));
            }
            settle(&core).await;
            core.sleep(Duration::from_millis(100)).await; // epoll's pool threads end by themselves
            let all = file
                .read_exact_at(&core, 0, 512 * BLOCK)
                .await
                .expect("read");
            for (block, bytes) in all.chunks(BLOCK).enumerate() {
                let own = (block % 200) as u8 + 1;
                assert!(
                    bytes.iter().all(|byte| *byte == own) || bytes.iter().all(|byte| *byte == 0),
                    "block {block} holds strange bytes"
                );
            }
        });
    }
}

async fn pair(core: &Core) -> (TcpStream, TcpStream) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = BoundListener::bind(any)
        .expect("bound")
        .attach(core)
        .expect("attached");
    let client = TcpStream::connect(core, &listener.local_addr())
        .await
        .expect("connected");
    let server = listener
        .accept()
        .await
        .expect("accepted")
        .attach(core)
        .expect("attached");
    (client, server)
}

/// Every way of receiving is dropped at every stage, at random, and the stream stays whole.
#[test]
fn dropped_receives_of_all_kinds_lose_no_byte() {
    for backend in BACKENDS {
        run(backend, |core| async move {
            let (client, server) = pair(&core).await;
            let data = pattern(2 << 20, 3);
            let (core_of_task, sent) = (core.clone(), data.clone());
            let sending = core.spawn(TaskClass::Network, "send", async move {
                let mut at = 0;
                while at < sent.len() {
                    let random = core_of_task.random_u64();
                    let len = ((random % 9000) as usize + 1).min(sent.len() - at);
                    let part = Bytes::copy_from_slice(&sent[at..at + len]);
                    client.send(vec![part]).await.expect("sent");
                    at += len;
                    if random.is_multiple_of(3) {
                        core_of_task.yield_now().await;
                    }
                    if random.is_multiple_of(50) {
                        core_of_task.sleep(Duration::from_micros(300)).await;
                    }
                }
                client
            });
            let mut received = Vec::new();
            while received.len() < data.len() {
                let random = core.random_u64();
                let left = data.len() - received.len();
                let want = ((random >> 8) as usize % 40_000 + 1).min(left);
                let patience = Duration::from_micros((random >> 32) % 400);
                match random % 4 {
                    0 => {
                        if let Some(buffer) = start_and_drop(server.recv()).await {
                            received.extend_from_slice(&buffer.expect("received"));
                        }
                    }
                    1 => {
                        let exact = server.recv_exact(BytesMut::new(), want);
                        if let Some(buffer) = start_and_drop(exact).await {
                            received.extend_from_slice(&buffer.expect("received"));
                        }
                    }
                    2 => {
                        if let Ok(buffer) = core.timeout(patience, server.recv()).await {
                            received.extend_from_slice(&buffer.expect("received"));
                        }
                    }
                    _ => {
                        let mut buf = BytesMut::with_capacity(want + 3);
                        buf.extend_from_slice(b"own");
                        let exact = server.recv_exact(buf, want);
                        if let Ok(buffer) = core.timeout(patience, exact).await {
                            let buffer = buffer.expect("received");
                            assert_eq!(&buffer[..3], b"own");
                            received.extend_from_slice(&buffer[3..]);
                        }
                    }
                }
                assert!(
                    received[..] == data[..received.len()],
                    "bytes lost or out of order"
                );
            }
            drop(sending.await.expect("not aborted"));
            drop(server);
            settle(&core).await;
            assert_eq!(core.metrics().recv_pool_in_use, 0);
        });
    }
}

/// A connection that goes away with everything in flight leaves nothing behind.
#[test]
fn dropped_connections_leave_nothing_in_flight() {
    for backend in BACKENDS {
        run(backend, |core| async move {
            let big = Bytes::from(pattern(8 << 20, 4));
            for round in 0..20 {
                let (client, server) = pair(&core).await;
                let _ = start_and_drop(server.recv()).await;
                let _ = start_and_drop(client.recv_exact(BytesMut::new(), 100)).await;
                if round % 2 == 0 {
                    let _ = start_and_drop(server.send(vec![big.clone()])).await;
                }
                client
                    .send(vec![Bytes::from_static(b"in flight")])
                    .await
                    .expect("sent");
                drop((client, server));
            }
            settle(&core).await;
            assert_eq!(core.metrics().recv_pool_in_use, 0);
        });
    }
}

/// The core stops with operations in flight, also such that never end by themselves.
#[test]
fn a_core_stops_with_operations_in_flight() {
    for backend in BACKENDS {
        run(backend, |core| async move {
            let (client, server) = pair(&core).await;
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = BoundListener::bind(any)
                .expect("bound")
                .attach(&core)
                .expect("attached");
            drop(core.spawn(TaskClass::Network, "accept", async move {
                listener.accept().await.is_ok()
            }));
            drop(core.spawn(TaskClass::Network, "recv", async move {
                let _ = client.recv().await;
            }));
            drop(core.spawn(TaskClass::Network, "exact", async move {
                let _ = server.recv_exact(BytesMut::new(), 1 << 20).await;
            }));
            core.sleep(Duration::from_millis(5)).await;
        });
    }
}
