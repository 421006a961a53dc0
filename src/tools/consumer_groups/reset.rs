use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use protocol::messages::{
    OffsetCommitRequest, OffsetCommitRequestOffsetCommitRequestPartition,
    OffsetCommitRequestOffsetCommitRequestTopic,
};
use protocol::{ErrorCode, Str};

use super::plan::{self, Plan};
use super::{ConsumerGroupsArgs, TOOL, Trouble, chosen, print_error};
use crate::tools::admin::{
    Committed, EARLIEST, LATEST, committed_offsets, describe_consumer_group, describe_topics,
    list_offsets,
};
use crate::tools::client::{Client, ClientError, Partition};
use crate::tools::columns::{line, widest};
use crate::tools::exception::named;
use crate::tools::progress::{Progress, clear_line};

/// The last version of OffsetCommit that names topics.
const COMMIT_BY_NAME_MAX: i16 = 9;

type Offsets = BTreeMap<Partition, i64>;

pub(super) fn reset(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let groups = chosen(client, arguments)?;
    let plan = match &arguments.reset.from_file {
        Some(path) => Some(plan::read(path, &groups).map_err(Trouble::Usage)?),
        None => None,
    };
    let mut all: BTreeMap<Str, Offsets> = BTreeMap::new();
    let mut progress = Progress::of(TOOL, &groups);
    for group in groups {
        progress.at(all.len() as u64);
        let state = match describe_consumer_group(client, &group) {
            Ok(info) => info.state,
            // It may begin with these offsets.
            Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => "Dead".into(),
            Err(error) => return Err(error.into()),
        };
        if state != "Empty" && state != "Dead" {
            print_error(
                out,
                &format!(
                    "Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}."
                ),
            )?;
            all.insert(group, Offsets::new());
            continue;
        }
        let partitions = partitions(client, arguments, &group)?;
        let offsets = prepare(client, arguments, &group, &partitions, plan.as_ref(), out)?;
        if arguments.reset.execute {
            commit(client, &group, &offsets).map_err(plain)?;
        }
        all.insert(group, offsets);
    }
    drop(progress);
    if arguments.reset.export {
        let single = arguments.groups.len() == 1;
        return Ok(writeln!(out, "{}", plan::export(&all, single))?);
    }
    print(&all, out)
}

fn print(all: &BTreeMap<Str, Offsets>, out: &mut dyn Write) -> Result<(), Trouble> {
    let group = widest(all.keys().map(|group| &**group)).max(15);
    let partitions = all.values().flat_map(Offsets::keys);
    let topic = widest(partitions.map(|partition| &*partition.topic)).max(15);
    let widths = [group, topic, 10];
    if !all.is_empty() {
        let heads = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"];
        write!(out, "\n{}", line(&widths, &heads))?;
    }
    for (group, offsets) in all {
        for (partition, offset) in offsets {
            let (number, offset) = (partition.number.to_string(), offset.to_string());
            let cells = [&**group, &*partition.topic, &number, &offset];
            write!(out, "\n{}", line(&widths, &cells))?;
        }
    }
    Ok(writeln!(out)?)
}

/// An error whose name Kafka's tool leaves out here.
fn plain(error: ClientError) -> Trouble {
    Trouble::Said(error.to_string())
}

/// An error that Kafka's tool shows in its wrapping.
fn wrapped(error: &ClientError) -> Trouble {
    let why = named(error);
    Trouble::Said(format!("java.util.concurrent.ExecutionException: {why}"))
}

/// `topic:0,1,2`
pub(super) fn named_partitions(text: &str) -> Result<Vec<Partition>, Trouble> {
    let Some((topic, numbers)) = text.split_once(':').filter(|(_, rest)| !rest.contains(':'))
    else {
        return Err(Trouble::Usage(format!(
            "Invalid topic arg '{text}', expected topic name and partitions"
        )));
    };
    let numbers = numbers.split(',').map(|number| {
        let wrong = || {
            Trouble::Usage(format!(
                "Invalid partition '{number}' specified in topic arg '{text}'"
            ))
        };
        Ok(Partition {
            topic: topic.into(),
            number: number.parse().map_err(|_| wrong())?,
        })
    });
    numbers.collect()
}

