use std::collections::BTreeMap;
use std::io::Write;

use protocol::Str;

use super::{ConsumerGroupsArgs, TOOL, Trouble, chosen, print_error};
use crate::tools::admin::{
    Committed, GroupInfo, LATEST, MemberInfo, committed_offsets, describe_consumer_group,
    list_offsets,
};
use crate::tools::client::{Client, Partition};
use crate::tools::columns::{line, widest};
use crate::tools::progress::Progress;

/// Kafka's sign for a cell of which nothing is known.
const MISSING: &str = "-";

pub(super) fn describe(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let names = chosen(client, arguments)?;
    let mut progress = Progress::of(TOOL, &names);
    let mut groups = Vec::new();
    for group in names {
        progress.at(groups.len() as u64);
        let info = describe_consumer_group(client, &group)?;
        groups.push((group, info));
    }
    drop(progress);
    if arguments.members {
        for (group, info) in &groups {
            print_members(group, info, arguments.verbose, out)?;
        }
    } else if arguments.state.is_some() {
        for (group, info) in &groups {
            print_state(group, info, arguments.verbose, out)?;
        }
    } else {
        let mut progress = Progress::of(TOOL, &groups);
        let mut rows = Vec::new();
        for (group, info) in &groups {
            progress.at(rows.len() as u64);
            rows.push(offset_rows(client, group, info)?);
        }
        drop(progress);
        for ((group, info), rows) in groups.iter().zip(&rows) {
            print_offsets(group, info, rows, arguments.verbose, out)?;
        }
    }
    Ok(())
}

/// Says on standard error what is odd about the group, and whether there is anything to show.
fn worth_showing(
    group: &str,
    info: &GroupInfo,
    rows: usize,
    out: &mut dyn Write,
) -> Result<bool, Trouble> {
    let say = |text: &str| {
        // The table on standard output is the answer; nobody has to read this.
        let _ = writeln!(std::io::stderr(), "\n{text}");
    };
    match &*info.state {
        "Dead" => print_error(out, &format!("Consumer group '{group}' does not exist."))?,
        "Empty" => say(&format!("Consumer group '{group}' has no active members.")),
        "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling" => {
            say(&format!(
                "Warning: Consumer group '{group}' is rebalancing."
            ));
        }
        "Stable" => {}
        other => {
            return Err(Trouble::Said(format!(
                "Expected a valid consumer group state, but found '{other}'."
            )));
        }
    }
    Ok(info.state != "Dead" && rows > 0)
}

/// One partition of a group, and who reads it.
struct OffsetRow {
    partition: Partition,
    committed: Option<Committed>,
    end: Option<i64>,
    consumer: String,
    host: String,
    client: String,
}

/// What members read, by how much each has, then what nobody reads.
fn offset_rows(
    client: &mut Client,
    group: &Str,
    info: &GroupInfo,
) -> Result<Vec<OffsetRow>, Trouble> {
    let committed = committed_offsets(client, group)?;
    let assigned = info.members.iter().flat_map(|member| &member.assigned);
    let all: BTreeMap<Partition, i64> = committed
        .keys()
        .chain(assigned)
        .map(|partition| (partition.clone(), LATEST))
        .collect();
    let ends = list_offsets(client, &all)?;
    let row = |partition: &Partition, member: Option<&MemberInfo>| {
        let text = |field: fn(&MemberInfo) -> &Str| {
            member.map_or_else(|| MISSING.to_owned(), |member| field(member).to_string())
        };
        OffsetRow {
            partition: partition.clone(),
            committed: committed.get(partition).copied(),
            end: ends
                .get(partition)
                .and_then(|end| end.as_ref().ok())
                .copied(),
            consumer: text(|member| &member.id),
            host: text(|member| &member.host),
            client: text(|member| &member.client_id),
        }
    };
    let mut members: Vec<&MemberInfo> = info.members.iter().collect();
    members.sort_by_key(|member| std::cmp::Reverse(member.assigned.len()));
    let mut rows: Vec<OffsetRow> = members
        .iter()
        .flat_map(|member| {
            member
                .assigned
                .iter()
                .map(|partition| row(partition, Some(*member)))
        })
        .collect();
    let free = committed.keys().filter(|partition| {
        !members
            .iter()
            .any(|member| member.assigned.contains(partition))
    });
    rows.extend(free.map(|partition| row(partition, None)));
    Ok(rows)
}

fn print_offsets(
    group: &str,
    info: &GroupInfo,
    rows: &[OffsetRow],
    verbose: bool,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    if !worth_showing(group, info, rows.len(), out)? {
        return Ok(());
    }
    let width = |cells: &dyn Fn(&OffsetRow) -> String| {
        let cells: Vec<String> = rows.iter().map(cells).collect();
        widest(cells.iter().map(String::as_str)).max(15)
    };
    let topic = width(&|row| row.partition.topic.to_string());
    let consumer = width(&|row| row.consumer.clone());
    let host = width(&|row| row.host.clone());
    let group_width = group.chars().count().max(15);
    let widths = [group_width, topic, 10, 15, 15, 15, 15, consumer, host];
    // The epoch is the one column that only --verbose has.
    let without_epoch = |cells: &[&str]| {
        let mut widths = widths.to_vec();
        let mut cells = cells.to_vec();
        if !verbose {
            widths.remove(3);
            cells.remove(3);
        }
        line(&widths, &cells)
    };
    let heads = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "LEADER-EPOCH",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ];
    write!(out, "\n{}", without_epoch(&heads))?;
    for row in rows {
        let offset = row.committed.map(|committed| committed.offset);
        let epoch = row.committed.and_then(|committed| committed.leader_epoch);
        let lag = offset.zip(row.end).map(|(offset, end)| end - offset);
        let (number, epoch) = (row.partition.number.to_string(), known(epoch));
        let (offset, end, lag) = (known(offset), known(row.end), known(lag));
        let cells = [
            group,
            &row.partition.topic,
            &number,
            &epoch,
            &offset,
            &end,
            &lag,
            &row.consumer,
            &row.host,
            &row.client,
        ];
        write!(out, "\n{}", without_epoch(&cells))?;
    }
    Ok(writeln!(out)?)
}

