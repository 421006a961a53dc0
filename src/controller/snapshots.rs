//! When a snapshot of the metadata is written, and which old ones and old segments go.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use shards::Core;
use shards::time::Instant;

use super::log::{MetadataLog, MetadataLogError};
use crate::metadata::snapshot_file::{SnapshotId, last_contained_log_timestamp, write_snapshot};
use crate::metadata::{Image, QuorumFacts};

/// After a snapshot could not be written, the next try waits for this long.
const RETRY: Duration = Duration::from_secs(60);

/// The settings about snapshots.
#[derive(Clone, Debug)]
pub struct SnapshotRules {
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub after_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` for no limit by time.
    pub after: Option<Duration>,
    /// `metadata.max.retention.bytes`: log and snapshots together; `None` for no limit.
    pub retention_bytes: Option<u64>,
    /// `metadata.max.retention.ms`; `None` for no limit.
    pub retention: Option<Duration>,
}

/// Keeps count of what was written since the last snapshot.
pub(super) struct Snapshots {
    rules: SnapshotRules,
    bytes: Cell<u64>,
    /// A snapshot is being written.
    writing: Cell<bool>,
    /// A timer will ask again.
    waiting: Cell<bool>,
    /// When the last one was written, or tried, or the controller started.
    last: Cell<Instant>,
    failure: RefCell<Option<String>>,
}

/// What to do about the next snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: none is wanted, one is being written, or a timer runs already.
    Nothing,
    /// Write one, and call [`Snapshots::written`] afterwards.
    Write,
    /// Ask again after this time, and call [`Snapshots::waited`] before.
    Wait(Duration),
}

impl Snapshots {
    /// `bytes` of records lie behind the newest snapshot.
    pub fn new(rules: SnapshotRules, bytes: u64, now: Instant) -> Self {
        Self {
            rules,
            bytes: Cell::new(bytes),
            writing: Cell::new(false),
            waiting: Cell::new(false),
            last: Cell::new(now),
            failure: RefCell::default(),
        }
    }

    pub fn add_bytes(&self, more: u64) {
        self.bytes.set(self.bytes.get() + more);
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Looks at the rules. With nothing new there is no timer either.
    pub fn next(&self, now: Instant) -> Next {
        if self.writing.get() || self.bytes.get() == 0 {
            return Next::Nothing;
        }
        let passed = now.saturating_duration_since(self.last.get());
        let enough = self.bytes.get() >= self.rules.after_bytes;
        let span = match (self.failure.borrow().is_some(), enough, self.rules.after) {
            (true, _, _) => RETRY,
            (false, true, _) => Duration::ZERO,
            (false, false, Some(after)) => after,
            (false, false, None) => return Next::Nothing,
        };
        match span.saturating_sub(passed) {
            Duration::ZERO => {
                self.writing.set(true);
                Next::Write
            }
            _ if self.waiting.get() => Next::Nothing,
            wait => {
                self.waiting.set(true);
                Next::Wait(wait)
            }
        }
    }

    /// The timer of [`Next::Wait`] ran out.
    pub fn waited(&self) {
        self.waiting.set(false);
    }

    /// The snapshot of [`Next::Write`] is written, or could not be.
    pub fn written(&self, now: Instant) {
        self.writing.set(false);
        self.last.set(now);
    }

    /// Writes a snapshot of `image` and removes what is no longer needed.
    pub async fn write(
        &self,
        core: &Core,
        log: &dyn MetadataLog,
        image: Arc<Image>,
        quorum: QuorumFacts,
    ) {
        let covered = self.bytes.replace(0);
        let result = self.try_write(core, log, image, quorum).await;
        if result.is_err() {
            self.add_bytes(covered);
        }
        *self.failure.borrow_mut() = result.err();
    }

    async fn try_write(
        &self,
        core: &Core,
        log: &dyn MetadataLog,
        image: Arc<Image>,
        quorum: QuorumFacts,
    ) -> Result<(), String> {
        let id = SnapshotId::of(&image);
        let now_ms = core.wall_clock_ms();
        // A hundred thousand partitions take a while: not on a core that serves.
        let content = core
            .blocking(move || write_snapshot(&image, &quorum, now_ms))
            .await;
        let content = content.map_err(|error| error.to_string())?;
        let written = log.write_file(&id.file_name(), content).await;
        written.map_err(|error| error.to_string())?;
        self.clean(log, now_ms)
            .await
            .map_err(|error| error.to_string())
    }

    /// Removes the oldest snapshot, and the log up to the next, while the rules say so. The newest
    /// always stays.
    async fn clean(&self, log: &dyn MetadataLog, now_ms: i64) -> Result<(), MetadataLogError> {
        loop {
            let files = log.files().await?;
            let mut snapshots: Vec<(SnapshotId, u64)> = files
                .iter()
                .filter_map(|file| Some((SnapshotId::from_file_name(&file.name)?, file.bytes)))
                .collect();
            snapshots.sort_unstable();
            let [(oldest, _), (next, _), ..] = snapshots.as_slice() else {
                return Ok(());
            };
            let total: u64 = snapshots.iter().map(|(_, bytes)| bytes).sum();
            let too_much = self
                .rules
                .retention_bytes
                .is_some_and(|max| log.size_bytes() + total > max);
            if !too_much && !self.too_old(log, *oldest, now_ms).await? {
                return Ok(());
            }
            log.delete_before(next.end_offset).await?;
            log.remove_file(&oldest.file_name()).await?;
        }
    }

    async fn too_old(
        &self,
        log: &dyn MetadataLog,
        id: SnapshotId,
        now_ms: i64,
    ) -> Result<bool, MetadataLogError> {
        let Some(retention) = self.rules.retention else {
            return Ok(false);
        };
        let content = log.read_file(&id.file_name()).await?.unwrap_or_default();
        let Ok(timestamp_ms) = last_contained_log_timestamp(content) else {
            return Ok(false);
        };
        let age_ms = now_ms.saturating_sub(timestamp_ms);
        Ok(u128::try_from(age_ms).is_ok_and(|age| age > retention.as_millis()))
    }
}
