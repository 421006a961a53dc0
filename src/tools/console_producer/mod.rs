//! `ringmain console-producer`: each line of standard input is a record, as with `kafka-console-producer.sh`.

mod reader;

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use self::reader::LineReader;
use super::Failure;
use super::client::{Client, Settings, Target};
use super::producer::{Delivery, Producer, ProducerRecord, ProducerSettings};
use super::progress::{Progress, clear_line};
use super::properties::collect;
use super::signals::Signals;

/// Kafka's flags.
#[derive(Args, Debug)]
pub struct ConsoleProducerArgs {
    /// The brokers to connect to at first
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: String,
    /// The topic to write to
    #[arg(long)]
    topic: String,
    /// Wait for each record to be written before the next line is read
    #[arg(long)]
    sync: bool,
    /// none, gzip, snappy, lz4 or zstd; gzip where no name is given
    #[arg(long, value_name = "CODEC", num_args = 0..=1, default_missing_value = "gzip")]
    compression_codec: Option<String>,
    /// Bytes of a batch (batch.size, 16384)
    #[arg(long, value_name = "BYTES")]
    batch_size: Option<u32>,
    /// The same, under its older name, which is stronger
    #[arg(long, value_name = "BYTES")]
    max_partition_memory_bytes: Option<u32>,
    /// How often a batch is sent again (retries, 3)
    #[arg(long, value_name = "COUNT")]
    message_send_max_retries: Option<u32>,
    /// Milliseconds between tries (retry.backoff.ms, 100)
    #[arg(long, value_name = "MS")]
    retry_backoff_ms: Option<u64>,
    /// How long a record waits for others to fill its batch (linger.ms, 1000)
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    /// Who must have a record before it counts as written: all, -1, 0 or 1
    #[arg(long, value_name = "ACKS", allow_hyphen_values = true)]
    request_required_acks: Option<String>,
    /// How long an answer may take (request.timeout.ms, 1500)
    #[arg(long, value_name = "MS")]
    request_timeout_ms: Option<u64>,
    /// How often the leaders are looked up anyway (metadata.max.age.ms, 300000)
    #[arg(long, value_name = "MS")]
    metadata_expiry_ms: Option<u64>,
    /// How long to wait for room and for the topic (max.block.ms, 60000)
    #[arg(long, value_name = "MS")]
    max_block_ms: Option<u64>,
    /// Bytes of records that wait (buffer.memory, 33554432)
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<u64>,
    /// Accepted and without effect: the system sizes socket buffers
    #[arg(long, value_name = "BYTES")]
    socket_buffer_size: Option<u32>,
    /// Accepted as Kafka's own LineMessageReader; others are Java classes
    #[arg(long, value_name = "CLASS")]
    line_reader: Option<String>,
    /// How lines are read: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator, null.marker, ignore.error
    #[arg(
        long = "reader-property",
        visible_alias = "property",
        value_name = "KEY=VALUE"
    )]
    reader_properties: Vec<String>,
    /// A file of such properties
    #[arg(long, value_name = "FILE")]
    reader_config: Option<PathBuf>,
    /// A property of the producer
    #[arg(
        long = "command-property",
        visible_alias = "producer-property",
        value_name = "KEY=VALUE"
    )]
    properties: Vec<String>,
    /// A file of such properties
    #[arg(
        long = "command-config",
        visible_alias = "producer.config",
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
}

impl ConsoleProducerArgs {
    /// Properties that are given win over defaults of flags, and flags that are given win over properties.
    fn producer_properties(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut properties = collect(
            self.config.as_deref(),
            "--command-property",
            &self.properties,
        )?;
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let batch_size = self.max_partition_memory_bytes.or(self.batch_size);
        let flags = [
            ("linger.ms", text(self.timeout), "1000"),
            ("acks", self.request_required_acks.clone(), "-1"),
            ("request.timeout.ms", text(self.request_timeout_ms), "1500"),
            (
                "retries",
                text(self.message_send_max_retries.map(u64::from)),
                "3",
            ),
            ("retry.backoff.ms", text(self.retry_backoff_ms), "100"),
            ("buffer.memory", text(self.max_memory_bytes), "33554432"),
            ("batch.size", text(batch_size.map(u64::from)), "16384"),
            (
                "metadata.max.age.ms",
                text(self.metadata_expiry_ms),
                "300000",
            ),
            ("max.block.ms", text(self.max_block_ms), "60000"),
        ];
        for (key, given, default) in flags {
            match given {
                Some(value) => {
                    properties.insert(key.to_owned(), value);
                }
                None => {
                    properties
                        .entry(key.to_owned())
                        .or_insert_with(|| default.to_owned());
                }
            }
        }
        // Kafka's tool lets the flag decide alone.
        let codec = self.compression_codec.as_deref().unwrap_or("none");
        properties.insert("compression.type".to_owned(), codec.to_owned());
        properties
            .entry("client.id".to_owned())
            .or_insert_with(|| "console-producer".to_owned());
        Ok(properties)
    }

