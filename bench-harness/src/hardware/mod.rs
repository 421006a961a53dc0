//! What the machine can do, and the bare loops that bound a broker: its results are to be read beside these.

pub mod cores;
pub mod disk;
pub mod files;
pub mod loops;
pub mod net;

use std::time::Instant;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

/// Seconds that each figure is measured.
const SECONDS: f64 = 2.0;

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

fn line(name: &str, text: &str) {
    println!("{name:<60}{text}");
}

impl Repeated {
    /// A line about steps that each move so many bytes.
    fn print(&self, name: &str, bytes: u64) {
        let gigabytes = (self.steps * bytes) as f64 / 1e9;
        let rate = gigabytes * 1000.0 / self.seconds;
        line(
            name,
            &format!(
                "{rate:>9.1} MB/s {:>10.0} /s   p50 {:>6} us  p99 {:>6} us   CPU {:>6.3} s/GB {:>7.2} us each",
                self.steps as f64 / self.seconds,
                self.latency.value_at_percentile(50.0),
                self.latency.value_at_percentile(99.0),
                crate::report::ratio(self.processor, gigabytes),
                self.processor * 1e6 / self.steps.max(1) as f64,
            ),
        );
    }
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
