//! `ringmain cluster`: the cluster's id, its nodes, and taking one out of the books.

use std::io::Write;

use clap::{Args, Subcommand};
use protocol::messages::{DescribeClusterRequest, UnregisterBrokerRequest};

use super::Failure;
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
        addresses: BrokersOrControllers,
    },
    /// Take a broker that is gone out of the cluster's metadata
    Unregister {
        /// The node.id of the broker
        #[arg(long, short)]
        id: i32,
        #[command(flatten)]
        addresses: BrokersOrControllers,
    },
    /// List the addresses under which the nodes are reached
    ListEndpoints {
        /// Brokers that do not serve at the moment, too
        #[arg(long)]
        include_fenced_brokers: bool,
        #[command(flatten)]
        addresses: BrokersOrControllers,
    },
}

pub(super) fn run(arguments: &ClusterArgs, out: &mut dyn Write) -> Result<(), Failure> {
    match &arguments.command {
        ClusterCommand::ClusterId { addresses } => cluster_id(&mut addresses.connect()?, out),
        ClusterCommand::Unregister { id, addresses } => {
            unregister(&mut addresses.connect()?, *id, out)
        }
        ClusterCommand::ListEndpoints {
            include_fenced_brokers,
            addresses,
        } => list_endpoints(&mut addresses.connect()?, *include_fenced_brokers, out),
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
        let node = match client.settings().target {
            Target::Brokers => Node::Any,
            Target::Controllers => Node::Controller,
        };
        let response = client.send(node, &UnregisterBrokerRequest { broker_id })?;
        ClientError::check(response.error_code, response.error_message.as_ref())
    });
    match done {
        Err(ClientError::NoCommonVersion { .. }) => writeln!(
            out,
            "The target cluster does not support the broker unregistration API."
        )?,
        done => {
            done?;
            writeln!(out, "Broker {broker_id} is no longer registered.")?;
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
