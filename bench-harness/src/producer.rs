//! Producers: each has one connection a leader, a *lane*, with several requests in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use glommio::sync::Semaphore;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};

use crate::batches::{Batch, Batches, Producer, with_sequence};
use crate::cluster::{self, topic_name};
use crate::connection::{Connection, Receiver, Sender, decode};
use crate::measure::{Phases, Pulse, Recorder};
use crate::scenario::{Acks, Producers};

/// What one lane sends, and where.
pub struct Lane {
    pub address: String,
    pub topic: String,
    pub partitions: Vec<i32>,
    pub shape: Producers,
    pub seed: u64,
    /// Create time of all records.
    pub millis: i64,
    /// Nanoseconds between two records of this lane; absent: as fast as answers come.
    pub interval: Option<f64>,
    /// Where in the first interval it begins, so that lanes do not send in step: 0 to 1.
    pub phase: f64,
    /// Ends after so many bytes; absent: when the phases are over.
    pub bytes: Option<u64>,
}

/// One request on its way.
struct Flight {
    intended: u64,
    /// Partition, records and bytes of each batch.
    batches: Vec<(i32, u32, usize)>,
}

struct Flights {
    waiting: RefCell<VecDeque<Flight>>,
    slots: Semaphore,
    failure: RefCell<Option<anyhow::Error>>,
}

/// Sequences of one lane, by the place of the partition in its list.
struct Sequences {
    producer: Producer,
    next: Vec<i32>,
}

/// Runs a lane to its end. Answers that carry errors are counted; a connection that breaks is an error.
pub async fn run(lane: Lane, phases: Arc<Phases>, recorder: Rc<RefCell<Recorder>>) -> Result<()> {
    let pulse = recorder.borrow().pulse.clone();
    pulse.asked();
    let mut connection = Connection::open(&lane.address).await?;
    let sequences = if lane.shape.idempotent {
        let producer = cluster::producer_id(&mut connection).await?;
        Some(Sequences {
            producer,
            next: vec![0; lane.partitions.len()],
        })
    } else {
        None
    };
    pulse.answered();
    let version = connection.versions.of::<ProduceRequest>()?;
    let flights = Rc::new(Flights {
        waiting: RefCell::default(),
        slots: Semaphore::new(u64::from(lane.shape.in_flight)),
        failure: RefCell::default(),
    });
    let answers = (lane.shape.acks != Acks::None).then(|| {
        let (flights, recorder, phases) = (flights.clone(), recorder.clone(), phases.clone());
        let receiver = connection.receiver;
        glommio::spawn_local(async move {
            if let Err(error) = receive(receiver, version, &flights, &recorder, &phases).await {
                flights.failure.replace(Some(error));
            }
            // Whoever waits for a slot has to see that none will come.
            flights.slots.signal(1 << 20);
        })
        .detach()
    });
    let mut sending = Sending {
        lane,
        version,
        sequences,
        sender: connection.sender,
        flights: flights.clone(),
        recorder,
        pulse,
        phases,
    };
    let sent = sending.run().await;
    if answers.is_some() && sent.is_ok() {
        drain(&flights).await;
    }
    if let Some(error) = flights.failure.take() {
        return Err(error);
    }
    sent
}

/// Waits for the answers that are still to come; whoever watches the phases ends it where they do not.
async fn drain(flights: &Flights) {
    while !flights.waiting.borrow().is_empty() && flights.failure.borrow().is_none() {
        glommio::timer::sleep(Duration::from_millis(2)).await;
    }
}

struct Sending {
    lane: Lane,
    version: i16,
    sequences: Option<Sequences>,
    sender: Sender,
    flights: Rc<Flights>,
    recorder: Rc<RefCell<Recorder>>,
    pulse: Arc<Pulse>,
    phases: Arc<Phases>,
}

