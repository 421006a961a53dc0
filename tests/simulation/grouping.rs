//! Members of a consumer group: join, sync, heartbeat, read what they are given, commit.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use protocol::messages::{
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest,
    JoinGroupRequestJoinGroupRequestProtocol, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity, OffsetCommitRequest,
    OffsetCommitRequestOffsetCommitRequestPartition, OffsetCommitRequestOffsetCommitRequestTopic,
    OffsetFetchRequest, OffsetFetchRequestOffsetFetchRequestGroup,
    OffsetFetchRequestOffsetFetchRequestTopics, SyncGroupRequest,
    SyncGroupRequestSyncGroupRequestAssignment,
};
use protocol::{ErrorCode, Str, Uuid};

use crate::client::{Client, Lost};
use crate::fetching::Fetcher;
use crate::record::Place;
use crate::stage::Phase;

const GROUP: &str = "group";
const PROTOCOL: &str = "consumer";
const SESSION: Duration = Duration::from_millis(1200);
const REBALANCE: Duration = Duration::from_millis(1000);

struct Member {
    client: Client,
    id: Str,
    generation: i32,
}

/// Why a member has to begin again.
enum Out {
    /// Join with the same member id.
    Rejoin,
    /// The broker does not know it any more.
    Forgotten,
    Lost,
}

impl From<Lost> for Out {
    fn from(_: Lost) -> Self {
        Out::Lost
    }
}

pub async fn run(client: Client) {
    let mut member = Member {
        client,
        id: Str::default(),
        generation: -1,
    };
    while !member.is_done() {
        match member.live().await {
            Ok(()) | Err(Out::Rejoin | Out::Lost) => {}
            Err(Out::Forgotten) => member.id = Str::default(),
        }
        member.client.pause(50).await;
    }
    let _ = member.leave().await;
    member.client.stage.doing(&member.client.name, "");
}

/// Finds the coordinator, which makes the topic of the offsets where it is missing.
pub async fn find_coordinator(client: &Client) -> Result<bool, Lost> {
    let request = FindCoordinatorRequest {
        coordinator_keys: [GROUP.into()].into(),
        ..Default::default()
    };
    let answer = client.ask(4, &request).await?;
    Ok(answer.coordinators[0].error_code == 0)
}

impl Member {
    /// Everything that was produced is committed.
    fn is_done(&self) -> bool {
        let stage = &self.client.stage;
        stage.phase.get() == Phase::Calm
            && stage.producing.get() == 0
            && stage
                .places()
                .iter()
                .all(|place| stage.committed(*place) >= stage.model.known_end(*place))
    }

    /// One membership: from joining to being told to join again.
    async fn live(&mut self) -> Result<(), Out> {
        let before = self.generation;
        let assignments = self.join().await?;
        if self.client.chance(25) && before >= 0 {
            self.act_late(before).await?;
        }
        let places = self.sync(assignments).await?;
        let mut positions = self.committed(&places).await?;
        let mut fetcher = Fetcher::new(&self.client, false);
        while !self.is_done() {
            self.heartbeat(self.generation).await?;
            if !positions.is_empty() {
                let wait = Duration::from_millis(self.client.below(200));
                fetcher.fetch(&self.client, &mut positions, wait).await?;
            }
            if self.client.chance(30) || self.client.stage.phase.get() == Phase::Calm {
                self.commit(self.generation, &positions).await?;
            }
            self.client.pause(200).await;
            if self.client.chance(3) && self.client.stage.phase.get() != Phase::Calm {
                return Ok(()); // joins again, as after a change of its subscription
            }
        }
        Ok(())
    }

    /// A request of the generation before, as it arrives from a thread that was too slow.
    async fn act_late(&self, generation: i32) -> Result<(), Out> {
        let outcome = if self.client.chance(50) {
            self.heartbeat(generation).await
        } else {
            let places = self.client.stage.places();
            self.commit(generation, &BTreeMap::from([(places[0], 0)]))
                .await
        };
        match outcome {
            Err(Out::Lost) => Err(Out::Lost),
            _ => Ok(()),
        }
    }

