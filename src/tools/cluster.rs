//! `ringmain cluster`: the cluster's id, its nodes, and taking one out of the books.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use protocol::messages::{
    DescribeClusterRequest, UnregisterBrokerRequest, UnregisterControllerRequest,
};

use super::Failure;
use super::broker_api_versions;
use super::client::{Client, ClientError, Node, Target};
use super::columns::{line, widest};
use super::flags::BrokersOrControllers;

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Print the id of the cluster
    ClusterId {
        #[command(flatten)]
        addresses: ClusterAddresses,
    },
    /// Take a broker that is gone out of the cluster's metadata
    Unregister {
        /// The node.id of the broker
        #[arg(long, short)]
        id: i32,
        #[command(flatten)]
        addresses: ClusterAddresses,
    },
    /// Take a controller that is gone out of the cluster's metadata
    UnregisterController {
        /// The node.id of the controller
        #[arg(long, short)]
        id: i32,
        #[command(flatten)]
        addresses: ClusterAddresses,
    },
    /// List the addresses under which the nodes are reached
    ListEndpoints {
        /// Brokers that do not serve at the moment, too
        #[arg(long)]
        include_fenced_brokers: bool,
        #[command(flatten)]
        addresses: ClusterAddresses,
    },
    /// Show which versions of which APIs each node speaks
    ApiVersions {
        #[command(flatten)]
        addresses: ClusterAddresses,
    },
}

/// What all commands have.
#[derive(Args, Debug)]
struct ClusterAddresses {
    #[command(flatten)]
    addresses: BrokersOrControllers,
    /// The old name of --command-config
    #[arg(
        long,
        hide = true,
        value_name = "FILE",
        conflicts_with = "command_config"
    )]
    config: Option<PathBuf>,
}

impl ClusterAddresses {
    fn connect(&self, out: &mut dyn Write) -> Result<Client, Failure> {
        if self.config.is_some() {
            writeln!(
                out,
                "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
            )?;
        }
        self.addresses.connect_with(self.config.as_ref())
    }
}

pub(super) fn run(arguments: &ClusterArgs, out: &mut dyn Write) -> Result<(), Failure> {
    match &arguments.command {
        ClusterCommand::ClusterId { addresses } => cluster_id(&mut addresses.connect(out)?, out),
        ClusterCommand::Unregister { id, addresses } => {
            unregister(&mut addresses.connect(out)?, *id, out)
        }
        ClusterCommand::UnregisterController { id, addresses } => {
            unregister_controller(&mut addresses.connect(out)?, *id, out)
        }
        ClusterCommand::ApiVersions { addresses } => {
            broker_api_versions::show(&mut addresses.connect(out)?, out)
        }
        ClusterCommand::ListEndpoints {
            include_fenced_brokers,
            addresses,
        } => list_endpoints(&mut addresses.connect(out)?, *include_fenced_brokers, out),
    }
}

fn cluster_id(client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    client.refresh()?;
    match &client.cluster().id {
        Some(id) => writeln!(out, "Cluster ID: {id}")?,
        None => writeln!(
            out,
            "No cluster ID found. The Kafka version is probably too old."
        )?,
    }
    Ok(())
}

fn unregister(client: &mut Client, broker_id: i32, out: &mut dyn Write) -> Result<(), Failure> {
    let done = client.retrying(|client| {
        let response = client.send(active(client), &UnregisterBrokerRequest { broker_id })?;
        ClientError::check(response.error_code, response.error_message.as_ref())
    });
    unregistered(done, "broker", broker_id, out)
}

fn unregister_controller(
    client: &mut Client,
    controller_id: i32,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let request = UnregisterControllerRequest { controller_id };
    let done = client.retrying(|client| {
        let response = client.send(active(client), &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())
    });
    unregistered(done, "controller", controller_id, out)
}

/// Brokers pass such requests on; among controllers the active one answers.
fn active(client: &Client) -> Node {
    match client.settings().target {
        Target::Brokers => Node::Any,
        Target::Controllers => Node::Controller,
    }
}

fn unregistered(
    done: Result<(), ClientError>,
    what: &str,
    id: i32,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match done {
        Err(ClientError::NoCommonVersion { .. }) => writeln!(
            out,
            "The target cluster does not support the {what} unregistration API."
        )?,
        done => {
            done?;
            let mut head = what.to_owned();
            head[..1].make_ascii_uppercase();
            writeln!(out, "{head} {id} is no longer registered.")?;
        }
    }
    Ok(())
}

fn list_endpoints(client: &mut Client, fenced: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let controllers = client.settings().target == Target::Controllers;
    if fenced && controllers {
        return Err(Failure::new(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option",
        ));
    }
    let request = DescribeClusterRequest {
        endpoint_type: if controllers { 2 } else { 1 },
        include_fenced_brokers: fenced,
        ..DescribeClusterRequest::default()
    };
    let response = client.retrying(|client| {
        let response = client.send(Node::Any, &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())?;
        Ok(response)
    })?;
    let hosts = response.brokers.iter().map(|broker| &*broker.host);
    let racks = response
        .brokers
        .iter()
        .filter_map(|broker| broker.rack.as_deref());
    // Kafka's widths where there is nothing to measure.
    let host_width = hosts.clone().next().map_or(100, |_| widest(hosts));
    let rack_width = racks.clone().next().map_or(10, |_| widest(racks));
    let kind = if controllers { "controller" } else { "broker" };
    let mut print = |id: &str, host: &str, port: &str, rack: &str, state: &str, kind: &str| {
        let line = if controllers {
            line(
                &[10, host_width, 10, rack_width, 15],
                &[id, host, port, rack, kind],
            )
        } else {
            let widths = [10, host_width, 10, rack_width, 10, 15];
            line(&widths, &[id, host, port, rack, state, kind])
        };
        writeln!(out, "{line}")
    };
    print("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")?;
    for broker in &response.brokers {
        let state = if broker.is_fenced {
            "fenced"
        } else {
            "unfenced"
        };
        let (id, port) = (broker.broker_id.to_string(), broker.port.to_string());
        let rack = broker.rack.as_deref().unwrap_or("null");
        print(&id, &broker.host, &port, rack, state, kind)?;
    }
    Ok(())
}
