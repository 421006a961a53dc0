//! Apache's own dump tool on the directories that this broker wrote.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

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

    // And after a crash, once the broker has been up again.
    broker.restart();
    produce(&broker, &mut corpus, "lz4", &mut counts);
    broker.kill();
    broker.restart();
    produce(&broker, &mut corpus, "snappy", &mut counts);
    assert!(broker.stop().success());
    check_partitions(&broker, &mut tools, &counts);
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