/// The partitions that the flags name.
fn partitions(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    group: &Str,
) -> Result<BTreeSet<Partition>, Trouble> {
    if arguments.all_topics {
        return Ok(committed_offsets(client, group)?.into_keys().collect());
    }
    if arguments.topics.is_empty() && arguments.reset.from_file.is_none() {
        return Err(Trouble::Usage(
            "One of the reset scopes should be defined: --all-topics, --topic.".to_owned(),
        ));
    }
    let mut partitions = BTreeSet::new();
    let mut whole = Vec::new();
    for text in &arguments.topics {
        if text.contains(':') {
            partitions.extend(named_partitions(text)?);
        } else {
            whole.push(Str::from(text));
        }
    }
    if !whole.is_empty() {
        for topic in describe_topics(client, &whole, 2000).map_err(plain)? {
            partitions.extend(topic.partitions.iter().map(|partition| Partition {
                topic: topic.name.clone(),
                number: partition.number,
            }));
        }
    }
    Ok(partitions)
}

/// All of them exist and have leaders, or this is an error.
fn check_partitions(client: &mut Client, partitions: &BTreeSet<Partition>) -> Result<(), Trouble> {
    let topics: BTreeSet<Str> = partitions
        .iter()
        .map(|partition| partition.topic.clone())
        .collect();
    if topics.is_empty() {
        return Ok(());
    }
    let topics: Vec<Str> = topics.into_iter().collect();
    let described = describe_topics(client, &topics, 2000).map_err(|error| wrapped(&error))?;
    let mut leaders = BTreeMap::new();
    for topic in described {
        for partition in topic.partitions {
            let key = Partition {
                topic: topic.name.clone(),
                number: partition.number,
            };
            leaders.insert(key, partition.leader);
        }
    }
    let complaint = |bad: &dyn Fn(&Partition) -> bool, why: &str| {
        let bad = partitions.iter().filter(|partition| bad(partition));
        let bad: Vec<String> = bad.map(Partition::to_string).collect();
        match bad.is_empty() {
            true => Ok(()),
            false => Err(Trouble::Said(format!(
                "The partitions \"{}\" {why}",
                bad.join(",")
            ))),
        }
    };
    complaint(
        &|partition| !leaders.contains_key(partition),
        "do not exist",
    )?;
    complaint(
        &|partition| leaders.get(partition) == Some(&None),
        "have no leader",
    )
}

/// The new offsets, by the scenario.
fn prepare(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    group: &Str,
    partitions: &BTreeSet<Partition>,
    plan: Option<&Plan>,
    out: &mut dyn Write,
) -> Result<Offsets, Trouble> {
    check_partitions(client, partitions)?;
    let reset = &arguments.reset;
    let every = |offset: i64| -> Offsets {
        partitions
            .iter()
            .map(|partition| (partition.clone(), offset))
            .collect()
    };
    if let Some(offset) = reset.to_offset {
        return within_range(client, every(offset));
    }
    if reset.to_earliest {
        return listed(client, &every(EARLIEST));
    }
    if reset.to_latest {
        return listed(client, &every(LATEST));
    }
    if let Some(count) = reset.shift_by {
        let committed = committed_offsets(client, group)?;
        return within_range(client, shifted(partitions, &committed, count)?);
    }
    if let Some(text) = &reset.to_datetime {
        let moment = plan::moment(text).map_err(Trouble::Usage)?;
        return at_moment(client, &every(moment), out);
    }
    if let Some(text) = &reset.by_duration {
        let moment = plan::moment_before_now(text).map_err(Trouble::Usage)?;
        return at_moment(client, &every(moment), out);
    }
    if let Some(plan) = plan {
        let Some(offsets) = plan.get(group) else {
            print_error(out, &format!("No reset plan for group {group} found"))?;
            return Ok(Offsets::new());
        };
        return within_range(client, offsets.clone());
    }
    if reset.to_current {
        let committed = committed_offsets(client, group)?;
        let mut offsets = every(LATEST);
        offsets.retain(|partition, _| !committed.contains_key(partition));
        let mut offsets = listed(client, &offsets)?;
        let known = partitions
            .iter()
            .filter_map(|partition| Some((partition.clone(), committed.get(partition)?.offset)));
        offsets.extend(known);
        return Ok(offsets);
    }
    Err(Trouble::Usage(
        "--reset-offsets requires one of the following scenarios: --to-offset, --shift-by, --to-datetime, \
         --by-duration, --to-earliest, --to-latest, --to-current, --from-file"
            .to_owned(),
    ))
}