    /// Joins; gives the assignments to hand in if this member leads.
    async fn join(&mut self) -> Result<Vec<SyncGroupRequestSyncGroupRequestAssignment>, Out> {
        let expected = self.client.stage.model.expect_group();
        let protocol = JoinGroupRequestJoinGroupRequestProtocol {
            name: "range".into(),
            metadata: subscription(&self.client),
        };
        let request = JoinGroupRequest {
            group_id: GROUP.into(),
            session_timeout_ms: millis(SESSION),
            rebalance_timeout_ms: millis(REBALANCE),
            member_id: self.id.clone(),
            protocol_type: PROTOCOL.into(),
            protocols: [protocol].into(),
            ..Default::default()
        };
        let answer = self
            .client
            .ask_patiently(7, &request, REBALANCE + SESSION)
            .await?;
        if ErrorCode::from_i16(answer.error_code) == Some(ErrorCode::MemberIdRequired) {
            self.id = answer.member_id;
            return Err(Out::Rejoin);
        }
        self.judge(answer.error_code, "a join")?;
        self.client
            .stage
            .model
            .joined(&expected, answer.generation_id);
        self.id = answer.member_id.clone();
        self.generation = answer.generation_id;
        Ok(if answer.leader == self.id {
            self.share_out(&answer)
        } else {
            Vec::new()
        })
    }

    /// The leader gives every partition to somebody.
    fn share_out(
        &self,
        joined: &JoinGroupResponse,
    ) -> Vec<SyncGroupRequestSyncGroupRequestAssignment> {
        let mut shares = vec![Vec::new(); joined.members.len()];
        for (index, place) in self.client.stage.places().into_iter().enumerate() {
            shares[index % joined.members.len()].push(place);
        }
        let assign = |(member, places): (
            &protocol::messages::JoinGroupResponseJoinGroupResponseMember,
            Vec<Place>,
        )| {
            SyncGroupRequestSyncGroupRequestAssignment {
                member_id: member.member_id.clone(),
                assignment: encode(&places),
            }
        };
        joined.members.iter().zip(shares).map(assign).collect()
    }

    async fn sync(
        &self,
        assignments: Vec<SyncGroupRequestSyncGroupRequestAssignment>,
    ) -> Result<Vec<Place>, Out> {
        let model = &self.client.stage.model;
        let expected = model.expect_group();
        let request = SyncGroupRequest {
            group_id: GROUP.into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some(PROTOCOL.into()),
            protocol_name: Some("range".into()),
            assignments: assignments.into(),
            ..Default::default()
        };
        let answer = self
            .client
            .ask_patiently(5, &request, REBALANCE + SESSION)
            .await?;
        self.judge(answer.error_code, "a sync")?;
        model.accepted(&expected, self.generation, "sync");
        let places = decode(answer.assignment);
        model.assigned(&expected, self.generation, &self.id, &places);
        Ok(places)
    }

    async fn heartbeat(&self, generation: i32) -> Result<(), Out> {
        let model = &self.client.stage.model;
        let expected = model.expect_group();
        let request = HeartbeatRequest {
            group_id: GROUP.into(),
            generation_id: generation,
            member_id: self.id.clone(),
            ..Default::default()
        };
        let answer = self.client.ask(4, &request).await?;
        self.judge(answer.error_code, "a heartbeat")?;
        model.accepted(&expected, generation, "heartbeat");
        Ok(())
    }

    /// What is committed for these partitions, 0 where nothing is.
    async fn committed(&self, places: &[Place]) -> Result<BTreeMap<Place, i64>, Out> {
        let model = &self.client.stage.model;
        let expected = model.expect_group();
        let topics = places
            .iter()
            .map(|place| OffsetFetchRequestOffsetFetchRequestTopics {
                name: self.client.stage.topic_name(place.topic),
                partition_indexes: [place.partition].into(),
                ..Default::default()
            });
        let group = OffsetFetchRequestOffsetFetchRequestGroup {
            group_id: GROUP.into(),
            topics: Some(topics.collect()),
            ..Default::default()
        };
        let request = OffsetFetchRequest {
            groups: [group].into(),
            ..Default::default()
        };
        let answer = self.client.ask(8, &request).await?;
        let group = &answer.groups[0];
        self.judge(group.error_code, "a look at offsets")?;
        let mut positions = BTreeMap::new();
        for topic in &group.topics {
            for part in &topic.partitions {
                self.judge(part.error_code, "a look at offsets")?;
                let place = Place {
                    topic: self.client.stage.topic_id(&topic.name),
                    partition: part.partition_index,
                };
                model.saw_committed(&expected, place, part.committed_offset);
                positions.insert(place, part.committed_offset.max(0));
            }
        }
        Ok(positions)
    }

