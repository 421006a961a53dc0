//! Bounds: bare loops that do the least of what a scenario asks of a broker, measured in the same run as the targets.
//!
//! The side that stands for the broker runs on the targets' cores, in plain threads whose processor time is counted for
//! itself; the other side runs on the generator's.

pub mod beside;
mod client;
mod echo;
mod reading;
mod writing;

use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};

use crate::hardware::files::Scratch;
use crate::hardware::loops::{Moved, pair};
use crate::hardware::{files, processor_seconds};
use crate::interrupt::Interrupt;
use crate::placement::{Cores, pin_thread};
use crate::report::{Bound, BoundKind, Latency};
use crate::scenario::{Producers, Scenario};

/// Batches from this size on are written for themselves. What is smaller fills no two blocks of a disk, and a broker that
/// wrote each alone would write mostly padding.
const BIG_BATCH: f64 = 8192.0;
/// A bound runs for this part of the scenario's duration, within these seconds.
const SHARE: f64 = 0.25;
const LEAST_SECONDS: f64 = 2.0;
const MOST_SECONDS: f64 = 10.0;
/// A plain loop of bytes divides its seconds into so many passes.
const PASSES: u32 = 2;

/// A bound that belongs to a scenario, with what it takes from it.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    /// Receive, check and write batches of the scenario's size.
    Write { connections: usize, files: usize },
    /// Send from memory to so many readers.
    Send { connections: usize },
    /// Send from a file that is not in memory to so many readers, each of which wants all of it.
    Cold { readers: usize, bytes: u64 },
    /// Durable writes, as many at the same time as there may be requests in flight.
    Durable { writes: u64 },
    /// Append each request to a file and answer, under the scenario's own producers.
    Echo,
    /// Answer at once, to the scenario's own producers and consumers.
    Client,
}

/// Which bounds belong to a scenario, by what it says: every kind of load that it puts on a broker has one.
fn of(scenario: &Scenario) -> Vec<Plan> {
    let mut plans = Vec::new();
    let partitions = scenario.topic.partitions;
    if let Some(producers) = &scenario.producers {
        let durable = is_every_batch_durable(scenario, producers);
        let big = mean_batch_bytes(producers) >= BIG_BATCH;
        if durable {
            let writes = u64::from(producers.count) * u64::from(producers.in_flight);
            plans.push(Plan::Durable { writes });
        }
        // At a fixed rate it is the latency that counts. Small batches as fast as they go have the same loop.
        if producers.rate.is_some() || !big && !durable {
            plans.push(Plan::Echo);
        } else if !durable {
            plans.push(Plan::Write {
                connections: producers.count as usize,
                files: partitions as usize,
            });
        }
    }
    if let Some(consumers) = &scenario.consumers {
        let each = consumers.per_group.min(partitions);
        let connections = (consumers.groups * each) as usize;
        plans.push(Plan::Send { connections });
    }
    if let (Some(cold), Some(prefill)) = (&scenario.cold_readers, &scenario.prefill) {
        plans.push(Plan::Cold {
            readers: cold.count as usize,
            bytes: prefill.mebibytes << 20,
        });
    }
    if scenario.producers.is_some() {
        plans.push(Plan::Client);
    }
    plans
}

/// Whether every batch has at least as many records as may stay without a flush.
fn is_every_batch_durable(scenario: &Scenario, producers: &Producers) -> bool {
    let messages = scenario.topic.config.get("flush.messages");
    let (least, _) = producers.batch_records.bounds();
    messages
        .and_then(|messages| messages.parse::<u64>().ok())
        .is_some_and(|messages| messages <= u64::from(least))
}

fn mean_batch_bytes(producers: &Producers) -> f64 {
    let (least, most) = producers.batch_records.bounds();
    f64::from(least + most) / 2.0 * f64::from(producers.record_bytes)
}

