//! Fetching as consumers do: with and without a session, by name and by id, with the leader epoch known.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::ErrorCode;
use protocol::messages::{
    FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic, FetchRequestForgottenTopic,
    FetchResponse, MetadataRequest, MetadataRequestMetadataRequestTopic,
};

use crate::client::{Client, Lost};
use crate::model::Expected;
use crate::record::Place;

const VERSIONS: [i16; 4] = [12, 13, 15, 17];

/// How one consumer fetches.
pub struct Fetcher {
    version: i16,
    session: Option<Session>,
    /// Leader epoch of each partition, as far as this consumer was told.
    epochs: BTreeMap<Place, i32>,
}

/// What the broker should remember of an incremental fetch (KIP-227).
#[derive(Default)]
struct Session {
    id: i32,
    epoch: i32,
    /// Offset and leader epoch of each partition, as they were sent last.
    partitions: BTreeMap<Place, (i64, i32)>,
}

/// One partition as it is asked for.
struct Ask {
    expected: Expected,
    offset: i64,
    epoch: i32,
}

impl Fetcher {
    pub fn new(client: &Client, with_session: bool) -> Self {
        Self {
            version: VERSIONS[client.below(4) as usize],
            session: with_session.then(Session::default),
            epochs: BTreeMap::new(),
        }
    }

    /// Fetches from every position once, checks what comes, and moves the positions.
    pub async fn fetch(
        &mut self,
        client: &Client,
        positions: &mut BTreeMap<Place, i64>,
        max_wait: Duration,
    ) -> Result<(), Lost> {
        let asks: BTreeMap<Place, Ask> = positions
            .iter()
            .map(|(place, offset)| (*place, self.ask(client, *place, *offset)))
            .collect();
        let request = self.request(client, &asks, max_wait);
        let answer = client.ask_patiently(self.version, &request, max_wait).await;
        let answer = answer.inspect_err(|_| self.forget_session())?;
        if !self.keep_session(client, &asks, &answer) {
            return Ok(());
        }
        for topic in &answer.responses {
            let id = match self.version {
                ..13 => client.stage.topic_id(&topic.topic),
                _ => topic.topic_id,
            };
            for part in &topic.partitions {
                let place = Place {
                    topic: id,
                    partition: part.partition_index,
                };
                let Some(ask) = asks.get(&place) else {
                    client
                        .stage
                        .model
                        .violation(format!("{place} is answered and was not asked for"));
                    continue;
                };
                let code = ErrorCode::from_i16(part.error_code);
                if code == Some(ErrorCode::None) {
                    let next =
                        client
                            .stage
                            .model
                            .fetched(&ask.expected, ask.offset, ask.epoch, part);
                    positions.insert(place, next);
                } else if let Some(offset) = self.refused(client, place, ask, code).await? {
                    positions.insert(place, offset);
                }
            }
        }
        Ok(())
    }

    fn ask(&self, client: &Client, place: Place, offset: i64) -> Ask {
        Ask {
            expected: client.stage.model.expect(place),
            offset,
            epoch: self.epochs.get(&place).copied().unwrap_or(-1),
        }
    }

