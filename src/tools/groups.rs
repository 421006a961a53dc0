//! `ringmain groups`: groups of all types.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::Failure;
use super::admin::{ListedGroup, list_groups};
use super::columns::{line, widest};
use super::flags::Brokers;

/// Kafka's width where nothing is wider.
const COLUMN: usize = 20;

#[derive(Args, Debug)]
pub struct GroupsArgs {
    #[command(flatten)]
    brokers: Brokers,
    /// List the groups
    #[arg(long, required = true)]
    list: bool,
    /// Only groups of this type
    #[arg(long, ignore_case = true)]
    group_type: Option<GroupType>,
    /// Only groups whose members speak this protocol
    #[arg(long)]
    protocol: Option<String>,
    /// Only consumer groups, also those without members and those of older clients
    #[arg(long, conflicts_with_all = ["group_type", "protocol", "share", "streams"])]
    consumer: bool,
    /// Only share groups
    #[arg(long, conflicts_with_all = ["group_type", "protocol", "streams"])]
    share: bool,
    /// Only groups of Kafka Streams
    #[arg(long, conflicts_with_all = ["group_type", "protocol"])]
    streams: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum GroupType {
    Classic,
    Consumer,
    Share,
    Streams,
}

impl GroupType {
    /// As brokers spell it.
    fn name(self) -> &'static str {
        match self {
            GroupType::Classic => "Classic",
            GroupType::Consumer => "Consumer",
            GroupType::Share => "Share",
            GroupType::Streams => "Streams",
        }
    }
}

pub(super) fn run(arguments: &GroupsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let groups = arguments
        .brokers
        .connect()
        .and_then(|mut client| Ok(list_groups(&mut client, &[], &[])?));
    let groups = match groups {
        Ok(groups) => groups,
        // Kafka's tool says so on standard output.
        Err(failure) => {
            writeln!(out, "Error while executing groups command : {failure}")?;
            return Err(Failure::said());
        }
    };
    let rows: Vec<[&str; 3]> = groups
        .iter()
        .filter(|group| arguments.wants(group))
        .map(|group| {
            [
                &*group.group_id,
                group.group_type.as_str(),
                &*group.protocol_type,
            ]
        })
        .collect();
    let width = widest(rows.iter().flatten().copied()).max(COLUMN);
    writeln!(out, "{}", line(&[width; 3], &["GROUP", "TYPE", "PROTOCOL"]))?;
    for row in &rows {
        writeln!(out, "{} ", line(&[width; 3], row))?;
    }
    Ok(())
}

impl GroupsArgs {
    fn wants(&self, group: &ListedGroup) -> bool {
        let is = |wanted: GroupType| group.group_type.eq_ignore_ascii_case(wanted.name());
        if self.consumer {
            return group.protocol_type == "consumer"
                || group.protocol_type.is_empty()
                || is(GroupType::Consumer);
        }
        let wanted = [
            self.share.then_some(GroupType::Share),
            self.streams.then_some(GroupType::Streams),
            self.group_type,
        ];
        let protocol = self.protocol.as_deref();
        wanted.into_iter().flatten().all(is)
            && protocol.is_none_or(|protocol| group.protocol_type == protocol)
    }
}
