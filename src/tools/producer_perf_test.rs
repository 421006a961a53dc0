//! `ringmain producer-perf-test`: how fast records are written, with the flags and the lines of `kafka-producer-perf-test.sh`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;

use super::Failure;
use super::client::{Client, Settings, Target};
use super::console_producer::now_ms;
use super::producer::{Delivery, Producer, ProducerRecord, ProducerSettings};
use super::properties::collect;

/// Kafka's flags.
#[derive(Args, Debug)]
pub struct ProducerPerfTestArgs {
    /// The brokers to connect to at first; stronger than bootstrap.servers in the properties
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,
    /// The topic to write to
    #[arg(long)]
    topic: String,
    /// How many records to write
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    num_records: u64,
    /// About how many records a second; -1 for as many as go
    #[arg(long, value_name = "RECORDS", allow_hyphen_values = true)]
    throughput: f64,
    #[command(flatten)]
    payload: PayloadArgs,
    /// What parts the payloads in the file
    #[arg(long, value_name = "TEXT", default_value = "\\n")]
    payload_delimiter: String,
    /// Properties of the producer
    #[arg(long = "command-property", visible_alias = "producer-props", value_name = "KEY=VALUE", num_args = 1..)]
    properties: Vec<String>,
    /// A file of such properties
    #[arg(
        long = "command-config",
        visible_alias = "producer.config",
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// The first so many records are left out of the second summary
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    warmup_records: u64,
    /// Milliseconds between lines of progress
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    reporting_interval: u64,
    /// Keys are numbers below this
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    record_key_range: Option<u64>,
    /// Which keys the records have
    #[arg(long, value_enum, default_value = "none")]
    key_distribution: KeyDistribution,
    /// Where random payloads and keys begin
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    random_seed: i64,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct PayloadArgs {
    /// Random records of this size
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    record_size: Option<u32>,
    /// Records from a file, chosen at random
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Records are the numbers from 0 on
    #[arg(long)]
    payload_monotonic: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum KeyDistribution {
    None,
    /// One after the other
    Range,
    Random,
}

/// What records consist of.
enum Payload {
    Random(Vec<u8>),
    Lines(Vec<String>),
    Number(String),
}

/// A small generator (splitmix64): the same seed gives the same records.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Eight capital letters. A multiplication instead of a division, since this is the most that the tool does for a record.
fn letters(bits: u64) -> [u8; 8] {
    let letter = |byte: u8| b'A'.wrapping_add(((u16::from(byte) * 26) >> 8) as u8);
    bits.to_le_bytes().map(letter)
}

impl Payload {
    fn new(arguments: &ProducerPerfTestArgs, out: &mut dyn Write) -> Result<Payload, Failure> {
        if let Some(size) = arguments.payload.record_size {
            return Ok(Payload::Random(vec![0; size as usize]));
        }
        let Some(path) = &arguments.payload.payload_file else {
            return Ok(Payload::Number(String::new()));
        };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        writeln!(out, "Reading payloads from: {}", absolute.display())?;
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(format!("--payload-file {}: {why}", path.display()))
        };
        let text = std::fs::read(path).map_err(|error| wrong(&error))?;
        if text.is_empty() {
            return Err(wrong(&"it is empty"));
        }
        let text = String::from_utf8_lossy(&text);
        let delimiter = match arguments.payload_delimiter.as_str() {
            "\\n" => "\n",
            other => other,
        };
        let mut lines: Vec<String> = text.split(delimiter).map(str::to_owned).collect();
        // As Java splits.
        while lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        writeln!(out, "Number of records read: {}", lines.len())?;
        Ok(Payload::Lines(lines))
    }

    fn record(&mut self, number: u64, random: &mut Random) -> &[u8] {
        match self {
            Payload::Random(bytes) => {
                let (whole, rest) = bytes.as_chunks_mut();
                for chunk in whole {
                    *chunk = letters(random.next());
                }
                let last = letters(random.next());
                rest.copy_from_slice(&last[..rest.len()]);
                bytes
            }
            Payload::Lines(lines) => {
                let at = random.next() % lines.len().max(1) as u64;
                lines
                    .get(at as usize)
                    .map(String::as_bytes)
                    .unwrap_or_default()
            }
            Payload::Number(text) => {
                *text = number.to_string();
                text.as_bytes()
            }
        }
    }
}

pub(super) fn run(arguments: &ProducerPerfTestArgs, out: &mut dyn Write) -> Result<(), Failure> {
    check(arguments)?;
    let flag = "--command-property";
    let mut properties = collect(arguments.config.as_deref(), flag, &arguments.properties)?;
    properties
        .entry("client.id".to_owned())
        .or_insert_with(|| "perf-producer-client".to_owned());
    let servers = arguments
        .bootstrap_server
        .clone()
        .or_else(|| properties.get("bootstrap.servers").cloned())
        .ok_or_else(|| {
            Failure::new(
                "--bootstrap-server is missing, and bootstrap.servers in the properties too",
            )
        })?;
    let mut payload = Payload::new(arguments, out)?;
    let producer_settings = ProducerSettings::new(&properties)?;
    let client = Client::connect(Settings::new(Target::Brokers, &servers, properties)?)?;
    let stats = Arc::new(Mutex::new(Statistics::new(arguments)?));
    let theirs = Arc::clone(&stats);
    let on_delivery = Box::new(move |delivery: &Delivery| lock(&theirs).record(delivery));
    let producer = Producer::start(client, &arguments.topic, producer_settings, on_delivery)?;
    lock(&stats).begin();
    let sent = send_all(arguments, producer, &mut payload, &stats, out);
    let mut stats = lock(&stats);
    stats.print_windows(out)?;
    sent?;
    stats.print_totals(out)
}

fn check(arguments: &ProducerPerfTestArgs) -> Result<(), Failure> {
    let keyed = arguments.key_distribution != KeyDistribution::None;
    if keyed && arguments.record_key_range.is_none() {
        return Err(Failure::new(
            "--record-key-range is required when --key-distribution is 'range' or 'random'.",
        ));
    }
    if !keyed && arguments.record_key_range.is_some() {
        return Err(Failure::new(
            "--key-distribution must be 'range' or 'random' when --record-key-range is specified.",
        ));
    }
    if arguments.warmup_records >= arguments.num_records {
        return Err(Failure::new(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.",
        ));
    }
    Ok(())
}

fn lock(stats: &Mutex<Statistics>) -> std::sync::MutexGuard<'_, Statistics> {
    stats
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn send_all(
    arguments: &ProducerPerfTestArgs,
    mut producer: Producer,
    payload: &mut Payload,
    stats: &Mutex<Statistics>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    /// Records between looks at the clock where nothing is held back.
    const LOOK_EVERY: u64 = 1024;
    let mut random = Random(arguments.random_seed.cast_unsigned());
    let start = Instant::now();
    for number in 0..arguments.num_records {
        if number == arguments.warmup_records && number > 0 {
            lock(stats).begin_steady();
        }
        let key = match (arguments.key_distribution, arguments.record_key_range) {
            (KeyDistribution::Range, Some(range)) => Some((number % range).to_string()),
            (KeyDistribution::Random, Some(range)) => Some((random.next() % range).to_string()),
            _ => None,
        };
        let record = ProducerRecord {
            key: key.as_deref().map(str::as_bytes),
            value: Some(payload.record(number, &mut random)),
            headers: &[],
            timestamp: now_ms(),
        };
        producer.send(&record)?;
        if arguments.throughput > 0.0 {
            throttle(arguments.throughput, number + 1, start, stats, out)?;
        } else if number % LOOK_EVERY == 0 {
            lock(stats).print_windows(out)?;
        }
    }
    producer.close()
}

/// Sleeps until so many records are due.
fn throttle(
    throughput: f64,
    sent: u64,
    start: Instant,
    stats: &Mutex<Statistics>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    /// Shorter sleeps are put off until they add up.
    const LEAST: Duration = Duration::from_millis(2);
    let due = Duration::from_secs_f64(sent as f64 / throughput);
    let ahead = due.saturating_sub(start.elapsed());
    if ahead >= LEAST {
        std::thread::sleep(ahead);
        lock(stats).print_windows(out)?;
    }
    Ok(())
}

/// Counts of one part of the run.
struct Counts {
    start: Instant,
    records: u64,
    bytes: u64,
    latency_sum: f64,
    latency_max: u64,
    latencies: Histogram<u64>,
}

impl Counts {
    fn new() -> Result<Counts, Failure> {
        let latencies = Histogram::new(3)
            .map_err(|error| Failure::new(format!("the histogram of latencies: {error}")))?;
        Ok(Counts {
            start: Instant::now(),
            records: 0,
            bytes: 0,
            latency_sum: 0.0,
            latency_max: 0,
            latencies,
        })
    }

