//! `disk DIR`: writes by size and depth, durable writes, cold reads, and the bare loop of receiving, checking and writing.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use rustix::io::{ReadWriteFlags, pread, pwrite, pwritev2};

use super::{Aligned, Repeated, SECONDS, line, processor_seconds, repeat};

/// The file that all writes go round in.
const FILE_BYTES: u64 = 1 << 30;
/// What the bare loops receive and write at a time.
const CHUNK: usize = 1 << 20;

/// Removes its file at the end.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            path: folder.join(format!("ringmain-bench-{}.tmp", std::process::id())),
        })
    }

    /// Opens the file for direct I/O, or through the page cache where the filesystem has none.
    fn open(&self) -> Result<(File, bool)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let explain = || format!("cannot open {}", self.path.display());
        match open(&self.path, flags | OFlags::DIRECT, mode) {
            Ok(file) => Ok((file.into(), true)),
            Err(rustix::io::Errno::INVAL) => Ok((
                open(&self.path, flags, mode).with_context(explain)?.into(),
                false,
            )),
            Err(error) => Err(error).with_context(explain),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub fn print(folder: &Path) -> Result<()> {
    let scratch = Scratch::new(folder)?;
    let (file, direct) = scratch.open()?;
    if !direct {
        crate::say(&format!(
            "{}: no O_DIRECT on this filesystem, figures are of the page cache",
            folder.display()
        ));
    }
    fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES)
        .with_context(|| format!("{}: 1 GiB is needed", folder.display()))?;
    fill(&file)?;
    let file = Arc::new(file);
    for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20] {
        for depth in [1, 4, 16] {
            writes(&file, size, depth, ReadWriteFlags::empty())?.print(
                &format!("write {:>4} KiB, depth {depth}", size >> 10),
                size as u64,
            );
        }
    }
    for size in [4 << 10, 64 << 10] {
        for depth in [1, 4, 16, 64] {
            writes(&file, size, depth, ReadWriteFlags::DSYNC)?.print(
                &format!("write {:>4} KiB, RWF_DSYNC, depth {depth}", size >> 10),
                size as u64,
            );
        }
    }
    for size in [4 << 10, 128 << 10, 1 << 20] {
        let mut buffer = Aligned::new(size, 1);
        let blocks = FILE_BYTES / size as u64;
        let read = repeat(|step| {
            pread(
                &*file,
                buffer.bytes_mut(),
                step.wrapping_mul(7919) % blocks * size as u64,
            )?;
            Ok(())
        })?;
        read.print(
            &format!("cold read {:>4} KiB, depth 1", size >> 10),
            size as u64,
        );
    }
    receive_check_write("one write at a time", |buffer, at| {
        pwrite(&*file, buffer.bytes(), at)?;
        Ok(buffer)
    })?;
    let writers = Writers::start(&file);
    receive_check_write("4 writes under way", |buffer, at| writers.write(buffer, at))
}

/// Blocks that were never written read faster and write slower than others.
fn fill(file: &File) -> Result<()> {
    let buffer = Aligned::new(4 << 20, 2);
    for at in (0..FILE_BYTES).step_by(4 << 20) {
        pwrite(file, buffer.bytes(), at)?;
    }
    Ok(rustix::fs::fsync(file)?)
}

/// Sequential writes by so many threads, each with one in flight.
fn writes(file: &Arc<File>, size: usize, depth: u64, flags: ReadWriteFlags) -> Result<Repeated> {
    let next = Arc::new(AtomicU64::new(0));
    let blocks = FILE_BYTES / size as u64;
    let (begin, processor) = (Instant::now(), processor_seconds());
    let threads: Vec<_> = (0..depth)
        .map(|seed| {
            let (file, next) = (file.clone(), next.clone());
            std::thread::spawn(move || {
                let buffer = Aligned::new(size, seed);
                repeat(|_| {
                    let at = next.fetch_add(1, Ordering::Relaxed) % blocks * size as u64;
                    pwritev2(&*file, &[IoSlice::new(buffer.bytes())], at, flags)?;
                    Ok(())
                })
            })
        })
        .collect();
    let mut all: Option<Repeated> = None;
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

    fn start(file: &Arc<File>) -> Self {
        let (sender, done) = mpsc::channel();
        let jobs = (0..Self::COUNT).map(|seed| {
            let (job, jobs) = mpsc::sync_channel::<(Aligned, u64)>(1);
            let (file, done) = (file.clone(), sender.clone());
            // Nobody is left to hear of the last ones.
            let _ = done.send(Ok(Aligned::new(CHUNK, seed)));
            std::thread::spawn(move || {
                for (buffer, at) in jobs {
                    let written = pwrite(&*file, buffer.bytes(), at);
                    let _ = done.send(written.map(|_| buffer));
                }
            });
            job
        });
        let jobs = jobs.collect();
        Self { jobs, done }
    }

    /// Hands a buffer over and waits for another that is free.
    fn write(&self, buffer: Aligned, at: u64) -> Result<Aligned> {
        let turn = at / CHUNK as u64 % Self::COUNT;
        let handed = self.jobs[turn as usize].send((buffer, at));
        handed.map_err(|_| anyhow!("a writer ended"))?;
        Ok(self.done.recv()??)
    }
}

/// What a broker does to a batch at the very least: receive it, check it, write it. The sender is another thread; its
/// processor time is taken off.
fn receive_check_write(
    name: &str,
    mut write: impl FnMut(Aligned, u64) -> Result<Aligned>,
) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let stop = Arc::new(AtomicBool::new(false));
    let sender = std::thread::spawn({
        let stop = stop.clone();
        move || -> Result<f64> {
            let mut stream = TcpStream::connect(address)?;
            let payload = Aligned::new(CHUNK, 3);
            while !stop.load(Ordering::Relaxed) {
                if stream.write_all(payload.bytes()).is_err() {
                    break;
                }
            }
            let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Ok(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9)
        }
    });
    let (mut stream, _) = listener.accept()?;
    let mut buffer = Aligned::new(CHUNK, 4);
    let (begin, processor) = (Instant::now(), processor_seconds());
    let (mut bytes, mut checksum) = (0_u64, 0);
    while begin.elapsed().as_secs_f64() < SECONDS {
        stream.read_exact(buffer.bytes_mut())?;
        checksum ^= crc32c::crc32c(buffer.bytes());
        buffer = write(buffer, bytes % FILE_BYTES)?;
        bytes += CHUNK as u64;
    }
    std::hint::black_box(checksum);
    let (seconds, all) = (
        begin.elapsed().as_secs_f64(),
        processor_seconds() - processor,
    );
    stop.store(true, Ordering::Relaxed);
    drop(stream);
    let sending = sender
        .join()
        .map_err(|_| anyhow!("the sender panicked"))??;
    let gigabytes = bytes as f64 / 1e9;
    line(
        &format!("bare loop: receive + CRC-32C + write, {name}"),
        &format!(
            "{:>9.1} MB/s   CPU {:>6.3} s/GB without the sender",
            gigabytes * 1000.0 / seconds,
            (all - sending).max(0.0) / gigabytes
        ),
    );
    Ok(())
}
