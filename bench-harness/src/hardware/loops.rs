//! The bare loops, one connection each: what `disk` and `net` print, and what bounds are made of.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use anyhow::Result;

use super::{Aligned, thread_seconds};
use crate::report::ratio;

/// What loops send and receive at a time where nothing else is said.
pub const CHUNK: usize = 1 << 20;

/// What is thrown away at a time: more would leave the processor's cache meanwhile.
const DRAINED: usize = 256 << 10;

/// What one side of a loop did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub steps: u64,
    pub bytes: u64,
    pub seconds: f64,
    /// Processor seconds of the thread that moved it, those of the other side not among them.
    pub processor: f64,
}

impl Moved {
    /// Adds what was done at the same time: the seconds are those of the longest.
    pub fn beside(mut self, other: Self) -> Self {
        self.seconds = self.seconds.max(other.seconds);
        self.steps += other.steps;
        self.bytes += other.bytes;
        self.processor += other.processor;
        self
    }

    /// MB (10^6) a second.
    pub fn rate(&self) -> f64 {
        ratio(self.bytes as f64 / 1e6, self.seconds)
    }

    /// Processor seconds a GB (10^9).
    pub fn cpu_a_gigabyte(&self) -> f64 {
        ratio(self.processor, self.bytes as f64 / 1e9)
    }
}

/// Repeats a step, which is told how many bytes were moved before and tells how many it moved, until the seconds are over
/// or it moves none.
///
/// # Errors
/// The step's.
pub fn moving(seconds: f64, mut step: impl FnMut(u64) -> Result<u64>) -> Result<Moved> {
    let (begin, processor) = (Instant::now(), thread_seconds());
    let mut moved = Moved::default();
    while begin.elapsed().as_secs_f64() < seconds {
        let bytes = step(moved.bytes)?;
        if bytes == 0 {
            break;
        }
        moved.bytes += bytes;
        moved.steps += 1;
    }
    moved.seconds = begin.elapsed().as_secs_f64();
    moved.processor = thread_seconds() - processor;
    Ok(moved)
}

/// What a broker does to a batch at the very least: receive it, check it, write it. `write` takes a buffer that begins with
/// the batch and is as long as whole blocks, with the bytes that came before, and gives back a free one.
///
/// # Errors
/// Of the connection, and those of `write`.
pub fn receive_check_write(
    stream: &mut TcpStream,
    batch: usize,
    seconds: f64,
    mut write: impl FnMut(Aligned, u64) -> Result<Aligned>,
) -> Result<Moved> {
    let mut free = Some(Aligned::new(batch.next_multiple_of(Aligned::BLOCK), 4));
    let mut checksum = 0;
    let moved = moving(seconds, |before| {
        // Gone only after an error of `write`, with which the loop ends.
        let Some(mut buffer) = free.take() else {
            return Ok(0);
        };
        stream.read_exact(&mut buffer.bytes_mut()[..batch])?;
        checksum ^= crc32c::crc32c(&buffer.bytes()[..batch]);
        free = Some(write(buffer, before)?);
        Ok(batch as u64)
    });
    std::hint::black_box(checksum);
    moved
}

/// Two ends of a connection over loopback.
///
/// # Errors
/// I/O errors.
pub fn pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((client, server))
}

/// Sends the same bytes again and again until the other side has enough.
pub fn flood(mut stream: TcpStream, payload: &[u8]) {
    while stream.write_all(payload).is_ok() {}
}

/// Throws away what comes until the other side ends.
pub fn drain(mut stream: TcpStream) {
    let mut buffer = vec![0; DRAINED];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_beside_takes_no_more_time() {
        let one = Moved {
            steps: 1,
            bytes: 500_000_000,
            seconds: 1.0,
            processor: 0.25,
        };
        let both = one.beside(one);
        assert_eq!((both.rate(), both.cpu_a_gigabyte()), (1000.0, 0.5));
        assert_eq!((both.steps, both.seconds), (2, 1.0));
    }

    #[test]
    fn what_is_sent_is_received_checked_and_written() {
        let (client, mut server) = pair().expect("a connection");
        let sending = std::thread::spawn(move || flood(client, &[5; 777]));
        let mut written = Vec::new();
        let moved = receive_check_write(&mut server, 5000, 60.0, |buffer, at| {
            written.push((buffer.bytes().len(), at));
            anyhow::ensure!(buffer.bytes()[..5000] == [5; 5000], "other bytes");
            anyhow::ensure!(written.len() < 3, "enough");
            Ok(buffer)
        });
        drop(server);
        sending.join().expect("it ended");
        assert_eq!(moved.expect_err("the third").to_string(), "enough");
        assert_eq!(written, [(8192, 0), (8192, 5000), (8192, 10_000)]);
    }
}