fn known(number: Option<impl ToString>) -> String {
    number.map_or_else(|| MISSING.to_owned(), |number| number.to_string())
}

fn print_members(
    group: &str,
    info: &GroupInfo,
    verbose: bool,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let members = &info.members;
    // The heads stand there also where there are no members.
    if !worth_showing(group, info, 1, out)? {
        return Ok(());
    }
    let mut rows = vec![MemberRow::heads()];
    rows.extend(
        members
            .iter()
            .map(|member| MemberRow::new(group, info, member)),
    );
    let instances = members.iter().any(|member| !member.instance_id.is_empty());
    let both = |kind: bool| members.iter().any(|member| member.upgraded == Some(kind));
    let migrating = both(true) && both(false);
    let width = |least: usize, cell: &dyn Fn(&MemberRow) -> &str| {
        widest(rows[1..].iter().map(cell)).max(least)
    };
    let least = [15, 15, 17, 15, 15, 15];
    let mut first: Vec<usize> = (0..least.len())
        .map(|column| width(least[column], &|row| &row.always[column]))
        .collect();
    first[5] = 15;
    let assigned = width(20, &|row| &row.more[1]);
    let second = [15, assigned, 15, width(20, &|row| &row.more[3])];
    writeln!(out)?;
    for row in &rows {
        let (mut widths, mut cells) = (first.clone(), row.always.to_vec());
        if !instances {
            widths.remove(2);
            cells.remove(2);
        }
        write!(out, "{} ", line(&widths, &cells))?;
        if verbose {
            let shown = if migrating {
                &row.more[..]
            } else {
                &row.more[..4]
            };
            write!(out, "{}", line(&second, shown))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The cells of one member: those that are always shown, and those that `--verbose` adds.
struct MemberRow {
    always: [String; 6],
    more: [String; 5],
}

impl MemberRow {
    fn heads() -> MemberRow {
        let always = [
            "GROUP",
            "CONSUMER-ID",
            "GROUP-INSTANCE-ID",
            "HOST",
            "CLIENT-ID",
            "#PARTITIONS",
        ];
        let more = [
            "CURRENT-EPOCH",
            "CURRENT-ASSIGNMENT",
            "TARGET-EPOCH",
            "TARGET-ASSIGNMENT",
            "UPGRADED",
        ];
        MemberRow {
            always: always.map(str::to_owned),
            more: more.map(str::to_owned),
        }
    }

    fn new(group: &str, info: &GroupInfo, member: &MemberInfo) -> MemberRow {
        MemberRow {
            always: [
                group.to_owned(),
                member.id.to_string(),
                member.instance_id.to_string(),
                member.host.to_string(),
                member.client_id.to_string(),
                member.assigned.len().to_string(),
            ],
            more: [
                known(member.epoch),
                assignment(&member.assigned),
                known(info.assignment_epoch),
                assignment(&member.target),
                known(member.upgraded),
            ],
        }
    }
}

/// `topic:0,1;other:2`
fn assignment(partitions: &[Partition]) -> String {
    let mut topics: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for partition in partitions {
        let numbers = topics.entry(&partition.topic).or_default();
        numbers.push(partition.number.to_string());
    }
    let topics = topics
        .iter()
        .map(|(topic, numbers)| format!("{topic}:{}", numbers.join(",")));
    let topics: Vec<String> = topics.collect();
    match &topics[..] {
        [] => MISSING.to_owned(),
        some => some.join(";"),
    }
}

fn print_state(
    group: &str,
    info: &GroupInfo,
    verbose: bool,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    if !worth_showing(group, info, 1, out)? {
        return Ok(());
    }
    let coordinator = info.coordinator.as_ref().map_or_else(
        || MISSING.to_owned(),
        |node| format!("{}:{}  ({})", node.address.host, node.address.port, node.id),
    );
    let widths = [
        group.chars().count().max(15),
        coordinator.chars().count().max(25),
        20,
        20,
        15,
        25,
    ];
    let shown = |cells: [&str; 7]| match (verbose, cells) {
        (true, cells) => line(&widths, &cells),
        (false, [group, coordinator, assignor, state, .., members]) => line(
            &widths[..4],
            &[group, coordinator, assignor, state, members],
        ),
    };
    let assignor = if info.assignor.is_empty() {
        MISSING
    } else {
        &info.assignor
    };
    let (epoch, target) = (known(info.group_epoch), known(info.assignment_epoch));
    let members = info.members.len().to_string();
    let heads = shown([
        "GROUP",
        "COORDINATOR (ID)",
        "ASSIGNMENT-STRATEGY",
        "STATE",
        "GROUP-EPOCH",
        "TARGET-ASSIGNMENT-EPOCH",
        "#MEMBERS",
    ]);
    let row = shown([
        group,
        &coordinator,
        assignor,
        &info.state,
        &epoch,
        &target,
        &members,
    ]);
    Ok(writeln!(out, "\n{heads}\n{row}")?)
}
