//! Consumers: each has one connection a leader and one fetch session on it, as Kafka's clients have.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::FetchResponse;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, ListOffsetsRequest};

use crate::batches::BatchHeader;
use crate::cluster::{Placed, topic_name};
use crate::connection::{Connection, decode};
use crate::measure::{Phases, Recorder};

/// Kafka's FETCH_SESSION_ID_NOT_FOUND and INVALID_FETCH_SESSION_EPOCH: begin a new session.
const SESSION_IS_GONE: [i16; 2] = [70, 71];
/// Kafka's UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE and NOT_LEADER_OR_FOLLOWER.
const NOT_YET: [i16; 3] = [3, 5, 6];
/// How often, and with what time between, a leader is asked that is none yet.
const ATTEMPTS: u32 = 200;
const BETWEEN: Duration = Duration::from_millis(50);
/// ListOffsets: the end of the log.
const LATEST: i64 = -1;
/// Readers go on for so long after the window, so that its last batches are seen.
const GRACE: u64 = 1_000_000_000;

pub struct Lane {
    pub address: String,
    pub topic: String,
    /// Where each partition begins.
    pub from: HashMap<i32, i64>,
    pub max_bytes: u32,
    pub min_bytes: u32,
    pub max_wait_ms: u32,
    pub role: Role,
}

/// What a reader is for.
pub enum Role {
    /// Reads what producers write, and measures how long it took to come.
    Tail,
    /// Reads from the beginning up to these ends, or on until it has caught up where `follow`.
    Cold {
        ends: HashMap<i32, i64>,
        follow: bool,
    },
}

/// The end of each partition's log. A leader that does not know of its partition yet is asked again: metadata names it
/// before it takes it over.
pub async fn ends(placed: &Placed) -> Result<HashMap<i32, i64>> {
    let mut ends = HashMap::new();
    for (address, partitions) in &placed.leaders {
        let mut connection = Connection::open(address).await?;
        for attempt in 0.. {
            match ends_at(&mut connection, &placed.topic, partitions).await? {
                Ok(found) => {
                    ends.extend(found);
                    break;
                }
                Err((_, error)) if NOT_YET.contains(&error) && attempt < ATTEMPTS => {
                    glommio::timer::sleep(BETWEEN).await;
                }
                Err((partition, error)) => bail!("no end of partition {partition}: error {error}"),
            }
        }
    }
    Ok(ends)
}

/// Asks one leader: all ends, or the first partition that answered an error.
async fn ends_at(
    connection: &mut Connection,
    topic: &str,
    partitions: &[i32],
) -> Result<Result<Vec<(i32, i64)>, (i32, i16)>> {
    let asked = partitions.iter().map(|index| {
        ListOffsetsPartition::default()
            .with_partition_index(*index)
            .with_timestamp(LATEST)
            .with_current_leader_epoch(-1)
    });
    let topic = ListOffsetsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(asked.collect());
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic]);
    let answer = connection.call(&request).await?;
    let answers = answer.topics.iter().flat_map(|topic| &topic.partitions);
    Ok(answers
        .map(|answer| match answer.error_code {
            0 => Ok((answer.partition_index, answer.offset)),
            error => Err((answer.partition_index, error)),
        })
        .collect())
}

/// A reader's state between two fetches.
struct Reading {
    lane: Lane,
    offsets: HashMap<i32, i64>,
    /// Partitions whose offset the session does not know yet.
    changed: Vec<i32>,
    session: i32,
    epoch: i32,
    /// High watermarks last seen, for those who follow.
    watermarks: HashMap<i32, i64>,
}

/// Runs a reader to its end.
pub async fn run(lane: Lane, phases: Arc<Phases>, recorder: Rc<RefCell<Recorder>>) -> Result<()> {
    let pulse = recorder.borrow().pulse.clone();
    pulse.asked();
    let mut connection = Connection::open(&lane.address).await?;
    pulse.answered();
    let version = connection.versions.of::<FetchRequest>()?;
    let began = phases.now();
    let mut reading = Reading {
        offsets: lane.from.clone(),
        changed: lane.from.keys().copied().collect(),
        lane,
        session: 0,
        epoch: 0,
        watermarks: HashMap::new(),
    };
    while !reading.is_over(&phases) {
        pulse.asked();
        connection.sender.send(&reading.request(), version).await?;
        let frame = connection.receiver.receive().await?;
        pulse.answered();
        let answer = decode::<FetchRequest>(frame, version)?;
        reading.take(&answer, &phases, &recorder)?;
        if let Role::Cold { .. } = reading.lane.role {
            // With every answer: there may be no other.
            let mut recorder = recorder.borrow_mut();
            recorder.cold_nanos = recorder.cold_nanos.max(phases.now() - began);
        }
        glommio::yield_if_needed().await;
    }
    Ok(())
}

