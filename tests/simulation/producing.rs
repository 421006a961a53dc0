//! Producers: plain ones that may write twice what they were not told of, and idempotent ones that
//! must not.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protocol::ErrorCode;
use protocol::messages::{
    InitProducerIdRequest, ProduceRequest, ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData, ProduceResponse,
};

use crate::client::{Client, Lost, PATIENCE};
use crate::model::Expected;
use crate::record::{Id, Place, Producer, batch};
use crate::stage::Phase;

const PRODUCE_VERSIONS: [i16; 3] = [9, 12, 13];
/// Batches that each producer sends to each partition when all faults are over.
const AT_LAST: usize = 2;

/// A producer: with a window of batches under way for an idempotent one.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Plain { acks: i16 },
    Idempotent { window: usize },
}

/// A batch that has to get into the log.
struct Batch {
    expected: Expected,
    place: Place,
    ids: Vec<Id>,
    producer: Option<Producer>,
    /// Starts of the broker before it was made.
    restarts: u32,
}

struct Maker {
    client: Client,
    version: i16,
    acks: i16,
    window: usize,
    /// Its number, and what the broker gave an idempotent one.
    number: u32,
    producer: Option<(i64, i16)>,
    /// Records made for each partition.
    made: BTreeMap<Place, u32>,
    losses: u32,
}

pub async fn run(client: Client, kind: Kind) {
    let version = PRODUCE_VERSIONS[client.below(3) as usize];
    let (acks, window, idempotent) = match kind {
        Kind::Plain { acks } => (acks, 1, false),
        Kind::Idempotent { window } => (-1, window, true),
    };
    let mut maker = Maker {
        version,
        acks,
        window,
        number: client.stage.new_maker(),
        producer: None,
        made: BTreeMap::new(),
        losses: client.stage.model.losses(),
        client,
    };
    let places = maker.client.stage.places();
    while maker.client.stage.phase.get() != Phase::Calm {
        maker.become_known(idempotent).await;
        let place = places[maker.client.below(places.len() as u64) as usize];
        let count = 1 + maker.client.below(maker.window as u64);
        maker.write(place, count as usize).await;
        maker.client.pause(60).await;
    }
    for place in places {
        maker.become_known(idempotent).await;
        maker.write(place, AT_LAST).await;
    }
    let stage = &maker.client.stage;
    stage.producing.set(stage.producing.get() - 1);
    stage.doing(&maker.client.name, "");
}

impl Maker {
    /// An idempotent producer gets its id: at first, and when the broker may have lost what it knew of it.
    async fn become_known(&mut self, idempotent: bool) {
        let losses = self.client.stage.model.losses();
        if !idempotent || (self.producer.is_some() && self.losses == losses) {
            return;
        }
        self.number = self.client.stage.new_maker();
        self.made.clear();
        self.losses = losses;
        self.producer = None;
        while self.producer.is_none() {
            let request = InitProducerIdRequest {
                transactional_id: None,
                transaction_timeout_ms: 60_000,
                ..Default::default()
            };
            let Ok(answer) = self.client.ask(4, &request).await else {
                continue;
            };
            match ErrorCode::from_i16(answer.error_code) {
                Some(ErrorCode::None) => {
                    self.producer = Some((answer.producer_id, answer.producer_epoch))
                }
                _ => self.client.pause(100).await,
            }
        }
    }

    fn make(&mut self, place: Place) -> Batch {
        let count = 1 + self.client.below(4) as u32;
        let made = self.made.entry(place).or_default();
        let first = *made;
        *made += count;
        let maker = self.number;
        let id = |number| Id { maker, number };
        let sequence = i32::try_from(first).expect("few records");
        Batch {
            expected: self.client.stage.model.expect(place),
            restarts: self.client.stage.model.restarts(),
            place,
            ids: (first..first + count).map(id).collect(),
            producer: self.producer.map(|(id, epoch)| Producer {
                id,
                epoch,
                sequence,
            }),
        }
    }