    fn clear(&mut self) {
        self.start = Instant::now();
        self.records = 0;
        self.bytes = 0;
        self.latency_sum = 0.0;
        self.latency_max = 0;
        self.latencies.reset();
    }

    fn add(&mut self, latency_ms: u64, bytes: usize) {
        self.records += 1;
        self.bytes += bytes as u64;
        self.latency_sum += latency_ms as f64;
        self.latency_max = self.latency_max.max(latency_ms);
        // It grows with what it is given; more than 2^63 ms cannot be.
        let _ = self.latencies.record(latency_ms);
    }

    /// Records and megabytes a second, and the mean latency.
    fn rates(&self) -> (f64, f64, f64) {
        let elapsed = (self.start.elapsed().as_millis() as f64).max(1.0);
        (
            1000.0 * self.records as f64 / elapsed,
            1000.0 * self.bytes as f64 / elapsed / (1024.0 * 1024.0),
            self.latency_sum / self.records as f64,
        )
    }

    fn print(&self, what: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let (records, megabytes, mean) = self.rates();
        let percentile = |part| self.latencies.value_at_quantile(part);
        writeln!(
            out,
            "{}{what} records sent, {records:.6} records/sec ({megabytes:.2} MB/sec), {mean:.2} ms avg latency, \
             {:.2} ms max latency, {} ms 50th, {} ms 95th, {} ms 99th, {} ms 99.9th.",
            self.records,
            self.latency_max as f64,
            percentile(0.5),
            percentile(0.95),
            percentile(0.99),
            percentile(0.999),
        )?;
        Ok(())
    }
}

/// All counts, and lines that are to be printed by the thread that may.
struct Statistics {
    interval: Duration,
    total: Counts,
    window: Counts,
    steady: Option<Counts>,
    lines: Vec<String>,
    failures: BTreeMap<String, u64>,
}

impl Statistics {
    fn new(arguments: &ProducerPerfTestArgs) -> Result<Statistics, Failure> {
        Ok(Statistics {
            interval: Duration::from_millis(arguments.reporting_interval),
            total: Counts::new()?,
            window: Counts::new()?,
            steady: None,
            lines: Vec::new(),
            failures: BTreeMap::new(),
        })
    }

