//! `net`: what loopback sockets can do here: echoes, sending from memory, sendfile.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

use super::{SECONDS, line, repeat};

const CHUNK: usize = 1 << 20;
/// The file that sendfile sends: small enough to stay in the page cache, large enough not to stay in the processor's.
const FILE_BYTES: u64 = 256 << 20;
/// statfs(2): the file system that is memory.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

pub fn print(folder: &Path) -> Result<()> {
    echo()?;
    let payload = vec![7_u8; CHUNK];
    stream("send from memory, 1 MiB", |socket, _| {
        Ok(socket.write(&payload)? as u64)
    })?;
    let path = folder.join(format!("ringmain-bench-{}.tmp", std::process::id()));
    let written = File::create(&path).and_then(|mut file| {
        (0..FILE_BYTES / CHUNK as u64).try_for_each(|_| file.write_all(&payload))
    });
    let file = written.and_then(|()| File::open(&path));
    let _ = std::fs::remove_file(&path);
    let file = file?;
    stream("sendfile from the page cache, 1 MiB", |socket, sent| {
        let mut at = sent % FILE_BYTES;
        Ok(rustix::fs::sendfile(&*socket, &file, Some(&mut at), CHUNK)? as u64)
    })?;
    if rustix::fs::fstatfs(&file)?.f_type == TMPFS_MAGIC {
        let folder = folder.display();
        crate::say(&format!(
            "{folder} lies in memory: no file there is ever cold; name another with --folder"
        ));
        return Ok(());
    }
    rustix::fs::fdatasync(&file)?;
    stream("sendfile from a cold file, 1 MiB", |socket, sent| {
        let mut at = sent % FILE_BYTES;
        if at == 0 {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(rustix::fs::sendfile(&*socket, &file, Some(&mut at), CHUNK)? as u64)
    })
}

fn pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((client, server))
}

fn echo() -> Result<()> {
    let (mut client, mut server) = pair()?;
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while server.read_exact(&mut bytes).is_ok() && server.write_all(&bytes).is_ok() {}
    });
    let mut bytes = [1; 64];
    let echoes = repeat(|_| {
        client.write_all(&bytes)?;
        Ok(client.read_exact(&mut bytes)?)
    })?;
    echoes.print("echo of 64 bytes, one connection", 64);
    drop(client);
    answering.join().map_err(|_| anyhow!("the echo panicked"))
}

/// One thread sends, another throws away; the sender's processor time is the figure.
fn stream(name: &str, mut send: impl FnMut(&mut TcpStream, u64) -> Result<u64>) -> Result<()> {
    let (mut client, mut server) = pair()?;
    let reading = std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while server.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let spent = || {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
    };
    let (begin, processor) = (Instant::now(), spent());
    let mut sent = 0;
    while begin.elapsed().as_secs_f64() < SECONDS {
        sent += send(&mut client, sent)?;
    }
    let (seconds, processor) = (begin.elapsed().as_secs_f64(), spent() - processor);
    drop(client);
    reading.join().map_err(|_| anyhow!("the reader panicked"))?;
    let gigabytes = sent as f64 / 1e9;
    line(
        &format!("bare loop: {name}"),
        &format!(
            "{:>9.1} MB/s   CPU {:>6.3} s/GB of the sender",
            gigabytes * 1000.0 / seconds,
            processor / gigabytes
        ),
    );
    Ok(())
}
