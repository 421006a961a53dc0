use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use shards::io::{BoundListener, TcpStream};
use shards::sim::{NetworkFaults, NodeId, World};
use shards::{Core, TaskClass};

use crate::{MS, SECOND, options, run, start};

const PORT: u16 = 9092;

/// Two nodes; the first echoes whatever comes, on every connection.
fn world(seed: u64) -> (World, NodeId, NodeId) {
    let world = World::new(seed);
    let (server, client) = (world.node(options(1)), world.node(options(1)));
    serve(&world, server);
    (world, server, client)
}

fn serve(world: &World, server: NodeId) {
    start(world, server, |core| async move {
        let any = SocketAddr::from(([0, 0, 0, 0], PORT));
        let listener = BoundListener::bind_on(&core, any).expect("bound");
        let listener = listener.attach(&core).expect("attached");
        loop {
            let stream = listener.accept().await.expect("accepted");
            let stream = stream.attach(&core).expect("attached");
            drop(core.spawn(TaskClass::Network, "echo", async move {
                while let Ok(buffer) = stream.recv().await {
                    let answer = Bytes::copy_from_slice(&buffer);
                    if answer.is_empty() || stream.send(vec![answer]).await.is_err() {
                        return;
                    }
                }
            }));
        }
    });
}

async fn ask(stream: &TcpStream, what: &'static [u8]) -> std::io::Result<Vec<u8>> {
    stream.send(vec![Bytes::from_static(what)]).await?;
    let mut answer = Vec::new();
    while answer.len() < what.len() {
        let buffer = stream.recv().await?;
        if buffer.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&buffer);
    }
    Ok(answer)
}

type Answer = Result<Vec<u8>, ErrorKind>;

/// A client that asks once and then again whenever `again` is raised; its results are kept.
struct Client {
    results: Rc<RefCell<Vec<Answer>>>,
    rounds: Rc<Cell<usize>>,
}

impl Client {
    fn start(world: &World, node: NodeId, target: SocketAddr) -> Self {
        let client = Self {
            results: Rc::default(),
            rounds: Rc::new(Cell::new(1)),
        };
        let (results, rounds) = (client.results.clone(), client.rounds.clone());
        start(world, node, move |core: Core| async move {
            let stream = TcpStream::connect(&core, &target).await.expect("connected");
            loop {
                while results.borrow().len() >= rounds.get() {
                    core.sleep(MS).await;
                }
                let answer = ask(&stream, b"hello").await;
                results
                    .borrow_mut()
                    .push(answer.map_err(|error| error.kind()));
            }
        });
        client.wait(world);
        client
    }

    fn ask_again(&self) {
        self.rounds.set(self.rounds.get() + 1);
    }

    fn wait(&self, world: &World) {
        let done = world.run_until(SECOND * 300, || self.is_answered());
        assert!(done, "no answer, seed {}", world.seed());
    }

    fn is_answered(&self) -> bool {
        self.results.borrow().len() == self.rounds.get()
    }

    fn last(&self) -> Answer {
        self.results.borrow().last().expect("asked").clone()
    }
}

fn hello() -> Answer {
    Ok(b"hello".to_vec())
}

#[test]
fn nodes_talk_by_address() {
    for seed in 0..10 {
        let (world, server, client) = world(seed);
        let target = SocketAddr::new(world.address(server), PORT);
        let own = world.address(client);
        run(&world, client, move |core| async move {
            let stream = TcpStream::connect(&core, &target).await.expect("connected");
            assert_eq!(stream.peer_addr(), target);
            assert_eq!(stream.local_addr().ip(), own);
            let answer = ask(&stream, b"some words").await.expect("answered");
            assert_eq!(answer, b"some words");
            // The loopback of another node is not mine.
            let mine = SocketAddr::from(([127, 0, 0, 1], PORT));
            let error = TcpStream::connect(&core, &mine)
                .await
                .err()
                .expect("refused");
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        });
    }
}

#[test]
fn a_reset_is_seen_at_both_ends() {
    let (world, server, client) = world(1);
    let asking = Client::start(&world, client, SocketAddr::new(world.address(server), PORT));
    assert_eq!(asking.last(), hello());
    world.network().reset(server, client);
    asking.ask_again();
    asking.wait(&world);
    assert_eq!(asking.last(), Err(ErrorKind::ConnectionReset));
}