    fn line_reader(&self) -> Result<LineReader, Failure> {
        if let Some(class) = &self.line_reader
            && class.rsplit('.').next() != Some("LineMessageReader")
        {
            return Err(Failure::new(format!(
                "--line-reader {class}: Java classes cannot be loaded here; there is org.apache.kafka.tools.LineMessageReader"
            )));
        }
        let properties = collect(
            self.reader_config.as_deref(),
            "--reader-property",
            &self.reader_properties,
        )?;
        LineReader::new(&properties)
    }
}

pub(super) fn run(arguments: &ConsoleProducerArgs) -> Result<(), Failure> {
    let properties = arguments.producer_properties()?;
    let reader = arguments.line_reader()?;
    let producer_settings = ProducerSettings::new(&properties)?;
    let settings = Settings::new(Target::Brokers, &arguments.bootstrap_server, properties)?;
    let client = Client::connect(settings)?;
    let lost = Arc::new(AtomicU64::new(0));
    let on_delivery = log_losses(arguments.topic.clone(), Arc::clone(&lost));
    let producer = Producer::start(client, &arguments.topic, producer_settings, on_delivery)?;
    let producer = Arc::new(Mutex::new(Some(producer)));
    close_on_signal(&producer)?;
    let read = produce(&producer, &reader, arguments.sync, &lost);
    let closed = take(&producer).map_or(Ok(()), Producer::close);
    read?;
    closed?;
    match lost.load(Ordering::Relaxed) {
        // Each was told.
        0 => Ok(()),
        _ => Err(Failure::said()),
    }
}

type SharedProducer = Arc<Mutex<Option<Producer>>>;

/// Only a panic poisons it, and then the producer is as good as before.
fn take(producer: &SharedProducer) -> Option<Producer> {
    producer
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .take()
}

fn produce(
    producer: &SharedProducer,
    reader: &LineReader,
    sync: bool,
    lost: &AtomicU64,
) -> Result<(), Failure> {
    let prompt = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut input = std::io::stdin().lock();
    // Of a pipe nobody knows how much comes, and at a keyboard everybody does.
    let size = rustix::fs::fstat(&input).map_or(0, |stat| stat.st_size);
    let mut progress = Progress::new("console-producer", size.unsigned_abs());
    let (mut line, mut taken) = (Vec::new(), 0);
    let mut number = 0;
    loop {
        if prompt {
            write!(std::io::stdout(), ">")?;
            std::io::stdout().flush()?;
        }
        line.clear();
        number += 1;
        let read = input
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::new(format!("standard input: {error}")))?;
        if read == 0 {
            return Ok(());
        }
        if size > 0 {
            taken += read as u64;
            progress.at(taken);
        }
        let text = reader::without_end(&line);
        let parsed = reader.read(&text, number)?;
        let headers: Vec<(&[u8], Option<&[u8]>)> = parsed
            .headers
            .iter()
            .map(|(key, value)| (key.as_bytes(), value.map(str::as_bytes)))
            .collect();
        let record = ProducerRecord {
            key: parsed.key.map(str::as_bytes),
            value: parsed.value.map(str::as_bytes),
            headers: &headers,
            timestamp: now_ms(),
        };
        let mut guard = producer
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Gone if a signal came.
        let Some(producer) = guard.as_mut() else {
            return Ok(());
        };
        producer.send(&record)?;
        if sync {
            producer.flush()?;
            if lost.load(Ordering::Relaxed) > 0 {
                return Err(Failure::said());
            }
        }
    }
}

/// Ends the process when it is asked to, after what was read is written.
fn close_on_signal(producer: &SharedProducer) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let producer = Arc::clone(producer);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            signals.wait();
            if let Some(producer) = take(&producer) {
                // Losses were told one by one.
                let _ = producer.close();
            }
            std::process::exit(0);
        })
        .map(drop)
        .map_err(|error| Failure::new(format!("no thread can be started: {error}")))
}

fn log_losses(topic: String, lost: Arc<AtomicU64>) -> super::producer::OnDelivery {
    Box::new(move |delivery: &Delivery| {
        let Some(error) = &delivery.failure else {
            return;
        };
        clear_line();
        let mut errors = std::io::stderr().lock();
        for record in &delivery.records {
            lost.fetch_add(1, Ordering::Relaxed);
            let size = |size: Option<usize>| {
                size.map_or_else(|| "null".to_owned(), |size| format!("{size} bytes"))
            };
            // There is nobody left to tell if standard error is gone.
            let _ = writeln!(
                errors,
                "Error when sending message to topic {topic} with key: {}, value: {} with error: {error}",
                size(record.key_size),
                size(record.value_size)
            );
        }
    })
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
