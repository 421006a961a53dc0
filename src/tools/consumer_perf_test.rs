//! `ringmain consumer-perf-test`: how fast records are read, with the flags and the lines of `kafka-consumer-perf-test.sh`.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use protocol::Str;

use super::Failure;
use super::client::{Client, Settings, Target};
use super::console_producer::now_ms;
use super::consumer::{Consumer, ConsumerSettings, Polled, Topics};
use super::pattern::Pattern;
use super::progress::Progress;
use super::properties::collect;

/// Kafka's flags.
#[derive(Args, Debug)]
pub struct ConsumerPerfTestArgs {
    /// The brokers to connect to at first
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: String,
    /// The topic to read
    #[arg(long, required_unless_present = "include", conflicts_with = "include")]
    topic: Option<String>,
    /// A pattern for the topics to read
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,
    /// How many records to read
    #[arg(long, visible_alias = "messages", value_name = "COUNT")]
    num_records: u64,
    /// The group to join
    #[arg(long)]
    group: Option<String>,
    /// Bytes of one partition in one answer
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    fetch_size: u32,
    /// Begin at the latest record where nothing is committed
    #[arg(long)]
    from_latest: bool,
    /// Accepted and without effect: the system sizes socket buffers
    #[arg(long, value_name = "BYTES")]
    socket_buffer_size: Option<u32>,
    /// End when no record comes for so long
    #[arg(long, value_name = "MS", num_args = 0..=1, default_value_t = 10_000, default_missing_value = "10000")]
    timeout: u64,
    /// Milliseconds between lines of progress
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    reporting_interval: u64,
    /// Print a line at each interval instead of the summary
    #[arg(long)]
    show_detailed_stats: bool,
    /// Leave out the heading
    #[arg(long)]
    hide_header: bool,
    /// Properties of the consumer
    #[arg(long = "command-property", value_name = "KEY=VALUE")]
    properties: Vec<String>,
    /// A file of such properties
    #[arg(
        long = "command-config",
        visible_alias = "consumer.config",
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
}

impl ConsumerPerfTestArgs {
    /// Without detailed lines there is but one, at the end.
    fn progress(&self) -> Progress {
        match self.show_detailed_stats {
            true => Progress::beside_output("consumer-perf-test", self.num_records),
            false => Progress::new("consumer-perf-test", self.num_records),
        }
    }

    fn consumer(&self) -> Result<Consumer, Failure> {
        let flag = "--command-property";
        let mut properties = collect(self.config.as_deref(), flag, &self.properties)?;
        let group = self.group.clone().unwrap_or_else(|| {
            let number = getrandom::u32().unwrap_or_default() % 100_000;
            format!("perf-consumer-{number}")
        });
        let reset = if self.from_latest {
            "latest"
        } else {
            "earliest"
        };
        for (key, value) in [
            ("group.id", group),
            ("max.partition.fetch.bytes", self.fetch_size.to_string()),
            ("auto.offset.reset", reset.to_owned()),
            // Kafka's tool leaves the checksums alone too.
            ("check.crcs", "false".to_owned()),
        ] {
            properties.insert(key.to_owned(), value);
        }
        properties
            .entry("client.id".to_owned())
            .or_insert_with(|| "perf-consumer-client".to_owned());
        let settings = ConsumerSettings::new(&properties)?;
        let client = Settings::new(Target::Brokers, &self.bootstrap_server, properties)?;
        let client = Client::connect(client)?;
        let topics = match &self.topic {
            Some(topic) => Topics::Named(Str::from(topic.as_str())),
            None => Topics::Matching(Pattern::of(self.include.as_deref().unwrap_or_default())?),
        };
        Consumer::subscribe(client, settings, topics)
    }
}

/// What was read up to a moment.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    at_ms: i64,
    bytes: u64,
    records: u64,
    rebalance: Duration,
}

impl Reading {
    fn megabytes_since(&self, before: &Reading) -> f64 {
        (self.bytes - before.bytes) as f64 / (1024.0 * 1024.0)
    }
}

