//! `produce`: sends every record of standard input and prints what became of it.
use std::io::{self, BufReader};

use rdkafka::ClientConfig;
use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use crate::record::Record;
use crate::{Outcome, POLL};

struct Report;

impl ClientContext for Report {}

impl ProducerContext for Report {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        match result {
            Ok(message) => println!("ack {index} {} {}", message.partition(), message.offset()),
            Err((error, _)) => println!("fail {index} {error}"),
        }
    }
}

pub fn run(mut config: ClientConfig, topic: &str) -> Outcome {
    if config.get("message.max.bytes").is_none() {
        config.set("message.max.bytes", "8000000");
    }
    let producer: ThreadedProducer<Report> = config.create_with_context(Report)?;
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut index = 0;
    while let Some(record) = Record::read(&mut input)? {
        send(&producer, topic, index, &record)?;
        index += 1;
    }
    while producer.in_flight_count() > 0 {
        // A time-out only means that some are still on their way.
        let _ = producer.flush(POLL);
    }
    Ok(())
}

fn send(
    producer: &ThreadedProducer<Report>,
    topic: &str,
    index: usize,
    record: &Record,
) -> Outcome {
    let mut message = BaseRecord::with_opaque_to(topic, index).timestamp(record.timestamp);
    message.partition = (record.partition >= 0).then_some(record.partition);
    message.key = record.key.as_deref();
    message.payload = record.value.as_deref();
    if !record.headers.is_empty() {
        message = message.headers(record.owned_headers());
    }
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                message = back;
                // Waits until some are through; a time-out is no failure.
                let _ = producer.flush(POLL);
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}
