//! `ringmain console-consumer`: prints records, as `kafka-console-consumer.sh` does.

mod formatter;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::Str;

use self::formatter::Formatter;
use super::Failure;
use super::client::{Client, Partition, Settings, Target};
use super::consumer::{Consumer, ConsumerSettings, Polled, RecordBatch, Start, Topics};
use super::pattern::Pattern;
use super::properties::collect;
use super::signals::Signals;

/// Kafka's flags.
#[derive(Args, Debug)]
pub struct ConsoleConsumerArgs {
    /// The brokers to connect to at first
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: String,
    /// The topic to read
    #[arg(long, required_unless_present = "include", conflicts_with = "include")]
    topic: Option<String>,
    /// A pattern for the topics to read
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,
    /// One partition, without a group
    #[arg(long, requires = "topic", value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// Where in that partition to begin: earliest, latest or an offset
    #[arg(long, requires = "partition", conflicts_with = "from_beginning")]
    offset: Option<String>,
    /// Begin at the earliest record where nothing is committed
    #[arg(long)]
    from_beginning: bool,
    /// The group to join; one of its own if not given
    #[arg(long, conflicts_with = "partition")]
    group: Option<String>,
    /// End after so many records
    #[arg(long, value_name = "COUNT")]
    max_messages: Option<i64>,
    /// End when no record comes for so long
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    timeout_ms: Option<i64>,
    /// read_committed leaves out what is not committed
    #[arg(long, value_name = "LEVEL")]
    isolation_level: Option<String>,
    /// Go on behind a record that cannot be shown
    #[arg(long)]
    skip_message_on_error: bool,
    /// How records are shown: one of Kafka's own formatters by its class
    #[arg(long, value_name = "CLASS", default_value = "DefaultMessageFormatter")]
    formatter: String,
    /// What the formatter is told: print.timestamp, print.key, print.offset, print.epoch, print.partition, print.headers, print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, headers.deserializer
    #[arg(
        long = "formatter-property",
        visible_alias = "property",
        value_name = "KEY=VALUE"
    )]
    formatter_properties: Vec<String>,
    /// A file of such properties
    #[arg(long, value_name = "FILE")]
    formatter_config: Option<PathBuf>,
    /// What keys are: one of Kafka's own deserializers by its class
    #[arg(long, value_name = "CLASS")]
    key_deserializer: Option<String>,
    /// What values are
    #[arg(long, value_name = "CLASS")]
    value_deserializer: Option<String>,
    /// A property of the consumer
    #[arg(
        long = "command-property",
        visible_alias = "consumer-property",
        value_name = "KEY=VALUE"
    )]
    properties: Vec<String>,
    /// A file of such properties
    #[arg(
        long = "command-config",
        visible_alias = "consumer.config",
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// Say when the consumer has ended, for system tests
    #[arg(long)]
    enable_systest_events: bool,
}

impl ConsoleConsumerArgs {
    fn consumer_properties(&self) -> Result<BTreeMap<String, String>, Failure> {
        let flag = "--command-property";
        let mut properties = collect(self.config.as_deref(), flag, &self.properties)?;
        let from_beginning = if self.from_beginning {
            "earliest"
        } else {
            "latest"
        };
        match properties.get("auto.offset.reset") {
            Some(reset) if self.from_beginning && reset != "earliest" => {
                return Err(Failure::new(format!(
                    "Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
                )));
            }
            Some(_) => {}
            None => {
                properties.insert("auto.offset.reset".to_owned(), from_beginning.to_owned());
            }
        }
        if let Some(level) = &self.isolation_level {
            properties.insert("isolation.level".to_owned(), level.clone());
        }
        match (&self.group, properties.get("group.id")) {
            (Some(flag), Some(property)) if flag != property => {
                return Err(Failure::new(format!(
                    "The group ids provided in different places (directly using '--group', via '--command-property', or via '--command-config') do not match. Detected group ids: '{flag}', '{property}'"
                )));
            }
            (Some(group), _) => {
                properties.insert("group.id".to_owned(), group.clone());
            }
            (None, Some(_)) if self.partition.is_some() => {
                return Err(Failure::new(
                    "Options group and partition cannot be specified together.",
                ));
            }
            (None, Some(_)) => {}
            (None, None) => {
                // Nobody comes back to it, so nothing is kept for it.
                let number = getrandom::u32().unwrap_or_default() % 100_000;
                let group = format!("console-consumer-{number}");
                properties.insert("group.id".to_owned(), group);
                properties
                    .entry("enable.auto.commit".to_owned())
                    .or_insert_with(|| "false".to_owned());
            }
        }
        properties
            .entry("client.id".to_owned())
            .or_insert_with(|| "console-consumer".to_owned());
        Ok(properties)
    }

