//! `ringmain consumer-groups`: list, describe and delete groups, delete and reset their offsets.

mod delete;
mod describe;
mod list;
mod plan;
mod reset;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::Str;
use regex::Regex;

use super::Failure;
use super::client::{Client, ClientError, Settings, Target};
use super::exception::named;
use super::flags::CommandConfig;

/// Before the progress of work on many groups.
const TOOL: &str = "consumer-groups";

#[derive(Args, Debug)]
pub struct ConsumerGroupsArgs {
    /// The brokers to connect to at first
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        required_unless_present = "validate_regex"
    )]
    bootstrap_server: Option<String>,
    #[command(flatten)]
    config: CommandConfig,
    #[command(flatten)]
    action: Action,
    /// A group; may be repeated
    #[arg(long = "group", conflicts_with = "all_groups")]
    groups: Vec<String>,
    /// All groups
    #[arg(long)]
    all_groups: bool,
    /// A topic whose offsets are meant, or some of its partitions: TOPIC:0,1,2; may be repeated
    #[arg(long = "topic")]
    topics: Vec<String>,
    /// All topics for which the group has committed offsets
    #[arg(long)]
    all_topics: bool,
    /// With --describe: the members
    #[arg(long, requires = "describe", conflicts_with_all = ["offsets", "state"])]
    members: bool,
    /// With --describe: committed offsets and how far they lie behind, which is the default
    #[arg(long, requires = "describe", conflicts_with = "state")]
    offsets: bool,
    /// With --describe the state of the group; with --list the states, or only groups in some of them
    #[arg(long, value_name = "STATE,...", num_args = 0..=1, default_missing_value = "")]
    state: Option<String>,
    /// With --list: the types, or only groups of some of them
    #[arg(long = "type", value_name = "TYPE,...", num_args = 0..=1, default_missing_value = "", requires = "list")]
    types: Option<String>,
    /// With --describe: more columns
    #[arg(long, requires = "describe")]
    verbose: bool,
    /// How long one call may take, with its retries, in milliseconds
    #[arg(long = "timeout", value_name = "MS", default_value_t = 30_000)]
    timeout_ms: u64,
    #[command(flatten)]
    reset: ResetArgs,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Action {
    /// List groups
    #[arg(long)]
    list: bool,
    /// Describe groups
    #[arg(long)]
    describe: bool,
    /// Delete groups with all that they have committed
    #[arg(long)]
    delete: bool,
    /// Set the offsets of groups without members to what a scenario says
    #[arg(long)]
    reset_offsets: bool,
    /// Delete the offsets of topics
    #[arg(long)]
    delete_offsets: bool,
    /// Say whether an expression can be subscribed to
    #[arg(long, value_name = "REGEX")]
    validate_regex: Option<String>,
}

/// Where `--reset-offsets` goes, and what becomes of it.
#[derive(Args, Debug)]
struct ResetArgs {
    /// Only show the new offsets, which is the default
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,
    /// Commit the new offsets
    #[arg(long)]
    execute: bool,
    /// Print the new offsets as CSV, for --from-file
    #[arg(long)]
    export: bool,
    /// To this offset
    #[arg(
        long,
        group = "scenario",
        value_name = "OFFSET",
        allow_negative_numbers = true
    )]
    to_offset: Option<i64>,
    /// To the offsets in a CSV file
    #[arg(long, group = "scenario", value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// To the first record not before a moment: YYYY-MM-DDThh:mm:ss.sss
    #[arg(long, group = "scenario", value_name = "MOMENT")]
    to_datetime: Option<String>,
    /// To the first record not older than this: PnDTnHnMnS
    #[arg(long, group = "scenario", value_name = "DURATION")]
    by_duration: Option<String>,
    /// To the first record
    #[arg(long, group = "scenario")]
    to_earliest: bool,
    /// Behind the last record
    #[arg(long, group = "scenario")]
    to_latest: bool,
    /// To what is committed
    #[arg(long, group = "scenario")]
    to_current: bool,
    /// On by this many records, or back
    #[arg(
        long,
        group = "scenario",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    shift_by: Option<i64>,
}