/// Where bounds are measured, and for how long each.
struct Place<'a> {
    folder: &'a Path,
    cores: &'a Cores,
    seconds: f64,
    interrupt: &'a Interrupt,
}

impl Place<'_> {
    /// Fills a file piece by piece, with a line about how far it is.
    fn fill(&self, scratch: &Scratch, bytes: u64) -> Result<()> {
        let filled = scratch.fill_in_steps(bytes, |written| {
            crate::progress(&format!(
                "filling a file of the bound: {} of {} MiB",
                written >> 20,
                bytes >> 20
            ));
            self.interrupt.check()
        });
        crate::progress("");
        filled
    }
}

/// Whether bounds can be measured in a folder, before minutes are spent on anything else.
///
/// # Errors
/// Where it cannot be read, and where it lies in memory.
pub fn check(folder: &Path) -> Result<()> {
    let explain = || format!("--bounds {}", folder.display());
    let opened = std::fs::File::open(folder).with_context(explain)?;
    ensure!(
        !files::is_in_memory(opened).with_context(explain)?,
        "--bounds {}: it lies in memory; name a folder on the disk under test",
        folder.display()
    );
    Ok(())
}

/// Measures the bounds that belong to a scenario, one after the other. Their files are in the folder.
///
/// # Errors
/// Of files and connections, and when it was interrupted.
pub fn measure(
    scenario: &Scenario,
    folder: &Path,
    cores: &Cores,
    interrupt: &Interrupt,
) -> Result<Vec<Bound>> {
    let share = f64::from(scenario.duration_seconds) * SHARE;
    let place = Place {
        folder,
        cores,
        seconds: share.clamp(LEAST_SECONDS, MOST_SECONDS),
        interrupt,
    };
    let measure = |plan| {
        interrupt.check()?;
        let measured = match plan {
            Plan::Write { connections, files } => {
                writing::receive_check_write(scenario, connections, files, &place)
            }
            Plan::Send { connections } => reading::from_memory(connections, &place),
            Plan::Cold { readers, bytes } => reading::from_disk(readers, bytes, &place),
            Plan::Durable { writes } => writing::durable(writes, &place),
            Plan::Echo => echo::measure(scenario, &place),
            Plan::Client => client::measure(scenario, &place),
        };
        let bound = measured.with_context(|| format!("bound of {}", scenario.name))?;
        crate::say(&format!("bound: {}", bound.about));
        Ok(bound)
    };
    of(scenario).into_iter().map(measure).collect()
}

impl Bound {
    fn new(kind: BoundKind, about: String, moved: Moved) -> Self {
        Self {
            kind,
            about,
            seconds: moved.seconds,
            steps: moved.steps,
            bytes: moved.bytes,
            cpu: moved.processor,
            generator_cpu: 0.0,
            latency: Latency::default(),
            consumed_bytes: 0,
            end_to_end: Latency::default(),
            figures: Vec::new(),
        }
    }
}

/// Several passes of a loop, which is told its seconds: the fastest counts, as what disturbs a machine only makes one slower.
fn fastest(place: &Place<'_>, pass: impl Fn(f64) -> Result<(Moved, f64)>) -> Result<(Moved, f64)> {
    let mut best = pass(place.seconds / f64::from(PASSES))?;
    for _ in 1..PASSES {
        let next = pass(place.seconds / f64::from(PASSES))?;
        if next.0.rate() > best.0.rate() {
            best = next;
        }
    }
    Ok(best)
}