    fn request(
        &self,
        client: &Client,
        asks: &BTreeMap<Place, Ask>,
        max_wait: Duration,
    ) -> FetchRequest {
        let remembered = self.session.as_ref().filter(|session| session.id != 0);
        let is_new = |place: &Place, ask: &Ask| {
            remembered.is_none_or(|session| {
                session.partitions.get(place) != Some(&(ask.offset, ask.epoch))
            })
        };
        let max_bytes = 1 << client.below(20);
        let topics = asks
            .iter()
            .filter(|(place, ask)| is_new(place, ask))
            .map(|(place, ask)| {
                let partition = FetchRequestFetchPartition {
                    partition: place.partition,
                    current_leader_epoch: ask.epoch,
                    fetch_offset: ask.offset,
                    partition_max_bytes: max_bytes,
                    ..Default::default()
                };
                FetchRequestFetchTopic {
                    topic: client.stage.topic_name(place.topic),
                    topic_id: place.topic,
                    partitions: [partition].into(),
                }
            });
        let forgotten = remembered
            .into_iter()
            .flat_map(|session| session.partitions.keys());
        let forgotten = forgotten
            .filter(|place| !asks.contains_key(place))
            .map(|place| FetchRequestForgottenTopic {
                topic: client.stage.topic_name(place.topic),
                topic_id: place.topic,
                partitions: [place.partition].into(),
            });
        FetchRequest {
            max_wait_ms: i32::try_from(max_wait.as_millis()).expect("a short wait"),
            min_bytes: 1,
            max_bytes: 1 << 20,
            session_id: remembered.map_or(0, |session| session.id),
            session_epoch: self.session.as_ref().map_or(-1, |session| session.epoch),
            topics: topics.collect(),
            forgotten_topics_data: forgotten.collect(),
            ..Default::default()
        }
    }

    fn forget_session(&mut self) {
        if let Some(session) = &mut self.session {
            *session = Session::default();
        }
    }

    /// Takes note of the session; false where the whole fetch was refused.
    fn keep_session(
        &mut self,
        client: &Client,
        asks: &BTreeMap<Place, Ask>,
        answer: &FetchResponse,
    ) -> bool {
        let code = ErrorCode::from_i16(answer.error_code);
        if code != Some(ErrorCode::None) {
            let in_session = self.session.as_ref().is_some_and(|session| session.id != 0);
            let of_session = [
                ErrorCode::FetchSessionIdNotFound,
                ErrorCode::InvalidFetchSessionEpoch,
            ];
            if !(in_session && code.is_some_and(|code| of_session.contains(&code))) {
                client
                    .stage
                    .model
                    .violation(format!("a fetch was refused with {code:?}"));
            }
            self.forget_session();
            return false;
        }
        if let Some(session) = &mut self.session {
            session.partitions = asks
                .iter()
                .map(|(place, ask)| (*place, (ask.offset, ask.epoch)))
                .collect();
            session.id = answer.session_id;
            session.epoch = if session.id == 0 {
                0
            } else {
                session.epoch + 1
            };
        }
        true
    }

    /// One partition was refused; gives an offset to go on from, if another.
    async fn refused(
        &mut self,
        client: &Client,
        place: Place,
        ask: &Ask,
        code: Option<ErrorCode>,
    ) -> Result<Option<i64>, Lost> {
        let model = &client.stage.model;
        match code {
            Some(ErrorCode::OffsetOutOfRange) => {
                model.out_of_range(&ask.expected, ask.offset);
                return Ok(Some(0));
            }
            Some(ErrorCode::FencedLeaderEpoch | ErrorCode::NotLeaderOrFollower) => {
                client.pause(50).await;
                self.refresh(client, place).await?;
            }
            Some(ErrorCode::KafkaStorageError) if client.stage.disk_may_fail() => {
                client.pause(200).await;
            }
            _ => model.violation(format!(
                "a fetch from {place} at {} was refused with {code:?}",
                ask.offset
            )),
        }
        Ok(None)
    }

    /// Asks who leads the topic of a partition.
    pub async fn refresh(&mut self, client: &Client, place: Place) -> Result<(), Lost> {
        let name = client.stage.topic_name(place.topic);
        let topic = MetadataRequestMetadataRequestTopic {
            name: Some(name.clone()),
            ..Default::default()
        };
        let request = MetadataRequest {
            topics: Some([topic].into()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let answer = client.ask(12, &request).await?;
        let topic = &answer.topics[0];
        let found = (topic.error_code == 0).then_some(topic.topic_id);
        client.stage.model.saw_topic(&name, found);
        for part in &topic.partitions {
            let place = Place {
                partition: part.partition_index,
                ..place
            };
            client.stage.model.saw_epoch(place, part.leader_epoch);
            self.epochs.insert(place, part.leader_epoch);
        }
        Ok(())
    }
}
