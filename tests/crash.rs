//! The broker is killed again and again under load while a reader follows: nothing acknowledged may be missing,
//! nothing out of order, nothing twice for an idempotent producer, and what the reader saw must stay.
//!
//! `RINGMAIN_TEST_KILLS` says how often, 3 unless given; `RINGMAIN_TEST_SEED` repeats the choices of a run.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

#[path = "support/history.rs"]
mod history;
mod support;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use history::{History, Place};
use support::broker::Broker;
use support::clock;
use support::corpus::Corpus;
use support::driver::{self, Client, Outcome, Run};
use support::random::{self, Random};
use support::record::Record;
use support::{port, scrape};

const TOPIC: &str = "crashed";
const PARTITIONS: usize = 5;

struct Case {
    name: &'static str,
    writer: Client,
    reader: Client,
    idempotent: bool,
    /// Beyond what keeps a client trying while the broker is away.
    settings: &'static [&'static str],
    shards: &'static str,
    /// Its batches are small enough for the journal. Others go to their segments at once.
    small_batches: bool,
}

#[test]
fn acks_all_and_idempotent() {
    crash(&Case {
        name: "crash-idempotent",
        writer: Client::Librdkafka,
        reader: Client::Librdkafka,
        idempotent: true,
        settings: &[
            "acks=all",
            "enable.idempotence=true",
            "compression.type=lz4",
            "batch.size=2048",
        ],
        shards: "2",
        small_batches: true,
    });
}

#[test]
fn acks_all() {
    crash(&Case {
        name: "crash-all",
        writer: Client::Librdkafka,
        reader: Client::Java,
        idempotent: false,
        settings: &[
            "acks=all",
            "max.in.flight.requests.per.connection=1",
            "batch.size=4096",
        ],
        shards: "1",
        small_batches: true,
    });
}

#[test]
fn acks_1() {
    crash(&Case {
        name: "crash-one",
        writer: Client::Librdkafka,
        reader: Client::Librdkafka,
        idempotent: false,
        settings: &[
            "acks=1",
            "max.in.flight.requests.per.connection=1",
            "compression.type=zstd",
        ],
        shards: "3",
        small_batches: false,
    });
}

#[test]
fn java_acks_all_and_idempotent() {
    crash(&Case {
        name: "crash-java",
        writer: Client::Java,
        reader: Client::Librdkafka,
        idempotent: true,
        settings: &[
            "acks=all",
            "enable.idempotence=true",
            "delivery.timeout.ms=600000",
        ],
        shards: "2",
        small_batches: false,
    });
}

#[test]
fn kafka_python_acks_1() {
    crash(&Case {
        name: "crash-python",
        writer: Client::Python,
        reader: Client::Librdkafka,
        idempotent: false,
        settings: &[
            "acks=1",
            "enable.idempotence=false",
            "max.in.flight.requests.per.connection=1",
            "delivery.timeout.ms=600000",
        ],
        shards: "2",
        small_batches: false,
    });
}

fn crash(case: &Case) {
    let kills =
        std::env::var("RINGMAIN_TEST_KILLS").map_or(3, |text| text.parse().expect("a number"));
    let seed = random::seed();
    println!("{}: seed {seed}, {kills} kills", case.name);
    let mut random = Random::new(seed);
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [
        ("log.segment.bytes", "4194304"),
        ("ringmain.http.listener", &*listener),
    ];
    let mut broker = Broker::start(case.name, &settings);
    broker.set_override("ringmain.shards", case.shards);
    case.writer
        .create_topics(&broker.bootstrap(), &[(TOPIC.to_owned(), PARTITIONS)]);

    let values = Arc::new(Values::new());
    let mut reader = Reader::start(case, &broker.bootstrap());
    let mut writer = Writer::start(case, &broker.bootstrap(), &values);
    for kill in 1..=kills {
        let acknowledged = writer.wait_acknowledged(random.between(1, 4_000));
        // What is small is in a journal when the broker dies, and comes back from there.
        if case.small_batches {
            clock::wait_until("frames in a journal", || journal_writes(http) > 0.0);
        }
        let frames = journal_writes(http);
        kill_at_times_twice(&mut broker, &mut random);
        let start = clock::now();
        broker.restart();
        let ready = clock::now() - start;
        println!(
            "{}: kill {kill} after {acknowledged} acknowledged and {frames} frames in journals, ready in {ready:?}",
            case.name
        );
    }
    writer.wait_acknowledged(500);
    let sent = writer.stop();
    let mut history = History {
        idempotent: case.idempotent,
        sent,
        ..History::default()
    };
    history.acknowledged = writer.places();
    let records = case
        .writer
        .consume(&broker.bootstrap(), TOPIC, PARTITIONS, &[]);
    history.log = records.iter().map(|record| values.place(record)).collect();
    history.seen = reader
        .finish(&history.log)
        .iter()
        .map(|record| values.place(record))
        .collect();

    let faults = history.faults();
    println!(
        "{}: {sent} sent, {} acknowledged, {} in the log",
        case.name,
        history.acknowledged.len(),
        history.log.len()
    );
    assert!(
        faults.is_empty(),
        "seed {seed}: {} faults, the first: {:#?}",
        faults.len(),
        &faults[..faults.len().min(10)]
    );
}