/// Runs a thread of each side for every connection, to their ends: what the serving side moved, and the generator's
/// processor seconds. Each side ends when the other closes its connection.
fn connections(
    count: usize,
    cores: &Cores,
    serve: impl Fn(usize, TcpStream) -> Result<Moved> + Sync,
    generate: impl Fn(TcpStream) + Sync,
) -> Result<(Moved, f64)> {
    let processor = processor_seconds();
    let (serve, generate) = (&serve, &generate);
    let moved = std::thread::scope(|scope| {
        let mut servers = Vec::new();
        for at in 0..count {
            let (client, server) = pair()?;
            scope.spawn(move || {
                pin_thread(&cores.generator);
                generate(client);
            });
            servers.push(scope.spawn(move || {
                pin_thread(&cores.targets);
                serve(at, server)
            }));
        }
        let mut all = Moved::default();
        for server in servers {
            let one = server.join().map_err(|_| anyhow!("a server panicked"))??;
            all = all.beside(one);
        }
        anyhow::Ok(all)
    })?;
    let generator = processor_seconds() - processor - moved.processor;
    Ok((moved, generator.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(name: &str) -> Vec<Plan> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let scenario = Scenario::read(&folder.join(format!("{name}.toml"))).expect("a scenario");
        of(&scenario)
    }

    #[test]
    fn a_scenario_has_the_bounds_of_what_it_does() {
        let write = |connections, files| Plan::Write { connections, files };
        let send = |connections| Plan::Send { connections };
        let cold = |readers, bytes| Plan::Cold { readers, bytes };
        for (name, wanted) in [
            ("big-batches-acks-all", vec![write(4, 16)]),
            ("codec-lz4", vec![write(4, 16), send(1)]),
            ("openmessaging-16-partitions", vec![write(4, 16), send(4)]),
            ("keyed-1000-partitions", vec![Plan::Echo]),
            ("one-a-request-20000", vec![Plan::Echo]),
            ("fsync-every-ack", vec![Plan::Durable { writes: 40 }]),
            ("tail", vec![Plan::Echo, send(4)]),
            ("fan-out-50", vec![Plan::Echo, send(50)]),
            ("consumer-behind", vec![Plan::Echo, cold(1, 2 << 30)]),
            ("tail-and-cold", vec![Plan::Echo, send(1), cold(2, 1 << 30)]),
        ] {
            let wanted: Vec<Plan> = wanted.into_iter().chain([Plan::Client]).collect();
            assert_eq!(plans(name), wanted, "{name}");
        }
        // Without producers the client has nothing to send to a sink.
        assert_eq!(plans("cold-read-10"), [cold(10, 1 << 30)]);
    }

    #[test]
    fn flushing_counts_where_it_comes_with_every_batch() {
        let scenario = |messages: &str, batch: &str, more: &str| {
            let text = format!(
                "name = \"a\"\nabout = \"\"\nwarm_up_seconds = 0\nduration_seconds = 1\n\
                 topic = {{ partitions = 1, config = {{ \"flush.messages\" = \"{messages}\" }} }}\n\
                 [producers]\ncount = 2\nrecord_bytes = 1024\nacks = \"all\"\nbatch_records = {batch}\n{more}"
            );
            of(&Scenario::parse(&text).expect("a scenario"))
        };
        let durable = Plan::Durable { writes: 10 };
        let (echo, client) = (Plan::Echo, Plan::Client);
        let flushed = [durable.clone(), client.clone()];
        assert_eq!(scenario("1", "[1, 5]", ""), flushed);
        assert_eq!(scenario("60", "60", ""), flushed);
        let both = [durable, echo.clone(), client.clone()];
        assert_eq!(scenario("1", "1", "rate = 100"), both);
        let appended = [echo, client];
        assert_eq!(scenario("2", "[1, 5]", ""), appended);
        assert_eq!(scenario("never", "1", ""), appended);
    }

    #[test]
    fn every_checked_in_scenario_has_a_bound() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        for entry in std::fs::read_dir(folder).expect("the folder of scenarios") {
            let path = entry.expect("an entry").path();
            let scenario = Scenario::read(&path).expect("a scenario");
            assert!(!of(&scenario).is_empty(), "{}", path.display());
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = check(Path::new("not/there")).expect_err("no folder");
        assert!(format!("{error:#}").contains("--bounds not/there"));
    }
}
