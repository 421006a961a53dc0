//! `ringmain topics`: create, delete, describe and change topics.

mod change;
mod describe;

use std::io::Write;

use clap::Args;
use protocol::{Str, Uuid};

use super::Failure;
use super::admin::list_topics;
use super::client::Client;
use super::flags::Brokers;
use super::pattern::{Pattern, is_internal};

#[derive(Args, Debug)]
pub struct TopicsArgs {
    #[command(flatten)]
    brokers: Brokers,
    #[command(flatten)]
    action: Action,
    /// The topic to create, alter, describe or delete; a regular expression except with --create
    #[arg(long)]
    topic: Option<String>,
    /// The id of the topic to describe
    #[arg(long, value_name = "TOPIC-ID")]
    topic_id: Option<Uuid>,
    /// A setting of the new topic; may be repeated. `ringmain configs` changes those of a topic that exists
    #[arg(long = "config", value_name = "NAME=VALUE")]
    configs: Vec<String>,
    /// Without effect since Kafka 4.0: use `ringmain configs`
    #[arg(long, value_name = "NAME", hide = true)]
    delete_config: Vec<String>,
    /// How many partitions the topic gets, or shall have; without it a new topic has the cluster's default
    #[arg(long, allow_negative_numbers = true)]
    partitions: Option<i32>,
    /// How many replicas each partition of the new topic gets; without it the cluster's default
    #[arg(long, allow_negative_numbers = true)]
    replication_factor: Option<i32>,
    /// The brokers of each partition: colons between the replicas, commas between the partitions
    #[arg(long, value_name = "BROKER:BROKER,...")]
    replica_assignment: Option<String>,
    /// Describe only partitions with fewer replicas in sync than they have
    #[arg(long)]
    under_replicated_partitions: bool,
    /// Describe only partitions whose leader is not available
    #[arg(long)]
    unavailable_partitions: bool,
    /// Describe only partitions with fewer replicas in sync than min.insync.replicas
    #[arg(long)]
    under_min_isr_partitions: bool,
    /// Describe only partitions with as many replicas in sync as min.insync.replicas
    #[arg(long)]
    at_min_isr_partitions: bool,
    /// Describe only topics with settings of their own
    #[arg(long)]
    topics_with_overrides: bool,
    /// Do nothing where the topic does not exist
    #[arg(long)]
    if_exists: bool,
    /// Do nothing where the topic exists already
    #[arg(long)]
    if_not_exists: bool,
    /// Leave out the topics that brokers write themselves
    #[arg(long)]
    exclude_internal: bool,
    /// How many partitions one answer of the broker may describe
    #[arg(long, value_name = "COUNT", default_value_t = 2000)]
    partition_size_limit_per_response: i32,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Action {
    /// Create a topic
    #[arg(long)]
    create: bool,
    /// Delete topics
    #[arg(long)]
    delete: bool,
    /// Add partitions to topics
    #[arg(long)]
    alter: bool,
    /// List topics
    #[arg(long)]
    list: bool,
    /// Describe topics
    #[arg(long)]
    describe: bool,
}

pub(super) fn run(arguments: &TopicsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    check(arguments)?;
    if arguments.action.describe
        && arguments.if_exists
        && arguments.topic.is_some()
        && arguments.topic_id.is_some()
    {
        writeln!(
            out,
            "Only topic id will be used when both --topic and --topic-id are specified and topicId is not \
             Uuid.ZERO_UUID"
        )?;
    }
    let mut client = arguments.brokers.connect()?;
    let action = &arguments.action;
    let done = if action.create {
        change::create(&mut client, arguments, out)
    } else if action.alter {
        change::alter(&mut client, arguments)
    } else if action.delete {
        change::delete(&mut client, arguments)
    } else if action.list {
        list(&mut client, arguments, out)
    } else {
        describe::describe(&mut client, arguments, out)
    };
    // Kafka's tool says so on standard output, and scripts look for it there.
    if let Err(failure) = done {
        writeln!(out, "Error while executing topic command : {failure}")?;
        return Err(Failure::said());
    }
    Ok(())
}

/// Which flags go together.
fn check(arguments: &TopicsArgs) -> Result<(), Failure> {
    let Action {
        create,
        delete,
        alter,
        list,
        describe,
    } = arguments.action;
    if describe && arguments.if_exists && arguments.topic.is_none() && arguments.topic_id.is_none()
    {
        return Err(Failure::new(
            "--topic or --topic-id is required to describe a topic",
        ));
    }
    if (create || alter || delete) && arguments.topic.is_none() {
        return Err(Failure::new("--topic is required with this action"));
    }
    if alter && !arguments.configs.is_empty() {
        return Err(Failure::new(
            "--config cannot be used with --alter: use `ringmain configs --alter` for the settings of a topic",
        ));
    }
    if alter && arguments.partitions.is_none() {
        return Err(Failure::new("--partitions is required with --alter"));
    }
    let reports = arguments.under_replicated_partitions
        || arguments.unavailable_partitions
        || arguments.under_min_isr_partitions
        || arguments.at_min_isr_partitions;
    let rules: [(bool, &str, bool, &str); 10] = [
        (
            !arguments.configs.is_empty(),
            "--config",
            create,
            "--create",
        ),
        (
            arguments.partitions.is_some(),
            "--partitions",
            create || alter,
            "--create and --alter",
        ),
        (
            arguments.replication_factor.is_some(),
            "--replication-factor",
            create,
            "--create",
        ),
        (
            arguments.replica_assignment.is_some(),
            "--replica-assignment",
            create || alter,
            "--create and --alter",
        ),
        (
            arguments.replica_assignment.is_some() && create,
            "--replica-assignment",
            arguments.partitions.is_none() && arguments.replication_factor.is_none(),
            "--create where neither --partitions nor --replication-factor is given",
        ),
        (reports, "the choice of partitions", describe, "--describe"),
        (
            arguments.topics_with_overrides,
            "--topics-with-overrides",
            describe && !reports,
            "--describe without a choice of partitions",
        ),
        (
            arguments.if_exists,
            "--if-exists",
            alter || delete || describe,
            "--alter, --delete and --describe",
        ),
        (
            arguments.if_not_exists,
            "--if-not-exists",
            create,
            "--create",
        ),
        (
            arguments.exclude_internal,
            "--exclude-internal",
            list || describe,
            "--list and --describe",
        ),
    ];
    match rules.iter().find(|(given, _, fits, _)| *given && !fits) {
        Some((_, flag, _, place)) => Err(Failure::new(format!(
            "{flag} can only be used with {place}"
        ))),
        None => Ok(()),
    }
}

fn list(client: &mut Client, arguments: &TopicsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let names = matching(client, arguments)?;
    Ok(writeln!(out, "{}", names.join("\n"))?)
}

/// The names that `--topic` matches, or all, in order.
fn matching(client: &mut Client, arguments: &TopicsArgs) -> Result<Vec<Str>, Failure> {
    let pattern = arguments
        .topic
        .as_deref()
        .map(Pattern::of_list)
        .transpose()?;
    let hidden = arguments.exclude_internal;
    Ok(list_topics(client)?
        .into_iter()
        .filter(|topic| !hidden || !(topic.internal || is_internal(&topic.name)))
        .map(|topic| topic.name)
        .filter(|name| pattern.as_ref().is_none_or(|pattern| pattern.matches(name)))
        .collect())
}

/// Kafka's complaint about a `--topic` that names nothing.
fn must_exist(arguments: &TopicsArgs, found: &[Str]) -> Result<(), Failure> {
    match arguments.topic.as_deref() {
        Some(name) if !name.is_empty() && found.is_empty() && !arguments.if_exists => Err(
            Failure::new(format!("Topic '{name}' does not exist as expected")),
        ),
        _ => Ok(()),
    }
}
