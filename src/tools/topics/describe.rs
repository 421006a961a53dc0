use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use protocol::Uuid;
use protocol::messages::{
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequestListPartitionReassignmentsTopics,
    ListPartitionReassignmentsResponseOngoingPartitionReassignment as Reassignment,
};

use super::{TopicsArgs, matching, must_exist};
use crate::tools::Failure;
use crate::tools::admin::{
    ConfigEntry, PartitionInfo, Resource, TopicInfo, describe_configs, describe_topics,
    describe_topics_by_id, list_topics,
};
use crate::tools::client::{Client, ClientError, Node, Partition};

/// Where DescribeConfigs says that a value is the built-in one.
const SOURCE_DEFAULT: i8 = 5;

/// What stands beside a partition when it is shown.
struct Surroundings<'a> {
    arguments: &'a TopicsArgs,
    alive: BTreeSet<i32>,
    reassignments: BTreeMap<Partition, Reassignment>,
}

pub(super) fn describe(
    client: &mut Client,
    arguments: &TopicsArgs,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let topics = chosen(client, arguments)?;
    let resources: Vec<Resource> = topics
        .iter()
        .map(|topic| Resource::topic(&topic.name))
        .collect();
    if resources.is_empty() {
        return Ok(());
    }
    let configs = describe_configs(client, Node::Any, &resources, false)?;
    client.refresh()?;
    let surroundings = Surroundings {
        arguments,
        alive: client.cluster().nodes.keys().copied().collect(),
        reassignments: reassignments(client, &topics)?,
    };
    for (topic, entries) in topics.iter().zip(&configs) {
        surroundings.print_topic(topic, entries, out)?;
    }
    Ok(())
}

fn chosen(client: &mut Client, arguments: &TopicsArgs) -> Result<Vec<TopicInfo>, Failure> {
    if let Some(id) = arguments.topic_id.filter(|id| *id != Uuid::ZERO) {
        let all = list_topics(client)?;
        let known = all
            .iter()
            .any(|topic| topic.id == id && !(arguments.exclude_internal && topic.internal));
        return match (known, arguments.if_exists) {
            (true, _) => Ok(describe_topics_by_id(client, &[id])?),
            (false, true) => Ok(Vec::new()),
            (false, false) => Err(Failure::new(format!(
                "TopicId '{id}' does not exist as expected"
            ))),
        };
    }
    let names = matching(client, arguments)?;
    must_exist(arguments, &names)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    Ok(describe_topics(
        client,
        &names,
        arguments.partition_size_limit_per_response,
    )?)
}

/// Reassignments under way; none where the broker is too old to tell.
fn reassignments(
    client: &mut Client,
    topics: &[TopicInfo],
) -> Result<BTreeMap<Partition, Reassignment>, ClientError> {
    let topic =
        |topic: &TopicInfo| ListPartitionReassignmentsRequestListPartitionReassignmentsTopics {
            name: topic.name.clone(),
            partition_indexes: topic
                .partitions
                .iter()
                .map(|partition| partition.number)
                .collect(),
        };
    let request = ListPartitionReassignmentsRequest {
        topics: Some(topics.iter().map(topic).collect()),
        ..ListPartitionReassignmentsRequest::default()
    };
    let answer = client.retrying(|client| {
        let response = client.send(Node::Controller, &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())?;
        Ok(response)
    });
    let response = match answer {
        Err(ClientError::NoCommonVersion { .. }) => return Ok(BTreeMap::new()),
        answer => answer?,
    };
    let mut found = BTreeMap::new();
    for topic in response.topics {
        for partition in topic.partitions {
            let key = Partition {
                topic: topic.name.clone(),
                number: partition.partition_index,
            };
            found.insert(key, partition);
        }
    }
    Ok(found)
}

