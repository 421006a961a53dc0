use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::{
    ListOffsetsRequest, ListOffsetsRequestListOffsetsPartition, ListOffsetsRequestListOffsetsTopic,
};
use protocol::{ErrorCode, Message, Str};

use crate::tools::client::{Client, ClientError, Node, Partition};

/// A moment in a partition; any other number is a time in milliseconds, for the first record that is not older.
pub const LATEST: i64 = -1;
/// The first record that is there.
pub const EARLIEST: i64 = -2;

/// Partitions, each with what was found or why nothing was.
pub type Each<T> = BTreeMap<Partition, Result<T, ClientError>>;

/// The offset of a moment in each of these partitions; -1 where there is no such record.
///
/// # Errors
/// Nobody answers. What is wrong with one partition stands beside it.
pub fn list_offsets(
    client: &mut Client,
    wanted: &BTreeMap<Partition, i64>,
) -> Result<Each<i64>, ClientError> {
    let mut found = Each::new();
    let least = wanted.values().map(|&time| least_version(time)).max();
    let least = least.unwrap_or(ListOffsetsRequest::VERSIONS.min);
    on_leaders(
        client,
        wanted.keys(),
        &mut found,
        |client, node, partitions| {
            let version = client
                .connection(node)?
                .version_within::<ListOffsetsRequest>(least, ListOffsetsRequest::LATEST_STABLE)?;
            let request = request(partitions, wanted, client);
            let connection = client.connection(node)?;
            let answer = connection
                .start_as(&request, version)
                .and_then(|ticket| connection.finish(ticket));
            let response = client.noticing(node, answer)?;
            let mut each = Vec::new();
            for topic in response.topics {
                for partition in topic.partitions {
                    let key = Partition {
                        topic: topic.name.clone(),
                        number: partition.partition_index,
                    };
                    let result = ClientError::check(partition.error_code, None);
                    each.push((key, result.map(|()| partition.offset)));
                }
            }
            Ok(each)
        },
    )?;
    Ok(found)
}

/// Special moments came with later versions.
fn least_version(time: i64) -> i16 {
    match time {
        ..=-6 => 11,
        -5 => 9,
        -4 => 8,
        -3 => 7,
        _ => ListOffsetsRequest::VERSIONS.min,
    }
}

fn request(
    partitions: &[Partition],
    wanted: &BTreeMap<Partition, i64>,
    client: &Client,
) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&Str, Vec<ListOffsetsRequestListOffsetsPartition>> = BTreeMap::new();
    for partition in partitions {
        let row = ListOffsetsRequestListOffsetsPartition {
            partition_index: partition.number,
            timestamp: wanted.get(partition).copied().unwrap_or(LATEST),
            ..ListOffsetsRequestListOffsetsPartition::default()
        };
        topics.entry(&partition.topic).or_default().push(row);
    }
    ListOffsetsRequest {
        replica_id: -1,
        isolation_level: 0,
        topics: topics
            .into_iter()
            .map(|(name, partitions)| ListOffsetsRequestListOffsetsTopic {
                name: name.clone(),
                partitions: partitions.into(),
            })
            .collect(),
        timeout_ms: i32::try_from(client.settings().request_timeout.as_millis())
            .unwrap_or(i32::MAX),
    }
}

/// Asks the leaders of these partitions, again where an error passes, until each has its result in `found`.
///
/// # Errors
/// Nobody answers, or `ask` fails as a whole in a way that does not pass.
pub fn on_leaders<'a, T>(
    client: &mut Client,
    partitions: impl Iterator<Item = &'a Partition>,
    found: &mut Each<T>,
    mut ask: impl FnMut(
        &mut Client,
        Node,
        &[Partition],
    ) -> Result<Vec<(Partition, Result<T, ClientError>)>, ClientError>,
) -> Result<(), ClientError> {
    let mut left: BTreeSet<Partition> = partitions.cloned().collect();
    let done = client.retrying(|client| {
        let mut passing = None;
        for (node, group) in by_leader(client, &left, found)? {
            let answer = ask(client, node, &group)?;
            for (partition, result) in answer {
                left.remove(&partition);
                found.insert(partition, result);
            }
        }
        for (partition, result) in found.iter() {
            if let Err(error) = result
                && error.is_passing()
            {
                left.insert(partition.clone());
                passing = error.code();
            }
        }
        match passing {
            Some(code) => ClientError::check(code.code(), None),
            None => Ok(()),
        }
    });
    match done {
        // They stand beside their partitions.
        Err(ClientError::Server { .. }) => Ok(()),
        done => done,
    }
}

/// The partitions that are left by who leads them. Those that nobody does get their error.
fn by_leader<T>(
    client: &mut Client,
    left: &BTreeSet<Partition>,
    found: &mut Each<T>,
) -> Result<BTreeMap<Node, Vec<Partition>>, ClientError> {
    if left.is_empty() {
        return Ok(BTreeMap::new());
    }
    let topics: BTreeSet<Str> = left
        .iter()
        .map(|partition| partition.topic.clone())
        .collect();
    let topics: Vec<Str> = topics.into_iter().collect();
    let mut leaders = BTreeMap::new();
    for topic in client.metadata(Some(&topics))?.topics {
        let name = topic.name.unwrap_or_default();
        for partition in topic.partitions {
            let key = Partition {
                topic: name.clone(),
                number: partition.partition_index,
            };
            leaders.insert(key, partition.leader_id);
        }
        if topic.error_code != 0 {
            for partition in left.iter().filter(|partition| partition.topic == name) {
                let error = ClientError::check(topic.error_code, None);
                found.extend(error.err().map(|error| (partition.clone(), Err(error))));
            }
        }
    }
    let mut groups: BTreeMap<Node, Vec<Partition>> = BTreeMap::new();
    for partition in left {
        let code = match leaders.get(partition) {
            Some(&leader) if leader >= 0 => {
                let group = groups.entry(Node::Id(leader)).or_default();
                group.push(partition.clone());
                continue;
            }
            Some(_) => ErrorCode::LeaderNotAvailable,
            None if found.contains_key(partition) => continue,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        let error = ClientError::Server {
            code: code.code(),
            message: None,
        };
        found.insert(partition.clone(), Err(error));
    }
    Ok(groups)
}
