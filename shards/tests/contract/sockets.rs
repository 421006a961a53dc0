use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use shards::io::{BoundListener, Durability, File, OpenOptions, TcpListener, TcpStream, dir};
use shards::{Core, TaskClass};

use crate::support::{disk_dir, path_in, pattern};

const MS: Duration = Duration::from_millis(1);
/// Receive buffers are of this size.
const BUFFER: usize = 16 * 1024;

fn listen(core: &Core) -> TcpListener {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    BoundListener::bind_on(core, any)
        .expect("bound")
        .attach(core)
        .expect("attached")
}

pub async fn pair(core: &Core) -> (TcpStream, TcpStream) {
    let listener = listen(core);
    let client = TcpStream::connect(core, &listener.local_addr())
        .await
        .expect("connected");
    let accepted = listener.accept().await.expect("accepted");
    assert_eq!(accepted.peer_addr(), client.local_addr());
    (client, accepted.attach(core).expect("attached"))
}

fn parts(bytes: &[u8]) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(bytes)]
}

/// Receives until `len` bytes have come.
pub async fn collect(stream: &TcpStream, len: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(len);
    while all.len() < len {
        let buffer = stream.recv().await.expect("received");
        assert!(
            !buffer.is_empty(),
            "the stream ended after {} of {len} bytes",
            all.len()
        );
        all.extend_from_slice(&buffer);
    }
    assert_eq!(all.len(), len, "no more than was sent");
    all
}

pub async fn an_echo_comes_back(core: Core) {
    let (client, server) = pair(&core).await;
    let echo = core.spawn(TaskClass::Network, "echo", async move {
        loop {
            let buffer = server.recv().await.expect("received");
            if buffer.is_empty() {
                return;
            }
            server.send(parts(&buffer)).await.expect("sent");
        }
    });
    for round in 0..500usize {
        let message = pattern(round * 13 % 3000 + 1, round as u64);
        client.send(parts(&message)).await.expect("sent");
        assert_eq!(collect(&client, message.len()).await, message);
    }
    client.shutdown_write();
    echo.await.expect("not aborted");
    assert!(client.recv().await.expect("the end").is_empty());
    assert!(client.recv().await.expect("still the end").is_empty());
}

pub async fn both_ends_see_a_half_closed_stream(core: Core) {
    let (client, server) = pair(&core).await;
    client.send(parts(b"last words")).await.expect("sent");
    client.shutdown_write();
    assert_eq!(collect(&server, 10).await, b"last words");
    assert!(server.recv().await.expect("the end").is_empty());
    // The other direction still works.
    server.send(parts(b"answer")).await.expect("sent");
    assert_eq!(collect(&client, 6).await, b"answer");
    let error = client.send(parts(b"x")).await.expect_err("shut down");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    drop(server);
    assert!(client.recv().await.expect("the end").is_empty());
}

pub async fn large_sends_arrive_whole_and_in_order(core: Core) {
    let (client, server) = pair(&core).await;
    let data = Bytes::from(pattern(12 << 20, 6));
    // Many parts of odd sizes, empty ones among them; more than one system call takes.
    let mut slices = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let len = ((at * 7919) % 40_000).min(data.len() - at);
        slices.push(data.slice(at..at + len));
        at += len;
        if len == 0 {
            slices.push(data.slice(at..at + 1));
            at += 1;
        }
    }
    let sender = client.clone();
    let sending = core.spawn(TaskClass::Network, "send", async move {
        sender.send(slices).await
    });
    let mut received = server.recv().await.expect("received").to_vec();
    // A second send of another task waits for its turn.
    let sender = client.clone();
    let behind = core.spawn(TaskClass::Network, "send", async move {
        sender.send(parts(b"END")).await
    });
    received.extend(collect(&server, data.len() + 3 - received.len()).await);
    sending.await.expect("not aborted").expect("sent");
    behind.await.expect("not aborted").expect("sent");
    assert!(received[..data.len()] == data[..], "the bytes differ");
    assert_eq!(&received[data.len()..], b"END");
}