    /// Writes so many batches, trying each until the broker has it, or until a plain producer gives up.
    async fn write(&mut self, place: Place, count: usize) {
        let mut batches: VecDeque<Batch> = (0..count).map(|_| self.make(place)).collect();
        while !batches.is_empty() {
            if self.losses != self.client.stage.model.losses() && self.producer.is_some() {
                return;
            }
            let progress = self.round(&mut batches).await;
            if progress.is_err() || !batches.is_empty() {
                let gives_up = self.producer.is_none() && self.client.chance(30);
                if gives_up && self.client.stage.phase.get() != Phase::Calm {
                    return;
                }
                self.client.pause(200).await;
            }
        }
    }

    /// Sends what there is and takes the answers; what was acknowledged leaves the queue.
    async fn round(&self, batches: &mut VecDeque<Batch>) -> Result<(), Lost> {
        let mut asked = Vec::new();
        for batch in batches.iter() {
            let once = batch.producer.is_some();
            self.client
                .stage
                .model
                .sending(batch.place, &batch.ids, once);
            self.client
                .stage
                .doing(&self.client.name, format!("produces to {}", batch.place));
            asked.push(self.client.send(self.version, &self.request(batch)).await?);
        }
        let mut index = 0;
        let mut refused = false;
        for asked in asked {
            let answer = self
                .client
                .receive::<ProduceRequest>(asked, PATIENCE)
                .await?;
            if self.settle(&batches[index], &answer, refused) {
                batches.remove(index);
            } else {
                refused = true;
                index += 1;
            }
        }
        Ok(())
    }

    fn request(&self, of: &Batch) -> ProduceRequest {
        let bytes = batch(
            of.place,
            &of.ids,
            self.client.core.wall_clock_ms(),
            of.producer,
        );
        let name = self.client.stage.topic_name(of.place.topic);
        produce_request(self.version, self.acks, of.place, name, bytes)
    }

    /// Whether the broker has the batch. `refused`: an earlier one of the same flight was not taken.
    fn settle(&self, batch: &Batch, answer: &ProduceResponse, refused: bool) -> bool {
        let model = &self.client.stage.model;
        let answer = &answer.responses[0].partition_responses[0];
        let code = ErrorCode::from_i16(answer.error_code);
        let disk_errors = self.client.stage.disk_may_fail();
        let lost = batch.expected.losses() != model.losses();
        let (first, count) = (batch.ids[0], batch.ids.len());
        tracing::debug!(place = %batch.place, %first, count, ?code, offset = answer.base_offset, "produced");
        match code {
            Some(ErrorCode::None) => {
                model.acknowledged(&batch.expected, &batch.ids, answer.base_offset);
                return true;
            }
            Some(ErrorCode::DuplicateSequenceNumber) if batch.producer.is_some() => return true,
            Some(ErrorCode::NotLeaderOrFollower) => {}
            Some(ErrorCode::KafkaStorageError) if disk_errors => {}
            Some(ErrorCode::OutOfOrderSequenceNumber) if refused || lost => {}
            // Of the batches of a producer only the last survives a start (in Apache Kafka's snapshot
            // as well): that an earlier one of the flight stands already is not known any more.
            Some(ErrorCode::OutOfOrderSequenceNumber) if batch.restarts != model.restarts() => {
                return true;
            }
            Some(ErrorCode::UnknownProducerId) if lost => {}
            _ => model.violation(format!(
                "{}: {} from {} on were refused with {code:?}: {:?}",
                self.client.name, batch.place, batch.ids[0], answer.error_message
            )),
        }
        false
    }
}

/// A request with one batch.
pub fn produce_request(
    version: i16,
    acks: i16,
    place: Place,
    name: protocol::Str,
    records: Bytes,
) -> ProduceRequest {
    let partition = ProduceRequestPartitionProduceData {
        index: place.partition,
        records: Some(records),
    };
    let mut topic = ProduceRequestTopicProduceData {
        partition_data: [partition].into(),
        ..Default::default()
    };
    match version {
        ..13 => topic.name = name,
        _ => topic.topic_id = place.topic,
    }
    ProduceRequest {
        acks,
        timeout_ms: 3000,
        topic_data: [topic].into(),
        ..Default::default()
    }
}
