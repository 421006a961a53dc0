//! What the machine can do, and the bare loops that bound a broker: its results are to be read beside these.

pub mod cores;
pub mod disk;
pub mod files;
pub mod loops;
pub mod net;
pub mod sheet;

use std::time::Instant;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

/// Processor seconds of the whole process so far.
pub fn processor_seconds() -> f64 {
    seconds_of(ClockId::ProcessCPUTime)
}

/// Processor seconds of this thread so far.
pub fn thread_seconds() -> f64 {
    seconds_of(ClockId::ThreadCPUTime)
}

fn seconds_of(clock: ClockId) -> f64 {
    let spent = clock_gettime(clock);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// What repeating one step gave.
pub struct Repeated {
    pub steps: u64,
    pub seconds: f64,
    /// Processor seconds of the process meanwhile.
    pub processor: f64,
    /// Microseconds of each step.
    pub latency: hdrhistogram::Histogram<u64>,
}

/// Repeats a step for so many seconds, one after the other.
fn repeat(seconds: f64, mut step: impl FnMut(u64) -> Result<()>) -> Result<Repeated> {
    let mut latency = hdrhistogram::Histogram::new_with_bounds(1, 120_000_000, 3)?;
    let (begin, processor) = (Instant::now(), processor_seconds());
    let mut steps = 0;
    while begin.elapsed().as_secs_f64() < seconds {
        let at = Instant::now();
        step(steps)?;
        latency.saturating_record((at.elapsed().as_micros() as u64).max(1));
        steps += 1;
    }
    Ok(Repeated {
        steps,
        seconds: begin.elapsed().as_secs_f64(),
        processor: processor_seconds() - processor,
        latency,
    })
}

/// Memory that begins on a block boundary, for direct I/O.
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    /// What direct I/O counts in, in bytes.
    pub const BLOCK: usize = 4096;

    pub fn new(length: usize, seed: u64) -> Self {
        let mut memory = vec![0; length + Self::BLOCK];
        fastrand::Rng::with_seed(seed).fill(&mut memory);
        let from = memory.as_ptr().align_offset(Self::BLOCK);
        Self {
            memory,
            from,
            length,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}
