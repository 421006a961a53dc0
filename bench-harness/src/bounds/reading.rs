//! Bounds of reading: sending what lies in memory, and sending what lies on the disk.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use rustix::fs::{Advice, fadvise, sendfile};

use super::{Place, connections, fastest};
use crate::hardware::Aligned;
use crate::hardware::files::Scratch;
use crate::hardware::loops::{CHUNK, Moved, drain, moving};
use crate::report::{Bound, BoundKind};

/// What one sendfile(2) sends.
const SENT_AT_ONCE: usize = 512 << 10;

/// Sends the same memory again and again to each of the readers.
///
/// # Errors
/// Of the connections.
pub fn from_memory(count: usize, place: &Place<'_>) -> Result<Bound> {
    let payload = Aligned::new(CHUNK, 7);
    let pass = |seconds| {
        connections(
            count,
            place.cores,
            |_, mut stream| {
                moving(seconds, |_| {
                    place.interrupt.check()?;
                    Ok(stream.write(payload.bytes())? as u64)
                })
            },
            drain,
        )
    };
    let (moved, generator) = fastest(place, pass)?;
    let about = format!("send from memory, 1 MiB at a time; connections: {count}");
    Ok(Bound {
        generator_cpu: generator,
        ..Bound::new(BoundKind::Send, about, moved)
    })
}

/// Sends a cold file with sendfile(2), all of it to each reader, in turn without and with POSIX_FADV_SEQUENTIAL: the fastest
/// of these passes counts, as what disturbs a machine only makes one slower.
///
/// # Errors
/// I/O errors.
pub fn from_disk(readers: usize, bytes: u64, place: &Place<'_>) -> Result<Bound> {
    let scratch = Scratch::direct(place.folder)?;
    place.fill(&scratch, bytes)?;
    let (mut fastest, mut generator, mut with) = (Moved::default(), 0.0, "");
    let begin = Instant::now();
    loop {
        for (advice, name) in [(Advice::Normal, "without"), (Advice::Sequential, "with")] {
            let (moved, spent) = pass(&scratch, advice, readers, bytes, place)?;
            if moved.rate() >= fastest.rate() {
                (fastest, generator, with) = (moved, spent, name);
            }
        }
        if begin.elapsed().as_secs_f64() >= place.seconds {
            break;
        }
    }
    let about = format!(
        "sendfile from a cold file of {} MiB, 512 KiB at a time, {with} POSIX_FADV_SEQUENTIAL; readers: {readers}",
        bytes >> 20
    );
    Ok(Bound {
        generator_cpu: generator,
        ..Bound::new(BoundKind::Cold, about, fastest)
    })
}

/// Once through the file, or as far as the time goes.
fn pass(
    scratch: &Scratch,
    advice: Advice,
    readers: usize,
    bytes: u64,
    place: &Place<'_>,
) -> Result<(Moved, f64)> {
    // Everything is on the disk, so nothing keeps its pages.
    fadvise(&scratch.file, 0, None, Advice::DontNeed)?;
    connections(
        readers,
        place.cores,
        |_, stream| {
            let file = scratch.reader()?;
            fadvise(&file, 0, None, advice)?;
            moving(place.seconds, |before| {
                place.interrupt.check()?;
                let mut at = before;
                let left = (bytes - before).min(SENT_AT_ONCE as u64) as usize;
                if left == 0 {
                    return Ok(0);
                }
                Ok(sendfile(&stream, &file, Some(&mut at), left)? as u64)
            })
        },
        drain,
    )
}