pub async fn recv_exact_takes_exactly(core: Core) {
    let (client, server) = pair(&core).await;
    let data = pattern(3 << 20, 7);
    let (sender, sent) = (client.clone(), data.clone());
    let sending = core.spawn(TaskClass::Network, "send", async move {
        sender.send(parts(&sent)).await
    });
    let mut buf = BytesMut::with_capacity(4 + (2 << 20));
    buf.extend_from_slice(b"head");
    let buf = server.recv_exact(buf, 2 << 20).await.expect("received");
    assert_eq!(&buf[..4], b"head");
    assert!(buf[4..] == data[..2 << 20], "the bytes differ");
    // Small receives and exact ones mix.
    let first = server.recv().await.expect("received");
    let at = (2 << 20) + first.len();
    assert!(first[..] == data[2 << 20..at]);
    drop(first);
    let rest = server
        .recv_exact(BytesMut::new(), data.len() - at)
        .await
        .expect("received");
    assert!(rest[..] == data[at..]);
    sending.await.expect("not aborted").expect("sent");
    client.send(parts(b"123")).await.expect("sent");
    client.shutdown_write();
    let error = server
        .recv_exact(BytesMut::new(), 4)
        .await
        .expect_err("the stream ended");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

pub async fn a_dropped_recv_loses_nothing(core: Core) {
    let (client, server) = pair(&core).await;
    let data = pattern(300_000, 8);
    let (core_of_task, sent) = (core.clone(), data.clone());
    let sending = core.spawn(TaskClass::Network, "send", async move {
        for chunk in sent.chunks(1000) {
            client.send(parts(chunk)).await.expect("sent");
            core_of_task.sleep(Duration::from_micros(100)).await;
        }
        client
    });
    let mut received = Vec::new();
    let mut dropped = 0;
    while received.len() < data.len() {
        match core.timeout(Duration::from_micros(60), server.recv()).await {
            Ok(buffer) => received.extend_from_slice(&buffer.expect("received")),
            Err(_) => dropped += 1,
        }
    }
    assert!(received == data, "the bytes differ");
    assert!(dropped > 0, "the test has dropped no receive");
    drop(sending.await.expect("not aborted"));
}

pub async fn a_dropped_recv_exact_loses_nothing(core: Core) {
    let (client, server) = pair(&core).await;
    let data = pattern(400_000, 9);
    let (core_of_task, sent) = (core.clone(), data.clone());
    let sending = core.spawn(TaskClass::Network, "send", async move {
        for chunk in sent.chunks(1700) {
            client.send(parts(chunk)).await.expect("sent");
            core_of_task.sleep(Duration::from_micros(100)).await;
        }
        client
    });
    let mut received = Vec::new();
    let (mut dropped, mut round) = (0, 0u32);
    while received.len() < data.len() {
        round += 1;
        let want = 10_000.min(data.len() - received.len());
        let exact = server.recv_exact(BytesMut::new(), want);
        match core
            .timeout(Duration::from_micros(u64::from(round % 7) * 150), exact)
            .await
        {
            Ok(buffer) => received.extend_from_slice(&buffer.expect("received")),
            Err(_) => {
                dropped += 1;
                if round % 3 == 0 {
                    // A plain receive after it sees the same stream.
                    if let Ok(buffer) = core.timeout(MS, server.recv()).await {
                        received.extend_from_slice(&buffer.expect("received"));
                    }
                }
            }
        }
    }
    assert!(received == data, "the bytes differ");
    assert!(dropped > 0, "the test has dropped no receive");
    drop(sending.await.expect("not aborted"));
}

pub async fn a_dropped_accept_loses_nothing(core: Core) {
    let listener = listen(&core);
    let address = listener.local_addr();
    for _ in 0..20 {
        assert!(
            core.timeout(MS, listener.accept()).await.is_err(),
            "nobody has connected"
        );
        let client = TcpStream::connect(&core, &address)
            .await
            .expect("connected");
        let accepted = core
            .timeout(MS * 5000, listener.accept())
            .await
            .expect("in time");
        let server = accepted.expect("accepted").attach(&core).expect("attached");
        client.send(parts(b"hello")).await.expect("sent");
        assert_eq!(collect(&server, 5).await, b"hello");
    }
}

pub async fn a_torn_send_is_never_continued(core: Core) {
    let (client, server) = pair(&core).await;
    let data = Bytes::from(pattern(32 << 20, 10));
    // Nobody reads: the send cannot end.
    assert!(
        core.timeout(MS * 20, client.send(vec![data.clone()]))
            .await
            .is_err()
    );
    let error = client.send(parts(b"next message")).await.expect_err("torn");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    drop(client);
    let mut received = Vec::new();
    while let Ok(buffer) = server.recv().await {
        if buffer.is_empty() {
            break;
        }
        received.extend_from_slice(&buffer);
    }
    assert!(received.len() < data.len());
    assert!(
        received[..] == data[..received.len()],
        "what came is a prefix"
    );
}

pub async fn recv_waits_while_the_connection_holds_its_buffers(core: Core) {
    let (client, server) = pair(&core).await;
    let data = pattern(40 * BUFFER, 11);
    let sent = data.clone();
    let sending = core.spawn(TaskClass::Network, "send", async move {
        client.send(parts(&sent)).await
    });
    let mut held = Vec::new();
    while let Ok(buffer) = core.timeout(MS * 50, server.recv()).await {
        held.push(buffer.expect("received"));
        assert!(held.len() <= 4, "a connection holds at most four buffers");
    }
    assert_eq!(held.len(), 4);
    assert!(core.metrics().recv_pool_in_use >= 4 * BUFFER as u64);
    let mut received: Vec<u8> = held.drain(..).flat_map(|buffer| buffer.to_vec()).collect();
    let rest = collect(&server, data.len() - received.len()).await;
    received.extend_from_slice(&rest);
    assert!(received == data, "the bytes differ");
    sending.await.expect("not aborted").expect("sent");
    assert_eq!(core.metrics().recv_pool_in_use, 0);
}

/// More readers than buffers: those beyond the pool wait, none for ever.
pub async fn an_exhausted_pool_holds_everybody_up_and_then_nobody(core: Core) {
    let mut held = Vec::new();
    let mut pairs = Vec::new();
    for _ in 0..40 {
        let (client, server) = pair(&core).await;
        client.send(parts(b"first")).await.expect("sent");
        if let Ok(buffer) = core.timeout(MS * 20, server.recv()).await {
            held.push(buffer.expect("received"));
        }
        pairs.push((client, server));
    }
    // 512 KiB of buffers of 16 KiB.
    assert_eq!(held.len(), 32, "the pool is the limit");
    assert!(core.metrics().recv_pool_limit_hits > 0);
    assert_eq!(core.metrics().recv_pool_in_use, 512 * 1024);
    let mut waiting = Vec::new();
    for (_, server) in &pairs[32..] {
        let server = server.clone();
        waiting.push(core.spawn(TaskClass::Network, "waits", async move {
            server.recv().await.expect("received").to_vec()
        }));
    }
    core.sleep(MS * 10).await;
    waiting.pop().expect("eight wait").abort();
    drop(held);
    for task in waiting {
        let got = core
            .timeout(MS * 5000, task)
            .await
            .expect("in time")
            .expect("not aborted");
        assert_eq!(got, b"first");
    }
    // The one whose reader was aborted has lost nothing either.
    let last = core
        .timeout(MS * 5000, pairs[39].1.recv())
        .await
        .expect("in time");
    assert_eq!(&last.expect("received")[..], b"first");
}

async fn send_from(core: &Core, options: &OpenOptions) {
    let root = disk_dir(core).await;
    let path = path_in(&root, "f");
    let data = pattern(5 * (1 << 20) + 4321, 12);
    dir::write_file_atomic(core, &path, Bytes::copy_from_slice(&data))
        .await
        .expect("written");
    let file = File::open(core, &path, options).await.expect("opened");
    file.sync_all(core).await.expect("synced");
    let (client, server) = pair(core).await;
    for (offset, len) in [
        (0, data.len()),
        (1000, 3 << 20),
        (data.len() - 1, 1),
        (5, 0),
    ] {
        let (sender, file, core_of_task) = (server.clone(), file.clone(), core.clone());
        let sending = core.spawn(TaskClass::Fetch, "send file", async move {
            sender.send(parts(b"<")).await?;
            sender.send_file(&file, offset as u64, len as u64).await?;
            sender.send(parts(b">")).await?;
            drop(core_of_task);
            std::io::Result::Ok(())
        });
        let received = collect(&client, len + 2).await;
        sending.await.expect("not aborted").expect("sent");
        assert!(
            received[1..=len] == data[offset..offset + len],
            "{len} bytes at {offset} differ"
        );
        assert_eq!((received[0], received[len + 1]), (b'<', b'>'));
    }
    let sent = core.metrics().bytes_sent_from_files;
    assert_eq!(sent as usize, data.len() + (3 << 20) + 1);
    let error = server
        .send_file(&file, data.len() as u64, 10)
        .await
        .expect_err("beyond the end");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

pub async fn files_are_sent_whole(core: Core) {
    send_from(&core, &OpenOptions::reading()).await;
}

pub async fn direct_files_are_sent_too(core: Core) {
    let direct = OpenOptions {
        direct: true,
        ..OpenOptions::writing()
    };
    send_from(&core, &direct).await;
    // A direct write is in no cache: it is read off the core.
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "g"), &direct)
        .await
        .expect("opened");
    if file.is_direct() {
        let mut buffer = shards::io::AlignedBuf::with_capacity(1 << 16);
        buffer.extend_from_slice(&pattern(1 << 16, 13));
        let data = buffer.freeze();
        file.write_all_at(&core, data.clone(), 0, Durability::Written)
            .await
            .expect("written");
        let read = || {
            let metrics = core.metrics();
            metrics.cold_prefetches + metrics.cold_reads
        };
        let before = read();
        let (client, server) = pair(&core).await;
        server.send_file(&file, 0, 1 << 16).await.expect("sent");
        assert_eq!(read(), before + 1);
        assert!(collect(&client, 1 << 16).await == data[..]);
    }
}

pub async fn a_refused_connection_says_so(core: Core) {
    let listener = listen(&core);
    let address = listener.local_addr();
    drop(listener);
    // The core may close the socket a turn later.
    core.sleep(MS * 10).await;
    let error = TcpStream::connect(&core, &address)
        .await
        .err()
        .expect("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

pub async fn shutdown_wakes_the_reader(core: Core) {
    let (client, server) = pair(&core).await;
    let reader = client.clone();
    let reading = core.spawn(TaskClass::Network, "read", async move {
        reader.recv().await.map(|b| b.len())
    });
    core.sleep(MS * 5).await;
    client.shutdown();
    let got = core
        .timeout(MS * 5000, reading)
        .await
        .expect("in time")
        .expect("not aborted");
    assert_eq!(got.expect("the end"), 0);
    assert!(server.recv().await.expect("the end").is_empty());
}

pub async fn a_second_listener_on_the_port_is_refused(core: Core) {
    let listener = listen(&core);
    let error = BoundListener::bind_on(&core, listener.local_addr()).expect_err("taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(
        error
            .to_string()
            .contains(&listener.local_addr().to_string()),
        "{error}"
    );
}
