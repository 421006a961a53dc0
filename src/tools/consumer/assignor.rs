//! Which member gets which partitions, decided by the group's leader as Java's RangeAssignor decides.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::Str;
use protocol::stored::{
    ConsumerProtocolAssignment, ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
};
use protocol::wire::{Reader, Writer};

use crate::tools::client::Partition;

/// What Java clients write.
const SUBSCRIPTION_VERSION: i16 = 3;
const ASSIGNMENT_VERSION: i16 = 3;

/// A member as the leader sees it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: Str,
    pub(super) instance: Option<Str>,
    pub(super) topics: Vec<Str>,
}

/// The bytes that a member joins with.
pub(super) fn subscription(topics: &[Str]) -> Bytes {
    let subscription = ConsumerProtocolSubscription {
        topics: topics.into(),
        ..ConsumerProtocolSubscription::default()
    };
    let mut writer = Writer::new();
    writer.i16(SUBSCRIPTION_VERSION);
    // Only what every version has is set.
    let _ = subscription.encode(&mut writer, SUBSCRIPTION_VERSION);
    writer.freeze()
}

/// The topics in the bytes that a member joined with; none in bytes that cannot be read.
pub(super) fn topics_of(metadata: &Bytes) -> Vec<Str> {
    let mut reader = Reader::new(metadata.clone());
    let decoded = reader.i16().and_then(|version| {
        let known = version.clamp(0, SUBSCRIPTION_VERSION);
        ConsumerProtocolSubscription::decode(&mut reader, known)
    });
    decoded.map_or_else(|_| Vec::new(), |subscription| subscription.topics.into())
}

/// The bytes that tell a member its partitions.
pub(super) fn assignment(partitions: &[Partition]) -> Bytes {
    let mut by_topic: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        by_topic
            .entry(&partition.topic)
            .or_default()
            .push(partition.number);
    }
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: by_topic
            .into_iter()
            .map(
                |(topic, partitions)| ConsumerProtocolAssignmentTopicPartition {
                    topic: topic.clone(),
                    partitions: partitions.into(),
                },
            )
            .collect(),
        ..ConsumerProtocolAssignment::default()
    };
    let mut writer = Writer::new();
    writer.i16(ASSIGNMENT_VERSION);
    // Only what every version has is set.
    let _ = assignment.encode(&mut writer, ASSIGNMENT_VERSION);
    writer.freeze()
}

/// The partitions in the bytes that the leader sent.
pub(super) fn partitions_of(assignment: Bytes) -> Result<Vec<Partition>, String> {
    // A member that gets nothing may be told so by nothing.
    if assignment.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(assignment);
    let decoded = reader.i16().and_then(|version| {
        ConsumerProtocolAssignment::decode(&mut reader, version.clamp(0, ASSIGNMENT_VERSION))
    });
    let decoded = decoded.map_err(|error| error.to_string())?;
    Ok(decoded
        .assigned_partitions
        .into_iter()
        .flat_map(|one| {
            let topic = one.topic;
            one.partitions.into_iter().map(move |number| Partition {
                topic: topic.clone(),
                number,
            })
        })
        .collect())
}

/// Of each topic every member gets a run of partitions, the first members one more where they do not come out even.
pub(super) fn range(
    members: &[Member],
    counts: &BTreeMap<Str, i32>,
) -> BTreeMap<Str, Vec<Partition>> {
    let mut sorted: Vec<&Member> = members.iter().collect();
    // Static members come by their instance, before the others.
    sorted.sort_by_key(|member| {
        (
            member.instance.is_none(),
            member.instance.clone(),
            member.id.clone(),
        )
    });
    let mut assigned: BTreeMap<Str, Vec<Partition>> = members
        .iter()
        .map(|member| (member.id.clone(), Vec::new()))
        .collect();
    for (topic, count) in counts {
        let takers: Vec<&&Member> = sorted
            .iter()
            .filter(|member| member.topics.contains(topic))
            .collect();
        let Ok(takers_count) = i32::try_from(takers.len()) else {
            continue;
        };
        if takers_count == 0 {
            continue;
        }
        let (each, extra) = (count / takers_count, count % takers_count);
        let mut next = 0;
        for (at, member) in (0..).zip(takers) {
            let end = next + each + i32::from(at < extra);
            if let Some(partitions) = assigned.get_mut(&member.id) {
                partitions.extend((next..end).map(|number| Partition {
                    topic: topic.clone(),
                    number,
                }));
            }
            next = end;
        }
    }
    assigned
}
