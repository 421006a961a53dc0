//! `ringmain topics`: create, delete, describe and change topics.

mod change;
mod describe;

use std::io::Write;

use clap::Args;
use protocol::{Str, Uuid};

use super::Failure;
use super::admin::list_topics;
use super::client::Client;
use super::flags::{Brokers, only};
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
    let action = &arguments.action;
    let unnamed = arguments.topic.is_none();
    if action.describe && arguments.if_exists && unnamed && arguments.topic_id.is_none() {
        return Err(Failure::new(
            "--topic or --topic-id is required to describe a topic",
        ));
    }
    if (action.create || action.alter || action.delete) && unnamed {
        return Err(Failure::new("--topic is required with this action"));
    }
    if action.alter && !arguments.configs.is_empty() {
        return Err(Failure::new(
            "--config cannot be used with --alter: use `ringmain configs --alter` for the settings of a topic",
        ));
    }
    if action.alter && arguments.partitions.is_none() {
        return Err(Failure::new("--partitions is required with --alter"));
    }
    let assigned = arguments.replica_assignment.is_some();
    if action.create
        && assigned
        && (arguments.partitions.is_some() || arguments.replication_factor.is_some())
    {
        return Err(Failure::new(
            "--replica-assignment with --create says itself how many partitions and replicas there are: leave \
             --partitions and --replication-factor out",
        ));
    }
    check_places(arguments)
}

/// Which flag goes with which action.
fn check_places(arguments: &TopicsArgs) -> Result<(), Failure> {
    let action = &arguments.action;
    let reports = arguments.under_replicated_partitions
        || arguments.unavailable_partitions
        || arguments.under_min_isr_partitions
        || arguments.at_min_isr_partitions;
    let changes = action.create || action.alter;
    let factor = arguments.replication_factor.is_some();
    let described = action.describe && !reports;
    let existing = action.alter || action.delete || action.describe;
    let shown = action.list || action.describe;
    let configs = !arguments.configs.is_empty();
    only(configs, "--config", action.create, "--create")?;
    let counted = arguments.partitions.is_some();
    only(counted, "--partitions", changes, "--create and --alter")?;
    only(factor, "--replication-factor", action.create, "--create")?;
    let assigned = arguments.replica_assignment.is_some();
    only(
        assigned,
        "--replica-assignment",
        changes,
        "--create and --alter",
    )?;
    only(
        reports,
        "a choice of partitions",
        action.describe,
        "--describe",
    )?;
    let overrides = arguments.topics_with_overrides;
    let place = "--describe without a choice of partitions";
    only(overrides, "--topics-with-overrides", described, place)?;
    let place = "--alter, --delete and --describe";
    only(arguments.if_exists, "--if-exists", existing, place)?;
    only(
        arguments.if_not_exists,
        "--if-not-exists",
        action.create,
        "--create",
    )?;
    let place = "--list and --describe";
    only(
        arguments.exclude_internal,
        "--exclude-internal",
        shown,
        place,
    )
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
