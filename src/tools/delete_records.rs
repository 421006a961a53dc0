//! `ringmain delete-records`: partitions begin at later offsets.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use protocol::Str;
use protocol::messages::{
    DeleteRecordsRequest, DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
};
use serde_json::Value;

use super::Failure;
use super::admin::{Each, on_leaders};
use super::client::{ClientError, Partition};
use super::exception::named;
use super::flags::Brokers;

#[derive(Args, Debug)]
pub struct DeleteRecordsArgs {
    #[command(flatten)]
    brokers: Brokers,
    /// What to delete: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}
    #[arg(long, value_name = "FILE")]
    offset_json_file: PathBuf,
}

pub(super) fn run(arguments: &DeleteRecordsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let place = arguments.offset_json_file.display();
    let text = std::fs::read(&arguments.offset_json_file)
        .map_err(|error| Failure::new(format!("--offset-json-file {place}: {error}")))?;
    let offsets = parse(&text)
        .map_err(|failure| Failure::new(format!("--offset-json-file {place}: {failure}")))?;
    let mut client = arguments.brokers.connect()?;
    writeln!(out, "Executing records delete operation")?;
    let timeout_ms = i32::try_from(client.settings().request_timeout.as_millis());
    let timeout_ms = timeout_ms.unwrap_or(i32::MAX);
    let mut done = Each::new();
    on_leaders(
        &mut client,
        offsets.keys(),
        &mut done,
        |client, node, partitions| {
            let response = client.send(node, &request(partitions, &offsets, timeout_ms))?;
            let mut each = Vec::new();
            for topic in response.topics {
                for partition in topic.partitions {
                    let key = Partition {
                        topic: topic.name.clone(),
                        number: partition.partition_index,
                    };
                    let result = ClientError::check(partition.error_code, None);
                    each.push((key, result.map(|()| partition.low_watermark)));
                }
            }
            Ok(each)
        },
    )?;
    writeln!(out, "Records delete operation completed:")?;
    for (partition, result) in done {
        match result {
            Ok(offset) => writeln!(out, "partition: {partition}\tlow_watermark: {offset}")?,
            Err(error) => writeln!(out, "partition: {partition}\terror: {}", named(&error))?,
        }
    }
    Ok(())
}

fn request(
    partitions: &[Partition],
    offsets: &BTreeMap<Partition, i64>,
    timeout_ms: i32,
) -> DeleteRecordsRequest {
    let mut topics: BTreeMap<&Str, Vec<DeleteRecordsRequestDeleteRecordsPartition>> =
        BTreeMap::new();
    for partition in partitions {
        let row = DeleteRecordsRequestDeleteRecordsPartition {
            partition_index: partition.number,
            offset: offsets.get(partition).copied().unwrap_or_default(),
        };
        topics.entry(&partition.topic).or_default().push(row);
    }
    let topics =
        topics.into_iter().map(
            |(name, partitions)| DeleteRecordsRequestDeleteRecordsTopic {
                name: name.clone(),
                partitions: partitions.into(),
            },
        );
    DeleteRecordsRequest {
        topics: topics.collect(),
        timeout_ms,
    }
}

/// The first offsets that partitions shall have.
fn parse(text: &[u8]) -> Result<BTreeMap<Partition, i64>, Failure> {
    let json: Value = serde_json::from_slice(text)
        .map_err(|_| Failure::new("The input string is not a valid JSON"))?;
    match json.get("version").map(Value::as_i64) {
        None | Some(Some(1)) => {}
        _ => {
            let version = &json["version"];
            return Err(Failure::new(format!(
                "Not supported version field value {version}"
            )));
        }
    }
    let rows = json.get("partitions").and_then(Value::as_array);
    let rows = rows.ok_or_else(|| Failure::new("Missing partitions field"))?;
    let mut offsets = BTreeMap::new();
    for row in rows {
        let number = row["partition"].as_i64();
        let fields = (
            row["topic"].as_str(),
            number.and_then(|number| i32::try_from(number).ok()),
            row["offset"].as_i64(),
        );
        let (Some(topic), Some(number), Some(offset)) = fields else {
            return Err(Failure::new(format!(
                "each of the partitions needs topic, partition and offset, this one has not: {row}"
            )));
        };
        let topic = topic.into();
        let partition = Partition { topic, number };
        if offsets.insert(partition.clone(), offset).is_some() {
            return Err(Failure::new(format!(
                "Offset json file contains duplicate topic partitions: {partition}"
            )));
        }
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_checked() {
        let row = r#"{"topic": "t", "partition": 1, "offset": 5}"#;
        let good = parse(format!(r#"{{"partitions": [{row}]}}"#).as_bytes()).unwrap();
        assert_eq!(good.len(), 1);
        for (text, why) in [
            ("x".to_owned(), "The input string is not a valid JSON"),
            ("{}".to_owned(), "Missing partitions field"),
            (
                r#"{"version": 2}"#.to_owned(),
                "Not supported version field value 2",
            ),
            (
                format!(r#"{{"partitions": [{row}, {row}]}}"#),
                "Offset json file contains duplicate topic partitions: t-1",
            ),
        ] {
            assert_eq!(parse(text.as_bytes()).err(), Some(Failure::new(why)));
        }
        assert!(parse(br#"{"partitions": [{"topic": "t"}]}"#).is_err());
    }
}
