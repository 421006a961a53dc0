//! `net`: what loopback sockets can do here: echoes, sending from memory, sendfile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Result, anyhow};

use super::files::{self, Scratch};
use super::loops::{CHUNK, drain, moving, pair};
use super::repeat;
use super::sheet::Sheet;

/// The file that sendfile sends: small enough to stay in the page cache, large enough not to stay in the processor's.
const FILE_BYTES: u64 = 256 << 20;
/// What one echo sends.
const ECHOED: usize = 64;

pub fn measure(folder: &Path, mut sheet: Sheet) -> Result<()> {
    // Before anything is measured: it may be no folder that can be written to.
    let scratch = Scratch::buffered(folder)?;
    scratch.fill(FILE_BYTES)?;
    echo(&mut sheet)?;
    let payload = vec![7_u8; CHUNK];
    stream(&mut sheet, "send from memory", |socket, _| {
        Ok(socket.write(&payload)? as u64)
    })?;
    let file = &scratch.file;
    stream(
        &mut sheet,
        "sendfile from the page cache",
        |socket, sent| {
            let mut at = sent % FILE_BYTES;
            Ok(rustix::fs::sendfile(&*socket, file, Some(&mut at), CHUNK)? as u64)
        },
    )?;
    if files::is_in_memory(file)? {
        sheet.remark(format!(
            "{} lies in memory: no file there is ever cold; name another with --folder",
            folder.display()
        ));
        return sheet.end();
    }
    stream(&mut sheet, "sendfile from a cold file", |socket, sent| {
        let mut at = sent % FILE_BYTES;
        if at == 0 {
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(rustix::fs::sendfile(&*socket, file, Some(&mut at), CHUNK)? as u64)
    })?;
    sheet.end()
}

fn echo(sheet: &mut Sheet) -> Result<()> {
    let (mut client, mut server) = pair()?;
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; ECHOED];
        while server.read_exact(&mut bytes).is_ok() && server.write_all(&bytes).is_ok() {}
    });
    let mut bytes = [1; ECHOED];
    let echoes = repeat(sheet.seconds, |_| {
        client.write_all(&bytes)?;
        Ok(client.read_exact(&mut bytes)?)
    })?;
    sheet.repeated("echo", &[("bytes", ECHOED as u64)], &echoes);
    drop(client);
    answering.join().map_err(|_| anyhow!("the echo panicked"))
}

/// One thread sends, another throws away; the sender's processor time is the figure.
fn stream(
    sheet: &mut Sheet,
    name: &str,
    mut send: impl FnMut(&mut TcpStream, u64) -> Result<u64>,
) -> Result<()> {
    let (mut client, server) = pair()?;
    let reading = std::thread::spawn(move || drain(server));
    let sent = moving(sheet.seconds, |before| send(&mut client, before))?;
    drop(client);
    reading.join().map_err(|_| anyhow!("the reader panicked"))?;
    sheet.moved(name, &[("bytes", CHUNK as u64)], &sent);
    Ok(())
}
