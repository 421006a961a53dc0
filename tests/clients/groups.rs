//! Consumer groups: members come, go and crash; every record arrives, and after a clean handover only once.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::support::broker::Broker;
use crate::support::clock;
use crate::support::driver::{CLIENTS_ALL, Client, Run};
use crate::support::record::Record;

const TOPIC: &str = "grouped";
const PARTITIONS: usize = 6;
/// As short as a broker allows by default, so that a crashed member is missed soon.
const SESSION: &[&str] = &["session.timeout.ms=6000", "heartbeat.interval.ms=500"];

#[test]
fn a_group_of_librdkafka() {
    whole_life("group-librdkafka", [Client::Librdkafka; 3]);
}

#[test]
fn a_group_of_java() {
    whole_life("group-java", [Client::Java; 3]);
}

#[test]
fn a_group_of_kafka_python() {
    whole_life("group-python", [Client::Python; 3]);
}

#[test]
fn a_group_of_all_three() {
    whole_life("group-mixed", CLIENTS_ALL);
}

fn whole_life(name: &str, clients: [Client; 3]) {
    let broker = Broker::start(name, &[]);
    clients[0].create_topics(&broker.bootstrap(), &[(TOPIC.to_owned(), PARTITIONS)]);
    let mut group = Group {
        broker,
        members: Vec::new(),
        written: 0,
        seen: BTreeMap::new(),
    };

    for client in clients {
        group.join(client);
        group.wait_balanced();
        group.produce_and_wait(200);
    }
    group.assert_each_once("while members joined");

    // One leaves in the middle of the traffic and says so.
    group.produce(600);
    group.wait_seen_beyond(100);
    group.leave(2);
    group.wait_all_seen();
    group.assert_each_once("after a member left");

    // One comes in the middle of the traffic.
    group.produce(600);
    group.wait_seen_beyond(100);
    group.join(clients[2]);
    group.wait_balanced();
    group.wait_all_seen();
    group.assert_each_once("after a member came");

    // One is killed; what it had shown but not committed comes again, nothing is missing.
    group.produce(600);
    group.wait_seen_beyond(100);
    group.crash(1);
    group.wait_balanced();
    group.produce(100);
    group.wait_all_seen();

    // All leave; a later member goes on where the group stopped.
    while !group.members.is_empty() {
        group.leave(0);
    }
    let before = group.seen.clone();
    group.produce(50);
    group.join(clients[0]);
    group.wait_all_seen();
    let again: Vec<_> = before
        .iter()
        .filter(|(place, count)| group.seen[place] != **count)
        .collect();
    assert!(
        again.is_empty(),
        "delivered again after all had committed: {again:?}"
    );
}

struct Member {
    run: Run,
    lines: Receiver<String>,
    assigned: BTreeSet<usize>,
}

struct Group {
    broker: Broker,
    members: Vec<Member>,
    written: usize,
    /// How often each place, partition and offset, was delivered.
    seen: BTreeMap<(usize, i64), usize>,
}

impl Group {
    fn join(&mut self, client: Client) {
        let mut words = vec![TOPIC.to_owned(), "one-group".to_owned()];
        words.extend(SESSION.iter().map(|&word| word.to_owned()));
        words.push(assignor(client).to_owned());
        let mut run = Run::start(client, "group", &self.broker.bootstrap(), &words);
        let lines = run.lines();
        self.members.push(Member {
            run,
            lines,
            assigned: BTreeSet::new(),
        });
    }

    fn leave(&mut self, at: usize) {
        let mut member = self.members.remove(at);
        member.run.close(Duration::from_secs(60));
        take_lines(&mut member, &mut self.seen);
    }

    fn crash(&mut self, at: usize) {
        let mut member = self.members.remove(at);
        member.run.process.kill();
        take_lines(&mut member, &mut self.seen);
    }

    fn produce(&mut self, count: usize) {
        let places = self.written..self.written + count;
        let record = |number: usize| Record {
            partition: i32::try_from(number % PARTITIONS).expect("few"),
            timestamp: clock::wall_clock_ms(),
            value: Some(number.to_string().into_bytes()),
            ..Record::default()
        };
        let records: Vec<Record> = places.map(record).collect();
        Client::Librdkafka.produce(&self.broker.bootstrap(), TOPIC, &["acks=all"], &records);
        self.written += count;
    }

    fn produce_and_wait(&mut self, count: usize) {
        self.produce(count);
        self.wait_all_seen();
    }

    fn listen(&mut self) {
        for member in &mut self.members {
            take_lines(member, &mut self.seen);
            if let Some(status) = member.run.process.ended() {
                panic!("a member ended with {status}\n{}", member.run.errors());
            }
        }
    }

    /// Until each partition has one owner and each member some.
    fn wait_balanced(&mut self) {
        clock::wait_until("a balanced group", || {
            self.listen();
            let owned: Vec<usize> = self
                .members
                .iter()
                .flat_map(|member| member.assigned.iter().copied())
                .collect();
            let distinct: BTreeSet<usize> = owned.iter().copied().collect();
            let idle = self.members.iter().any(|member| member.assigned.is_empty());
            !idle && owned.len() == PARTITIONS && distinct.len() == PARTITIONS
        });
    }

    fn wait_seen_beyond(&mut self, count: usize) {
        let goal = self.seen.len() + count;
        clock::wait_until("some of the records", || {
            self.listen();
            self.seen.len() >= goal
        });
    }

    fn wait_all_seen(&mut self) {
        let what = format!("all {} records", self.written);
        clock::wait_until(&what, || {
            self.listen();
            self.seen.len() >= self.written
        });
        for place in (0..self.written).map(|number| (number % PARTITIONS, number / PARTITIONS)) {
            let place = (place.0, i64::try_from(place.1).expect("small"));
            assert!(
                self.seen.contains_key(&place),
                "{place:?} was never delivered"
            );
        }
    }

    fn assert_each_once(&self, when: &str) {
        let twice: Vec<_> = self.seen.iter().filter(|(_, count)| **count > 1).collect();
        assert!(
            twice.is_empty(),
            "delivered more than once {when}: {twice:?}"
        );
    }
}

fn take_lines(member: &mut Member, seen: &mut BTreeMap<(usize, i64), usize>) {
    for line in member.lines.try_iter() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["assigned", partitions] => {
                let numbers = partitions.split(',').filter(|word| !word.is_empty());
                member.assigned = numbers
                    .map(|word| word.parse().expect("a partition"))
                    .collect();
            }
            ["record", partition, offset] => {
                let place = (
                    partition.parse().expect("a partition"),
                    offset.parse().expect("an offset"),
                );
                *seen.entry(place).or_default() += 1;
            }
            _ => panic!("a driver said {line:?}"),
        }
    }
}

/// The eager assignor that all three have.
fn assignor(client: Client) -> &'static str {
    match client {
        Client::Java => {
            "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor"
        }
        Client::Librdkafka | Client::Python => "partition.assignment.strategy=range",
    }
}