impl Reading {
    fn is_over(&self, phases: &Phases) -> bool {
        if phases.is_stopped() {
            return true;
        }
        match &self.lane.role {
            Role::Tail => phases.now() > phases.window().end + GRACE,
            Role::Cold {
                ends,
                follow: false,
            } => self.has_reached(ends),
            Role::Cold { ends, follow: true } => {
                (self.has_reached(ends) && self.has_reached(&self.watermarks))
                    || phases.now() > phases.window().end
            }
        }
    }

    fn has_reached(&self, ends: &HashMap<i32, i64>) -> bool {
        ends.iter().all(|(partition, end)| {
            self.offsets
                .get(partition)
                .is_none_or(|offset| offset >= end)
        })
    }

    fn request(&mut self) -> FetchRequest {
        let partitions = self.changed.drain(..).map(|index| {
            FetchPartition::default()
                .with_partition(index)
                .with_current_leader_epoch(-1)
                .with_last_fetched_epoch(-1)
                .with_log_start_offset(-1)
                .with_fetch_offset(self.offsets.get(&index).copied().unwrap_or(0))
                .with_partition_max_bytes(1 << 20)
        });
        let partitions: Vec<FetchPartition> = partitions.collect();
        let topic = FetchTopic::default()
            .with_topic(topic_name(&self.lane.topic))
            .with_partitions(partitions);
        FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(self.lane.max_wait_ms as i32)
            .with_min_bytes(self.lane.min_bytes as i32)
            .with_max_bytes(self.lane.max_bytes as i32)
            .with_session_id(self.session)
            .with_session_epoch(self.epoch)
            .with_topics(if topic.partitions.is_empty() {
                Vec::new()
            } else {
                vec![topic]
            })
    }

    fn take(
        &mut self,
        answer: &FetchResponse,
        phases: &Phases,
        recorder: &RefCell<Recorder>,
    ) -> Result<()> {
        if SESSION_IS_GONE.contains(&answer.error_code) {
            (self.session, self.epoch) = (0, 0);
            self.changed = self.offsets.keys().copied().collect();
            return Ok(());
        }
        if answer.error_code != 0 {
            bail!("fetch answered error {}", answer.error_code);
        }
        let now = phases.now();
        for partition in answer.responses.iter().flat_map(|topic| &topic.partitions) {
            if partition.error_code != 0 {
                bail!(
                    "fetch of partition {} answered error {}",
                    partition.partition_index,
                    partition.error_code
                );
            }
            self.watermarks
                .insert(partition.partition_index, partition.high_watermark);
            let records = partition
                .records
                .as_ref()
                .filter(|records| !records.is_empty());
            if let Some(records) = records {
                self.batches(partition.partition_index, records, now, phases, recorder);
            }
        }
        if answer.session_id == 0 {
            // No session: every fetch names every partition.
            (self.session, self.epoch) = (0, 0);
            self.changed = self.offsets.keys().copied().collect();
        } else {
            self.session = answer.session_id;
            self.epoch = if self.epoch == i32::MAX {
                1
            } else {
                self.epoch + 1
            };
        }
        Ok(())
    }

    fn batches(
        &mut self,
        partition: i32,
        records: &Bytes,
        now: u64,
        phases: &Phases,
        recorder: &RefCell<Recorder>,
    ) {
        let Some(offset) = self.offsets.get_mut(&partition) else {
            return;
        };
        let mut recorder = recorder.borrow_mut();
        let (mut rest, mut read_records, mut read_bytes) = (&records[..], 0, 0);
        while let Some(batch) = BatchHeader::read(rest) {
            if batch.base_offset >= *offset {
                read_records += u64::from(batch.records);
                read_bytes += batch.length as u64;
                if let Role::Tail = self.lane.role {
                    recorder.read(partition, batch.base_offset, now);
                }
            }
            *offset = (*offset).max(batch.base_offset + i64::from(batch.records));
            rest = &rest[batch.length..];
        }
        match self.lane.role {
            Role::Tail => {
                recorder.consumed(now, read_records, read_bytes);
                phases.consumed.fetch_add(read_bytes, Ordering::Relaxed);
            }
            Role::Cold { .. } => {
                recorder.cold_bytes += read_bytes;
                phases.cold.fetch_add(read_bytes, Ordering::Relaxed);
            }
        }
        if read_records > 0 {
            self.changed.push(partition);
        }
    }
}
