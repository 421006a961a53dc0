//! Sending what is in no cache.

use std::ops::Range;
use std::time::Duration;

use shards::io::{AlignedBuf, Durability, File, OpenOptions, TcpStream};
use shards::{BackendKind, Core, JoinHandle, TaskClass};

use super::sockets::{collect, pair};
use crate::support::{TestDir, disk_dir, path_in, pattern};

const MIB: usize = 1 << 20;

/// A file of so many bytes that is in no cache, open as consumers read it; none where all files are cached.
async fn cold_file(core: &Core, dir: &TestDir, len: usize) -> Option<(File, Vec<u8>)> {
    let path = path_in(dir, "cold");
    let direct = OpenOptions {
        direct: true,
        ..OpenOptions::writing()
    };
    let writer = File::open(core, &path, &direct).await.expect("opened");
    if !writer.is_direct() {
        return None;
    }
    let data = pattern(len, 21);
    let mut buffer = AlignedBuf::with_capacity(len);
    buffer.extend_from_slice(&data);
    let written = writer.write_all_at(core, buffer.freeze(), 0, Durability::Written);
    written.await.expect("written");
    let reader = File::open(core, &path, &OpenOptions::reading()).await;
    // A write that is longer ago holds nobody back.
    core.sleep(Duration::from_millis(110)).await;
    Some((reader.expect("opened"), data))
}

fn sending(
    core: &Core,
    stream: &TcpStream,
    file: &File,
    range: Range<usize>,
) -> JoinHandle<std::io::Result<()>> {
    let (stream, file) = (stream.clone(), file.clone());
    let (from, len) = (range.start as u64, range.len() as u64);
    let send = async move { stream.send_file(&file, from, len).await };
    core.spawn(TaskClass::Fetch, "send file", send)
}

/// Sends a range and compares what arrives.
async fn send(core: &Core, file: &File, data: &[u8], range: Range<usize>) {
    let (client, server) = pair(core).await;
    let sent = sending(core, &server, file, range.clone());
    let received = collect(&client, range.len()).await;
    sent.await.expect("not aborted").expect("sent");
    assert!(received == data[range.clone()], "{range:?} differs");
}

pub async fn what_is_cold_is_sent_past_the_page_cache_once(core: Core) {
    let dir = disk_dir(&core).await;
    let Some((file, data)) = cold_file(&core, &dir, 4 * MIB).await else {
        return;
    };
    let counted = || {
        let metrics = core.metrics();
        (metrics.cold_reads, metrics.cold_prefetches)
    };
    // Pieces of a MiB; what would be left of the first is not worth one of its own.
    send(&core, &file, &data, 1000..MIB + 100_000).await;
    assert_eq!(counted(), (1, 0));
    send(&core, &file, &data, MIB + 100_000..3 * MIB + 5).await;
    let once = counted();
    assert_eq!(once, (3, 0));
    if core.backend() != BackendKind::Sim {
        send(&core, &file, &data, 2000..MIB).await;
        let twice = counted();
        assert_eq!(twice.0, once.0, "the second reading is through the cache");
        assert!(twice.1 > once.1);
        send(&core, &file, &data, 2000..MIB).await;
        assert_eq!(counted(), twice, "the third finds all of it there");
        send(&core, &file, &data, 4 * MIB - 1000..4 * MIB).await;
        assert_eq!(counted().0, twice.0, "so little is left to reading ahead");
    }
    if core.backend() == BackendKind::Sim {
        assert!(core.metrics().cold_read_memory > 0);
        core.sleep(Duration::from_secs(21)).await;
        assert_eq!(core.metrics().cold_read_memory, 0, "given back");
    }
    let beyond = file.len(&core).await.expect("its length");
    let (_client, server) = pair(&core).await;
    let error = server.send_file(&file, beyond - 10, MIB as u64).await;
    let kind = error.expect_err("beyond the end").kind();
    assert_eq!(kind, std::io::ErrorKind::UnexpectedEof);
}

