//! `ringmain metadata-quorum`: the controllers, how far each has come, and who belongs to them.

mod membership;

use std::io::Write;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use protocol::messages::{
    DescribeQuorumRequest, DescribeQuorumRequestPartitionData, DescribeQuorumRequestTopicData,
    DescribeQuorumResponseNode, DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState as Replica,
};
use protocol::{Array, Uuid};

use super::Failure;
use super::client::{Client, ClientError, Node, Target};
use super::columns::widest;
use super::flags::BrokersOrControllers;

/// The topic whose one partition is the metadata log.
const METADATA_TOPIC: &str = "__cluster_metadata";

#[derive(Args, Debug)]
pub struct MetadataQuorumArgs {
    #[command(flatten)]
    addresses: BrokersOrControllers,
    #[command(subcommand)]
    command: QuorumCommand,
}

#[derive(Subcommand, Debug)]
enum QuorumCommand {
    /// Describe the quorum
    Describe(DescribeArgs),
    /// Take a controller that runs as an observer into the quorum; `--command-config` is its own configuration file
    AddController {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a controller out of the quorum
    RemoveController(RemoveArgs),
}

#[derive(Args, Debug)]
struct RemoveArgs {
    /// The node.id of the controller
    #[arg(long, short = 'i', value_name = "ID", allow_negative_numbers = true)]
    controller_id: i32,
    /// The id of its directory
    #[arg(long, short = 'd', value_name = "DIRECTORY-ID")]
    controller_directory_id: Uuid,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Take it out of the cluster's metadata, too
    #[arg(long)]
    unregister: bool,
}

#[derive(Args, Debug)]
struct DescribeArgs {
    #[command(flatten)]
    what: What,
    /// With --replication: ages instead of moments
    #[arg(long, requires = "replication")]
    human_readable: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// The state of the quorum in short
    #[arg(long)]
    status: bool,
    /// Each node that follows the metadata log
    #[arg(long)]
    replication: bool,
}

/// The quorum as its leader describes it.
struct Quorum {
    state: DescribeQuorumResponsePartitionData,
    nodes: Vec<DescribeQuorumResponseNode>,
}

pub(super) fn run(arguments: &MetadataQuorumArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let connect = || arguments.addresses.connect();
    match &arguments.command {
        QuorumCommand::Describe(DescribeArgs { what, .. }) if what.status => {
            status(&mut connect()?, out)
        }
        QuorumCommand::Describe(describe) => {
            replication(&mut connect()?, describe.human_readable, out)
        }
        QuorumCommand::AddController { dry_run } => membership::add(&mut connect()?, *dry_run, out),
        QuorumCommand::RemoveController(wanted) => {
            if wanted.controller_id < 0 {
                return Err(Failure::new(format!(
                    "Invalid negative --controller-id: {}",
                    wanted.controller_id
                )));
            }
            membership::remove(&mut connect()?, wanted, out)
        }
    }
}

/// Brokers pass such requests on; among controllers the active one answers.
fn node(client: &Client) -> Node {
    match client.settings().target {
        Target::Brokers => Node::Any,
        Target::Controllers => Node::Controller,
    }
}

fn describe(client: &mut Client) -> Result<Quorum, ClientError> {
    let request = DescribeQuorumRequest {
        topics: [DescribeQuorumRequestTopicData {
            topic_name: METADATA_TOPIC.into(),
            partitions: [DescribeQuorumRequestPartitionData::default()].into(),
        }]
        .into(),
    };
    client.retrying(|client| {
        let response = client.send(node(client), &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())?;
        let topic = response.topics.into_iter().next().unwrap_or_default();
        let state = topic.partitions.into_iter().next().unwrap_or_default();
        ClientError::check(state.error_code, state.error_message.as_ref())?;
        let nodes = response.nodes;
        Ok(Quorum {
            state,
            nodes: nodes.into(),
        })
    })
}

impl Quorum {
    fn leader(&self) -> Result<&Replica, Failure> {
        let id = self.state.leader_id;
        let voters = &self.state.current_voters;
        let leader = voters.iter().find(|voter| voter.replica_id == id);
        leader.ok_or_else(|| {
            Failure::new(format!(
                "the leader {id} is none of the voters that it names"
            ))
        })
    }

