//! Our console and performance tools beside Apache's, on one broker: each reads what the other wrote, and they print the same.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

use std::fs;
use std::process::Output;

use support::broker::Broker;
use support::commands::ringmain_with;
use support::driver::Client;
use support::tools::Tools;

const PARTITIONS: usize = 3;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().collect();
    lines.sort();
    lines
}

/// Both consumers print a topic, in whatever order its partitions come.
fn same_print(tools: &mut Tools, broker: &Broker, topic: &str, flags: &[&str]) -> Vec<String> {
    let bootstrap = broker.bootstrap();
    let mut words = vec!["--bootstrap-server", &bootstrap, "--topic", topic];
    words.extend(["--from-beginning", "--timeout-ms", "4000"]);
    words.extend(flags);
    let ours = ringmain_with("", &[&["console-consumer"], &words[..]].concat());
    assert!(ours.status.success(), "{}", errors(&ours));
    let theirs = tools.apart("consumer.ConsoleConsumer", None, &words);
    let mine = sorted(text(&ours).lines().map(str::to_owned));
    assert_eq!(mine, sorted(theirs.out), "{words:?}: {:?}", theirs.err);
    let count = format!("Processed a total of {} messages", mine.len());
    assert!(theirs.err.contains(&count), "{:?}", theirs.err);
    assert_eq!(errors(&ours).trim_end(), count);
    mine
}

const PRINT_ALL: [&str; 12] = [
    "--formatter-property",
    "print.key=true",
    "--formatter-property",
    "print.headers=true",
    "--formatter-property",
    "print.partition=true",
    "--formatter-property",
    "print.offset=true",
    "--formatter-property",
    "key.separator=|",
    "--formatter-property",
    "null.literal=NIL",
];

#[test]
fn the_record_tools_do_what_apaches_do() {
    let settings = [
        ("group.initial.rebalance.delay.ms", "0"),
        ("offsets.topic.num.partitions", "1"),
    ];
    let mut broker = Broker::start("record-tools", &settings);
    let mut tools = Tools::start(&broker.directory);
    let names = ["ours", "theirs", "codecs", "perf"];
    let topics = names.map(|name| (name.to_owned(), PARTITIONS));
    Client::Librdkafka.create_topics(&broker.bootstrap(), &topics);

    keys_and_headers(&broker, &mut tools);
    codecs(&broker, &mut tools);
    groups(&broker, &mut tools);
    performance(&broker);
    mistakes(&broker);
    assert!(broker.stop().success());
}

/// The same lines through both producers: the same records in the same partitions.
fn keys_and_headers(broker: &Broker, tools: &mut Tools) {
    let bootstrap = broker.bootstrap();
    let mut lines = String::new();
    for number in 0..200 {
        let header = ["a:1,b:NULL", "NULL", "x:,y:é"][number % 3];
        lines += &format!("{header};key {number}:value {number} €\n");
    }
    lines += "a:1;NULL:NULL\n";
    let input = broker.directory.join("lines");
    fs::write(&input, &lines).expect("a file");
    let words = |topic: &'static str| {
        let properties = [
            "parse.key=true",
            "parse.headers=true",
            "key.separator=:",
            "headers.delimiter=;",
            "null.marker=NULL",
        ];
        let mut words = vec!["--topic", topic, "--bootstrap-server"];
        words.push(&bootstrap);
        for property in properties {
            words.extend(["--reader-property", property]);
        }
        words
    };
    let ours = ringmain_with(
        &lines,
        &[&["console-producer"], &words("ours")[..]].concat(),
    );
    assert!(ours.status.success(), "{}", errors(&ours));
    let theirs = tools.apart("ConsoleProducer", Some(&input), &words("theirs"));
    assert_eq!(theirs.end, "end 0", "{:?}", theirs.err);
    let printed = same_print(tools, broker, "ours", &PRINT_ALL);
    assert_eq!(printed.len(), 201);
    let others = same_print(tools, broker, "theirs", &PRINT_ALL);
    // The record without a key may lie anywhere.
    let keyed = |lines: &[String]| -> Vec<String> {
        let keyed = lines.iter().filter(|line| line.contains("|key "));
        keyed.map(|line| without_offset(line)).collect()
    };
    assert_eq!(sorted(keyed(&printed)), sorted(keyed(&others)));
    let part = ["--partition", "1", "--offset", "3", "--max-messages", "5"];
    let words = [
        "console-consumer",
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "ours",
    ];
    let five = ringmain_with("", &[&words[..], &part, &PRINT_ALL].concat());
    let offsets: Vec<String> = text(&five)
        .lines()
        .map(|line| line.split('|').nth(1).unwrap_or_default().to_owned())
        .collect();
    let expected = [3, 4, 5, 6, 7].map(|offset| format!("Offset:{offset}"));
    assert_eq!(offsets, expected);
}

fn without_offset(line: &str) -> String {
    let kept = line.split('|').filter(|part| !part.starts_with("Offset:"));
    kept.collect::<Vec<_>>().join("|")
}

