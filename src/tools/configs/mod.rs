//! `ringmain configs`: what is set for topics, brokers, their loggers, groups and client metrics.

mod alter;
mod entity;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use protocol::Str;
use protocol::messages::ListConfigResourcesRequest;

use super::Failure;
use super::admin::{ConfigEntry, Resource, describe_configs, list_groups, list_topics};
use super::client::{Client, ClientError, Node};
use super::flags::BrokersOrControllers;
use entity::{Entity, EntityArgs, Kind};

#[derive(Args, Debug)]
pub struct ConfigsArgs {
    #[command(flatten)]
    addresses: BrokersOrControllers,
    #[command(flatten)]
    action: Action,
    /// With --describe: everything, not only what was set while running
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    entity: EntityArgs,
    /// Settings to make; brackets around a value that has commas: k1=v1,k2=[v1,v2]
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "describe")]
    add_config: Option<String>,
    /// A properties file with settings to make
    #[arg(long, value_name = "FILE", conflicts_with = "add_config")]
    add_config_file: Option<PathBuf>,
    /// Settings to take away
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        conflicts_with = "describe"
    )]
    delete_config: Vec<String>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Action {
    /// Change settings
    #[arg(long)]
    alter: bool,
    /// Show settings
    #[arg(long)]
    describe: bool,
}

pub(super) fn run(arguments: &ConfigsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let entity = arguments.entity.entity()?;
    if arguments.action.alter {
        let changes = alter::changes(arguments)?;
        let name = entity.name_to_alter()?;
        let mut client = arguments.addresses.connect()?;
        alter::alter(&mut client, entity.kind, &name, &changes)?;
        let what = match name.is_empty() {
            true => format!("default config for {} in the cluster", entity.kind.plural()),
            false => format!("config for {} {name}", entity.kind.singular()),
        };
        return Ok(writeln!(out, "Completed updating {what}.")?);
    }
    entity.check_describe()?;
    describe(
        &mut arguments.addresses.connect()?,
        &entity,
        arguments.all,
        out,
    )
}

fn describe(
    client: &mut Client,
    entity: &Entity,
    all: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let kind = entity.kind;
    if let Some(name) = &entity.name
        && !all
        && !exists(client, kind, name)?
    {
        return Ok(writeln!(
            out,
            "The {} '{name}' doesn't exist and doesn't have dynamic config.",
            kind.singular()
        )?);
    }
    let names = match &entity.name {
        Some(name) => vec![name.clone()],
        None => names(client, kind)?,
    };
    for name in names {
        let which = if all { "All" } else { "Dynamic" };
        if name.is_empty() {
            writeln!(
                out,
                "Default configs for {} in the cluster are:",
                kind.plural()
            )?;
        } else {
            writeln!(out, "{which} configs for {} {name} are:", kind.singular())?;
        }
        let source = kind.dynamic_source(&name).filter(|_| !all);
        for entry in entries(client, kind, &name)? {
            if source.is_none_or(|source| entry.config_source == source) {
                writeln!(out, "{}", shown(&entry))?;
            }
        }
    }
    Ok(())
}

/// The settings of one entity, by key.
fn entries(client: &mut Client, kind: Kind, name: &Str) -> Result<Vec<ConfigEntry>, ClientError> {
    let resource = Resource {
        kind: kind.code(),
        name: name.clone(),
    };
    let found = describe_configs(client, kind.node(name), &[resource], true)?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Kafka's line for one setting.
fn shown(entry: &ConfigEntry) -> String {
    let text = |value: &Option<Str>| value.as_deref().unwrap_or("null").to_owned();
    let synonyms: Vec<String> = entry
        .synonyms
        .iter()
        .map(|synonym| {
            let source = source_name(synonym.source);
            format!("{source}:{}={}", synonym.name, text(&synonym.value))
        })
        .collect();
    format!(
        "  {}={} sensitive={} synonyms={{{}}}",
        entry.name,
        text(&entry.value),
        entry.is_sensitive,
        synonyms.join(", ")
    )
}

fn source_name(source: i8) -> &'static str {
    match source {
        1 => "DYNAMIC_TOPIC_CONFIG",
        2 => "DYNAMIC_BROKER_CONFIG",
        3 => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        4 => "STATIC_BROKER_CONFIG",
        5 => "DEFAULT_CONFIG",
        6 => "DYNAMIC_BROKER_LOGGER_CONFIG",
        7 => "DYNAMIC_CLIENT_METRICS_CONFIG",
        8 => "DYNAMIC_GROUP_CONFIG",
        _ => "UNKNOWN",
    }
}

fn exists(client: &mut Client, kind: Kind, name: &Str) -> Result<bool, ClientError> {
    if matches!(kind, Kind::Brokers | Kind::BrokerLoggers) && name.is_empty() {
        return Ok(true);
    }
    Ok(names(client, kind)?.contains(name))
}

/// Everything of this kind that is there. The empty name of brokers is for what holds for all of them.
fn names(client: &mut Client, kind: Kind) -> Result<Vec<Str>, ClientError> {
    match kind {
        Kind::Topics => {
            let topics = list_topics(client)?.into_iter();
            Ok(topics.map(|topic| topic.name).collect())
        }
        Kind::Brokers | Kind::BrokerLoggers => {
            client.refresh()?;
            let nodes = client.cluster().nodes.keys();
            let ids = nodes.map(|id| Str::from(id.to_string()));
            Ok(ids.chain([Str::default()]).collect())
        }
        Kind::ClientMetrics => config_resources(client, kind),
        Kind::Groups => {
            let groups = list_groups(client, &[], &[])?.into_iter();
            let mut all: BTreeSet<Str> = groups.map(|group| group.group_id).collect();
            match config_resources(client, kind) {
                // Brokers before 4.1 do not list them.
                Err(ClientError::NoCommonVersion { .. }) => {}
                more => all.extend(more?),
            }
            Ok(all.into_iter().collect())
        }
    }
}

/// The entities of this kind that have settings.
fn config_resources(client: &mut Client, kind: Kind) -> Result<Vec<Str>, ClientError> {
    let response = client.retrying(|client| {
        let version = client
            .connection(Node::Any)?
            .version::<ListConfigResourcesRequest>()?;
        // Version 0 knows no kinds: it lists client metrics.
        let resource_types = if version > 0 {
            vec![kind.code()]
        } else {
            Vec::new()
        };
        let response = client.send(
            Node::Any,
            &ListConfigResourcesRequest {
                resource_types: resource_types.into(),
            },
        )?;
        ClientError::check(response.error_code, None)?;
        Ok(response)
    })?;
    let resources = response.config_resources.into_iter();
    Ok(resources.map(|resource| resource.resource_name).collect())
}
