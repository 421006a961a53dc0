//! `consume`: reads partitions from their start to ends that standard input names, perhaps much later.
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};
use std::sync::mpsc::{self, Receiver};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::{Outcome, POLL, record};

pub fn run(mut config: ClientConfig, topic: &str, partitions: i32) -> Outcome {
    config
        .set("group.id", "unused")
        .set("enable.auto.commit", "false");
    config
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true");
    let consumer: BaseConsumer = config.create()?;
    let mut everything = TopicPartitionList::new();
    for partition in 0..partitions {
        everything.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&everything)?;
    let wanted = read_ends();
    let mut next: BTreeMap<i32, i64> = (0..partitions).map(|partition| (partition, 0)).collect();
    let mut ends: BTreeMap<i32, i64> = BTreeMap::new();
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    loop {
        for (partition, end) in wanted.try_iter() {
            let end = if end < 0 {
                consumer.fetch_watermarks(topic, partition, POLL * 50)?.1
            } else {
                end
            };
            ends.insert(partition, end);
        }
        if next
            .iter()
            .all(|(partition, at)| ends.get(partition).is_some_and(|end| at >= end))
        {
            output.flush()?;
            // The process ends here. To take a consumer down that has been reconnecting crashed now and then.
            std::mem::forget(consumer);
            return Ok(());
        }
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                record::write(&mut output, &message)?;
                next.insert(message.partition(), message.offset() + 1);
            }
            Some(Err(error)) if lasting(&error) => return Err(error.into()),
            Some(Err(_)) | None => output.flush()?,
        }
    }
}

/// Whether the client would not mend this by itself: it reconnects for ever, so that a broker that is away is no failure.
fn lasting(error: &KafkaError) -> bool {
    use rdkafka::error::RDKafkaErrorCode as Code;
    !matches!(
        error.rdkafka_error_code(),
        Some(
            Code::BrokerTransportFailure
                | Code::AllBrokersDown
                | Code::Resolve
                | Code::OperationTimedOut
        )
    )
}

fn read_ends() -> Receiver<(i32, i64)> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let mut words = line.split(' ').skip(1).map(str::parse::<i64>);
            if let (Some(Ok(partition)), Some(Ok(offset))) = (words.next(), words.next()) {
                let _ = sender.send((partition as i32, offset));
            }
        }
    });
    receiver
}
