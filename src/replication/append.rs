//! Appending what a producer or a coordinator sends.

use std::future::Future;
use std::rc::Rc;

use bytes::Bytes;
use protocol::records::validate::Rejection;
use protocol::records::{BatchHeader, Compression, validate};
use storage::{AppendError, AppendOrigin, AppendTicket, StorageError};

use super::Acks;
use super::partition::{Partition, PartitionKey};
use super::replicas::{Missing, Replicas};
use super::settings::PartitionSettings;

/// First version of Produce whose clients know zstd (KIP-110).
const ZSTD_SINCE_PRODUCE: i16 = 7;

/// What the request says about all its batches.
#[derive(Clone, Copy, Debug)]
pub struct ProduceRules {
    /// When to answer.
    pub acks: Acks,
    /// Version of the Produce request.
    pub version: i16,
}

/// A batch that has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// The broker's time, where the topic uses LogAppendTime; for a duplicate, as in Kafka, the time of the original.
    pub log_append_time_ms: Option<i64>,
    /// First offset of the log.
    pub log_start_offset: i64,
}

/// Why a batch is not appended.
#[derive(Clone, Debug)]
pub enum AppendFailure {
    /// The partition is not here, or no longer.
    NotLeader,
    /// The records themselves.
    Rejected(Rejection),
    /// Compressed with zstd by a client that cannot know it.
    ZstdTooEarly,
    /// Part of a transaction, of which this broker knows nothing.
    Transactional,
    /// acks=all, and too few replicas are in sync.
    NotEnoughReplicas,
    /// Sequence, size or disk.
    Log(AppendError),
}

/// What a producer is told of a batch that is not appended.
#[derive(Clone, Debug)]
pub struct NotAppended {
    /// Why.
    pub failure: AppendFailure,
    /// First offset of the log, where it was the log that refused.
    pub log_start_offset: Option<i64>,
}

impl From<Missing> for AppendFailure {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotLeader => AppendFailure::NotLeader,
            Missing::Offline(error) => error.into(),
        }
    }
}

impl From<StorageError> for AppendFailure {
    fn from(error: StorageError) -> Self {
        AppendFailure::Log(AppendError::Storage(error))
    }
}

impl Replicas {
    /// Appends the batch of one partition of a produce request. Its place in the log is fixed when
    /// this returns; the future ends when it is written.
    pub fn produce(
        self: &Rc<Self>,
        key: &PartitionKey,
        records: Bytes,
        rules: ProduceRules,
    ) -> impl Future<Output = Result<Appended, NotAppended>> + use<> {
        let begun = self.find(key).map(|partition| {
            let begun = self.begin(&partition, &records, rules);
            (partition, begun)
        });
        async move {
            let (partition, begun) = begun.map_err(|missing| NotAppended {
                failure: missing.into(),
                log_start_offset: None,
            })?;
            let appended = match begun {
                Ok(ticket) => finish(&partition, ticket).await,
                Err(failure) => Err(failure),
            };
            appended.map_err(|failure| NotAppended {
                log_start_offset: failure
                    .reached_log()
                    .then(|| partition.log.log_start_offset()),
                failure,
            })
        }
    }

    fn begin(
        &self,
        partition: &Rc<Partition>,
        records: &Bytes,
        rules: ProduceRules,
    ) -> Result<AppendTicket, AppendFailure> {
        let settings = partition.settings();
        if rules.acks == Acks::All
            && partition.effective_min_in_sync() > partition.in_sync_replicas()
        {
            return Err(AppendFailure::NotEnoughReplicas);
        }
        let batch = self.check(&settings, records, rules.version)?;
        append(partition, &[batch], AppendOrigin::Client)
    }

    /// Validates a client's records and gives the bytes to append.
    fn check(
        &self,
        settings: &PartitionSettings,
        records: &Bytes,
        version: i16,
    ) -> Result<Bytes, AppendFailure> {
        let compression = BatchHeader::parse(records)
            .ok()
            .and_then(|it| it.compression().ok());
        if version < ZSTD_SINCE_PRODUCE && compression == Some(Compression::Zstd) {
            return Err(AppendFailure::ZstdTooEarly);
        }
        let now_ms = self.core.wall_clock_ms();
        let mut scratch = self.scratch.borrow_mut();
        let rules = &settings.client_rules;
        let validated =
            validate(records, rules, now_ms, &mut scratch).map_err(AppendFailure::Rejected)?;
        let header = validated.batch().header();
        if header.is_transactional() {
            return Err(AppendFailure::Transactional);
        }
        validated
            .append_bytes(rules)
            .map_err(AppendFailure::Rejected)
    }

    /// Appends a batch that a coordinator of this broker built.
    pub fn append_own(
        self: &Rc<Self>,
        partition: &Rc<Partition>,
        batch: Bytes,
    ) -> impl Future<Output = Result<Appended, AppendFailure>> + use<> {
        let begun = append(partition, &[batch], AppendOrigin::Coordinator);
        let partition = partition.clone();
        async move { finish(&partition, begun?).await }
    }
}

fn append(
    partition: &Partition,
    batches: &[Bytes],
    origin: AppendOrigin,
) -> Result<AppendTicket, AppendFailure> {
    if partition.is_deleted() {
        return Err(AppendFailure::NotLeader);
    }
    let ticket = partition
        .log
        .append(batches, partition.leader_epoch(), origin)
        .map_err(AppendFailure::Log)?;
    let bytes: usize = batches.iter().map(Bytes::len).sum();
    let appended = &partition.appended_bytes;
    appended.set(appended.get() + bytes as u64);
    Ok(ticket)
}

async fn finish(partition: &Partition, ticket: AppendTicket) -> Result<Appended, AppendFailure> {
    let base_offset = ticket.first_offset;
    let log_append_time_ms = ticket.log_append_time_ms;
    ticket.await?;
    partition.waiters.fire_all();
    Ok(Appended {
        base_offset,
        log_append_time_ms,
        log_start_offset: partition.log.log_start_offset(),
    })
}