/// Why a group could not be dealt with.
enum Trouble {
    /// The flags are wrong: said on standard error, code 1.
    Usage(String),
    /// Said on standard output, as Kafka's tool does; its code is 0 all the same.
    Said(String),
    /// Standard output is gone.
    Output(std::io::Error),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Trouble {
        Trouble::Output(error)
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Trouble {
        match error {
            ClientError::Settings(text) => Trouble::Usage(text),
            other => Trouble::Said(named(&other)),
        }
    }
}

pub(super) fn run(arguments: &ConsumerGroupsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(regex) = &arguments.action.validate_regex {
        let verdict = match Regex::new(regex) {
            Ok(_) => "valid".to_owned(),
            Err(error) => {
                let text = error.to_string();
                let why = text.lines().last().unwrap_or_default();
                format!("invalid: {}", why.trim().trim_start_matches("error: "))
            }
        };
        return Ok(writeln!(
            out,
            "The regular expression `{regex}` is {verdict}."
        )?);
    }
    check(arguments)?;
    let mut client = connect(arguments)?;
    let action = &arguments.action;
    let done = if action.list {
        list::list(&mut client, arguments, out)
    } else if action.describe {
        describe::describe(&mut client, arguments, out)
    } else if action.delete {
        delete::delete_groups(&mut client, arguments, out)
    } else if action.delete_offsets {
        delete::delete_offsets(&mut client, arguments, out)
    } else {
        reset::reset(&mut client, arguments, out)
    };
    match done {
        Ok(()) => Ok(()),
        Err(Trouble::Usage(text)) => Err(Failure::new(text)),
        Err(Trouble::Output(error)) => Err(error.into()),
        Err(Trouble::Said(text)) => {
            let what = "Executing consumer group command failed due to";
            Ok(print_error(out, &format!("{what} {text}"))?)
        }
    }
}

fn print_error(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    writeln!(out, "\nError: {text}")
}

fn connect(arguments: &ConsumerGroupsArgs) -> Result<Client, Failure> {
    let addresses = arguments.bootstrap_server.as_deref().unwrap_or_default();
    let mut settings: Settings = arguments.config.settings(Target::Brokers, addresses)?;
    settings.api_timeout = Duration::from_millis(arguments.timeout_ms);
    Ok(Client::connect(settings)?)
}

fn check(arguments: &ConsumerGroupsArgs) -> Result<(), Failure> {
    let action = &arguments.action;
    let scope = !arguments.groups.is_empty() || arguments.all_groups;
    let wrong = |text: &str| Err(Failure::new(text));
    if (action.describe || action.delete || action.reset_offsets) && !scope {
        return wrong("this action takes one of these options: --group, --all-groups");
    }
    if action.describe
        && arguments
            .state
            .as_deref()
            .is_some_and(|state| !state.is_empty())
    {
        return wrong("--describe does not take a value for --state");
    }
    if arguments.state.is_some() && !(action.describe || action.list) {
        return wrong("--state can only be used with --describe and --list");
    }
    if action.list && !arguments.groups.is_empty() {
        return wrong("--group cannot be used with --list");
    }
    if !arguments.topics.is_empty() && (action.list || action.describe || action.delete) {
        return wrong("--topic can only be used with --reset-offsets and --delete-offsets");
    }
    if action.delete_offsets && (arguments.groups.len() != 1 || arguments.topics.is_empty()) {
        return wrong("--delete-offsets takes one --group, and --topic");
    }
    if action.reset_offsets && !arguments.reset.execute && !arguments.reset.dry_run {
        // To people only: the output stays what scripts expect.
        let _ = writeln!(
            std::io::stderr(),
            "WARN: nothing is changed without --execute; say --dry-run where that is what you want"
        );
    }
    Ok(())
}

/// The groups that the flags name.
fn chosen(client: &mut Client, arguments: &ConsumerGroupsArgs) -> Result<Vec<Str>, ClientError> {
    if arguments.all_groups {
        let groups = list::consumer_groups(client, &[], &[])?;
        return Ok(groups.into_iter().map(|group| group.group_id).collect());
    }
    let mut groups: Vec<Str> = arguments.groups.iter().map(Str::from).collect();
    groups.sort();
    groups.dedup();
    Ok(groups)
}