/// Every third time once more, while it starts: at once, during recovery, or just after.
fn kill_at_times_twice(broker: &mut Broker, random: &mut Random) {
    broker.kill();
    if random.between(0, 3) > 0 {
        return;
    }
    broker.spawn();
    let mut left = random.between(0, 60);
    clock::wait_until("a moment of the start", || {
        left = left.saturating_sub(1);
        left == 0
    });
    broker.kill();
}

/// What this life of the broker has written to journals so far.
fn journal_writes(http: u16) -> f64 {
    scrape::sums(http)["ringmain_storage_journal_writes_total"]
}

/// The value of each record: its number, and a piece of real input that follows from the number.
struct Values {
    content: Vec<u8>,
}

impl Values {
    fn new() -> Self {
        let records = Corpus::open().records(4 << 20, |_| 0);
        Self {
            content: records
                .into_iter()
                .filter_map(|record| record.value)
                .flatten()
                .collect(),
        }
    }

    fn of(&self, id: u64) -> Vec<u8> {
        let mut random = Random::new(id);
        let length = random.between(1, 3_000);
        let from = random.between(0, self.content.len() - length);
        [&id.to_be_bytes(), &self.content[from..from + length]].concat()
    }

    fn record(&self, id: u64) -> Record {
        let partition = i32::try_from(id % PARTITIONS as u64).expect("few partitions");
        let timestamp = clock::wall_clock_ms();
        Record {
            partition,
            timestamp,
            value: Some(self.of(id)),
            ..Record::default()
        }
    }

    /// Where a record stands; its bytes must be those that were sent.
    fn place(&self, record: &Record) -> Place {
        let value = record.value.as_ref().expect("every value is sent");
        let (number, _) = value
            .split_first_chunk()
            .expect("it starts with its number");
        let id = u64::from_be_bytes(*number);
        let at = format!("partition {} offset {}", record.partition, record.offset);
        assert!(
            *value == self.of(id),
            "the bytes of record {id} at {at} changed"
        );
        Place {
            partition: record.partition,
            offset: record.offset,
            id,
        }
    }
}

struct Writer {
    run: Run,
    outcomes: Option<JoinHandle<Vec<Outcome>>>,
    feeder: Option<JoinHandle<u64>>,
    progress: Arc<Progress>,
}

/// What the threads around a writer tell each other.
#[derive(Default)]
struct Progress {
    stopping: AtomicBool,
    acknowledged: AtomicUsize,
    /// Acknowledged or failed.
    through: AtomicUsize,
}

/// So many records may be on their way at a time.
const UNDER_WAY: usize = 5_000;

impl Writer {
    fn start(case: &Case, bootstrap: &str, values: &Arc<Values>) -> Self {
        let mut words = vec![TOPIC.to_owned(), "linger.ms=5".to_owned()];
        words.extend(case.settings.iter().map(|&setting| setting.to_owned()));
        match case.writer {
            Client::Librdkafka => words.extend(patient()),
            Client::Java | Client::Python => {
                words.extend(["reconnect.backoff.max.ms=200".to_owned()])
            }
        }
        let mut run = Run::start(case.writer, "produce", bootstrap, &words);
        let lines = run.lines();
        let input = run.input.take().expect("a pipe");
        let progress = Arc::new(Progress::default());
        let (values, seen) = (Arc::clone(values), Arc::clone(&progress));
        let feeder = Some(driver::spawn(move || feed(input, &values, &seen)));
        let counted = Arc::clone(&progress);
        let outcomes = Some(driver::spawn(move || listen(&lines, &counted)));
        Self {
            run,
            outcomes,
            feeder,
            progress,
        }
    }