pub async fn beside_writes_a_disk_has_one_cold_read_at_a_time(core: Core) {
    let dir = disk_dir(&core).await;
    let Some((file, data)) = cold_file(&core, &dir, 4 * MIB).await else {
        return;
    };
    let most = most_that_waited(&core, &file, &data[..MIB], 0, None).await;
    assert_eq!(most, 0);
    let path = path_in(&dir, "written");
    let other = File::open(&core, &path, &OpenOptions::writing()).await;
    let other = other.expect("opened");
    let most = most_that_waited(&core, &file, &data[MIB..2 * MIB], MIB, Some(&other)).await;
    assert_eq!(most, 3, "of four");
}

/// Has four peers read a quarter of the data each, in one piece; answers how many of them waited at most for the disk.
async fn most_that_waited(
    core: &Core,
    file: &File,
    data: &[u8],
    at: usize,
    beside: Option<&File>,
) -> u64 {
    let (mut servers, mut peers) = (Vec::new(), Vec::new());
    let quarter = data.len() / 4;
    for _ in 0..4 {
        let (client, server) = pair(core).await;
        let take = async move { collect(&client, quarter).await };
        peers.push(core.spawn(TaskClass::Network, "peer", take));
        servers.push(server);
    }
    if let Some(other) = beside {
        let written = other.write_all_at(core, b"x"[..].into(), 0, Durability::Written);
        written.await.expect("written");
    }
    let from = |peer: usize| at + peer * quarter;
    let ranges = (0..4).map(|peer| from(peer)..from(peer + 1));
    let sends: Vec<_> = servers
        .iter()
        .zip(ranges)
        .map(|(server, range)| sending(core, server, file, range))
        .collect();
    let mut most = 0;
    while sends.iter().any(|send| !send.is_finished()) {
        most = most.max(core.metrics().cold_reads_waiting);
        core.sleep(Duration::from_micros(1)).await;
    }
    for (index, peer) in peers.into_iter().enumerate() {
        let received = peer.await.expect("not aborted");
        assert!(received == data[index * quarter..][..quarter]);
    }
    most
}

pub async fn peers_that_stop_reading_hold_up_nobody(core: Core) {
    let dir = disk_dir(&core).await;
    let Some((file, data)) = cold_file(&core, &dir, 32 * MIB).await else {
        return;
    };
    // Each takes what fits into the buffers of its connection, and then two pieces of memory of the broker.
    let (slow, server) = pair(&core).await;
    let stuck = sending(&core, &server, &file, 0..14 * MIB);
    let (slower, server) = pair(&core).await;
    let also_stuck = sending(&core, &server, &file, 14 * MIB..28 * MIB);
    let still = Duration::from_millis(200);
    let mut before = 0;
    loop {
        core.sleep(still).await;
        let reads = core.metrics().cold_reads;
        if reads == std::mem::replace(&mut before, reads) {
            break;
        }
    }
    assert!(!stuck.is_finished() && !also_stuck.is_finished());
    send(&core, &file, &data, 28 * MIB..32 * MIB).await;
    assert!(core.metrics().cold_reads_without_memory > 0);
    assert!(collect(&slow, 14 * MIB).await == data[..14 * MIB]);
    assert!(collect(&slower, 14 * MIB).await == data[14 * MIB..28 * MIB]);
    stuck.await.expect("not aborted").expect("sent");
    also_stuck.await.expect("not aborted").expect("sent");
}

pub async fn a_peer_that_takes_long_gets_no_memory(core: Core) {
    // The buffers of a real connection hold more than is sent here.
    if core.backend() != BackendKind::Sim {
        return;
    }
    let dir = disk_dir(&core).await;
    let Some((file, data)) = cold_file(&core, &dir, 8 * MIB).await else {
        return;
    };
    let (slow, server) = pair(&core).await;
    let sent = sending(&core, &server, &file, 0..8 * MIB);
    let mut received = Vec::new();
    while received.len() < data.len() {
        let buffer = slow.recv().await.expect("received");
        received.extend_from_slice(&buffer);
        drop(buffer);
        core.sleep(Duration::from_millis(5)).await;
    }
    sent.await.expect("not aborted").expect("sent");
    assert!(received == data);
    // The first was on its way, and the second read, before anybody knew.
    assert_eq!(core.metrics().cold_reads, 2, "of eight pieces");
}
