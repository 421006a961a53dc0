//! Offsets by question: by time (ListOffsets) and by leader epoch (OffsetForLeaderEpoch).

use std::rc::Rc;

use storage::{ReadError, StorageError, TimestampOffset};

use super::partition::{LeaderCheck, Partition, PartitionKey};
use super::read::Isolation;
use super::replicas::{Missing, Replicas};

/// What ListOffsets asks; the numbers are the special timestamps of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// -1: behind the last record that the client may see.
    Latest,
    /// -2: the first record.
    Earliest,
    /// -3: the first record with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// -4: the first record on this node's disk (KIP-405).
    EarliestLocal,
    /// -5: the last record in tiered storage, of which there is none (KIP-1005).
    LatestTiered,
    /// -6: the first record that waits for tiered storage (KIP-1023).
    EarliestPendingUpload,
    /// The first record with this timestamp or a later one.
    At(i64),
}

impl OffsetSpec {
    /// The meaning of a timestamp in a request of this version, if it has one.
    pub fn from_wire(timestamp: i64, version: i16) -> Option<OffsetSpec> {
        let (spec, since) = match timestamp {
            -1 => (OffsetSpec::Latest, 1),
            -2 => (OffsetSpec::Earliest, 1),
            -3 => (OffsetSpec::MaxTimestamp, 7),
            -4 => (OffsetSpec::EarliestLocal, 8),
            -5 => (OffsetSpec::LatestTiered, 9),
            -6 => (OffsetSpec::EarliestPendingUpload, 11),
            0.. => (OffsetSpec::At(timestamp), 1),
            _ => return None,
        };
        (version >= since).then_some(spec)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum OffsetsFailure {
    /// The partition is not here, or no longer.
    NotLeader,
    /// The client's epoch is older than ours.
    FencedEpoch,
    /// The client's epoch is newer than ours.
    UnknownEpoch,
    /// The disk.
    Storage(StorageError),
}

/// Where an epoch ends in this log; both -1 where that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch not above the one asked for.
    pub epoch: i32,
    /// Offset behind its last record.
    pub end_offset: i64,
}

impl From<Missing> for OffsetsFailure {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotLeader => OffsetsFailure::NotLeader,
            Missing::Offline(error) => OffsetsFailure::Storage(error),
        }
    }
}

impl Replicas {
    /// Answers ListOffsets for one partition; `None` where no record fits.
    ///
    /// # Errors
    /// See [`OffsetsFailure`].
    pub async fn list_offset(
        self: Rc<Self>,
        key: PartitionKey,
        current_leader_epoch: i32,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<Option<TimestampOffset>, OffsetsFailure> {
        let partition = self.led(&key, current_leader_epoch)?;
        let last_fetchable = match isolation {
            Isolation::ReadUncommitted => partition.high_watermark(),
            Isolation::ReadCommitted => partition.last_stable_offset(),
        };
        let found = match spec {
            OffsetSpec::Latest => {
                return Ok(Some(TimestampOffset {
                    timestamp: -1,
                    offset: last_fetchable,
                    leader_epoch: Some(partition.leader_epoch()),
                }));
            }
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                return Ok(Some(partition.log.earliest()));
            }
            OffsetSpec::LatestTiered | OffsetSpec::EarliestPendingUpload => return Ok(None),
            OffsetSpec::MaxTimestamp => partition.log.max_timestamp().await,
            OffsetSpec::At(timestamp) => partition.log.offset_for_timestamp(timestamp).await,
        };
        let found = found.map_err(|error| match error {
            ReadError::Storage(error) => OffsetsFailure::Storage(error),
            ReadError::OutOfRange { .. } => OffsetsFailure::NotLeader,
        })?;
        Ok(found.filter(|found| found.offset < last_fetchable))
    }

    /// Answers OffsetForLeaderEpoch for one partition.
    ///
    /// # Errors
    /// See [`OffsetsFailure`].
    pub fn epoch_end(
        &self,
        key: &PartitionKey,
        current_leader_epoch: i32,
        epoch: i32,
    ) -> Result<EpochEnd, OffsetsFailure> {
        let partition = self.led(key, current_leader_epoch)?;
        let (epoch, end_offset) = partition.log.end_offset_for(epoch);
        Ok(EpochEnd { epoch, end_offset })
    }

    fn led(
        &self,
        key: &PartitionKey,
        current_leader_epoch: i32,
    ) -> Result<Rc<Partition>, OffsetsFailure> {
        let partition = self.find(key)?;
        match partition.check_epoch(current_leader_epoch) {
            LeaderCheck::Current => Ok(partition),
            LeaderCheck::Fenced => Err(OffsetsFailure::FencedEpoch),
            LeaderCheck::Unknown => Err(OffsetsFailure::UnknownEpoch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OffsetSpec;

    #[test]
    fn special_timestamps_have_their_first_versions() {
        for (timestamp, since) in [
            (-1, 1),
            (-2, 1),
            (-3, 7),
            (-4, 8),
            (-5, 9),
            (-6, 11),
            (0, 1),
        ] {
            assert!(
                OffsetSpec::from_wire(timestamp, since).is_some(),
                "{timestamp}"
            );
            assert!(
                OffsetSpec::from_wire(timestamp, since - 1).is_none(),
                "{timestamp}"
            );
        }
        assert_eq!(OffsetSpec::from_wire(-7, 11), None);
        assert_eq!(OffsetSpec::from_wire(i64::MIN, 11), None);
    }
}
