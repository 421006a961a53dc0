//! Apache's own dump tool on the directories that this broker wrote.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

use std::{fs, slice};

use support::broker::Broker;
use support::corpus::Corpus;
use support::driver::{self, Client, Run};
use support::segments::files_of;
use support::tools::Tools;
use support::{clock, segments};

const TOPIC: &str = "dumped";
const PARTITIONS: usize = 3;

/// The offsets of all records in a dump, in order.
fn offsets(dump: &str) -> Vec<usize> {
    let number = |line: &str| {
        line.strip_prefix("| offset: ")?
            .split(' ')
            .next()?
            .parse()
            .ok()
    };
    dump.lines().filter_map(number).collect()
}

fn check_partitions(broker: &Broker, tools: &mut Tools, counts: &[usize]) {
    segments::assert_exact(&broker.data());
    for (partition, &count) in counts.iter().enumerate() {
        let directory = broker.data().join(format!("{TOPIC}-{partition}"));
        let logs = files_of(&directory, ".log");
        let found = offsets(&tools.dump(&["--deep-iteration"], &logs));
        assert_eq!(
            found,
            (0..count).collect::<Vec<_>>(),
            "offsets of partition {partition}"
        );
        let indexes = [
            files_of(&directory, ".index"),
            files_of(&directory, ".timeindex"),
        ]
        .concat();
        assert!(
            indexes.len() >= 2 * logs.len(),
            "an index of each kind for each segment"
        );
        let sanity = tools.dump(&["--index-sanity-check"], &indexes);
        // A segment with few bytes has no entry yet.
        let sound = sanity.matches("passed sanity check").count();
        let empty = sanity.matches(" is empty.").count();
        assert_eq!(sound + empty, indexes.len(), "{sanity}");
        assert!(sound > indexes.len() / 2, "{sanity}");
        // Without the flag every entry is looked up in its segment.
        tools.dump(&[], &indexes);
        println!(
            "partition {partition}: {} segments, {count} records",
            logs.len()
        );
    }
}

fn produce(broker: &Broker, corpus: &mut Corpus, codec: &str, counts: &mut [usize]) {
    let records = corpus.records(6 << 20, |count| {
        i32::try_from(count % PARTITIONS).expect("few")
    });
    let settings = [
        "acks=all",
        &format!("compression.type={codec}"),
        "batch.size=65536",
    ];
    for (partition, _) in
        Client::Librdkafka.produce(&broker.bootstrap(), TOPIC, &settings, &records)
    {
        counts[usize::try_from(partition).expect("not negative")] += 1;
    }
}

#[test]
fn the_dump_tool_reads_every_file() {
    let settings = [
        ("log.segment.bytes", "1048576"),
        ("log.index.interval.bytes", "1024"),
        ("offsets.topic.num.partitions", "1"),
    ];
    let mut broker = Broker::start("apache-tools", &settings);
    let mut tools = Tools::start(&broker.directory);
    let mut corpus = Corpus::open();
    let mut counts = vec![0; PARTITIONS];
    Client::Librdkafka.create_topics(&broker.bootstrap(), &[(TOPIC.to_owned(), PARTITIONS)]);
    produce(&broker, &mut corpus, "none", &mut counts);
    produce(&broker, &mut corpus, "zstd", &mut counts);
    read_as_group(&broker, counts.iter().sum());
    assert!(broker.stop().success());
    check_partitions(&broker, &mut tools, &counts);

    let offsets_log = files_of(&broker.data().join("__consumer_offsets-0"), ".log");
    let committed = tools.dump(&["--offsets-decoder", "--deep-iteration"], &offsets_log);
    for words in [
        "\"group\":\"dump-group\"",
        "\"topic\":\"dumped\"",
        "\"protocolType\":\"consumer\"",
        "\"protocol\":\"range\"",
    ] {
        assert!(committed.contains(words), "{words} in\n{committed}");
    }
    let metadata = files_of(&broker.data().join("__cluster_metadata-0"), ".log");
    let changes = tools.dump(&["--cluster-metadata-decoder"], &metadata);
    for kind in [
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "REGISTER_BROKER_RECORD",
        "LeaderChange",
    ] {
        assert!(changes.contains(kind), "{kind} in\n{changes}");
    }

    check_damage(&broker, &mut tools);

    // And after a crash, once the broker has been up again.
    broker.restart();
    produce(&broker, &mut corpus, "lz4", &mut counts);
    broker.kill();
    broker.restart();
    produce(&broker, &mut corpus, "snappy", &mut counts);
    assert!(broker.stop().success());
    check_partitions(&broker, &mut tools, &counts);
}

/// Damage as crashes and disks do it: both tools find the same of it.
fn check_damage(broker: &Broker, tools: &mut Tools) {
    type Damage = fn(&mut Vec<u8>);
    let kinds: [(&str, Damage); 5] = [
        ("torn", |bytes| bytes.truncate(bytes.len() - 10)),
        ("zeros", |bytes| bytes.extend([0; 1000])),
        ("checksum", |bytes| bytes[20] ^= 1),
        ("record", |bytes| bytes[70] ^= 0x55),
        ("last-byte", |bytes| {
            if let Some(last) = bytes.last_mut() {
                *last ^= 3;
            }
        }),
    ];
    let source = broker.data().join(format!("{TOPIC}-0"));
    let log = files_of(&source, ".log").swap_remove(0);
    for (name, damage) in kinds {
        for suffix in ["log", "index", "timeindex"] {
            let directory = broker.directory.join(format!("{name}-{suffix}"));
            fs::create_dir(&directory).expect("it can be written");
            let mut damaged = None;
            for other in ["log", "index", "timeindex"] {
                let from = log.with_extension(other);
                let to = directory.join(from.file_name().expect("a file"));
                let mut bytes = fs::read(&from).expect("a file of the log");
                if other == suffix {
                    damage(&mut bytes);
                    damaged = Some(to.clone());
                }
                fs::write(&to, bytes).expect("it can be written");
            }
            let damaged = damaged.expect("one of them");
            tools.same_dump(&[], slice::from_ref(&damaged));
            if suffix == "log" {
                tools.same_dump(&["--deep-iteration"], slice::from_ref(&damaged));
                tools.same_dump(&["--max-bytes", "100000"], slice::from_ref(&damaged));
                tools.same_dump(&["--verify-index-only"], &[damaged.with_extension("index")]);
            } else {
                tools.same_dump(&["--index-sanity-check"], slice::from_ref(&damaged));
                tools.same_dump(&["--verify-index-only"], &[damaged]);
            }
        }
    }
}

/// One member reads and commits everything, so that both kinds of group records stand in the log.
fn read_as_group(broker: &Broker, count: usize) {
    let words = [TOPIC, "dump-group", "partition.assignment.strategy=range"].map(str::to_owned);
    let mut run = Run::start(Client::Librdkafka, "group", &broker.bootstrap(), &words);
    let lines = run.lines();
    let read = driver::each(&lines)
        .filter(|line| line.starts_with("record "))
        .take(count)
        .count();
    assert_eq!(read, count);
    run.close(clock::LIMIT);
}
