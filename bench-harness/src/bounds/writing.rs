//! Bounds of writing: batches that are received, checked and written, and writes that are durable.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use rustix::io::{ReadWriteFlags, pwrite};

use super::{Place, connections, fastest};
use crate::batches::Batches;
use crate::hardware::files::Scratch;
use crate::hardware::loops::{self, Moved, flood};
use crate::hardware::{Aligned, disk};
use crate::placement::pin_thread;
use crate::report::{Bound, BoundKind, Latency};
use crate::scenario::Scenario;

/// All files together, in bytes: the loop goes round in them.
const FILE_BYTES: u64 = 1 << 30;
/// More files than this change nothing, and a process may have 1,024 open.
const MOST_FILES: usize = 256;
/// The durable writes go round in this, so that none meets another's block.
const DURABLE_BYTES: u64 = 256 << 20;
const DURABLE_SIZE: usize = 4096;

/// A file that several connections write to, each to blocks of its own.
struct Ring {
    scratch: Scratch,
    next: AtomicU64,
    block: u64,
    blocks: u64,
}

impl Ring {
    fn write(&self, buffer: &Aligned) -> Result<()> {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.blocks * self.block;
        pwrite(&self.scratch.file, buffer.bytes(), at)?;
        Ok(())
    }
}

/// Receives batches of the scenario's size, as many connections as there are producers, takes their CRC-32C, and writes
/// each to the next of the files, past the page cache.
///
/// # Errors
/// I/O errors.
pub fn receive_check_write(
    scenario: &Scenario,
    count: usize,
    files: usize,
    place: &Place<'_>,
) -> Result<Bound> {
    let batch = Batches::new(&scenario.shape(), scenario.seed, 0)?.mean_bytes();
    let files = files.min(MOST_FILES);
    let block = batch.next_multiple_of(Aligned::BLOCK) as u64;
    let blocks = (FILE_BYTES / files as u64 / block).max(1);
    let ring = |_| {
        let scratch = Scratch::direct(place.folder)?;
        place.fill(&scratch, blocks * block)?;
        Ok(Ring {
            scratch,
            next: AtomicU64::new(0),
            block,
            blocks,
        })
    };
    let rings = (0..files).map(ring).collect::<Result<Vec<_>>>()?;
    let payload = Aligned::new(loops::CHUNK, 3);
    let pass = |seconds| {
        connections(
            count,
            place.cores,
            |at, mut stream| {
                // Each begins elsewhere, and all come by every file.
                let mut turn = at * rings.len() / count;
                loops::receive_check_write(&mut stream, batch, seconds, |buffer, _| {
                    place.interrupt.check()?;
                    rings[turn % rings.len()].write(&buffer)?;
                    turn += 1;
                    Ok(buffer)
                })
            },
            |stream| flood(stream, payload.bytes()),
        )
    };
    let (moved, generator) = fastest(place, pass)?;
    let how = if rings.iter().all(|ring| ring.scratch.is_direct) {
        "O_DIRECT"
    } else {
        "through the page cache, as there is no O_DIRECT here"
    };
    let about = format!(
        "receive + CRC-32C + write of batches of {batch} bytes, {how}, in turn to {files} files; connections: {count}"
    );
    Ok(Bound {
        generator_cpu: generator,
        ..Bound::new(BoundKind::Write, about, moved)
    })
}

/// Writes of 4 KiB with RWF_DSYNC, each to the next block of one file that was written before.
///
/// # Errors
/// I/O errors.
pub fn durable(depth: u64, place: &Place<'_>) -> Result<Bound> {
    let scratch = Scratch::direct(place.folder)?;
    place.fill(&scratch, DURABLE_BYTES)?;
    let blocks = DURABLE_BYTES / DURABLE_SIZE as u64;
    let write = || {
        let flags = ReadWriteFlags::DSYNC;
        let (file, size) = (&scratch.file, DURABLE_SIZE);
        pin_thread(&place.cores.targets);
        disk::writes(file, blocks, size, depth, flags, place.seconds)
    };
    // In a thread of its own, from which the writers get their cores.
    let written = std::thread::scope(|scope| scope.spawn(write).join())
        .map_err(|_| anyhow::anyhow!("the writers panicked"))??;
    let about = format!(
        "writes of 4 KiB with RWF_DSYNC, {depth} at the same time, each to another block of one file that was written before"
    );
    let moved = Moved {
        steps: written.steps,
        bytes: written.steps * DURABLE_SIZE as u64,
        seconds: written.seconds,
        processor: written.processor,
    };
    Ok(Bound {
        latency: Latency::new(&written.latency)?,
        ..Bound::new(BoundKind::Durable, about, moved)
    })
}
