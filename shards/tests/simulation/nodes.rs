use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;
use shards::io::{AcceptedSocket, Durability, File, OpenOptions, TcpStream, dir};
use shards::mesh::Endpoint;
use shards::signals::{self, Signal};
use shards::sim::{LocalMain, World};
use shards::{BackendKind, Core, CoreId, TaskClass};

use crate::{HOUR, MS, SECOND, local, options, run, start};

struct Counted(Cell<u64>);

/// Small lanes, so that they overflow: the mesh needs no thread of its own.
#[test]
fn the_mesh_works_between_cores_of_one_thread() {
    for seed in 0..20 {
        let world = World::new(seed);
        let node = world.node(options(3));
        let boot = world.boot(node).expect("boots");
        let ends: Vec<Endpoint<Counted>> = boot.endpoints(4);
        let totals = Rc::new(RefCell::new(Vec::new()));
        let main = |end: Endpoint<Counted>| -> LocalMain {
            let totals = totals.clone();
            local(move |core| async move {
                let mesh = end.attach(&core);
                let state = Rc::new(Counted(Cell::new(0)));
                mesh.serve(state.clone());
                let mut calls = Vec::new();
                for number in 0..100u64 {
                    let to = CoreId((number % 3) as u16);
                    calls.push(
                        mesh.call(to, TaskClass::Produce, move |state: &Rc<Counted>| {
                            state.0.set(state.0.get() + 1);
                            std::future::ready(number * 2)
                        }),
                    );
                }
                for (number, call) in calls.into_iter().enumerate() {
                    assert_eq!(call.await, number as u64 * 2);
                }
                // Until the others' calls have come too.
                while state.0.get() < 99 {
                    core.sleep(MS).await;
                }
                totals.borrow_mut().push(state.0.get());
            })
        };
        boot.run_local(ends.into_iter().map(main).collect())
            .expect("starts");
        assert!(world.run_until_stopped(node, HOUR), "seed {seed}");
        let mut totals = totals.borrow().clone();
        totals.sort_unstable();
        assert_eq!(totals, [99, 99, 102], "seed {seed}");
    }
}

#[test]
fn time_jumps_to_the_next_timer() {
    let world = World::new(1);
    let node = world.node(options(1));
    run(&world, node, |core| async move {
        assert_eq!(core.backend(), BackendKind::Sim);
        let (began, wall) = (core.now(), core.wall_clock_ms());
        core.sleep(HOUR / 2).await;
        let took = core.now() - began;
        assert!(took >= HOUR / 2 && took < HOUR / 2 + MS, "{took:?}");
        assert!((core.wall_clock_ms() - wall - 1_800_000).abs() <= 1);
        assert_eq!(core.blocking(|| 7).await, 7);
    });
}

#[test]
fn wall_clocks_jump_alone() {
    let world = World::new(2);
    let (a, b) = (world.node(options(1)), world.node(options(1)));
    let clocks = Rc::new(RefCell::new(Vec::new()));
    world.jump_wall_clock(b, -3_600_000);
    for node in [a, b] {
        let clocks = clocks.clone();
        start(&world, node, |core| async move {
            core.sleep(SECOND).await;
            clocks.borrow_mut().push((core.wall_clock_ms(), core.now()));
        });
    }
    world.run_for(SECOND * 2);
    let clocks = clocks.borrow();
    let (first, second) = (clocks[0], clocks[1]);
    assert!((first.0 - second.0).abs() >= 3_599_990, "{clocks:?}");
    assert!(second.1 - first.1 < MS);
}

#[test]
fn a_stalled_core_does_nothing_meanwhile() {
    let world = World::new(3);
    let node = world.node(options(2));
    let beats = Rc::new([Cell::new(0u32), Cell::new(0u32)]);
    let main = |_| {
        let beats = beats.clone();
        local(move |core| async move {
            loop {
                core.sleep(MS * 10).await;
                let mine = &beats[core.id().index()];
                mine.set(mine.get() + 1);
            }
        })
    };
    let boot = world.boot(node).expect("boots");
    boot.run_local((0..2).map(main).collect()).expect("starts");
    world.run_for(SECOND);
    world.stall(node, CoreId(1), SECOND * 10);
    let before = [beats[0].get(), beats[1].get()];
    world.run_for(SECOND * 9);
    assert!(beats[0].get() > before[0] + 800);
    assert_eq!(beats[1].get(), before[1]);
    world.run_for(SECOND * 2);
    assert!(beats[1].get() > before[1]);
}

