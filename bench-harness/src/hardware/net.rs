//! `net`: what loopback sockets can do here: echoes, sending from memory, sendfile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Result, anyhow};

use super::files::{self, Scratch};
use super::loops::{CHUNK, drain, moving, pair};
use super::{SECONDS, line, repeat};

/// The file that sendfile sends: small enough to stay in the page cache, large enough not to stay in the processor's.
const FILE_BYTES: u64 = 256 << 20;

pub fn print(folder: &Path) -> Result<()> {
    echo()?;
    let payload = vec![7_u8; CHUNK];
    stream("send from memory, 1 MiB", |socket, _| {
        Ok(socket.write(&payload)? as u64)
    })?;
    let scratch = Scratch::buffered(folder)?;
    scratch.fill(FILE_BYTES)?;
    let file = &scratch.file;
    stream("sendfile from the page cache, 1 MiB", |socket, sent| {
        let mut at = sent % FILE_BYTES;
        Ok(rustix::fs::sendfile(&*socket, file, Some(&mut at), CHUNK)? as u64)
    })?;
    if files::is_in_memory(file)? {
        let folder = folder.display();
        crate::say(&format!(
            "{folder} lies in memory: no file there is ever cold; name another with --folder"
        ));
        return Ok(());
    }
    stream("sendfile from a cold file, 1 MiB", |socket, sent| {
        let mut at = sent % FILE_BYTES;
        if at == 0 {
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(rustix::fs::sendfile(&*socket, file, Some(&mut at), CHUNK)? as u64)
    })
}

fn echo() -> Result<()> {
    let (mut client, mut server) = pair()?;
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while server.read_exact(&mut bytes).is_ok() && server.write_all(&bytes).is_ok() {}
    });
    let mut bytes = [1; 64];
    let echoes = repeat(SECONDS, |_| {
        client.write_all(&bytes)?;
        Ok(client.read_exact(&mut bytes)?)
    })?;
    echoes.print("echo of 64 bytes, one connection", 64);
    drop(client);
    answering.join().map_err(|_| anyhow!("the echo panicked"))
}

/// One thread sends, another throws away; the sender's processor time is the figure.
fn stream(name: &str, mut send: impl FnMut(&mut TcpStream, u64) -> Result<u64>) -> Result<()> {
    let (mut client, server) = pair()?;
    let reading = std::thread::spawn(move || drain(server));
    let sent = moving(SECONDS, |before| send(&mut client, before))?;
    drop(client);
    reading.join().map_err(|_| anyhow!("the reader panicked"))?;
    line(
        &format!("bare loop: {name}"),
        &format!(
            "{:>9.1} MB/s   CPU {:>6.3} s/GB of the sender",
            sent.rate(),
            sent.cpu_a_gigabyte()
        ),
    );
    Ok(())
}
