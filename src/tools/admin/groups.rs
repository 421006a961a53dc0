use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup, DescribeGroupsRequest,
    DescribeGroupsResponseDescribedGroup, ListGroupsRequest, ListGroupsResponseListedGroup,
    OffsetFetchRequest, OffsetFetchRequestOffsetFetchRequestGroup,
};
use protocol::stored::ConsumerProtocolAssignment;
use protocol::wire::Reader;
use protocol::{Array, ErrorCode, Message, Str};

use crate::tools::client::{Client, ClientError, Node, NodeInfo, Partition};

/// A group as its coordinator lists it.
pub type ListedGroup = ListGroupsResponseListedGroup;

/// From this version on the answer has states, and can be asked for some only.
const STATES_SINCE: i16 = 4;
/// The same for types.
const TYPES_SINCE: i16 = 5;
/// The last version of OffsetFetch that names topics, and the first that asks for groups.
const FETCH_BY_NAME_MAX: i16 = 9;
const FETCH_GROUPS_SINCE: i16 = 8;

/// A consumer group with its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupInfo {
    pub coordinator: Option<NodeInfo>,
    pub state: Str,
    pub assignor: Str,
    /// Epochs exist only for groups of the consumer protocol.
    pub group_epoch: Option<i32>,
    pub assignment_epoch: Option<i32>,
    pub members: Vec<MemberInfo>,
}

/// One member of a consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberInfo {
    pub id: Str,
    pub instance_id: Str,
    pub client_id: Str,
    pub host: Str,
    /// By topic and number.
    pub assigned: Vec<Partition>,
    pub target: Vec<Partition>,
    pub epoch: Option<i32>,
    /// Whether it speaks the consumer protocol, in a group that has it.
    pub upgraded: Option<bool>,
}

/// What a group has committed for a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub offset: i64,
    pub leader_epoch: Option<i32>,
}

/// The groups of all brokers, by id; only those in one of these states and of one of these types, where some are given.
pub fn list_groups(
    client: &mut Client,
    states: &[Str],
    types: &[Str],
) -> Result<Vec<ListedGroup>, ClientError> {
    let mut groups = BTreeMap::new();
    client.refresh()?;
    for node in client.nodes()? {
        let node = Node::Id(node.id);
        let response = client.retrying(|client| {
            let version = client.connection(node)?.version::<ListGroupsRequest>()?;
            let since = |least: i16, filter: &[Str]| match version >= least {
                true => filter.to_vec(),
                false => Vec::new(),
            };
            let request = ListGroupsRequest {
                states_filter: since(STATES_SINCE, states).into(),
                types_filter: since(TYPES_SINCE, types).into(),
            };
            let response = client.send(node, &request)?;
            ClientError::check(response.error_code, None)?;
            Ok(response)
        })?;
        for mut group in response.groups {
            group.group_type = canonical_type(&group.group_type);
            groups.insert(group.group_id.clone(), group);
        }
    }
    Ok(groups.into_values().collect())
}

/// Kafka's clients show types with a capital, which brokers write without.
fn canonical_type(text: &Str) -> Str {
    let known = ["Classic", "Consumer", "Share", "Streams"];
    let found = known.iter().find(|known| known.eq_ignore_ascii_case(text));
    found.map_or_else(|| text.clone(), |name| Str::from_static(name))
}

/// A consumer group. One that does not exist is the error GROUP_ID_NOT_FOUND, of older brokers the state Dead.
pub fn describe_consumer_group(client: &mut Client, group: &Str) -> Result<GroupInfo, ClientError> {
    client.retrying(|client| {
        let node = client.group_coordinator(group)?;
        let mut info = describe_by_either(client, node, group)?;
        info.coordinator = match node {
            Node::Id(id) => client.cluster().nodes.get(&id).cloned(),
            _ => None,
        };
        Ok(info)
    })
}

/// Groups of the consumer protocol are described by one API, classic ones by another.
fn describe_by_either(
    client: &mut Client,
    node: Node,
    group: &Str,
) -> Result<GroupInfo, ClientError> {
    let request = ConsumerGroupDescribeRequest {
        group_ids: [group.clone()].into(),
        ..ConsumerGroupDescribeRequest::default()
    };
    let answer = client.send(node, &request).and_then(|response| {
        let found = response.groups.into_iter().next().unwrap_or_default();
        ClientError::check(found.error_code, found.error_message.as_ref())?;
        Ok(found)
    });
    match answer {
        Ok(found) => return Ok(of_consumer(found)),
        Err(ClientError::NoCommonVersion { .. }) => {}
        Err(error)
            if matches!(
                error.code(),
                Some(ErrorCode::GroupIdNotFound | ErrorCode::UnsupportedVersion)
            ) => {}
        Err(error) => return Err(error),
    }
    let request = DescribeGroupsRequest {
        groups: [group.clone()].into(),
        ..DescribeGroupsRequest::default()
    };
    let response = client.send(node, &request)?;
    let found = response.groups.into_iter().next().unwrap_or_default();
    ClientError::check(found.error_code, found.error_message.as_ref())?;
    let kind = &found.protocol_type;
    if !(kind.is_empty() || kind == "consumer") {
        return Err(ClientError::Settings(format!(
            "GroupId {group} is not a consumer group ({kind})."
        )));
    }
    Ok(of_classic(found))
}

