//! DeleteRecords: moving the start of a log up.

use std::rc::Rc;

use storage::{ReadError, StorageError};

use super::partition::PartitionKey;
use super::replicas::{Missing, Replicas};

/// Stands for the high watermark in a request.
const HIGH_WATERMARK: i64 = -1;

/// Why records were not deleted.
#[derive(Clone, Debug)]
pub enum DeletionFailure {
    /// The partition is not here, or no longer.
    NotLeader,
    /// `cleanup.policy` does not let records go by age or size.
    Policy,
    /// Above the high watermark, or no offset.
    OutOfRange,
    /// The disk.
    Storage(StorageError),
}

impl From<Missing> for DeletionFailure {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotLeader => DeletionFailure::NotLeader,
            Missing::Offline(error) => DeletionFailure::Storage(error),
        }
    }
}

impl Replicas {
    /// Deletes the records of a partition below `before` (-1: all). Returns the low watermark: the
    /// first offset that every replica has.
    ///
    /// # Errors
    /// See [`DeletionFailure`].
    pub async fn delete_records(
        self: Rc<Self>,
        key: PartitionKey,
        before: i64,
    ) -> Result<i64, DeletionFailure> {
        let partition = self.find(&key)?;
        if !partition.settings().deletes {
            return Err(DeletionFailure::Policy);
        }
        let high_watermark = partition.high_watermark();
        let before = match before {
            HIGH_WATERMARK => high_watermark,
            offset if (0..=high_watermark).contains(&offset) => offset,
            _ => return Err(DeletionFailure::OutOfRange),
        };
        match partition.log.trim(before).await {
            Ok(_) => Ok(partition.log.log_start_offset()),
            Err(ReadError::OutOfRange { .. }) => Err(DeletionFailure::OutOfRange),
            Err(ReadError::Storage(error)) => Err(DeletionFailure::Storage(error)),
        }
    }
}