fn shifted(
    partitions: &BTreeSet<Partition>,
    committed: &BTreeMap<Partition, Committed>,
    count: i64,
) -> Result<Offsets, Trouble> {
    let mut offsets = Offsets::new();
    for partition in partitions {
        let now = committed.get(partition).ok_or_else(|| {
            Trouble::Usage(format!(
                "Cannot shift offset for partition {partition} since there is no current committed offset"
            ))
        })?;
        offsets.insert(partition.clone(), now.offset.saturating_add(count));
    }
    Ok(offsets)
}

/// The offsets of these moments; the first error of a partition is the error.
fn listed(client: &mut Client, wanted: &Offsets) -> Result<Offsets, Trouble> {
    if wanted.is_empty() {
        return Ok(Offsets::new());
    }
    let mut offsets = Offsets::new();
    for (partition, result) in list_offsets(client, wanted)? {
        offsets.insert(partition, result.map_err(|error| wrapped(&error))?);
    }
    Ok(offsets)
}

/// Brings offsets that lie outside of their logs to the nearer end.
fn within_range(client: &mut Client, wanted: Offsets) -> Result<Offsets, Trouble> {
    let at = |moment: i64| -> Offsets {
        wanted
            .keys()
            .map(|partition| (partition.clone(), moment))
            .collect()
    };
    let (first, end) = (listed(client, &at(EARLIEST))?, listed(client, &at(LATEST))?);
    let inside = wanted.into_iter().map(|(partition, offset)| {
        let (first, end) = (first.get(&partition), end.get(&partition));
        let (bound, which) = match (first, end) {
            (_, Some(&end)) if offset > end => (end, "higher than latest"),
            (Some(&first), _) if offset < first => (first, "lower than earliest"),
            _ => return (partition, offset),
        };
        // The table shows it too.
        clear_line();
        let _ = writeln!(
            std::io::stderr(),
            "New offset ({offset}) is {which} offset for topic partition {partition}. Value will be set to {bound}"
        );
        (partition, bound)
    });
    Ok(inside.collect())
}

/// The first records not before a moment; the end of partitions that have none.
fn at_moment(
    client: &mut Client,
    wanted: &Offsets,
    out: &mut dyn Write,
) -> Result<Offsets, Trouble> {
    let mut offsets = listed(client, wanted)?;
    let missing: Offsets = offsets
        .iter()
        .filter(|(_, offset)| **offset < 0)
        .map(|(partition, _)| (partition.clone(), LATEST))
        .collect();
    for partition in missing.keys() {
        writeln!(
            out,
            "\nWarn: Partition {} from topic {} is empty. Falling back to latest known offset.",
            partition.number, partition.topic
        )?;
    }
    offsets.extend(listed(client, &missing)?);
    Ok(offsets)
}

fn commit(client: &mut Client, group: &Str, offsets: &Offsets) -> Result<(), ClientError> {
    let mut topics: BTreeMap<&Str, Vec<OffsetCommitRequestOffsetCommitRequestPartition>> =
        BTreeMap::new();
    for (partition, offset) in offsets {
        let row = OffsetCommitRequestOffsetCommitRequestPartition {
            partition_index: partition.number,
            committed_offset: *offset,
            committed_metadata: Some(Str::default()),
            ..OffsetCommitRequestOffsetCommitRequestPartition::default()
        };
        topics.entry(&partition.topic).or_default().push(row);
    }
    let topics =
        topics.into_iter().map(
            |(name, partitions)| OffsetCommitRequestOffsetCommitRequestTopic {
                name: name.clone(),
                partitions: partitions.into(),
                ..OffsetCommitRequestOffsetCommitRequestTopic::default()
            },
        );
    let request = OffsetCommitRequest {
        group_id: group.clone(),
        topics: topics.collect(),
        ..OffsetCommitRequest::default()
    };
    client.retrying(|client| {
        let node = client.group_coordinator(group)?;
        let response = client.send_up_to(node, COMMIT_BY_NAME_MAX, &request)?;
        let mut rows = response.topics.iter().flat_map(|topic| &topic.partitions);
        rows.try_for_each(|row| ClientError::check(row.error_code, None))
    })
}
