//! Replaying the metadata log: records in, images out, with transactions and control records.

use protocol::Uuid;
use protocol::stored::{MetadataRecord, VotersRecord};

use super::apply::ApplyError;
use super::entries::{ControlEntry, Entry, EntryError, LogEntry};
use super::image::{Image, Provenance};

/// What control records say about the quorum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuorumFacts {
    /// `kraft.version`: 0 static voters, 1 voters from records (KIP-853).
    pub kraft_version: i16,
    /// Latest set of voters; `None` while `kraft.version` is 0.
    pub voters: Option<VotersRecord>,
    /// The leader of the last epoch in the log.
    pub leader_id: Option<i32>,
}

/// A metadata transaction (KIP-868) that has begun and not ended.
#[derive(Clone, Debug)]
struct Transaction {
    began_at: i64,
    /// The image from before it, to fall back to.
    before: Image,
}

/// Follows the metadata log.
///
/// Inside a transaction [`Self::image`] stays at the image from before it, so nobody sees half of
/// it; the end publishes all of it, an abort nothing.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    latest: Image,
    transaction: Option<Transaction>,
    quorum: QuorumFacts,
}

impl Replay {
    /// The image to read: without an unfinished transaction.
    #[must_use]
    pub fn image(&self) -> &Image {
        self.transaction
            .as_ref()
            .map_or(&self.latest, |transaction| &transaction.before)
    }

    /// The image that the next record is decided against, unfinished transaction included.
    #[must_use]
    pub fn latest(&self) -> &Image {
        &self.latest
    }

    /// Offset of the record that began an unfinished transaction.
    #[must_use]
    pub fn open_transaction(&self) -> Option<i64> {
        self.transaction
            .as_ref()
            .map(|transaction| transaction.began_at)
    }

    /// What control records said so far.
    #[must_use]
    pub fn quorum(&self) -> &QuorumFacts {
        &self.quorum
    }

    /// Applies one entry of the metadata log.
    ///
    /// # Errors
    /// The entry contradicts what came before; the state is then unchanged.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), EntryError> {
        match &entry.entry {
            Entry::Control(control) => self.control(control),
            Entry::Metadata(record) => {
                let offset = entry.offset;
                self.metadata(offset, &record.record)
                    .map_err(|error| EntryError::new(offset, error))?;
            }
        }
        let at = Provenance {
            offset: entry.offset,
            epoch: entry.epoch,
            timestamp_ms: entry.timestamp_ms,
        };
        self.latest.provenance = at;
        Ok(())
    }

    /// Applies one record of a snapshot. Its offset says nothing about the log, so the image keeps
    /// its provenance until [`Self::end_snapshot`].
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_from_snapshot(&mut self, entry: &LogEntry) -> Result<(), EntryError> {
        match &entry.entry {
            Entry::Control(control) => self.control(control),
            Entry::Metadata(record) => self
                .latest
                .apply(entry.offset, &record.record)
                .map_err(|error| EntryError::new(entry.offset, error))?,
        }
        Ok(())
    }

    /// Ends a snapshot: the image stands for all records up to `at`.
    pub fn end_snapshot(&mut self, at: Provenance) {
        self.latest.provenance = at;
        self.latest.features.changed_at = at.offset;
        self.latest.retired.mark_from_snapshot();
    }

    fn control(&mut self, control: &ControlEntry) {
        match control {
            ControlEntry::LeaderChange(it) => self.quorum.leader_id = Some(it.leader_id),
            ControlEntry::KRaftVersion(it) => {
                self.quorum.kraft_version = it.kraft_version;
                self.latest.kraft_version = it.kraft_version;
                if let Some(transaction) = &mut self.transaction {
                    transaction.before.kraft_version = it.kraft_version;
                }
            }
            ControlEntry::Voters(it) => self.quorum.voters = Some(it.clone()),
            ControlEntry::SnapshotHeader(_)
            | ControlEntry::SnapshotFooter(_)
            | ControlEntry::Other(_) => {}
        }
    }

    fn metadata(&mut self, offset: i64, record: &MetadataRecord) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::BeginTransaction(_) => {
                if self.transaction.is_some() {
                    return Err(ApplyError::Transaction {
                        what: "a transaction inside another",
                    });
                }
                let before = self.latest.clone();
                self.transaction = Some(Transaction {
                    began_at: offset,
                    before,
                });
                Ok(())
            }
            MetadataRecord::EndTransaction(_) => match self.transaction.take() {
                Some(_) => Ok(()),
                None => Err(ApplyError::Transaction {
                    what: "the end of no transaction",
                }),
            },
            MetadataRecord::AbortTransaction(_) => match self.transaction.take() {
                Some(transaction) => {
                    self.latest = transaction.before;
                    Ok(())
                }
                None => Err(ApplyError::Transaction {
                    what: "the abort of no transaction",
                }),
            },
            record => self.latest.apply(offset, record),
        }
    }
}

/// True if `voters` is one node with this id (and this directory, where the set knows it).
#[must_use]
pub fn is_only_voter(voters: &VotersRecord, id: i32, directory: Uuid) -> bool {
    voters.voters.only().is_some_and(|only| {
        let anywhere = only.voter_directory_id == Uuid::ZERO;
        only.voter_id == id && (anywhere || only.voter_directory_id == directory)
    })
}