    async fn commit(&self, generation: i32, positions: &BTreeMap<Place, i64>) -> Result<(), Out> {
        let stage = &self.client.stage;
        let model = &stage.model;
        let expected = model.expect_group();
        let topics =
            positions.iter().map(
                |(place, offset)| OffsetCommitRequestOffsetCommitRequestTopic {
                    name: stage.topic_name(place.topic),
                    partitions: [OffsetCommitRequestOffsetCommitRequestPartition {
                        partition_index: place.partition,
                        committed_offset: *offset,
                        ..Default::default()
                    }]
                    .into(),
                    ..Default::default()
                },
            );
        let request = OffsetCommitRequest {
            group_id: GROUP.into(),
            generation_id_or_member_epoch: generation,
            member_id: self.id.clone(),
            topics: topics.collect(),
            ..Default::default()
        };
        let under_way: Vec<_> = positions
            .iter()
            .map(|(place, offset)| model.committing(*place, *offset))
            .collect();
        let answer = self.client.ask(8, &request).await?;
        let codes: Vec<i16> = answer
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|part| part.error_code))
            .collect();
        for (code, commit) in codes.iter().zip(under_way) {
            match ErrorCode::from_i16(*code) {
                Some(ErrorCode::None) => model.committed(commit),
                Some(
                    ErrorCode::IllegalGeneration
                    | ErrorCode::UnknownMemberId
                    | ErrorCode::RebalanceInProgress,
                ) => {
                    model.commit_refused(commit);
                }
                _ => {}
            }
        }
        for code in &codes {
            self.judge(*code, "a commit")?;
        }
        // A commit of nothing is answered whatever its generation, as in Kafka.
        if !codes.is_empty() {
            model.accepted(&expected, generation, "commit");
        }
        for (place, offset) in positions {
            stage.set_committed(*place, *offset);
        }
        Ok(())
    }

    async fn leave(&self) -> Result<(), Out> {
        let member = LeaveGroupRequestMemberIdentity {
            member_id: self.id.clone(),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: GROUP.into(),
            members: [member].into(),
            ..Default::default()
        };
        self.client.ask(4, &request).await?;
        Ok(())
    }

    /// What an error means for the membership; one that may not come is a violation.
    fn judge(&self, code: i16, what: &str) -> Result<(), Out> {
        let code = ErrorCode::from_i16(code);
        match code {
            Some(ErrorCode::None) => Ok(()),
            Some(ErrorCode::IllegalGeneration | ErrorCode::RebalanceInProgress) => Err(Out::Rejoin),
            Some(ErrorCode::UnknownMemberId) => Err(Out::Forgotten),
            Some(
                ErrorCode::CoordinatorLoadInProgress
                | ErrorCode::NotCoordinator
                | ErrorCode::CoordinatorNotAvailable,
            ) => Err(Out::Rejoin),
            Some(ErrorCode::KafkaStorageError | ErrorCode::UnknownServerError)
                if self.client.stage.disk_may_fail() =>
            {
                Err(Out::Rejoin)
            }
            _ => {
                let name = &self.client.name;
                self.client
                    .stage
                    .model
                    .violation(format!("{name}: {what} was refused with {code:?}"));
                Err(Out::Lost)
            }
        }
    }
}

fn millis(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).expect("a short span")
}

/// `ConsumerProtocolSubscription` version 0: the topics that stay.
fn subscription(client: &Client) -> Bytes {
    let topics = client.stage.topics.borrow();
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(i32::try_from(topics.len()).expect("few"));
    for topic in topics.iter() {
        bytes.put_i16(i16::try_from(topic.name.len()).expect("short"));
        bytes.put_slice(topic.name.as_bytes());
    }
    bytes.put_i32(-1);
    bytes.freeze()
}

/// Assignments are the clients' own matter: a list of partitions.
fn encode(places: &[Place]) -> Bytes {
    let mut bytes = BytesMut::new();
    for place in places {
        bytes.put_slice(&place.topic.0);
        bytes.put_i32(place.partition);
    }
    bytes.freeze()
}

fn decode(mut bytes: Bytes) -> Vec<Place> {
    let mut places = Vec::new();
    while bytes.len() >= 20 {
        let mut id = [0; 16];
        bytes.copy_to_slice(&mut id);
        let partition = bytes.get_i32();
        places.push(Place {
            topic: Uuid(id),
            partition,
        });
    }
    places
}
