//! Partitions that nobody leads, and replicas that lag or are gone.

use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::{MetadataResponse, MetadataResponseMetadataResponsePartition};

use super::super::Failure;
use super::report::Report;
use super::{Patient, plural, some_of};

pub(super) fn examine(
    patient: &mut Patient,
    metadata: &MetadataResponse,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    report.section("Partitions")?;
    let alive: BTreeSet<i32> = metadata.brokers.iter().map(|it| it.node_id).collect();
    let reasons = reasons(patient);
    // By reason, so that a lost disk of a thousand partitions is one finding.
    let mut offline: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut behind, mut count) = (Vec::new(), 0);
    for topic in &metadata.topics {
        let topic_name = topic.name.as_deref().unwrap_or_default();
        for partition in &topic.partitions {
            count += 1;
            let name = format!("{topic_name}-{}", partition.partition_index);
            if let Some(reason) = reasons.get(&name) {
                offline.entry(reason.clone()).or_default().push(name);
            } else if partition.leader_id < 0 {
                offline
                    .entry(why(partition, &alive))
                    .or_default()
                    .push(name);
            } else if partition.isr_nodes.len() < partition.replica_nodes.len() {
                behind.push(name);
            }
        }
    }
    for (reason, names) in &offline {
        report.bad(
            &format!(
                "{} offline: {} ({reason})",
                plural(names.len(), "partition"),
                some_of(names)
            ),
            "bring the disk or the broker back; `ringmain log-dirs` shows the disks",
        )?;
    }
    if !behind.is_empty() {
        report.bad(
            &format!("{} with fewer replicas in sync than there are: {}", plural(behind.len(), "partition"), some_of(&behind)),
            "look at the brokers of the missing replicas; writes are refused where fewer are left than min.insync.replicas",
        )?;
    }
    if offline.is_empty() && behind.is_empty() {
        report.ok(&format!(
            "{} in {}, all of them served",
            plural(count, "partition"),
            plural(metadata.topics.len(), "topic")
        ))?;
    }
    Ok(())
}

fn why(partition: &MetadataResponseMetadataResponsePartition, alive: &BTreeSet<i32>) -> String {
    let down: Vec<String> = partition
        .replica_nodes
        .iter()
        .filter(|id| !alive.contains(id))
        .map(i32::to_string)
        .collect();
    if !down.is_empty() {
        return format!(
            "no leader; broker {} with a replica does not run",
            down.join(", ")
        );
    }
    match partition.offline_replicas.is_empty() {
        false => "no leader; the disk of its replica has failed".to_owned(),
        true => "no leader".to_owned(),
    }
}

/// What a broker of ours says of its partitions, by name.
fn reasons(patient: &Patient) -> BTreeMap<String, String> {
    let state = patient.http.as_ref().and_then(|port| port.state().ok());
    let state = state.unwrap_or_default();
    let named = state["offline"].as_array().into_iter().flatten();
    named
        .filter_map(|one| {
            let name = format!("{}-{}", one["topic"].as_str()?, one["partition"]);
            Some((name, one["reason"].as_str()?.to_owned()))
        })
        .collect()
}