    /// Returns when so many more are acknowledged, with the number of all.
    fn wait_acknowledged(&mut self, more: usize) -> usize {
        let now = || self.progress.acknowledged.load(Ordering::Relaxed);
        let goal = now() + more;
        clock::wait_until("acknowledgements", || {
            let ended = self.run.process.ended();
            assert!(
                ended.is_none(),
                "the writer ended early\n{}",
                self.run.errors()
            );
            now() >= goal
        });
        now()
    }

    /// Stops feeding and returns how many were sent.
    fn stop(&mut self) -> u64 {
        self.progress.stopping.store(true, Ordering::Relaxed);
        let feeder = self.feeder.take().expect("stopped once");
        feeder.join().expect("the feeder does not panic")
    }

    /// Where the records went, once the writer has ended.
    fn places(&mut self) -> BTreeMap<u64, (i32, i64)> {
        let outcomes = self
            .outcomes
            .take()
            .expect("asked once")
            .join()
            .expect("a sound driver");
        let status = self.run.process.wait_within(clock::LIMIT, "the writer");
        assert!(
            status.success(),
            "the writer ended with {status}\n{}",
            self.run.errors()
        );
        let place = |outcome: &Outcome| match *outcome {
            Outcome::Acknowledged {
                index,
                partition,
                offset,
            } => Some((index as u64, (partition, offset))),
            Outcome::Failed { .. } => None,
        };
        outcomes.iter().filter_map(place).collect()
    }
}

fn listen(lines: &Receiver<String>, progress: &Progress) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for line in driver::each(lines) {
        let outcome = Outcome::parse(&line);
        if matches!(outcome, Outcome::Acknowledged { .. }) {
            progress.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        progress.through.fetch_add(1, Ordering::Relaxed);
        outcomes.push(outcome);
    }
    outcomes
}

fn feed(input: ChildStdin, values: &Values, progress: &Progress) -> u64 {
    let mut input = BufWriter::new(input);
    let mut id = 0;
    let stopping = || progress.stopping.load(Ordering::Relaxed);
    while !stopping() {
        values
            .record(id)
            .write(&mut input)
            .expect("the writer reads");
        id += 1;
        let under_way = || id as usize - progress.through.load(Ordering::Relaxed);
        if under_way() > UNDER_WAY {
            input.flush().expect("the writer reads");
            clock::wait_until("some outcomes", || under_way() <= UNDER_WAY || stopping());
        }
    }
    input.flush().expect("the writer reads");
    id
}

/// librdkafka tries for ever, often, with little in its queue.
fn patient() -> [String; 4] {
    [
        "message.timeout.ms=0",
        "reconnect.backoff.ms=20",
        "reconnect.backoff.max.ms=200",
        "queue.buffering.max.messages=4000",
    ]
    .map(str::to_owned)
}

struct Reader {
    run: Run,
    records: Receiver<Record>,
}

impl Reader {
    fn start(case: &Case, bootstrap: &str) -> Self {
        let words = [
            TOPIC,
            &PARTITIONS.to_string(),
            "reconnect.backoff.max.ms=200",
        ]
        .map(str::to_owned);
        let mut run = Run::start(case.reader, "consume", bootstrap, &words);
        let records = run.records();
        Self { run, records }
    }

    /// Lets it read to the end of the log, and returns all that it read.
    fn finish(&mut self, log: &[Place]) -> Vec<Record> {
        for partition in 0..PARTITIONS {
            let end = log
                .iter()
                .filter(|place| usize::try_from(place.partition) == Ok(partition))
                .count();
            self.run.say(&format!("end {partition} {end}"));
        }
        let read = driver::each(&self.records).collect();
        let status = self.run.process.wait_within(clock::LIMIT, "the reader");
        assert!(
            status.success(),
            "the reader ended with {status}\n{}",
            self.run.errors()
        );
        read
    }
}
