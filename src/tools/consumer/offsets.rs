//! Where to begin: committed offsets, and the ends of the logs.

use std::collections::BTreeMap;

use protocol::Str;
use protocol::messages::{
    ListOffsetsRequest, ListOffsetsRequestListOffsetsPartition, ListOffsetsRequestListOffsetsTopic,
    OffsetFetchRequest, OffsetFetchRequestOffsetFetchRequestGroup,
    OffsetFetchRequestOffsetFetchRequestTopic, OffsetFetchRequestOffsetFetchRequestTopics,
    OffsetFetchResponse,
};

use super::group::Position;
use crate::tools::client::{Client, ClientError, Node, Partition};

/// The timestamps that stand for the ends of a log.
pub(super) const EARLIEST: i64 = -2;
pub(super) const LATEST: i64 = -1;

/// The last version of OffsetFetch that names topics, and the first that asks for several groups.
const FETCH_MAX: i16 = 9;
const GROUPS_FROM: i16 = 8;
/// The first that can wait for open transactions.
const STABLE_FROM: i16 = 7;

fn by_topic(partitions: &[Partition]) -> BTreeMap<&Str, Vec<i32>> {
    let mut topics: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        let numbers = topics.entry(&partition.topic).or_default();
        numbers.push(partition.number);
    }
    topics
}

/// What a group committed; partitions without a committed offset are left out.
pub(super) fn committed(
    client: &mut Client,
    group: &Str,
    partitions: &[Partition],
) -> Result<BTreeMap<Partition, Position>, ClientError> {
    let topics = by_topic(partitions);
    client.retrying(|client| {
        let node = client.group_coordinator(group)?;
        let connection = client.connection(node)?;
        let version = connection.version_within::<OffsetFetchRequest>(1, FETCH_MAX)?;
        let request = committed_request(group, &topics, version);
        let ticket = connection.start_as(&request, version)?;
        let answer = connection.finish(ticket);
        committed_in(client.noticing(node, answer)?)
    })
}

fn committed_request(
    group: &Str,
    topics: &BTreeMap<&Str, Vec<i32>>,
    version: i16,
) -> OffsetFetchRequest {
    if version >= GROUPS_FROM {
        let topics =
            topics.iter().map(
                |(name, indexes)| OffsetFetchRequestOffsetFetchRequestTopics {
                    name: (*name).clone(),
                    partition_indexes: indexes.clone().into(),
                    ..OffsetFetchRequestOffsetFetchRequestTopics::default()
                },
            );
        return OffsetFetchRequest {
            groups: [OffsetFetchRequestOffsetFetchRequestGroup {
                group_id: group.clone(),
                topics: Some(topics.collect()),
                ..OffsetFetchRequestOffsetFetchRequestGroup::default()
            }]
            .into(),
            require_stable: true,
            ..OffsetFetchRequest::default()
        };
    }
    let topics = topics.iter().map(
        |(name, indexes)| OffsetFetchRequestOffsetFetchRequestTopic {
            name: (*name).clone(),
            partition_indexes: indexes.clone().into(),
        },
    );
    OffsetFetchRequest {
        group_id: group.clone(),
        topics: Some(topics.collect()),
        require_stable: version >= STABLE_FROM,
        ..OffsetFetchRequest::default()
    }
}

fn committed_in(
    response: OffsetFetchResponse,
) -> Result<BTreeMap<Partition, Position>, ClientError> {
    ClientError::check(response.error_code, None)?;
    let mut found = BTreeMap::new();
    let mut take = |topic: &Str, number: i32, offset: i64, leader_epoch: i32, code: i16| {
        ClientError::check(code, None)?;
        if offset >= 0 {
            let topic = topic.clone();
            let position = Position {
                offset,
                leader_epoch,
            };
            found.insert(Partition { topic, number }, position);
        }
        Ok::<_, ClientError>(())
    };
    for topic in &response.topics {
        for one in &topic.partitions {
            let (offset, epoch) = (one.committed_offset, one.committed_leader_epoch);
            take(
                &topic.name,
                one.partition_index,
                offset,
                epoch,
                one.error_code,
            )?;
        }
    }
    for group in &response.groups {
        ClientError::check(group.error_code, None)?;
        for topic in &group.topics {
            for one in &topic.partitions {
                let (offset, epoch) = (one.committed_offset, one.committed_leader_epoch);
                take(
                    &topic.name,
                    one.partition_index,
                    offset,
                    epoch,
                    one.error_code,
                )?;
            }
        }
    }
    Ok(found)
}

/// An end of these partitions' logs, asked of their leaders.
pub(super) fn ends(
    client: &mut Client,
    partitions: &[Partition],
    timestamp: i64,
    isolation_level: i8,
) -> Result<BTreeMap<Partition, i64>, ClientError> {
    client.retrying(|client| {
        let names: Vec<Str> = by_topic(partitions).into_keys().cloned().collect();
        let leaders = client.leaders(&names)?;
        let mut by_node: BTreeMap<Node, Vec<Partition>> = BTreeMap::new();
        for partition in partitions {
            let leader = leaders.get(partition).ok_or(ClientError::Server {
                code: protocol::ErrorCode::UnknownTopicOrPartition.code(),
                message: None,
            })?;
            by_node.entry(*leader).or_default().push(partition.clone());
        }
        let mut found = BTreeMap::new();
        for (node, mine) in by_node {
            let topics = by_topic(&mine).into_iter().map(|(name, numbers)| {
                let partitions =
                    numbers
                        .iter()
                        .map(|number| ListOffsetsRequestListOffsetsPartition {
                            partition_index: *number,
                            timestamp,
                            ..ListOffsetsRequestListOffsetsPartition::default()
                        });
                ListOffsetsRequestListOffsetsTopic {
                    name: name.clone(),
                    partitions: partitions.collect(),
                }
            });
            let request = ListOffsetsRequest {
                replica_id: -1,
                isolation_level,
                topics: topics.collect(),
                ..ListOffsetsRequest::default()
            };
            for topic in client.send(node, &request)?.topics {
                for one in topic.partitions {
                    ClientError::check(one.error_code, None)?;
                    let partition = Partition {
                        topic: topic.name.clone(),
                        number: one.partition_index,
                    };
                    found.insert(partition, one.offset);
                }
            }
        }
        Ok(found)
    })
}
