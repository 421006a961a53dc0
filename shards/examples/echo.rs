//! Echoes between a client core and a server core over loopback, to see what a request costs:
//! `cargo run --release -p shards --example echo -- ring 64 5`
//! (backend, connections, seconds). Prints echoes per second and CPU time per echo.

#![allow(clippy::print_stdout, reason = "an example that reports")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shards::io::{BoundListener, TcpStream};
use shards::{BackendChoice, Core, CoreMain, Runtime, RuntimeOptions, TaskClass};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let backend = match arguments.next().as_deref() {
        Some("epoll") => BackendChoice::Epoll,
        _ => BackendChoice::Ring,
    };
    let mut number = |default| {
        arguments
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(default)
    };
    let (connections, seconds) = (number(64), number(5));

    let options = RuntimeOptions {
        cores: 2,
        pin: true,
        backend,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).expect("starts");
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = BoundListener::bind(any).expect("bound");
    let address = listener.local_addr();
    let echoes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&echoes);
    let server: CoreMain = Box::new(move |core| Box::pin(serve(core, listener, connections)));
    let client: CoreMain = Box::new(move |core| {
        Box::pin(async move {
            let stop = Rc::new(Cell::new(false));
            let mut tasks = Vec::new();
            for _ in 0..connections {
                let stream = TcpStream::connect(&core, &address)
                    .await
                    .expect("connected");
                let work = ask(stream, Rc::clone(&stop));
                tasks.push(core.spawn(TaskClass::Network, "client", work));
            }
            core.sleep(Duration::from_secs(seconds)).await;
            stop.set(true);
            for task in tasks {
                counted.fetch_add(task.await.expect("not aborted"), Ordering::Relaxed);
            }
            println!("client {:?}", core.metrics());
        })
    });
    runtime.run(vec![server, client]).expect("runs");
    let echoes = echoes.load(Ordering::Relaxed);

    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_us = cpu.tv_sec as f64 * 1e6 + cpu.tv_nsec as f64 / 1e3;
    println!(
        "{backend:?}: {} echoes/s, {:.2} us of CPU each (both ends)",
        echoes / seconds.max(1),
        cpu_us / echoes.max(1) as f64
    );
}

async fn serve(core: Core, listener: BoundListener, connections: u64) {
    let listener = listener.attach(&core).expect("attached");
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let stream = listener
            .accept()
            .await
            .expect("accepted")
            .attach(&core)
            .expect("attached");
        tasks.push(core.spawn(TaskClass::Network, "server", async move {
            loop {
                let buffer = stream.recv().await.expect("received");
                if buffer.is_empty() {
                    return;
                }
                let answer = Bytes::copy_from_slice(&buffer);
                drop(buffer);
                stream.send(vec![answer]).await.expect("sent");
            }
        }));
    }
    for task in tasks {
        task.await.expect("not aborted");
    }
    println!("server {:?}", core.metrics());
}

async fn ask(stream: TcpStream, stop: Rc<Cell<bool>>) -> u64 {
    let question = Bytes::from(vec![7u8; 100]);
    let mut echoes = 0;
    while !stop.get() {
        stream.send(vec![question.clone()]).await.expect("sent");
        let mut received = 0;
        while received < question.len() {
            received += stream.recv().await.expect("received").len();
        }
        echoes += 1;
    }
    echoes
}