impl Sending {
    async fn run(&mut self) -> Result<()> {
        let mut batches = Batches::new(&self.lane.shape, self.lane.seed, self.lane.millis)?;
        let width =
            (self.lane.shape.partitions_per_request as usize).min(self.lane.partitions.len());
        let mut random = fastrand::Rng::with_seed(self.lane.seed);
        let mut order: Vec<usize> = (0..self.lane.partitions.len()).collect();
        random.shuffle(&mut order);
        let mut turn = 0;
        let (least, most) = self.lane.shape.batch_records.bounds();
        let first = f64::from(least + most) / 2.0 * width as f64 * self.lane.phase;
        let mut due = self.phases.now() as f64 + self.lane.interval.unwrap_or(0.0) * first;
        let mut left = self.lane.bytes.unwrap_or(u64::MAX);
        while left > 0 && !self.is_over() {
            let chosen: Vec<(usize, Batch)> = (0..width)
                .map(|step| (order[(turn + step) % order.len()], batches.next()))
                .collect();
            turn = (turn + width) % order.len();
            let records: u32 = chosen.iter().map(|(_, batch)| batch.records).sum();
            let bytes: usize = chosen.iter().map(|(_, batch)| batch.bytes.len()).sum();
            self.send(&chosen, due as u64).await?;
            due += self.lane.interval.unwrap_or(0.0) * f64::from(records);
            left = left.saturating_sub(bytes as u64);
            glommio::yield_if_needed().await;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        match self.lane.bytes {
            Some(_) => self.phases.is_stopped(),
            None => self.phases.is_over(),
        }
    }

    async fn send(&mut self, chosen: &[(usize, Batch)], due: u64) -> Result<()> {
        if self.lane.interval.is_some() {
            self.phases.until(due.min(self.phases.window().end)).await;
            if self.phases.now() < due {
                // It ended before.
                return Ok(());
            }
            if self.flights.slots.available() > 0 {
                self.recorder.borrow_mut().late(due, self.phases.now());
            }
        }
        self.flights
            .slots
            .acquire(1)
            .await
            .map_err(|error| anyhow!("{error}"))?;
        if let Some(error) = self.flights.failure.take() {
            return Err(error);
        }
        let intended = if self.lane.interval.is_some() {
            due
        } else {
            self.phases.now()
        };
        let request = self.request(chosen);
        let batches = chosen
            .iter()
            .map(|(at, batch)| (self.lane.partitions[*at], batch.records, batch.bytes.len()));
        let flight = Flight {
            intended,
            batches: batches.collect(),
        };
        self.pulse.asked();
        if self.lane.shape.acks == Acks::None {
            self.sender.send(&request, self.version).await?;
            self.pulse.answered();
            acknowledged(&flight, &self.recorder, &self.phases);
            self.flights.slots.signal(1);
        } else {
            self.flights.waiting.borrow_mut().push_back(flight);
            self.sender.send(&request, self.version).await?;
        }
        Ok(())
    }

    fn request(&mut self, chosen: &[(usize, Batch)]) -> ProduceRequest {
        let mut partitions = Vec::with_capacity(chosen.len());
        for (at, batch) in chosen {
            let bytes = match &mut self.sequences {
                None => batch.bytes.clone(),
                Some(sequences) => {
                    let sequence = sequences.next[*at];
                    // Kafka's sequences wrap at 2^31.
                    sequences.next[*at] = sequence.wrapping_add_unsigned(batch.records) & i32::MAX;
                    with_sequence(batch, sequences.producer, sequence)
                }
            };
            partitions.push(
                PartitionProduceData::default()
                    .with_index(self.lane.partitions[*at])
                    .with_records(Some(bytes)),
            );
        }
        ProduceRequest::default()
            .with_transactional_id(None)
            .with_acks(self.lane.shape.acks.wire())
            .with_timeout_ms(30_000)
            .with_topic_data(vec![
                TopicProduceData::default()
                    .with_name(topic_name(&self.lane.topic))
                    .with_partition_data(partitions),
            ])
    }
}

fn acknowledged(flight: &Flight, recorder: &RefCell<Recorder>, phases: &Phases) {
    let records: u64 = flight
        .batches
        .iter()
        .map(|(_, records, _)| u64::from(*records))
        .sum();
    let bytes: u64 = flight
        .batches
        .iter()
        .map(|(_, _, bytes)| *bytes as u64)
        .sum();
    recorder.borrow_mut().acknowledged(
        flight.intended,
        phases.now(),
        flight.batches.len() as u64,
        records,
        bytes,
    );
    phases.acknowledged.fetch_add(bytes, Ordering::Relaxed);
}

/// Reads answers until the connection or the lane ends.
async fn receive(
    mut receiver: Receiver,
    version: i16,
    flights: &Flights,
    recorder: &RefCell<Recorder>,
    phases: &Phases,
) -> Result<()> {
    let pulse = recorder.borrow().pulse.clone();
    loop {
        let frame = receiver.receive().await?;
        pulse.answered();
        let answer = decode::<ProduceRequest>(frame, version)?;
        let flight = flights
            .waiting
            .borrow_mut()
            .pop_front()
            .context("an answer that nobody asked for")?;
        let answers = answer
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses);
        let mut seen = 0;
        let mut failed = None;
        for partition in answers {
            seen += 1;
            if partition.error_code == 0 {
                recorder
                    .borrow_mut()
                    .sent(partition.index, partition.base_offset, flight.intended);
            } else {
                failed = Some((partition.index, partition.error_code));
            }
        }
        ensure!(
            seen == flight.batches.len(),
            "an answer for {seen} partitions, {} were asked",
            flight.batches.len()
        );
        if let Some((partition, code)) = failed {
            phases.errors.fetch_add(1, Ordering::Relaxed);
            bail!("produce to partition {partition} answered error {code}");
        }
        acknowledged(&flight, recorder, phases);
        flights.slots.signal(1);
    }
}