    fn begin(&mut self) {
        self.total.clear();
        self.window.clear();
    }

    fn begin_steady(&mut self) {
        self.steady = Counts::new().ok();
    }

    fn record(&mut self, delivery: &Delivery) {
        if let Some(error) = &delivery.failure {
            let count = self.failures.entry(error.to_string()).or_default();
            *count += delivery.records.len() as u64;
            return;
        }
        let now = Instant::now();
        for record in &delivery.records {
            let latency = now.saturating_duration_since(record.sent).as_millis();
            let latency = u64::try_from(latency).unwrap_or(u64::MAX);
            let bytes = record.value_size.unwrap_or_default();
            self.total.add(latency, bytes);
            self.window.add(latency, bytes);
            if let Some(steady) = self.steady.as_mut().filter(|one| record.sent >= one.start) {
                steady.add(latency, bytes);
            }
        }
        if now.saturating_duration_since(self.window.start) >= self.interval {
            let (records, megabytes, mean) = self.window.rates();
            self.lines.push(format!(
                "{} records sent, {records:.1} records/sec ({megabytes:.2} MB/sec), {mean:.1} ms avg latency, {:.1} ms max latency.",
                self.window.records, self.window.latency_max as f64
            ));
            self.window.clear();
        }
    }

    fn print_windows(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        for line in self.lines.drain(..) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        Ok(())
    }

    fn print_totals(&self, out: &mut dyn Write) -> Result<(), Failure> {
        self.total.print("", out)?;
        if let Some(steady) = &self.steady {
            steady.print(" steady state", out)?;
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        let each: Vec<String> = self
            .failures
            .iter()
            .map(|(why, count)| format!("{count} records were not written: {why}"))
            .collect();
        Err(Failure::new(each.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_payloads_are_letters_and_the_same_for_the_same_seed() {
        for size in [1, 8, 29] {
            let records = |seed| {
                let (mut payload, mut random) = (Payload::Random(vec![0; size]), Random(seed));
                let mut next = |number| payload.record(number, &mut random).to_vec();
                [next(0), next(1)].concat()
            };
            let found = records(7);
            assert_eq!(found.len(), 2 * size);
            assert!(found.iter().all(u8::is_ascii_uppercase), "{found:?}");
            assert_eq!(records(7), found);
        }
        assert_eq!(letters(0), [b'A'; 8]);
        assert_eq!(letters(u64::MAX), [b'Z'; 8]);
    }
}
