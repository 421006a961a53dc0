use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use protocol::messages::{
    DeleteGroupsRequest, OffsetDeleteRequest, OffsetDeleteRequestOffsetDeleteRequestPartition,
    OffsetDeleteRequestOffsetDeleteRequestTopic,
};
use protocol::{ErrorCode, Str};

use super::reset::named_partitions;
use super::{ConsumerGroupsArgs, TOOL, Trouble, chosen, print_error};
use crate::tools::admin::{Each, describe_topics};
use crate::tools::client::{Client, ClientError, Partition};
use crate::tools::columns::{line, widest};
use crate::tools::exception::named;
use crate::tools::progress::Progress;

pub(super) fn delete_groups(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    let groups = chosen(client, arguments)?;
    let mut progress = Progress::of(TOOL, &groups);
    for group in groups {
        progress.at((deleted.len() + failed.len()) as u64);
        let request = DeleteGroupsRequest {
            groups_names: [group.clone()].into(),
        };
        let done = client.ask_coordinator(&group, &request, |response| {
            let result = response.results.into_iter().next().unwrap_or_default();
            ClientError::check(result.error_code, result.error_message.as_ref())
        });
        match done {
            Ok(()) => deleted.push(format!("'{group}'")),
            Err(error) => failed.push((group, error)),
        }
    }
    drop(progress);
    let deleted = deleted.join(", ");
    if failed.is_empty() {
        return Ok(writeln!(
            out,
            "Deletion of requested consumer groups ({deleted}) was successful."
        )?);
    }
    print_error(out, "Deletion of some consumer groups failed:")?;
    for (group, error) in failed {
        let why = named(&error);
        writeln!(out, "* Group '{group}' could not be deleted due to: {why}")?;
    }
    if !deleted.is_empty() {
        writeln!(
            out,
            "\nThese consumer groups were deleted successfully: {deleted}"
        )?;
    }
    Ok(())
}

pub(super) fn delete_offsets(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let group = arguments.groups.first().map(Str::from).unwrap_or_default();
    let mut results: Each<()> = Each::new();
    let mut partitions = BTreeSet::new();
    for text in &arguments.topics {
        if text.contains(':') {
            partitions.extend(named_partitions(text)?);
            continue;
        }
        let topic = Str::from(text);
        match describe_topics(client, std::slice::from_ref(&topic), 2000) {
            Ok(topics) => {
                let numbers = topics.iter().flat_map(|topic| &topic.partitions);
                partitions.extend(numbers.map(|partition| Partition {
                    topic: topic.clone(),
                    number: partition.number,
                }));
            }
            Err(error) => {
                results.insert(Partition { topic, number: -1 }, Err(error));
            }
        }
    }
    let whole = ask(client, &group, &partitions, &mut results)?;
    let first = results
        .iter()
        .filter(|(partition, _)| partition.number >= 0);
    let first = first
        .filter_map(|(_, result)| result.as_ref().err()?.code())
        .next();
    match whole.or(first) {
        None => writeln!(
            out,
            "Request succeeded for deleting offsets from group {group}."
        )?,
        Some(
            code @ (ErrorCode::InvalidGroupId
            | ErrorCode::GroupIdNotFound
            | ErrorCode::GroupAuthorizationFailed
            | ErrorCode::NonEmptyGroup),
        ) => print_error(out, code.message())?,
        Some(
            ErrorCode::GroupSubscribedToTopic
            | ErrorCode::TopicAuthorizationFailed
            | ErrorCode::UnknownTopicOrPartition,
        ) => print_error(
            out,
            "Encountered some partition-level error, see the follow-up details.",
        )?,
        Some(code) => {
            print_error(
                out,
                &format!("Encountered some unknown error: {}", code.name()),
            )?;
        }
    }
    print(&results, out)
}

/// Puts down what became of each partition; an error of the group as a whole is that of each.
fn ask(
    client: &mut Client,
    group: &Str,
    partitions: &BTreeSet<Partition>,
    results: &mut Each<()>,
) -> Result<Option<ErrorCode>, Trouble> {
    let mut topics: BTreeMap<&Str, Vec<OffsetDeleteRequestOffsetDeleteRequestPartition>> =
        BTreeMap::new();
    for partition in partitions {
        let partition_index = partition.number;
        let row = OffsetDeleteRequestOffsetDeleteRequestPartition { partition_index };
        topics.entry(&partition.topic).or_default().push(row);
    }
    let topics =
        topics.into_iter().map(
            |(name, partitions)| OffsetDeleteRequestOffsetDeleteRequestTopic {
                name: name.clone(),
                partitions: partitions.into(),
            },
        );
    let request = OffsetDeleteRequest {
        group_id: group.clone(),
        topics: topics.collect(),
    };
    let answer = client.ask_coordinator(group, &request, |response| {
        ClientError::check(response.error_code, None)?;
        Ok(response.topics)
    });
    match answer {
        Ok(topics) => {
            for topic in topics {
                for row in topic.partitions {
                    let partition = Partition {
                        topic: topic.name.clone(),
                        number: row.partition_index,
                    };
                    results.insert(partition, ClientError::check(row.error_code, None));
                }
            }
            Ok(None)
        }
        Err(error) => {
            let code = match error.code() {
                Some(code) => code,
                None => return Err(error.into()),
            };
            for partition in partitions {
                let each = ClientError::check(code.code(), None);
                results.insert(partition.clone(), each);
            }
            Ok(Some(code))
        }
    }
}

fn print(results: &Each<()>, out: &mut dyn Write) -> Result<(), Trouble> {
    let topic = widest(results.keys().map(|partition| &*partition.topic)).max(15);
    let widths = [topic, 10, 15];
    write!(
        out,
        "\n{}",
        line(&widths, &["TOPIC", "PARTITION", "STATUS"])
    )?;
    // Kafka's order is that of the names with the numbers behind them, as text.
    let mut rows: Vec<_> = results.iter().collect();
    rows.sort_by_key(|(partition, _)| format!("{}{}", partition.topic, partition.number));
    for (partition, result) in rows {
        let number = match partition.number {
            -1 => "-".to_owned(),
            number => number.to_string(),
        };
        let status = match result {
            Ok(()) => "Successful".to_owned(),
            Err(error) => format!("Error: {}", named(error)),
        };
        write!(
            out,
            "\n{}",
            line(&widths, &[&*partition.topic, &number, &status])
        )?;
    }
    Ok(writeln!(out)?)
}
