//! `group`: one member, which commits what it printed and says which partitions are its own.
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::{Outcome, POLL};

static CLOSING: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Member {
    mine: Mutex<BTreeSet<i32>>,
}

impl Member {
    fn change(&self, partitions: &TopicPartitionList, add: bool) {
        let mut mine = self.mine.lock().expect("no holder panics");
        for element in partitions.elements() {
            if add {
                mine.insert(element.partition());
            } else {
                mine.remove(&element.partition());
            }
        }
        let words: Vec<String> = mine.iter().map(i32::to_string).collect();
        println!("assigned {}", words.join(","));
    }
}

impl ClientContext for Member {}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            self.change(partitions, false);
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            self.change(partitions, true);
        }
    }
}

pub fn run(mut config: ClientConfig, topic: &str, group: &str) -> Outcome {
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false");
    config.set("auto.offset.reset", "earliest");
    std::thread::spawn(|| {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line == "close" {
                break;
            }
        }
        CLOSING.store(true, Ordering::Relaxed);
    });
    let consumer: BaseConsumer<Member> = config.create_with_context(Member::default())?;
    consumer.subscribe(&[topic])?;
    while !CLOSING.load(Ordering::Relaxed) {
        let Some(Ok(message)) = consumer.poll(POLL) else {
            continue;
        };
        println!("record {} {}", message.partition(), message.offset());
        let mut next = TopicPartitionList::new();
        next.add_partition_offset(
            topic,
            message.partition(),
            Offset::Offset(message.offset() + 1),
        )?;
        consumer.commit(&next, CommitMode::Sync)?;
    }
    Ok(())
}