#[test]
fn resets_by_chance_come() {
    let (world, server, client) = world(2);
    world.network().set_faults(NetworkFaults {
        reset_per_million: 200_000,
        ..NetworkFaults::default()
    });
    let target = SocketAddr::new(world.address(server), PORT);
    run(&world, client, move |core| async move {
        let mut resets = 0;
        for _ in 0..50 {
            let stream = TcpStream::connect(&core, &target).await.expect("connected");
            resets += usize::from(ask(&stream, b"hello").await.is_err());
        }
        assert!((5..40).contains(&resets), "{resets} resets of 50");
    });
}

#[test]
fn a_partition_holds_bytes_back_and_heals() {
    for seed in 0..10 {
        let (world, server, client) = world(seed);
        let asking = Client::start(&world, client, SocketAddr::new(world.address(server), PORT));
        world.network().partition(&[server], &[client]);
        asking.ask_again();
        world.run_for(SECOND * 10);
        assert!(!asking.is_answered(), "nothing gets through");
        world.network().heal();
        world.run_for(SECOND * 4);
        assert!(asking.is_answered(), "retried within 3 s");
        assert_eq!(asking.last(), hello());
    }
}

/// One direction is enough to keep the answer away; the request arrives.
#[test]
fn a_block_works_in_one_direction() {
    let (world, server, client) = world(3);
    let asking = Client::start(&world, client, SocketAddr::new(world.address(server), PORT));
    world.network().block(server, client);
    asking.ask_again();
    world.run_for(SECOND * 5);
    assert!(!asking.is_answered());
    world.network().heal();
    asking.wait(&world);
    assert_eq!(asking.last(), hello());
}

#[test]
fn a_partition_that_lasts_times_out() {
    let (world, server, client) = world(4);
    let target = SocketAddr::new(world.address(server), PORT);
    let asking = Client::start(&world, client, target);
    world.network().partition(&[server], &[client]);
    asking.ask_again();
    asking.wait(&world);
    assert_eq!(asking.last(), Err(ErrorKind::TimedOut));
    world.kill(client);
    run(&world, client, move |core| async move {
        let began = core.now();
        let error = TcpStream::connect(&core, &target)
            .await
            .err()
            .expect("late");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(core.now() - began >= SECOND * 30);
    });
}

#[test]
fn lost_connections_are_half_open() {
    let (world, server, client) = world(5);
    let target = SocketAddr::new(world.address(server), PORT);
    let asking = Client::start(&world, client, target);
    world.network().lose_connections(server, client);
    asking.ask_again();
    world.run_for(SECOND * 20);
    assert!(!asking.is_answered(), "nobody is told");
    asking.wait(&world);
    assert_eq!(asking.last(), Err(ErrorKind::TimedOut));
    world.kill(client);
    let again = Client::start(&world, client, target);
    assert_eq!(again.last(), hello(), "new connections work");
}

#[test]
fn a_node_without_power_is_silent_and_then_answers_with_a_reset() {
    let (world, server, client) = world(6);
    let target = SocketAddr::new(world.address(server), PORT);
    let asking = Client::start(&world, client, target);
    world.crash(server);
    asking.ask_again();
    world.run_for(SECOND * 10);
    assert!(!asking.is_answered(), "silence");
    serve(&world, server);
    asking.wait(&world);
    assert_eq!(asking.last(), Err(ErrorKind::ConnectionReset));
    world.kill(client);
    let again = Client::start(&world, client, target);
    assert_eq!(again.last(), hello());
}

#[test]
fn a_killed_process_closes_its_connections() {
    let (world, server, client) = world(7);
    let target = SocketAddr::new(world.address(server), PORT);
    let asking = Client::start(&world, client, target);
    world.kill(server);
    world.run_for(MS * 10);
    asking.ask_again();
    asking.wait(&world);
    let error = asking.last().expect_err("closed");
    let closed = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
    ];
    assert!(closed.contains(&error), "{error:?}");
    world.kill(client);
    run(&world, client, move |core| async move {
        let error = TcpStream::connect(&core, &target)
            .await
            .err()
            .expect("refused");
        assert_eq!(
            error.kind(),
            ErrorKind::ConnectionRefused,
            "the machine answers"
        );
    });
}

#[test]
fn slow_segments_are_late_but_in_order() {
    let (world, server, client) = world(8);
    world.network().set_faults(NetworkFaults {
        slow_per_million: 300_000,
        slow_delay: SECOND,
        ..NetworkFaults::default()
    });
    let target = SocketAddr::new(world.address(server), PORT);
    run(&world, client, move |core| async move {
        let stream = TcpStream::connect(&core, &target).await.expect("connected");
        let began = core.now();
        for _ in 0..20 {
            let answer = ask(&stream, b"0123456789").await.expect("answered");
            assert_eq!(answer, b"0123456789");
        }
        assert!(core.now() - began >= SECOND, "some were slow");
    });
}
