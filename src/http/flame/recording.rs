//! Samples of every thread of this process, counted by stack.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use rustix::io::Errno;

use super::names;

/// The kernel's buffer for one thread. Stacks of 127 addresses, the most that it takes, at 999 Hz fill it in less than
/// a look; the usual 30 at 99 Hz in a second.
const BUFFER_BYTES: usize = 32 << 10;
/// Threads that are watched at one time, each with a buffer and a descriptor.
const THREADS_MAX: usize = 512;
/// Stacks that are told apart; samples of others are counted without theirs.
const STACKS_MAX: usize = 20_000;

/// In a call chain, what follows is of the kernel or of the program; addresses above the last are no addresses.
const KERNEL_FOLLOWS: u64 = -128_i64 as u64;
const PROGRAM_FOLLOWS: u64 = -512_i64 as u64;
const MARKERS: u64 = -4095_i64 as u64;

/// The thread's name, and addresses from the innermost outwards, each one behind the instruction it stands for.
type Stack = (String, Vec<u64>);

pub(super) struct Recording {
    frequency: u64,
    with_kernel: bool,
    /// By thread id.
    threads: BTreeMap<i32, Watched>,
    left_out: usize,
    counts: HashMap<Stack, u64>,
}

struct Watched {
    name: String,
    samples: Sampler,
}

impl Recording {
    /// Watches all threads that there are.
    ///
    /// # Errors
    /// The kernel has or gives no samples of this process.
    pub(super) fn start(frequency: u64) -> io::Result<Self> {
        let mut recording = Recording {
            frequency,
            with_kernel: true,
            threads: BTreeMap::new(),
            left_out: 0,
            counts: HashMap::new(),
        };
        // Whoever may not see the kernel may still see the program.
        let own = std::process::id().cast_signed();
        if let Err(error) = recording.watch(own) {
            if error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            recording.with_kernel = false;
            recording.watch(own)?;
        }
        recording.look();
        Ok(recording)
    }

    pub(super) fn with_kernel(&self) -> bool {
        self.with_kernel
    }

    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    fn watch(&mut self, thread: i32) -> io::Result<()> {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        builder
            .observe_pid(thread)
            .any_cpu()
            .sample_frequency(self.frequency)
            .sample(SampleFlag::CALLCHAIN)
            .exclude_kernel(!self.with_kernel);
        let mut samples = builder.build()?.sampled(BUFFER_BYTES)?;
        samples.enable()?;
        let watched = Watched {
            name: name_of(thread).unwrap_or_default(),
            samples,
        };
        self.threads.insert(thread, watched);
        Ok(())
    }

    /// Takes what was sampled, and finds threads that came and went.
    pub(super) fn look(&mut self) {
        self.take_samples();
        // Without descriptors for it, those that are known have to do.
        let Ok(there) = threads() else { return };
        let mut left_out = 0;
        for thread in &there {
            if self.threads.contains_key(thread) {
                continue;
            }
            // The kernel's threads for the ring have no time but the kernel's.
            let kernels = name_of(*thread).is_some_and(|name| name.starts_with("iou-"));
            if kernels && !self.with_kernel {
                continue;
            }
            if self.threads.len() >= THREADS_MAX {
                left_out += 1;
                continue;
            }
            match self.watch(*thread) {
                Ok(()) => {}
                // It ended meanwhile.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
                Err(_) => left_out += 1,
            }
        }
        self.left_out = self.left_out.max(left_out);
        self.threads.retain(|thread, _| there.contains(thread));
    }

    fn take_samples(&mut self) {
        for (thread, watched) in &mut self.threads {
            // A thread gets its name after its start.
            if let Some(name) = name_of(*thread) {
                watched.name = name;
            }
            while let Some(record) = watched.samples.next_record() {
                let Ok(Record::Sample(sample)) = record.parse_record() else {
                    continue;
                };
                let chain = addresses(sample.callchain().unwrap_or_default());
                let mut stack = (watched.name.clone(), chain);
                if self.counts.len() >= STACKS_MAX && !self.counts.contains_key(&stack) {
                    stack.1.clear();
                }
                *self.counts.entry(stack).or_default() += 1;
            }
        }
    }

    /// One line a stack: thread, functions from the outermost inwards, count.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.take_samples();
        let owners: BTreeMap<String, String> = self
            .threads
            .iter()
            .map(|(thread, watched)| (format!("iou-wrk-{thread}"), watched.name.clone()))
            .collect();
        // No more samples, least of all of what follows.
        self.threads.clear();
        let names = names::of(self.counts.keys().flat_map(|(_, stack)| stack));
        let mut lines = BTreeMap::new();
        for ((thread, stack), count) in &self.counts {
            let mut line = match owners.get(thread) {
                Some(owner) => format!("{owner} iou-wrk"),
                None => thread.clone(),
            };
            for address in stack.iter().rev() {
                for name in &names[address] {
                    line.push(';');
                    line.push_str(name);
                }
            }
            *lines.entry(line).or_insert(0) += count;
        }
        let folded = lines.iter().map(|(line, count)| format!("{line} {count}"));
        folded.collect()
    }
}

/// The addresses of a call chain. A return address stands behind its call; the innermost of each part is the very
/// instruction, and is made alike.
fn addresses(chain: &[u64]) -> Vec<u64> {
    let mut addresses = Vec::with_capacity(chain.len());
    let mut innermost = true;
    for entry in chain {
        match *entry {
            KERNEL_FOLLOWS | PROGRAM_FOLLOWS => innermost = true,
            0 | MARKERS.. => {}
            address => {
                addresses.push(address + u64::from(innermost));
                innermost = false;
            }
        }
    }
    addresses
}

fn threads() -> io::Result<Vec<i32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(threads)
}

fn name_of(thread: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).ok()?;
    Some(names::folded(name.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_becomes_addresses_behind_their_instructions() {
        let chain = [
            KERNEL_FOLLOWS,
            1 << 63,
            9 << 60,
            PROGRAM_FOLLOWS,
            100,
            200,
            0,
        ];
        assert_eq!(addresses(&chain), [(1 << 63) + 1, 9 << 60, 101, 200]);
        assert_eq!(addresses(&[]), Vec::<u64>::new());
    }
}
