//! A group of real clients whose members come, go and are killed, while real producers write; every record arrives.
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::Until;
use crate::support::clock;
use crate::support::driver::{Client, Run};
use crate::support::random::Random;
use crate::support::record::Record;

const TOPIC: &str = "steady";
const PARTITIONS: usize = 6;
/// Records that wait for the members before more are written.
const BACKLOG_MAX: usize = 600;
const SESSION: &[&str] = &[
    "session.timeout.ms=6000",
    "heartbeat.interval.ms=500",
    "partition.assignment.strategy=range",
];
const PRODUCER: &[&str] = &["acks=all", "enable.idempotence=true", "linger.ms=5"];

struct Member {
    run: Run,
    lines: Receiver<String>,
}

type Seen = BTreeMap<(usize, i64), usize>;

/// What happened, in one line.
pub fn run(bootstrap: &str, until: Until) -> String {
    Client::Librdkafka.create_topics(
        bootstrap,
        &[(TOPIC.to_owned(), PARTITIONS), ("noise".to_owned(), 3)],
    );
    let mut random = Random::new(11);
    let (mut members, mut seen) = (vec![join(bootstrap), join(bootstrap)], Seen::new());
    let (mut written, mut joined, mut left, mut killed) = (0, 2, 0, 0);
    while until.goes_on() {
        // Members commit every record, so that producers are faster.
        if written < seen.len() + BACKLOG_MAX {
            written += produce(bootstrap, written);
        }
        clock::pause(Duration::from_secs(1));
        listen(&mut members, &mut seen);
        match random.between(0, 6) {
            0 | 1 if members.len() < 5 => {
                members.push(join(bootstrap));
                joined += 1;
            }
            2 if members.len() > 1 => {
                let mut member = members.remove(0);
                member.run.close(Duration::from_secs(60));
                take(&member, &mut seen);
                left += 1;
            }
            3 if members.len() > 1 => {
                let mut member = members.remove(0);
                member.run.process.kill();
                take(&member, &mut seen);
                killed += 1;
            }
            4 => killed += kill_a_producer(bootstrap),
            _ => {}
        }
    }
    clock::wait_within(Duration::from_secs(300), "every record", || {
        listen(&mut members, &mut seen);
        (seen.len() >= written).then_some(())
    });
    for number in 0..written {
        let offset = i64::try_from(number / PARTITIONS).expect("small");
        assert!(
            seen.contains_key(&(number % PARTITIONS, offset)),
            "record {number} is missing"
        );
    }
    for mut member in members {
        member.run.close(Duration::from_secs(60));
    }
    format!(
        "{written} records written and seen, {joined} members joined, {left} left, {killed} clients killed"
    )
}

fn join(bootstrap: &str) -> Member {
    let mut words = vec![TOPIC.to_owned(), "workers".to_owned()];
    words.extend(SESSION.iter().map(|&word| word.to_owned()));
    let mut run = Run::start(Client::Librdkafka, "group", bootstrap, &words);
    let lines = run.lines();
    Member { run, lines }
}

/// A few hundred records, each partition in order; all of them are acknowledged where they belong.
fn produce(bootstrap: &str, before: usize) -> usize {
    const COUNT: usize = 50 * PARTITIONS;
    let record = |number: usize| Record {
        partition: i32::try_from(number % PARTITIONS).expect("few"),
        timestamp: clock::wall_clock_ms(),
        value: Some(format!("{number:>200}").into_bytes()),
        ..Record::default()
    };
    let records: Vec<Record> = (before..before + COUNT).map(record).collect();
    let places = Client::Librdkafka.produce(bootstrap, TOPIC, PRODUCER, &records);
    for (number, (partition, offset)) in (before..).zip(places) {
        let partition = usize::try_from(partition).expect("an index");
        let expected = i64::try_from(number / PARTITIONS).expect("small");
        assert_eq!(
            (partition, offset),
            (number % PARTITIONS, expected),
            "record {number}"
        );
    }
    COUNT
}

/// A producer that is killed in the middle of its work.
fn kill_a_producer(bootstrap: &str) -> usize {
    let words = ["noise".to_owned(), "acks=all".to_owned()];
    let mut run = Run::start(Client::Librdkafka, "produce", bootstrap, &words);
    let lines = run.lines();
    let mut input = run.input.take().expect("a pipe");
    let record = Record {
        partition: -1,
        value: Some(vec![b'n'; 2000]),
        timestamp: clock::wall_clock_ms(),
        ..Record::default()
    };
    for _ in 0..500 {
        if record.write(&mut input).is_err() {
            break;
        }
    }
    let first = lines.recv_timeout(Duration::from_secs(60));
    assert!(
        first.is_ok_and(|line| line.starts_with("ack ")),
        "{}",
        run.errors()
    );
    run.process.kill();
    1
}

fn listen(members: &mut [Member], seen: &mut Seen) {
    for member in members {
        take(member, seen);
        if let Some(status) = member.run.process.ended() {
            panic!("a member ended with {status}\n{}", member.run.errors());
        }
    }
}

fn take(member: &Member, seen: &mut Seen) {
    for line in member.lines.try_iter() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["record", partition, offset] = words.as_slice() {
            let place = (
                partition.parse().expect("a partition"),
                offset.parse().expect("an offset"),
            );
            *seen.entry(place).or_default() += 1;
        }
    }
}
