//! Reading for consumers: up to the high watermark, whole batches, as slices.

use std::rc::Rc;

use storage::{Piece, ReadError, ReadLimits};

use super::partition::{LeaderCheck, Partition, PartitionKey};
use super::replicas::{Missing, Replicas};
use super::waiters::{WaitId, Waiter};
use crate::outgoing::Part;

/// Which records a fetch may see (`isolation_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Everything below the high watermark.
    ReadUncommitted,
    /// Everything below the last stable offset.
    ReadCommitted,
}

/// One partition of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The partition.
    pub key: PartitionKey,
    /// First offset wanted.
    pub offset: i64,
    /// Leader epoch known to the client, -1 for none.
    pub current_leader_epoch: i32,
    /// Epoch of the last record it fetched, -1 for none.
    pub last_fetched_epoch: i32,
    /// Byte limit of this partition.
    pub max_bytes: usize,
}

/// What a partition gave.
#[derive(Debug)]
pub struct Fetched {
    /// Epoch in which this broker leads.
    pub leader_epoch: i32,
    /// High watermark.
    pub high_watermark: i64,
    /// Last stable offset.
    pub last_stable_offset: i64,
    /// First offset of the log.
    pub log_start_offset: i64,
    /// The records, or where the client's log left ours.
    pub records: FetchedRecords,
}

/// The records of a partition as slices, or the reason why there are none.
#[derive(Debug)]
pub enum FetchedRecords {
    /// Whole batches, maybe none.
    Slices {
        /// The slices in order.
        parts: Vec<Part>,
        /// Their bytes together.
        bytes: usize,
    },
    /// The largest epoch up to which both logs agree, and where it ends here (KIP-595).
    Diverging {
        /// That epoch.
        epoch: i32,
        /// Its end offset.
        end_offset: i64,
    },
}

impl Fetched {
    /// Bytes of records.
    pub fn bytes(&self) -> usize {
        match self.records {
            FetchedRecords::Slices { bytes, .. } => bytes,
            FetchedRecords::Diverging { .. } => 0,
        }
    }
}

/// Why a partition gives nothing.
#[derive(Clone, Debug)]
pub enum ReadFailure {
    /// The partition is not here, or no longer.
    NotLeader,
    /// The client's epoch is older than ours.
    FencedEpoch,
    /// The client's epoch is newer than ours.
    UnknownEpoch,
    /// The offset lies outside the log.
    OutOfRange,
    /// The topic's codec is not known to clients of this version.
    CompressionUnknown,
    /// The disk.
    Storage(storage::StorageError),
}

impl Replicas {
    /// Reads partitions in order until `max_bytes` are found. The first batch of the first partition
    /// that has any is given whole, whatever the limits say (KIP-74).
    pub async fn read_all(
        self: Rc<Self>,
        requests: Vec<ReadRequest>,
        max_bytes: usize,
        isolation: Isolation,
        zstd_known: bool,
    ) -> Vec<Result<Fetched, ReadFailure>> {
        let mut results = Vec::with_capacity(requests.len());
        let mut left = max_bytes;
        let mut first = true;
        for request in requests {
            let partition = self.find(&request.key);
            let limits = Limits {
                bytes: request.max_bytes.min(left),
                first,
                isolation,
                zstd_known,
            };
            let result = match partition {
                Ok(partition) => {
                    let result = read_one(&partition, &request, limits).await;
                    let bytes = result.as_ref().map_or(0, Fetched::bytes);
                    let fetched = &partition.fetched_bytes;
                    fetched.set(fetched.get() + bytes as u64);
                    result
                }
                Err(Missing::NotLeader) => Err(ReadFailure::NotLeader),
                Err(Missing::Offline(error)) => Err(ReadFailure::Storage(error)),
            };
            let bytes = result.as_ref().map_or(0, Fetched::bytes);
            first &= bytes == 0;
            left = left.saturating_sub(bytes);
            results.push(result);
        }
        results
    }

