//! `disk DIR`: writes by size and depth, durable writes, cold reads, and the bare loop of receiving, checking and writing.

use std::fs::File;
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use rustix::io::{ReadWriteFlags, pread, pwrite, pwritev2};

use super::files::Scratch;
use super::loops::{self, CHUNK, flood, pair};
use super::sheet::Sheet;
use super::{Aligned, Repeated, processor_seconds, repeat, thread_seconds};

/// The file that all writes go round in.
const FILE_BYTES: u64 = 1 << 30;

pub fn measure(folder: &Path, mut sheet: Sheet) -> Result<()> {
    let scratch = Scratch::direct(folder)?;
    if !scratch.is_direct {
        sheet.remark(format!(
            "{}: no O_DIRECT on this filesystem, figures are of the page cache",
            folder.display()
        ));
    }
    scratch.fill(FILE_BYTES)?;
    let file = &scratch.file;
    let seconds = sheet.seconds;
    let mut write = |name, size: usize, depth, flags| -> Result<()> {
        let blocks = FILE_BYTES / size as u64;
        let written = writes(file, blocks, size, depth, flags, seconds)?;
        sheet.repeated(name, &[("bytes", size as u64), ("depth", depth)], &written);
        Ok(())
    };
    for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20] {
        for depth in [1, 4, 16] {
            write("write", size, depth, ReadWriteFlags::empty())?;
        }
    }
    for size in [4 << 10, 64 << 10] {
        for depth in [1, 4, 16, 64] {
            write("RWF_DSYNC write", size, depth, ReadWriteFlags::DSYNC)?;
        }
    }
    for size in [4 << 10, 128 << 10, 1 << 20] {
        let mut buffer = Aligned::new(size, 1);
        let blocks = FILE_BYTES / size as u64;
        let read = repeat(seconds, |step| {
            let at = step.wrapping_mul(7919) % blocks * size as u64;
            pread(file, buffer.bytes_mut(), at)?;
            Ok(())
        })?;
        sheet.repeated("cold read", &[("bytes", size as u64), ("depth", 1)], &read);
    }
    receive_check_write(&mut sheet, 1, |buffer, at| {
        pwrite(file, buffer.bytes(), at)?;
        Ok(buffer)
    })?;
    let writers = Writers::start(file)?;
    receive_check_write(&mut sheet, Writers::COUNT, |buffer, at| {
        writers.write(buffer, at)
    })?;
    sheet.end()
}

/// Sequential writes of `size` bytes by so many threads, each with one in flight, round and round in that many blocks of a
/// file.
///
/// # Errors
/// Of the writes.
pub fn writes(
    file: &File,
    blocks: u64,
    size: usize,
    depth: u64,
    flags: ReadWriteFlags,
    seconds: f64,
) -> Result<Repeated> {
    let next = &AtomicU64::new(0);
    let (begin, processor) = (Instant::now(), processor_seconds());
    let write = |seed| {
        let buffer = Aligned::new(size, seed);
        repeat(seconds, |_| {
            let at = next.fetch_add(1, Ordering::Relaxed) % blocks * size as u64;
            pwritev2(file, &[IoSlice::new(buffer.bytes())], at, flags)?;
            Ok(())
        })
    };
    let mut all: Option<Repeated> = None;
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..depth)
            .map(|seed| scope.spawn(move || write(seed)))
            .collect();
        for thread in threads {
            let one = thread.join().map_err(|_| anyhow!("a writer panicked"))??;
            match &mut all {
                None => all = Some(one),
                Some(all) => {
                    all.steps += one.steps;
                    all.latency.add(&one.latency)?;
                }
            }
        }
        Ok(())
    })?;
    let mut all = all.context("no writers")?;
    (all.seconds, all.processor) = (
        begin.elapsed().as_secs_f64(),
        processor_seconds() - processor,
    );
    Ok(all)
}

/// Threads that write what they are given, in turn.
struct Writers {
    jobs: Vec<SyncSender<(Aligned, u64)>>,
    /// Buffers whose writes are done.
    done: Receiver<Result<Aligned, rustix::io::Errno>>,
}

impl Writers {
    const COUNT: u64 = 4;

    fn start(file: &File) -> Result<Self> {
        let (sender, done) = mpsc::channel();
        let start = |seed| -> Result<SyncSender<(Aligned, u64)>> {
            let (job, jobs) = mpsc::sync_channel::<(Aligned, u64)>(1);
            let (file, done) = (file.try_clone()?, sender.clone());
            // Nobody is left to hear of the last ones.
            let _ = done.send(Ok(Aligned::new(CHUNK, seed)));
            std::thread::spawn(move || {
                for (buffer, at) in jobs {
                    let written = pwrite(&file, buffer.bytes(), at);
                    let _ = done.send(written.map(|_| buffer));
                }
            });
            Ok(job)
        };
        let jobs = (0..Self::COUNT).map(start).collect::<Result<_>>()?;
        Ok(Self { jobs, done })
    }

    /// Hands a buffer over and waits for another that is free.
    fn write(&self, buffer: Aligned, at: u64) -> Result<Aligned> {
        let turn = at / CHUNK as u64 % Self::COUNT;
        let handed = self.jobs[turn as usize].send((buffer, at));
        handed.map_err(|_| anyhow!("a writer ended"))?;
        Ok(self.done.recv()??)
    }
}

/// The loop of one connection, with so many writes under way. Its processor time is the process's less the sender's:
/// writers are threads of their own.
fn receive_check_write(
    sheet: &mut Sheet,
    depth: u64,
    mut write: impl FnMut(Aligned, u64) -> Result<Aligned>,
) -> Result<()> {
    let (client, mut server) = pair()?;
    let processor = processor_seconds();
    let sender = std::thread::spawn(move || {
        flood(client, Aligned::new(CHUNK, 3).bytes());
        thread_seconds()
    });
    let mut moved = loops::receive_check_write(&mut server, CHUNK, sheet.seconds, |buffer, at| {
        write(buffer, at % FILE_BYTES)
    })?;
    drop(server);
    let sending = sender.join().map_err(|_| anyhow!("the sender panicked"))?;
    moved.processor = (processor_seconds() - processor - sending).max(0.0);
    let parameters = [("bytes", CHUNK as u64), ("depth", depth)];
    sheet.moved("receive + CRC-32C + write", &parameters, &moved);
    Ok(())
}