fn of_consumer(group: ConsumerGroupDescribeResponseDescribedGroup) -> GroupInfo {
    let partitions = |assignment: ConsumerGroupDescribeResponseAssignment| {
        let topics = assignment.topic_partitions.into_iter();
        in_order(topics.map(|topic| (topic.topic_name, topic.partitions)))
    };
    let members = group.members.into_iter().map(|member| MemberInfo {
        id: member.member_id,
        instance_id: member.instance_id.unwrap_or_default(),
        client_id: member.client_id,
        host: member.client_host,
        assigned: partitions(member.assignment),
        target: partitions(member.target_assignment),
        epoch: Some(member.member_epoch),
        upgraded: match member.member_type {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
    });
    GroupInfo {
        coordinator: None,
        state: group.group_state,
        assignor: group.assignor_name,
        group_epoch: Some(group.group_epoch),
        assignment_epoch: Some(group.assignment_epoch),
        members: members.collect(),
    }
}

fn of_classic(group: DescribeGroupsResponseDescribedGroup) -> GroupInfo {
    let members = group.members.into_iter().map(|member| MemberInfo {
        id: member.member_id,
        instance_id: member.group_instance_id.unwrap_or_default(),
        client_id: member.client_id,
        host: member.client_host,
        assigned: assignment(member.member_assignment),
        ..MemberInfo::default()
    });
    GroupInfo {
        state: group.group_state,
        assignor: group.protocol_data,
        members: members.collect(),
        ..GroupInfo::default()
    }
}

/// What a classic consumer was assigned; nothing where the bytes are not those of a consumer.
fn assignment(bytes: Bytes) -> Vec<Partition> {
    let mut reader = Reader::new(bytes);
    let read = reader
        .i16()
        .and_then(|version| ConsumerProtocolAssignment::decode(&mut reader, version.clamp(0, 3)));
    let topics = read
        .map(|read| read.assigned_partitions)
        .unwrap_or_default();
    in_order(
        topics
            .into_iter()
            .map(|topic| (topic.topic, topic.partitions)),
    )
}

fn in_order(topics: impl Iterator<Item = (Str, Array<i32>)>) -> Vec<Partition> {
    let partitions = topics.flat_map(|(topic, numbers)| {
        numbers.into_iter().map(move |number| Partition {
            topic: topic.clone(),
            number,
        })
    });
    let mut partitions: Vec<Partition> = partitions.collect();
    partitions.sort();
    partitions
}

/// Everything that a group has committed.
pub fn committed_offsets(
    client: &mut Client,
    group: &Str,
) -> Result<BTreeMap<Partition, Committed>, ClientError> {
    client.retrying(|client| {
        let node = client.group_coordinator(group)?;
        let version = client
            .connection(node)?
            .version_within::<OffsetFetchRequest>(
                OffsetFetchRequest::VERSIONS.min,
                FETCH_BY_NAME_MAX,
            )?;
        let mut found = BTreeMap::new();
        let mut add = |topic: Str, number: i32, offset: i64, epoch: i32| {
            if offset >= 0 {
                let leader_epoch = (epoch >= 0).then_some(epoch);
                found.insert(
                    Partition { topic, number },
                    Committed {
                        offset,
                        leader_epoch,
                    },
                );
            }
        };
        if version >= FETCH_GROUPS_SINCE {
            let request = OffsetFetchRequest {
                groups: [OffsetFetchRequestOffsetFetchRequestGroup {
                    group_id: group.clone(),
                    topics: None,
                    ..OffsetFetchRequestOffsetFetchRequestGroup::default()
                }]
                .into(),
                ..OffsetFetchRequest::default()
            };
            let response = client.send_up_to(node, FETCH_BY_NAME_MAX, &request)?;
            let answer = response.groups.into_iter().next().unwrap_or_default();
            ClientError::check(answer.error_code, None)?;
            for topic in answer.topics {
                for row in topic.partitions {
                    let epoch = row.committed_leader_epoch;
                    add(
                        topic.name.clone(),
                        row.partition_index,
                        row.committed_offset,
                        epoch,
                    );
                }
            }
        } else {
            let request = OffsetFetchRequest {
                group_id: group.clone(),
                topics: None,
                ..OffsetFetchRequest::default()
            };
            let response = client.send_up_to(node, FETCH_BY_NAME_MAX, &request)?;
            ClientError::check(response.error_code, None)?;
            for topic in response.topics {
                for row in topic.partitions {
                    let epoch = row.committed_leader_epoch;
                    add(
                        topic.name.clone(),
                        row.partition_index,
                        row.committed_offset,
                        epoch,
                    );
                }
            }
        }
        Ok(found)
    })
}