    fn formatter(&self) -> Result<Formatter, Failure> {
        let mut properties = collect(
            self.formatter_config.as_deref(),
            "--formatter-property",
            &self.formatter_properties,
        )?;
        for (key, class) in [
            ("key.deserializer", &self.key_deserializer),
            ("value.deserializer", &self.value_deserializer),
        ] {
            if let Some(class) = class {
                properties
                    .entry(key.to_owned())
                    .or_insert_with(|| class.clone());
            }
        }
        Formatter::new(&self.formatter, &properties)
    }

    fn start(&self) -> Result<Start, Failure> {
        match self.offset.as_deref().map(str::to_lowercase).as_deref() {
            None if self.from_beginning => Ok(Start::Earliest),
            None | Some("latest") => Ok(Start::Latest),
            Some("earliest") => Ok(Start::Earliest),
            Some(text) => match text.parse() {
                Ok(offset) if offset >= 0 => Ok(Start::At(offset)),
                _ => Err(Failure::new(format!(
                    "The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long."
                ))),
            },
        }
    }

    fn consumer(&self) -> Result<Consumer, Failure> {
        let properties = self.consumer_properties()?;
        let start = self.start()?;
        let settings = ConsumerSettings::new(&properties)?;
        let client = Settings::new(Target::Brokers, &self.bootstrap_server, properties)?;
        let client = Client::connect(client)?;
        let topic = self.topic.as_deref().map(Str::from);
        match (topic, self.partition, &self.include) {
            (Some(topic), Some(number), _) => {
                Consumer::assign(client, settings, Partition { topic, number }, start)
            }
            (Some(topic), None, _) => Consumer::subscribe(client, settings, Topics::Named(topic)),
            (None, _, include) => {
                let pattern = Pattern::of(include.as_deref().unwrap_or_default())?;
                Consumer::subscribe(client, settings, Topics::Matching(pattern))
            }
        }
    }
}

pub(super) fn run(arguments: &ConsoleConsumerArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let formatter = arguments.formatter()?;
    let signals = Signals::catch()?;
    let mut consumer = arguments.consumer()?;
    consumer.end_on(signals);
    let mut session = Session {
        consumer,
        formatter,
        out: BufWriter::with_capacity(1 << 16, out),
        count: 0,
        most: arguments.max_messages.filter(|most| *most >= 0),
        skip_errors: arguments.skip_message_on_error,
    };
    let timeout = match arguments.timeout_ms.map(u64::try_from) {
        Some(Ok(timeout)) => Duration::from_millis(timeout),
        _ => Duration::MAX,
    };
    let ended = session.print(timeout);
    session.consumer.close();
    let flushed = session.out.flush();
    // Nobody is left to be told if standard error is gone.
    let _ = writeln!(
        std::io::stderr(),
        "Processed a total of {} messages",
        session.count
    );
    if arguments.enable_systest_events {
        writeln!(session.out, "shutdown_complete")?;
        session.out.flush()?;
    }
    ended?;
    flushed.map_err(Failure::from)
}

struct Session<'a> {
    consumer: Consumer,
    formatter: Formatter,
    out: BufWriter<&'a mut dyn Write>,
    count: i64,
    most: Option<i64>,
    skip_errors: bool,
}

impl Session<'_> {
    fn is_done(&self) -> bool {
        self.most.is_some_and(|most| self.count >= most)
    }

    fn print(&mut self, timeout: Duration) -> Result<(), Failure> {
        while !self.is_done() {
            // What has come is shown before more is waited for.
            match self.consumer.poll(Duration::ZERO)? {
                Polled::Batch(batch) => {
                    self.print_batch(&batch)?;
                    continue;
                }
                Polled::Ending => return Ok(()),
                Polled::Nothing => self.out.flush()?,
            }
            match self.consumer.poll(timeout)? {
                Polled::Batch(batch) => self.print_batch(&batch)?,
                Polled::Nothing | Polled::Ending => return Ok(()),
            }
        }
        Ok(())
    }

    fn print_batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        for record in &batch.records {
            if self.is_done() {
                return Ok(());
            }
            self.count += 1;
            let behind = record.offset.saturating_add(1);
            self.consumer
                .seen(&batch.partition, behind, batch.leader_epoch);
            if let Err(failure) = self.formatter.write(batch, record, &mut self.out)? {
                if !self.skip_errors {
                    return Err(failure);
                }
                let _ = writeln!(
                    std::io::stderr(),
                    "Error processing message, skipping this message: {failure}"
                );
            }
        }
        self.consumer
            .seen(&batch.partition, batch.next_offset, batch.leader_epoch);
        Ok(())
    }
}