#[test]
fn a_signal_ends_a_node_in_order() {
    let world = World::new(4);
    let node = world.node(options(1));
    start(&world, node, |core| async move {
        let signal = signals::termination(&core).await.expect("a signal");
        assert_eq!(signal, Signal::Terminate);
        let path = Path::new("/clean");
        dir::write_file_atomic(&core, path, Bytes::from_static(b"yes"))
            .await
            .expect("written");
    });
    world.run_for(SECOND);
    assert!(world.is_running(node));
    world.signal(node, Signal::Terminate);
    assert!(world.run_until_stopped(node, SECOND));
    world.crash(node);
    let found = world.disk(node).contents(Path::new("/clean"));
    assert_eq!(found.expect("there"), b"yes");
}

/// Seeds reach orders that a queue never shows.
#[test]
fn the_seed_picks_who_runs_next() {
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let world = World::new(seed);
        let node = world.node(options(1));
        let order = Rc::new(RefCell::new(Vec::new()));
        let kept = order.clone();
        run(&world, node, |core| async move {
            let tasks: Vec<_> = (0..3)
                .map(|number| {
                    let order = kept.clone();
                    core.spawn(TaskClass::Fetch, "one of three", async move {
                        order.borrow_mut().push(number);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("not aborted");
            }
        });
        orders.insert(order.borrow().clone());
    }
    assert_eq!(orders.len(), 6, "all orders of three");
}

struct Here(Core);

/// Sockets and files go from core to core as on the real backends, and a world that is dropped
/// while they are in use takes everything along.
#[test]
fn sockets_move_between_cores_and_a_dropped_world_leaves_nothing() {
    let token = Rc::new(());
    for seed in 0..5 {
        let world = World::new(seed);
        let node = world.node(options(2));
        let boot = world.boot(node).expect("boots");
        let ends: Vec<Endpoint<Here>> = boot.endpoints(4);
        let address = SocketAddr::from(([127, 0, 0, 1], 7000));
        let mut listener = Some(boot.listen(address).expect("bound"));
        assert_eq!(
            boot.listen(address).expect_err("taken").kind(),
            ErrorKind::AddrInUse
        );
        let echoed = Rc::new(Cell::new(false));
        let main = |end: Endpoint<Here>| -> LocalMain {
            let (listener, echoed, token) = (listener.take(), echoed.clone(), token.clone());
            local(move |core| async move {
                let mesh = end.attach(&core);
                mesh.serve(Rc::new(Here(core.clone())));
                let Some(listener) = listener else {
                    return talk(&core, address, &echoed, token).await;
                };
                let listener = listener.attach(&core).expect("attached");
                let options = OpenOptions::writing();
                let file = File::open(&core, Path::new("/f"), &options);
                let file = file.await.expect("opened");
                loop {
                    let socket = listener.accept().await.expect("accepted");
                    let file = file.clone();
                    mesh.post(CoreId(1), TaskClass::Network, move |here: &Rc<Here>| {
                        let here = here.clone();
                        echo(here, socket, file)
                    });
                }
            })
        };
        boot.run_local(ends.into_iter().map(main).collect())
            .expect("starts");
        assert!(world.run_until(SECOND, || echoed.get()), "seed {seed}");
        assert!(Rc::strong_count(&token) > 1);
        drop(world);
        assert_eq!(Rc::strong_count(&token), 1, "tasks outlive their world");
    }
}

async fn echo(here: Rc<Here>, socket: AcceptedSocket, file: File) {
    let core = &here.0;
    let stream = socket.attach(core).expect("attached");
    while let Ok(buffer) = stream.recv().await {
        let bytes = Bytes::copy_from_slice(&buffer);
        drop(buffer);
        file.write_all_at(core, bytes.clone(), 0, Durability::Written)
            .await
            .expect("written on another core than opened");
        stream
            .send_file(&file, 0, bytes.len() as u64)
            .await
            .expect("sent");
    }
}

/// Asks once, tells, and goes on waiting with the connection open.
async fn talk(core: &Core, address: SocketAddr, echoed: &Cell<bool>, _token: Rc<()>) {
    let stream = TcpStream::connect(core, &address).await.expect("connected");
    let question = vec![Bytes::from_static(b"x")];
    stream.send(question).await.expect("sent");
    echoed.set(stream.recv().await.expect("received")[..] == b"x"[..]);
    core.sleep(HOUR).await;
}

#[test]
fn nothing_left_to_do_is_told() {
    let world = World::new(5);
    let node = world.node(options(1));
    start(&world, node, |_| std::future::pending());
    assert!(!world.run_until_stopped(node, HOUR));
}