    /// Waits until one of the partitions has records behind the offset seen, changes its leader
    /// epoch, or is gone; or until somebody calls the wait off.
    ///
    /// The wait is registered when this returns, so that a call-off that follows finds it.
    pub fn wait_for_any(
        self: &Rc<Self>,
        id: WaitId,
        seen: Vec<(PartitionKey, i64, i32)>,
    ) -> impl Future<Output = ()> + use<> {
        let waiter = Rc::new(Waiter::default());
        let mut watched = Vec::with_capacity(seen.len());
        for (key, end_offset, leader_epoch) in seen {
            match self.get(&key) {
                Some(partition)
                    if partition.high_watermark() == end_offset
                        && partition.leader_epoch() == leader_epoch
                        && !partition.is_deleted() =>
                {
                    partition.waiters.add(&waiter);
                    watched.push(partition);
                }
                _ => waiter.fire(),
            }
        }
        self.waiters.insert(id, waiter.clone());
        let replicas = self.clone();
        async move {
            waiter.wait().await;
            replicas.waiters.remove(id);
            for partition in watched {
                partition.waiters.remove(&waiter);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Limits {
    bytes: usize,
    first: bool,
    isolation: Isolation,
    zstd_known: bool,
}

async fn read_one(
    partition: &Partition,
    request: &ReadRequest,
    limits: Limits,
) -> Result<Fetched, ReadFailure> {
    match partition.check_epoch(request.current_leader_epoch) {
        LeaderCheck::Current => {}
        LeaderCheck::Fenced => return Err(ReadFailure::FencedEpoch),
        LeaderCheck::Unknown => return Err(ReadFailure::UnknownEpoch),
    }
    if partition.is_deleted() {
        return Err(ReadFailure::NotLeader);
    }
    if !limits.zstd_known && partition.settings().zstd_only {
        return Err(ReadFailure::CompressionUnknown);
    }
    let mut fetched = Fetched {
        leader_epoch: partition.leader_epoch(),
        high_watermark: partition.high_watermark(),
        last_stable_offset: partition.last_stable_offset(),
        log_start_offset: partition.log.log_start_offset(),
        records: FetchedRecords::Slices {
            parts: Vec::new(),
            bytes: 0,
        },
    };
    if let Some(diverging) = diverges(partition, request)? {
        fetched.records = diverging;
        return Ok(fetched);
    }
    let up_to = match limits.isolation {
        Isolation::ReadUncommitted => fetched.high_watermark,
        Isolation::ReadCommitted => fetched.last_stable_offset,
    };
    let read_limits = ReadLimits {
        max_bytes: u32::try_from(limits.bytes).unwrap_or(u32::MAX),
        up_to_offset: up_to,
        whole_first_batch: limits.first,
    };
    let result = partition
        .log
        .read(request.offset, read_limits)
        .await
        .map_err(|error| failure(partition, error, request.offset))?;
    fetched.records = FetchedRecords::Slices {
        bytes: result.bytes as usize,
        parts: result.pieces.into_iter().map(part).collect(),
    };
    Ok(fetched)
}

fn failure(partition: &Partition, error: ReadError, offset: i64) -> ReadFailure {
    match error {
        ReadError::OutOfRange { .. } => ReadFailure::OutOfRange,
        ReadError::Storage(error) => {
            partition.tell_damage(&error, offset);
            ReadFailure::Storage(error)
        }
    }
}

fn part(piece: Piece) -> Part {
    match piece {
        Piece::Memory(bytes) => Part::Memory(bytes),
        Piece::File { file, offset, len } => Part::File {
            file,
            range: offset..offset + u64::from(len),
        },
    }
}

/// KIP-595: a client that says which epoch it fetched last learns where its log leaves ours.
fn diverges(
    partition: &Partition,
    request: &ReadRequest,
) -> Result<Option<FetchedRecords>, ReadFailure> {
    if request.last_fetched_epoch < 0 {
        return Ok(None);
    }
    let (epoch, end_offset) = partition.log.end_offset_for(request.last_fetched_epoch);
    if epoch < 0 || end_offset < 0 {
        // Kafka: the epoch is older than anything in the log.
        return Err(ReadFailure::OutOfRange);
    }
    let diverging = epoch < request.last_fetched_epoch || end_offset < request.offset;
    Ok(diverging.then_some(FetchedRecords::Diverging { epoch, end_offset }))
}
