//! `ringmain doctor`: asks a cluster how it is, and says in plain words what is wrong and what to do.
//!
//! Everything that the Kafka protocol can tell is asked over it, so Apache's brokers are examined too. What only this
//! broker knows (whom a group waits for, limits that were reached, old clients) comes from its HTTP port.

mod disks;
mod groups;
mod http;
mod limits;
mod listeners;
mod partitions;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use protocol::Str;
use protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsRequestDescribeConfigsResource, DescribeConfigsResponse,
};

use super::Failure;
use super::client::{Address, Client, ClientError, Node, Settings, Target, read_properties};
use http::Port;
use report::Report;

/// An answer that takes longer is a finding itself.
const PATIENCE_MS: &str = "5000";
/// Kafka's number of brokers as resources with settings.
const BROKER_RESOURCE: i8 = 4;
const HTTP_KEY: &str = "ringmain.http.listener";

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// A broker of the cluster
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// The broker's port for metrics, if its settings do not tell
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// How long to watch what moves: groups in a rebalance, limits
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    watch: u64,
    /// A disk with less free space is a finding
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    min_free: f64,
    /// A properties file for the client: timeouts, client.id
    #[arg(long, short = 'c', value_name = "FILE")]
    command_config: Option<PathBuf>,
}

/// Settings of one broker, by name.
pub(super) type Configs = BTreeMap<String, String>;

/// A cluster under examination.
struct Patient {
    client: Client,
    /// Each broker, the node to ask it by, and its settings; none where it does not answer.
    brokers: Vec<(i32, Node, Option<Configs>)>,
    http: Option<Port>,
    watch: Duration,
    /// Part of a disk that should be free.
    min_free: f64,
}

pub(super) fn run(arguments: &DoctorArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut properties = match &arguments.command_config {
        Some(path) => read_properties(path)?,
        None => BTreeMap::new(),
    };
    properties
        .entry("request.timeout.ms".to_owned())
        .or_insert_with(|| PATIENCE_MS.to_owned());
    properties
        .entry("default.api.timeout.ms".to_owned())
        .or_insert_with(|| PATIENCE_MS.to_owned());
    let settings = Settings::new(Target::Brokers, &arguments.address, properties)?;
    let client = Client::connect(settings)?;
    let mut patient = Patient {
        client,
        brokers: Vec::new(),
        http: None,
        watch: Duration::from_secs(arguments.watch),
        min_free: arguments.min_free / 100.0,
    };
    let mut report = Report::new(out);
    examine(&mut patient, arguments, &mut report)?;
    report.end()
}

fn examine(
    patient: &mut Patient,
    arguments: &DoctorArgs,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let metadata = patient.client.metadata(None)?;
    let id = metadata.cluster_id.clone().unwrap_or_default();
    let count = metadata.brokers.len();
    report.title(&format!(
        "cluster {id}, {} alive, asked at {}",
        plural(count, "broker"),
        arguments.address
    ))?;
    meet_brokers(
        patient,
        report,
        &metadata
            .brokers
            .iter()
            .map(|it| it.node_id)
            .collect::<Vec<_>>(),
    )?;
    find_http(patient, arguments);
    listeners::examine(patient, &metadata, report)?;
    partitions::examine(patient, &metadata, report)?;
    disks::examine(patient, report)?;
    let before = patient.http.as_ref().and_then(|port| port.metrics().ok());
    groups::examine(patient, report)?;
    limits::examine(patient, before, report)?;
    Ok(())
}

/// Asks every broker for its settings, the one that was named on the command line also where it is advertised wrongly.
fn meet_brokers(
    patient: &mut Patient,
    report: &mut Report<'_>,
    ids: &[i32],
) -> Result<(), Failure> {
    report.section("Brokers")?;
    for id in ids {
        let mut node = Node::Id(*id);
        let reached = patient.client.connection(node).map(|_| ());
        if reached.is_err() && ids.len() == 1 {
            node = Node::Any;
        }
        match configs(&mut patient.client, node, *id) {
            Ok(configs) => {
                report.ok(&format!("broker {id} answers"))?;
                patient.brokers.push((*id, node, Some(configs)));
            }
            Err(error) => {
                report.bad(
                    &format!("broker {id} does not tell its settings: {error}"),
                    "look whether it runs, and at its log",
                )?;
                patient.brokers.push((*id, node, None));
            }
        }
    }
    Ok(())
}

fn configs(client: &mut Client, node: Node, id: i32) -> Result<Configs, ClientError> {
    let resource = DescribeConfigsRequestDescribeConfigsResource {
        resource_type: BROKER_RESOURCE,
        resource_name: Str::from(id.to_string()),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: [resource].into(),
        ..DescribeConfigsRequest::default()
    };
    let response: DescribeConfigsResponse = client.send(node, &request)?;
    let mut configs = Configs::new();
    for result in response.results {
        ClientError::check(result.error_code, result.error_message.as_ref())?;
        for config in result.configs {
            configs.insert(
                config.name.to_string(),
                config.value.as_deref().unwrap_or_default().to_owned(),
            );
        }
    }
    Ok(configs)
}

/// The HTTP port: named on the command line, else as the one broker of ours says.
fn find_http(patient: &mut Patient, arguments: &DoctorArgs) {
    let told = patient.brokers.iter().find_map(|(id, _, configs)| {
        let listener = configs.as_ref()?.get(HTTP_KEY)?;
        let (host, port) = listener.rsplit_once(':')?;
        let everywhere = ["", "0.0.0.0", "[::]"].contains(&host);
        let own = || host_of(patient, *id, &arguments.address);
        let host = if everywhere { own()? } else { host.to_owned() };
        Some(format!("{host}:{port}"))
    });
    patient.http = arguments.http.clone().or(told).map(Port::new);
}

/// Where a broker of which only the port is known can be asked.
fn host_of(patient: &Patient, id: i32, asked: &str) -> Option<String> {
    if patient.brokers.len() == 1 {
        return asked.rsplit_once(':').map(|(host, _)| host.to_owned());
    }
    let node = patient.client.cluster().nodes.get(&id)?;
    Some(node.address.host.clone())
}

/// `a, b, c and 7 more`.
fn some_of(names: &[String]) -> String {
    const NAMED_MAX: usize = 10;
    let named = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Where a listener's address is read from: `NAME://host:port`.
fn listener(text: &str) -> Option<(String, Address)> {
    let (name, rest) = text.split_once("://")?;
    let (host, port) = rest.rsplit_once(':')?;
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = port.parse().ok()?;
    Some((name.to_owned(), Address { host, port }))
}

/// `1 topic`, `2 topics`.
fn plural(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