    /// `[{"id": 1, "directoryId": "...", "endpoints": ["CONTROLLER://host:port"]}]`
    fn listed(&self, replicas: &Array<Replica>) -> String {
        let all: Vec<String> = replicas.iter().map(|replica| self.shown(replica)).collect();
        format!("[{}]", all.join(", "))
    }

    fn shown(&self, replica: &Replica) -> String {
        let directory = match replica.replica_directory_id {
            Uuid::ZERO => String::new(),
            id => format!(", \"directoryId\": \"{id}\""),
        };
        let node = self
            .nodes
            .iter()
            .find(|node| node.node_id == replica.replica_id);
        let endpoints: Vec<String> = node
            .iter()
            .flat_map(|node| &node.listeners)
            .map(|at| {
                let open = if at.host.contains(':') { "[" } else { "" };
                let close = if at.host.contains(':') { "]" } else { "" };
                format!("\"{}://{open}{}{close}:{}\"", at.name, at.host, at.port)
            })
            .collect();
        let endpoints = match &endpoints[..] {
            [] => String::new(),
            some => format!(", \"endpoints\": [{}]", some.join(", ")),
        };
        format!("{{\"id\": {}{directory}{endpoints}}}", replica.replica_id)
    }
}

fn status(client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    client.refresh()?;
    let cluster_id = client.cluster().id.clone().unwrap_or_default();
    let quorum = describe(client)?;
    let leader = quorum.leader()?;
    let state = &quorum.state;
    let slowest = state
        .current_voters
        .iter()
        .min_by_key(|voter| voter.log_end_offset);
    let slowest = slowest.unwrap_or(leader);
    let known = leader.last_caught_up_timestamp >= 0 && slowest.last_caught_up_timestamp >= 0;
    let lag_ms = if slowest.replica_id == leader.replica_id {
        0
    } else if known {
        leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    } else {
        -1
    };
    Ok(writeln!(
        out,
        "ClusterId:              {cluster_id}\n\
         LeaderId:               {}\n\
         LeaderEpoch:            {}\n\
         HighWatermark:          {}\n\
         MaxFollowerLag:         {}\n\
         MaxFollowerLagTimeMs:   {lag_ms}\n\
         CurrentVoters:          {}\n\
         CurrentObservers:       {}",
        state.leader_id,
        state.leader_epoch,
        state.high_watermark,
        leader.log_end_offset - slowest.log_end_offset,
        quorum.listed(&state.current_voters),
        quorum.listed(&state.observers),
    )?)
}

fn replication(client: &mut Client, ages: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let quorum = describe(client)?;
    let leader = quorum.leader()?;
    let state = &quorum.state;
    let heads = [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut add = |replica: &Replica, status: &str| {
        rows.push([
            replica.replica_id.to_string(),
            replica.replica_directory_id.to_string(),
            replica.log_end_offset.to_string(),
            (leader.log_end_offset - replica.log_end_offset).to_string(),
            moment(replica.last_fetch_timestamp, ages, now),
            moment(replica.last_caught_up_timestamp, ages, now),
            status.to_owned(),
        ]);
    };
    add(leader, "Leader");
    let others = state.current_voters.iter();
    for follower in others.filter(|voter| voter.replica_id != leader.replica_id) {
        add(follower, "Follower");
    }
    for observer in &state.observers {
        add(observer, "Observer");
    }
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| widest(rows.iter().map(|row| row[column].as_str())))
        .collect();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            write!(out, "{cell:<width$}\t")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn moment(millis: i64, age: bool, now: Duration) -> String {
    match u64::try_from(millis) {
        Err(_) => "-1".to_owned(),
        Ok(_) if !age => millis.to_string(),
        Ok(then) => {
            let age = now.saturating_sub(Duration::from_millis(then));
            format!("{} ms ago", age.as_millis())
        }
    }
}
