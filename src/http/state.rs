//! What is not as it should be, by the broker's own knowledge, as JSON: for `ringmain doctor` and for scripts.

use std::rc::Rc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shards::TaskClass;

use super::Answer;
use super::look;
use crate::coordinator::Rebalance;
use crate::replication::PartitionKey;
use crate::shard::{OldClients, Shard};

/// Partitions that are named; of more there is a number.
const NAMED_MAX: usize = 100;

/// What one core knows.
struct CoreState {
    rebalancing: Vec<Rebalance>,
    offline: Vec<(PartitionKey, String)>,
    old_versions: OldClients,
}

impl CoreState {
    fn of(shard: &Rc<Shard>) -> Self {
        CoreState {
            rebalancing: shard.groups.overview().rebalancing,
            offline: shard.replicas.out_of_service(),
            old_versions: shard.metrics.old_versions.all(),
        }
    }
}

pub(super) async fn page(shard: &Rc<Shard>) -> Answer {
    let asked = shard.cores().map(|core| {
        let look = |shard: &Rc<Shard>| std::future::ready(CoreState::of(shard));
        shard.mesh().call(core, TaskClass::Network, look)
    });
    let cores = join_all(asked).await;
    let offline: Vec<_> = cores.iter().flat_map(|core| &core.offline).collect();
    let state = json!({
        "ready": shard.start.is_ready(),
        "disks": disks(shard).await,
        "partitions_offline": offline.len(),
        "offline": named(shard, &offline),
        "rebalances": rebalances(shard, &cores),
        "old_clients": old_clients(&cores),
    });
    Answer {
        status: 200,
        content_type: "application/json",
        body: format!("{state}\n"),
    }
}

async fn disks(shard: &Rc<Shard>) -> Vec<Value> {
    let disks = look::disks(shard).await;
    let told = disks.iter().map(|disk| {
        json!({
            "path": disk.path.display().to_string(),
            "failed": disk.failed,
            "free_bytes": disk.space.map(|space| space.free),
            "total_bytes": disk.space.map(|space| space.total),
        })
    });
    told.collect()
}

fn named(shard: &Shard, offline: &[&(PartitionKey, String)]) -> Vec<Value> {
    let image = shard.image();
    let told = offline.iter().take(NAMED_MAX).map(|(key, reason)| {
        let topic = image.topic(key.topic_id).map(|topic| topic.name.as_str());
        json!({ "topic": topic, "partition": key.partition, "reason": reason })
    });
    told.collect()
}

fn rebalances(shard: &Shard, cores: &[CoreState]) -> Vec<Value> {
    let now_ms = shard.core.wall_clock_ms();
    let all = cores.iter().flat_map(|core| &core.rebalancing);
    let told = all.map(|group| {
        let since = group.since_ms.map(|since| (now_ms - since).max(0) / 1000);
        let awaited: Vec<Value> = group
            .awaited
            .iter()
            .map(|member| {
                json!({
                    "member_id": member.member_id.as_str(),
                    "client_id": member.client_id.as_str(),
                    "host": member.client_host.as_str(),
                })
            })
            .collect();
        json!({
            "group": group.group.as_str(),
            "state": group.state,
            "seconds": since,
            "members": group.members,
            "awaited": awaited,
        })
    });
    told.collect()
}

fn old_clients(cores: &[CoreState]) -> Vec<Value> {
    let all = cores.iter().flat_map(|core| &core.old_versions);
    let told = all.map(|((api, version, (software, software_version)), client)| {
        json!({
            "api": api.name(),
            "version": version,
            "answered": client.served,
            "requests": client.count,
            "software": software,
            "software_version": software_version,
            "client_id": client.client_id,
            "address": client.address.to_canonical().to_string(),
        })
    });
    told.collect()
}
