//! The group coordinators of a core, on the logs of its partitions.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use protocol::ErrorCode;
use storage::{Piece, ReadError, ReadLimits};

use super::Shard;
use crate::coordinator::runtime::{CoordinatorLog, LocalFuture};
use crate::replication::{Partition, Replicas};

impl Shard {
    /// This core begins to lead a partition of the offsets topic.
    pub fn lead_groups(&self, partition: &Rc<Partition>) {
        let log = PartitionLog {
            core: self.core.clone(),
            replicas: self.replicas.clone(),
            partition: partition.clone(),
        };
        self.groups
            .become_leader(partition.key.partition, Rc::new(log));
    }
}

/// A partition as its coordinator uses it.
struct PartitionLog {
    core: shards::Core,
    replicas: Rc<Replicas>,
    partition: Rc<Partition>,
}

impl CoordinatorLog for PartitionLog {
    fn append(&self, batch: Bytes) -> LocalFuture<'_, Result<i64, ErrorCode>> {
        let appended = self.replicas.append_own(&self.partition, batch);
        Box::pin(async move {
            match appended.await {
                Ok(appended) => Ok(appended.base_offset),
                Err(failure) => {
                    tracing::warn!(?failure, "a coordinator's records could not be written");
                    Err(failure.code())
                }
            }
        })
    }

    fn read(&self, offset: i64, max_bytes: usize) -> LocalFuture<'_, Result<Bytes, ErrorCode>> {
        Box::pin(async move {
            let limits = ReadLimits {
                max_bytes: u32::try_from(max_bytes).unwrap_or(u32::MAX),
                up_to_offset: i64::MAX,
                whole_first_batch: true,
            };
            let log = &self.partition.log;
            let found = log
                .read(offset, limits)
                .await
                .map_err(|error| match error {
                    ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
                    ReadError::Storage(_) => ErrorCode::KafkaStorageError,
                })?;
            let mut bytes = BytesMut::with_capacity(found.bytes as usize);
            for piece in found.pieces {
                match piece {
                    Piece::Memory(part) => bytes.extend_from_slice(&part),
                    Piece::File { file, offset, len } => {
                        let part = file.read_exact_at(&self.core, offset, len as usize).await;
                        bytes.extend_from_slice(&part.map_err(|_| ErrorCode::KafkaStorageError)?);
                    }
                }
            }
            Ok(bytes.freeze())
        })
    }

    fn start_offset(&self) -> i64 {
        self.partition.log.log_start_offset()
    }

    fn end_offset(&self) -> i64 {
        self.partition.log.log_end_offset()
    }

    fn max_batch_bytes(&self) -> usize {
        self.partition.settings().client_rules.max_message_bytes
    }
}
