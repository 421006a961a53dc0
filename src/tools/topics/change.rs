use std::io::Write;

use protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic, CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment, CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig, DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
};
use protocol::{ErrorCode, Str};

use super::{TopicsArgs, matching, must_exist};
use crate::tools::Failure;
use crate::tools::admin::describe_topics;
use crate::tools::client::{Client, ClientError, Node};

/// From this version on DeleteTopics has a list of names or ids.
const DELETE_WITH_STATES: i16 = 6;

pub(super) fn create(
    client: &mut Client,
    arguments: &TopicsArgs,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let topic = new_topic(arguments)?;
    let name = topic.name.clone();
    if name.contains(['.', '_']) {
        writeln!(
            out,
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') \
             could collide. To avoid issues it is best to use either, but not both."
        )?;
    }
    if arguments
        .replication_factor
        .is_some_and(|factor| !(1..=i32::from(i16::MAX)).contains(&factor))
    {
        return Err(Failure::new(
            "The replication factor must be between 1 and 32767 inclusive",
        ));
    }
    if arguments.partitions.is_some_and(|count| count < 1) {
        return Err(Failure::new("The partitions must be greater than 0"));
    }
    let request = CreateTopicsRequest {
        topics: [topic].into(),
        timeout_ms: timeout_ms(client),
        validate_only: false,
    };
    let done = client.retrying(|client| {
        let response = client.send(Node::Controller, &request)?;
        let result = response.topics.into_iter().next().unwrap_or_default();
        ClientError::check(result.error_code, result.error_message.as_ref())
    });
    match done {
        Err(error)
            if error.code() == Some(ErrorCode::TopicAlreadyExists) && arguments.if_not_exists => {}
        done => {
            done?;
            writeln!(out, "Created topic {name}.")?;
        }
    }
    Ok(())
}

fn new_topic(arguments: &TopicsArgs) -> Result<CreateTopicsRequestCreatableTopic, Failure> {
    let assignments = parse_assignment(arguments)?;
    let configs = arguments
        .configs
        .iter()
        .map(|text| {
            let parts: Vec<&str> = text.split('=').collect();
            match parts[..] {
                [name, value] if !value.trim().is_empty() => {
                    Ok(CreateTopicsRequestCreatableTopicConfig {
                        name: name.trim().into(),
                        value: Some(value.trim().into()),
                    })
                }
                _ => Err(Failure::new(
                    "requirement failed: Invalid topic config: all configs to be added must be in the format \
                     \"key=val\".",
                )),
            }
        })
        .collect::<Result<_, _>>()?;
    let number = |given: Option<i32>| match given {
        Some(number) if assignments.is_empty() => number,
        _ => -1,
    };
    Ok(CreateTopicsRequestCreatableTopic {
        name: arguments.topic.as_deref().unwrap_or_default().into(),
        num_partitions: number(arguments.partitions),
        replication_factor: i16::try_from(number(arguments.replication_factor)).unwrap_or_default(),
        assignments: (0..)
            .zip(assignments)
            .map(
                |(partition_index, broker_ids)| CreateTopicsRequestCreatableReplicaAssignment {
                    partition_index,
                    broker_ids: broker_ids.into(),
                },
            )
            .collect(),
        configs,
    })
}

/// `1:2,2:3`: the brokers of partition 0, then those of partition 1.
fn parse_assignment(arguments: &TopicsArgs) -> Result<Vec<Vec<i32>>, Failure> {
    let text = arguments.replica_assignment.as_deref().unwrap_or_default();
    let mut all: Vec<Vec<i32>> = Vec::new();
    for (partition, part) in text.split(',').enumerate() {
        if text.is_empty() {
            break;
        }
        let mut brokers: Vec<i32> = Vec::new();
        for id in part.split(':') {
            let id = id.trim().parse().map_err(|_| {
                Failure::new(format!(
                    "--replica-assignment {text}: {id:?} is no broker's id"
                ))
            })?;
            if brokers.contains(&id) {
                return Err(Failure::new(format!(
                    "Partition replica lists may not contain duplicate entries: {id}"
                )));
            }
            brokers.push(id);
        }
        if all
            .first()
            .is_some_and(|first| first.len() != brokers.len())
        {
            return Err(Failure::new(format!(
                "Partition {partition} has different replication factor: {brokers:?}"
            )));
        }
        all.push(brokers);
    }
    Ok(all)
}

pub(super) fn alter(client: &mut Client, arguments: &TopicsArgs) -> Result<(), Failure> {
    let assignments = parse_assignment(arguments)?;
    let names = matching(client, arguments)?;
    must_exist(arguments, &names)?;
    if names.is_empty() {
        return Ok(());
    }
    let mut topics = Vec::new();
    for topic in describe_topics(client, &names, arguments.partition_size_limit_per_response)? {
        let new = assignments.iter().skip(topic.partitions.len());
        let new = new.map(
            |broker_ids| CreatePartitionsRequestCreatePartitionsAssignment {
                broker_ids: broker_ids.clone().into(),
            },
        );
        topics.push(CreatePartitionsRequestCreatePartitionsTopic {
            name: topic.name,
            count: arguments.partitions.unwrap_or_default(),
            assignments: (!assignments.is_empty()).then(|| new.collect()),
        });
    }
    let request = CreatePartitionsRequest {
        topics: topics.into(),
        timeout_ms: timeout_ms(client),
        validate_only: false,
    };
    Ok(client.retrying(|client| {
        let response = client.send(Node::Controller, &request)?;
        response.results.iter().try_for_each(|result| {
            ClientError::check(result.error_code, result.error_message.as_ref())
        })
    })?)
}

pub(super) fn delete(client: &mut Client, arguments: &TopicsArgs) -> Result<(), Failure> {
    let names = matching(client, arguments)?;
    must_exist(arguments, &names)?;
    if names.is_empty() {
        return Ok(());
    }
    let timeout_ms = timeout_ms(client);
    Ok(client.retrying(|client| {
        let version = client
            .connection(Node::Controller)?
            .version::<DeleteTopicsRequest>()?;
        let request = delete_request(&names, version, timeout_ms);
        let response = client.send(Node::Controller, &request)?;
        response.responses.iter().try_for_each(|result| {
            ClientError::check(result.error_code, result.error_message.as_ref())
        })
    })?)
}

fn delete_request(names: &[Str], version: i16, timeout_ms: i32) -> DeleteTopicsRequest {
    let state = |name: &Str| DeleteTopicsRequestDeleteTopicState {
        name: Some(name.clone()),
        ..DeleteTopicsRequestDeleteTopicState::default()
    };
    let mut request = DeleteTopicsRequest {
        timeout_ms,
        ..DeleteTopicsRequest::default()
    };
    if version >= DELETE_WITH_STATES {
        request.topics = names.iter().map(state).collect();
    } else {
        request.topic_names = names.to_vec().into();
    }
    request
}

/// How long the controller may wait, which is as long as we do.
fn timeout_ms(client: &Client) -> i32 {
    i32::try_from(client.settings().request_timeout.as_millis()).unwrap_or(i32::MAX)
}