pub(super) fn run(arguments: &ConsumerPerfTestArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if !arguments.hide_header {
        let first = if arguments.show_detailed_stats {
            "time, threadId"
        } else {
            "start.time, end.time"
        };
        writeln!(
            out,
            "{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        )?;
    }
    let mut consumer = arguments.consumer()?;
    let start = Reading {
        at: Instant::now(),
        at_ms: now_ms(),
        bytes: 0,
        records: 0,
        rebalance: Duration::ZERO,
    };
    let read = consume(arguments, &mut consumer, start, out);
    consumer.close();
    let end = read?;
    if end.records < arguments.num_records {
        writeln!(
            out,
            "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can use the --timeout option to increase the timeout.",
            arguments.timeout
        )?;
    }
    if !arguments.show_detailed_stats {
        print_summary(&start, &end, out)?;
    }
    Ok(())
}

fn consume(
    arguments: &ConsumerPerfTestArgs,
    consumer: &mut Consumer,
    start: Reading,
    out: &mut dyn Write,
) -> Result<Reading, Failure> {
    let interval = Duration::from_millis(arguments.reporting_interval);
    let timeout = Duration::from_millis(arguments.timeout);
    let (mut now, mut reported) = (start, start);
    let mut last_record = start.at;
    let mut progress = arguments.progress();
    while now.records < arguments.num_records && now.at - last_record <= timeout {
        let polled = consumer.poll(Duration::from_millis(100))?;
        now.at = Instant::now();
        if let Polled::Batch(batch) = polled {
            if !batch.records.is_empty() {
                last_record = now.at;
            }
            for record in &batch.records {
                let size = |part: &Option<bytes::Bytes>| part.as_ref().map_or(0, bytes::Bytes::len);
                now.records += 1;
                now.bytes += (size(&record.key) + size(&record.value)) as u64;
            }
            consumer.seen(&batch.partition, batch.next_offset, batch.leader_epoch);
            progress.at(now.records);
        }
        if now.at - reported.at >= interval {
            now.at_ms = now_ms();
            now.rebalance = consumer.rebalance_time();
            if arguments.show_detailed_stats {
                print_progress(&reported, &now, out)?;
            }
            reported = now;
        }
    }
    now.at_ms = now_ms();
    now.rebalance = consumer.rebalance_time();
    Ok(now)
}

fn print_progress(before: &Reading, now: &Reading, out: &mut dyn Write) -> Result<(), Failure> {
    let elapsed = (now.at - before.at).as_millis() as f64;
    let rebalance = now.rebalance.saturating_sub(before.rebalance).as_millis() as f64;
    let fetch = elapsed - rebalance;
    let (megabytes, records) = (
        now.megabytes_since(before),
        (now.records - before.records) as f64,
    );
    let per_second = |count: f64, ms: f64| if ms <= 0.0 { 0.0 } else { 1000.0 * count / ms };
    writeln!(
        out,
        "{}, 0, {:.4}, {:.4}, {}, {:.4}, {rebalance:.0}, {fetch:.0}, {:.4}, {:.4}",
        utc(now.at_ms),
        now.bytes as f64 / (1024.0 * 1024.0),
        per_second(megabytes, elapsed),
        now.records,
        per_second(records, elapsed),
        per_second(megabytes, fetch),
        per_second(records, fetch),
    )?;
    out.flush()?;
    Ok(())
}

fn print_summary(start: &Reading, end: &Reading, out: &mut dyn Write) -> Result<(), Failure> {
    let elapsed = (end.at_ms - start.at_ms).max(1) as f64 / 1000.0;
    let rebalance = end.rebalance.as_millis() as f64;
    let fetch = elapsed * 1000.0 - rebalance;
    let megabytes = end.megabytes_since(start);
    writeln!(
        out,
        "{}, {}, {megabytes:.4}, {:.4}, {}, {:.4}, {rebalance:.0}, {fetch:.0}, {:.4}, {:.4}",
        utc(start.at_ms),
        utc(end.at_ms),
        megabytes / elapsed,
        end.records,
        end.records as f64 / elapsed,
        megabytes / (fetch / 1000.0),
        end.records as f64 / (fetch / 1000.0),
    )?;
    Ok(())
}

/// `yyyy-MM-dd HH:mm:ss:SSS`, in UTC.
fn utc(ms: i64) -> String {
    let (days, in_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Days since 0000-03-01, so that leap days come last (Howard Hinnant's algorithm).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, millis) = (in_day / 1000, in_day % 1000);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}:{millis:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_calendars() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00:000"),
            (951_782_400_001, "2000-02-29 00:00:00:001"),
            (1_796_003_999_999, "2026-11-30 01:59:59:999"),
        ] {
            assert_eq!(utc(ms), text);
        }
    }
}
