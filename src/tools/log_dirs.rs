//! `ringmain log-dirs`: what lies in the data directories of brokers, as JSON.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Args;
use protocol::ErrorCode;
use protocol::messages::{
    DescribeLogDirsRequest, DescribeLogDirsResponseDescribeLogDirsResult as LogDir,
};
use serde_json::json;

use super::Failure;
use super::client::{Client, ClientError, Node};
use super::exception;
use super::flags::Brokers;

#[derive(Args, Debug)]
pub struct LogDirsArgs {
    #[command(flatten)]
    brokers: Brokers,
    /// Describe the data directories
    #[arg(long, required = true)]
    describe: bool,
    /// Only partitions of these topics
    #[arg(
        long,
        value_name = "TOPIC,...",
        default_value = "",
        hide_default_value = true
    )]
    topic_list: String,
    /// Only these brokers
    #[arg(
        long,
        value_name = "BROKER,...",
        default_value = "",
        hide_default_value = true
    )]
    broker_list: String,
}

pub(super) fn run(arguments: &LogDirsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut asked = BTreeSet::new();
    for text in parts(&arguments.broker_list) {
        let id: i32 = text
            .parse()
            .map_err(|_| Failure::new(format!("--broker-list: {text:?} is no broker's id")))?;
        asked.insert(id);
    }
    let mut client = arguments.brokers.connect()?;
    let known: BTreeSet<i32> = client.nodes()?.iter().map(|node| node.id).collect();
    let unknown: BTreeSet<i32> = asked.difference(&known).copied().collect();
    if !unknown.is_empty() {
        return Err(Failure::new(format!(
            "ERROR: The given brokers do not exist from --broker-list: {}. Current existent brokers: {}",
            joined(&unknown),
            joined(&known)
        )));
    }
    let brokers = if asked.is_empty() { known } else { asked };
    writeln!(out, "Querying brokers for log directories information")?;
    let topics: BTreeSet<&str> = parts(&arguments.topic_list).collect();
    let mut all = Vec::new();
    for &broker in &brokers {
        let directories: Vec<String> = describe(&mut client, broker)?
            .iter()
            .map(|directory| shown(directory, &topics))
            .collect();
        all.push(format!(
            r#"{{"broker":{broker},"logDirs":[{}]}}"#,
            directories.join(",")
        ));
    }
    writeln!(
        out,
        "Received log directory information from brokers {}",
        joined(&brokers)
    )?;
    Ok(writeln!(
        out,
        r#"{{"brokers":[{}],"version":1}}"#,
        all.join(",")
    )?)
}

fn describe(client: &mut Client, broker: i32) -> Result<Vec<LogDir>, ClientError> {
    let request = DescribeLogDirsRequest { topics: None };
    client.retrying(|client| {
        let response = client.send(Node::Id(broker), &request)?;
        ClientError::check(response.error_code, None)?;
        Ok(response.results.into())
    })
}

/// The fields in the order in which Kafka's tool has them.
fn shown(directory: &LogDir, topics: &BTreeSet<&str>) -> String {
    let mut partitions = Vec::new();
    let chosen = directory
        .topics
        .iter()
        .filter(|topic| topics.is_empty() || topics.contains(&*topic.name));
    for topic in chosen {
        for partition in &topic.partitions {
            let name = json!(format!("{}-{}", topic.name, partition.partition_index));
            partitions.push((
                topic,
                partition.partition_index,
                format!(
                    r#"{{"partition":{name},"size":{},"offsetLag":{},"isFuture":{}}}"#,
                    partition.partition_size, partition.offset_lag, partition.is_future_key
                ),
            ));
        }
    }
    partitions.sort_by(|a, b| (&a.0.name, a.1).cmp(&(&b.0.name, b.1)));
    let partitions: Vec<String> = partitions.into_iter().map(|(_, _, text)| text).collect();
    let error = ErrorCode::from_i16(directory.error_code).filter(|code| !code.is_none());
    let error = json!(error.map(exception::full_name));
    format!(
        r#"{{"partitions":[{}],"error":{error},"logDir":{}}}"#,
        partitions.join(","),
        json!(&*directory.log_dir)
    )
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|part| !part.is_empty())
}

fn joined(ids: &BTreeSet<i32>) -> String {
    let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
    ids.join(",")
}