/// Every codec and every kind of acknowledgement arrives, in order where there is one partition to keep it.
fn codecs(broker: &Broker, tools: &mut Tools) {
    let bootstrap = broker.bootstrap();
    let mut expected = Vec::new();
    for (codec, acks) in [
        ("none", "all"),
        ("gzip", "1"),
        ("snappy", "0"),
        ("lz4", "-1"),
        ("zstd", "all"),
    ] {
        let lines: Vec<String> = (0..3000)
            .map(|number| format!("{codec} {number} {}", "x".repeat(number % 50)))
            .collect();
        let input = lines.join("\n") + "\n";
        let words = [
            "console-producer",
            "--bootstrap-server",
            &bootstrap,
            "--topic",
            "codecs",
        ];
        let how = [
            "--compression-codec",
            codec,
            "--request-required-acks",
            acks,
        ];
        let ours = ringmain_with(&input, &[&words[..], &how].concat());
        assert!(ours.status.success(), "{codec}: {}", errors(&ours));
        expected.extend(lines);
    }
    assert_eq!(same_print(tools, broker, "codecs", &[]), sorted(expected));
}

/// A group goes on where it was; Apache's tool goes on where ours stopped; two members share.
fn groups(broker: &Broker, tools: &mut Tools) {
    let bootstrap = broker.bootstrap();
    let words = [
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "ours",
        "--group",
        "readers",
    ];
    let first = ["--from-beginning", "--max-messages", "50"];
    let ours = ringmain_with("", &[&["console-consumer"], &words[..], &first].concat());
    assert_eq!(text(&ours).lines().count(), 50, "{}", errors(&ours));
    let rest = ["--timeout-ms", "6000", "--max-messages", "100"];
    let theirs = tools.apart(
        "consumer.ConsoleConsumer",
        None,
        &[&words[..], &rest].concat(),
    );
    assert_eq!(theirs.out.len(), 100, "{:?}", theirs.err);
    let end = ["--timeout-ms", "4000"];
    let last = ringmain_with("", &[&["console-consumer"], &words[..], &end].concat());
    assert_eq!(text(&last).lines().count(), 51, "{}", errors(&last));
    let all = [text(&ours), theirs.out.join("\n") + "\n", text(&last)].concat();
    let mut all: Vec<&str> = all.lines().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 201, "each record once");
    // The offsets of the group as records, in both tools.
    let internal = [
        "--formatter",
        "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
        "--max-messages",
        "1",
    ];
    let words = [
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "__consumer_offsets",
    ];
    let from = ["--partition", "0", "--offset", "earliest"];
    let words = [&words[..], &from, &internal].concat();
    let ours = ringmain_with("", &[&["console-consumer"], &words[..]].concat());
    let theirs = tools.apart("consumer.ConsoleConsumer", None, &words);
    assert_eq!(text(&ours), theirs.out.join("\n"));
}

/// The lines of the performance tools have the form of Apache's.
fn performance(broker: &Broker) {
    let bootstrap = broker.bootstrap();
    let words = ["--bootstrap-server", &bootstrap, "--topic", "perf"];
    let how = [
        "--num-records",
        "20000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
        "--warmup-records",
        "1000",
        "--command-property",
        "linger.ms=5",
        "acks=all",
    ];
    let ours = ringmain_with("", &[&["producer-perf-test"], &words[..], &how].concat());
    assert!(ours.status.success(), "{}", errors(&ours));
    let said = text(&ours);
    println!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [.., total, steady] = lines[..] else {
        panic!("two summaries in {said}")
    };
    let start = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(start(total), "20000 records");
    assert!(
        total.ends_with(" ms 99.9th.") && total.contains(" MB/sec), "),
        "{total}"
    );
    assert!(steady.contains(" steady state records sent, "), "{steady}");
    let how = ["--num-records", "20000"];
    let ours = ringmain_with("", &[&["consumer-perf-test"], &words[..], &how].concat());
    let said = text(&ours);
    println!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [heading, summary] = lines[..] else {
        panic!("a heading and a summary in {said}: {}", errors(&ours))
    };
    assert_eq!(
        heading,
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    );
    let fields: Vec<&str> = summary.split(", ").collect();
    assert_eq!(fields.len(), 10, "{summary}");
    assert!(
        fields[4].parse::<u64>().is_ok_and(|count| count >= 20000),
        "{summary}"
    );
}

/// What cannot be is said in one line, with code 1.
fn mistakes(broker: &Broker) {
    let bootstrap = broker.bootstrap();
    let with = |words: &[&str]| {
        let words = [words, &["--bootstrap-server", &bootstrap]].concat();
        let output = ringmain_with("line\n", &words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        errors(&output)
    };
    for (words, error) in [
        (
            &[
                "console-producer",
                "--topic",
                "ours",
                "--property",
                "parse.key=true",
            ][..],
            "No key separator found on line number 1: 'line'",
        ),
        (
            &[
                "console-producer",
                "--topic",
                "ours",
                "--compression-codec",
                "rar",
            ],
            "compression.type=rar: it must be",
        ),
        (
            &[
                "console-producer",
                "--topic",
                "a/b",
                "--max-block-ms",
                "500",
            ],
            "The request attempted to perform an operation on an invalid topic.",
        ),
        (
            &[
                "console-consumer",
                "--topic",
                "ours",
                "--partition",
                "0",
                "--offset",
                "x",
            ],
            "The provided offset value 'x' is incorrect.",
        ),
        (
            &["console-consumer", "--topic", "ours", "--partition", "77"],
            "ours-77",
        ),
    ] {
        let said = with(words);
        assert!(said.contains(error), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
