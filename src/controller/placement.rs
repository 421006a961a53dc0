//! Which brokers hold a new partition, and the records of new partitions.

use protocol::stored::{MetadataRecord, PartitionRecord};
use protocol::{ErrorCode, Uuid};

use super::directories::DirectoryChooser;
use super::machine::Machine;
use super::refusal::Refusal;

/// Most partitions that one request may create; Kafka's own limit.
pub(super) const PARTITIONS_PER_REQUEST_MAX: i64 = 10_000;

impl Machine {
    /// Replicas of `count` new partitions from index `first` on, leaders in turn.
    ///
    /// Brokers that are up come first, so that each partition has a leader; a broker all of whose
    /// directories are cordoned takes nothing.
    pub(super) fn place(
        &self,
        first: usize,
        count: usize,
        replication: i16,
    ) -> Result<Vec<Vec<i32>>, Refusal> {
        let refusal = |message: String| Refusal::new(ErrorCode::InvalidReplicationFactor, message);
        let Ok(factor) = usize::try_from(replication) else {
            return Err(refusal(format!(
                "Invalid replication factor {replication}: the replication factor must be positive."
            )));
        };
        let image = self.latest();
        let usable = || {
            image
                .brokers()
                .filter(|it| it.uncordoned_log_dirs().next().is_some())
        };
        let active: Vec<i32> = usable()
            .map(|it| it.id)
            .filter(|&id| image.is_active(id))
            .collect();
        let fenced: Vec<i32> = usable()
            .map(|it| it.id)
            .filter(|&id| !image.is_active(id))
            .collect();
        let total = active.len() + fenced.len();
        if active.is_empty() {
            return Err(refusal(
                "All brokers are currently fenced, or have all their log directories cordoned."
                    .to_owned(),
            ));
        }
        if factor > total {
            return Err(refusal(format!(
                "The target replication factor of {replication} cannot be reached because only \
                 {total} broker(s) are registered or some brokers have all their log directories \
                 cordoned."
            )));
        }
        let turn = |ids: &[i32], by: usize| -> Vec<i32> {
            (0..ids.len())
                .map(|at| ids[(at + by) % ids.len()])
                .collect()
        };
        Ok((first..first + count)
            .map(|index| {
                let mut replicas = turn(&active, index);
                replicas.extend(turn(&fenced, index));
                replicas.truncate(factor);
                replicas
            })
            .collect())
    }

    /// Checks replicas that were given by hand; `replication` is that of the other partitions.
    pub(super) fn check_assignment(
        &self,
        replicas: &[i32],
        replication: Option<usize>,
    ) -> Result<(), Refusal> {
        let refuse = |message: String| {
            Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!("The manual partition assignment includes {message}"),
            ))
        };
        if replicas.is_empty() {
            return refuse("an empty replica list.".to_owned());
        }
        let mut sorted = replicas.to_vec();
        sorted.sort_unstable();
        let mut previous = None;
        for &id in &sorted {
            match self.latest().broker(id) {
                None => {
                    return refuse(format!("broker {id}, but no such broker is registered."));
                }
                Some(broker) if broker.uncordoned_log_dirs().next().is_none() => {
                    return refuse(format!(
                        "broker {id}, but all its log directories are cordoned."
                    ));
                }
                Some(_) if previous == Some(id) => {
                    return refuse(format!("the broker {id} more than once."));
                }
                Some(_) => previous = Some(id),
            }
        }
        match replication {
            Some(expected) if expected != sorted.len() => refuse(format!(
                "a partition with {} replica(s), but this is not consistent with previous \
                 partitions, which have {expected} replica(s).",
                sorted.len()
            )),
            _ => Ok(()),
        }
    }

    /// Replicas that are up now: the first in-sync replicas.
    pub(super) fn active_of(&self, replicas: &[i32]) -> Vec<i32> {
        replicas
            .iter()
            .copied()
            .filter(|&id| self.latest().is_active(id))
            .collect()
    }

    /// Record of a new partition. `isr` is not empty; its first leads.
    pub(super) fn new_partition(
        topic: Uuid,
        index: usize,
        replicas: &[i32],
        isr: Vec<i32>,
        leader_epoch: i32,
        directories: &mut DirectoryChooser<'_>,
    ) -> MetadataRecord {
        MetadataRecord::from(PartitionRecord {
            partition_id: i32::try_from(index).unwrap_or(i32::MAX),
            topic_id: topic,
            replicas: replicas.into(),
            leader: isr.first().copied().unwrap_or(-1),
            isr: isr.into(),
            leader_epoch,
            partition_epoch: 0,
            directories: replicas.iter().map(|&id| directories.choose(id)).collect(),
            ..Default::default()
        })
    }
}