impl Surroundings<'_> {
    fn print_topic(
        &self,
        topic: &TopicInfo,
        entries: &[ConfigEntry],
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let arguments = self.arguments;
        let all = !(arguments.under_replicated_partitions
            || arguments.unavailable_partitions
            || arguments.under_min_isr_partitions
            || arguments.at_min_isr_partitions);
        let own: Vec<String> = entries
            .iter()
            .filter(|entry| entry.config_source != SOURCE_DEFAULT)
            .map(|entry| {
                format!(
                    "{}={}",
                    entry.name,
                    entry.value.as_deref().unwrap_or("null")
                )
            })
            .collect();
        if all && (!arguments.topics_with_overrides || !own.is_empty()) {
            let first = topic.partitions.first();
            let factor = first.map_or(0, |partition| {
                replication_factor(partition, self.reassignment(topic, partition))
            });
            let id = match topic.id {
                Uuid::ZERO => String::new(),
                id => format!("\tTopicId: {id}"),
            };
            writeln!(
                out,
                "Topic: {}{id}\tPartitionCount: {}\tReplicationFactor: {factor}\tConfigs: {}",
                topic.name,
                topic.partitions.len(),
                own.join(",")
            )?;
        }
        if arguments.topics_with_overrides {
            return Ok(());
        }
        for partition in &topic.partitions {
            if all || self.is_asked_for(topic, partition, entries) {
                self.print_partition(topic, partition, out)?;
            }
        }
        Ok(())
    }

    fn reassignment(&self, topic: &TopicInfo, partition: &PartitionInfo) -> Option<&Reassignment> {
        self.reassignments.get(&Partition {
            topic: topic.name.clone(),
            number: partition.number,
        })
    }

    fn is_asked_for(
        &self,
        topic: &TopicInfo,
        partition: &PartitionInfo,
        entries: &[ConfigEntry],
    ) -> bool {
        let arguments = self.arguments;
        let factor = replication_factor(partition, self.reassignment(topic, partition));
        let in_sync = partition.in_sync.len();
        let least = entries
            .iter()
            .find(|entry| entry.name == "min.insync.replicas")
            .and_then(|entry| entry.value.as_deref()?.parse().ok())
            .unwrap_or(1_usize);
        let leader = partition.leader;
        arguments.under_replicated_partitions && in_sync < factor
            || arguments.unavailable_partitions
                && leader.is_none_or(|leader| !self.alive.contains(&leader))
            || arguments.under_min_isr_partitions && (leader.is_none() || in_sync < least)
            || arguments.at_min_isr_partitions && in_sync == least
    }

    fn print_partition(
        &self,
        topic: &TopicInfo,
        partition: &PartitionInfo,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let leader = partition
            .leader
            .map_or_else(|| "none".to_owned(), |id| id.to_string());
        write!(
            out,
            "\tTopic: {}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}",
            topic.name,
            partition.number,
            joined(&partition.replicas),
            joined(&partition.in_sync)
        )?;
        if let Some(change) = self.reassignment(topic, partition) {
            write!(
                out,
                "\tAdding Replicas: {}\tRemoving Replicas: {}",
                joined(&change.adding_replicas),
                joined(&change.removing_replicas)
            )?;
        }
        let ids = |ids: &Option<Vec<i32>>| ids.as_deref().map_or_else(|| "N/A".to_owned(), joined);
        Ok(writeln!(
            out,
            "\tElr: {}\tLastKnownElr: {}",
            ids(&partition.eligible),
            ids(&partition.last_known_eligible)
        )?)
    }
}

fn joined<'a>(ids: impl IntoIterator<Item = &'a i32>) -> String {
    let ids: Vec<String> = ids.into_iter().map(i32::to_string).collect();
    ids.join(",")
}

/// How many replicas there are without those that a reassignment adds.
fn replication_factor(partition: &PartitionInfo, change: Option<&Reassignment>) -> usize {
    let under_way = change.filter(|change| {
        let changing = change
            .adding_replicas
            .iter()
            .chain(&change.removing_replicas);
        changing
            .into_iter()
            .any(|id| partition.replicas.contains(id))
    });
    under_way.map_or(partition.replicas.len(), |change| {
        change.replicas.len() - change.adding_replicas.len().min(change.replicas.len())
    })
}
