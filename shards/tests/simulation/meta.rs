//! Determinism is itself tested.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;
use shards::io::{Durability, File, OpenOptions, TcpStream};
use shards::mesh::Endpoint;
use shards::sim::{DiskFaults, LocalMain, NetworkFaults, NodeId, World};
use shards::{Core, CoreId, TaskClass};

use crate::{MS, SECOND, local, options};

const PORT: u16 = 4000;

/// A node of two cores: the first takes bytes in, the second writes them to the disk.
fn boot_server(world: &World, node: NodeId) {
    let boot = world.boot(node).expect("boots");
    let mut ends: Vec<Endpoint<Store>> = boot.endpoints(8);
    let (second, first) = (ends.pop().expect("two"), ends.pop().expect("two"));
    let listener = boot
        .listen(SocketAddr::from(([0, 0, 0, 0], PORT)))
        .expect("bound");
    let first: LocalMain = local(|core| async move {
        let mesh = first.attach(&core);
        mesh.serve(Store::new(&core));
        let listener = listener.attach(&core).expect("attached");
        loop {
            let Ok(socket) = listener.accept().await else {
                return;
            };
            let (mesh, stream) = (mesh.clone(), socket.attach(&core).expect("attached"));
            drop(core.spawn(TaskClass::Network, "connection", async move {
                while let Ok(buffer) = stream.recv().await {
                    if buffer.is_empty() {
                        return;
                    }
                    let data = Bytes::copy_from_slice(&buffer);
                    let store = move |store: &Rc<Store>| store.clone().append(data);
                    mesh.post(CoreId(1), TaskClass::Produce, store);
                    let answer = vec![Bytes::from_static(b"ok")];
                    if stream.send(answer).await.is_err() {
                        return;
                    }
                }
            }));
        }
    });
    let second: LocalMain = local(|core| async move {
        let mesh = second.attach(&core);
        mesh.serve(Store::new(&core));
        std::future::pending::<()>().await;
    });
    boot.run_local(vec![first, second]).expect("starts");
}

/// What the calls between the cores get to see.
struct Store {
    core: Core,
    end: Cell<u64>,
}

impl Store {
    fn new(core: &Core) -> Rc<Self> {
        Rc::new(Self {
            core: core.clone(),
            end: Cell::new(0),
        })
    }

    async fn append(self: Rc<Self>, data: Bytes) {
        let offset = self.end.get();
        self.end.set(offset + data.len() as u64);
        let (core, path) = (&self.core, Path::new("/log"));
        if let Ok(file) = File::open(core, path, &OpenOptions::writing()).await {
            let written = file.write_all_at(core, data, offset, Durability::Durable);
            drop(written.await);
        }
    }
}

/// Two nodes, faults of every kind, a crash in the middle; gives the trace and the disk.
fn play(seed: u64) -> (String, Vec<u8>, (u64, u64)) {
    let world = World::traced(seed);
    let (server, client) = (world.node(options(2)), world.node(options(1)));
    let disk = world.disk(server);
    disk.set_faults(DiskFaults {
        write_error_per_million: 50_000,
        slow_per_million: 50_000,
        ..DiskFaults::default()
    });
    world.network().set_faults(NetworkFaults {
        reset_per_million: 20_000,
        slow_per_million: 50_000,
        ..NetworkFaults::default()
    });
    // With a durable name: what is appended must be found after the crash.
    disk.put(Path::new("/log"), b"").expect("put");
    boot_server(&world, server);
    let target = SocketAddr::new(world.address(server), PORT);
    let boot = world.boot(client).expect("boots");
    let main = local(move |core| async move {
        loop {
            let Ok(stream) = TcpStream::connect(&core, &target).await else {
                core.sleep(MS * 50).await;
                continue;
            };
            loop {
                let len = core.random_u64() % 3000 + 1;
                let data = Bytes::from(vec![len as u8; len as usize]);
                let sent = stream.send(vec![data]).await;
                let answer = core.timeout(SECOND, stream.recv()).await;
                if sent.is_err() || !answer.is_ok_and(|answer| answer.is_ok_and(|b| !b.is_empty()))
                {
                    break;
                }
            }
        }
    });
    boot.run_local(vec![main]).expect("starts");
    world.run_for(SECOND);
    world.network().partition(&[client], &[server]);
    world.run_for(MS * 100);
    world.network().heal();
    world.run_for(MS * 500);
    world.crash(server);
    let contents = disk.contents(Path::new("/log")).expect("there");
    boot_server(&world, server);
    world.run_for(SECOND * 2);
    let digest = world.trace_digest();
    (world.trace(), contents, digest)
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let mut digests = std::collections::BTreeSet::new();
    for seed in [1, 2, 3, 0xDEAD_BEEF] {
        let (first, second) = (play(seed), play(seed));
        let lines = first.0.lines().count();
        assert!(lines > 500 && !first.1.is_empty(), "only {lines} lines");
        let same = first.0.lines().zip(second.0.lines());
        if let Some((a, b)) = same.clone().find(|(a, b)| a != b) {
            panic!("seed {seed} went two ways:\n{a}\n{b}");
        }
        assert!(first == second, "seed {seed}");
        digests.insert(first.2);
    }
    assert_eq!(digests.len(), 4, "every seed is another run");
}
