//! Metadata snapshots, `<end offset>-<epoch>.checkpoint`, and `bootstrap.checkpoint`: batches of
//! records between a header and a footer, as Apache writes them.

use bytes::Bytes;
use protocol::Pieces;
use protocol::stored::{KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord};

use super::entries::{
    ControlEntry, Entry, EntryError, EntryWriter, LogEntry, VersionedRecord, read_entries_of,
};
use super::image::{Image, Provenance};
use super::records::snapshot_records;
use super::replay::{QuorumFacts, Replay};
use super::versions::{MINIMUM_METADATA_VERSION, MetadataVersion};

/// Suffix of all snapshots.
pub const CHECKPOINT_SUFFIX: &str = ".checkpoint";
/// Bootstrap records of directories that were formatted before Kafka 4.1.
pub const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";
/// Where `storage format` puts the bootstrap records, and the voters of a dynamic quorum.
pub const FIRST_CHECKPOINT: SnapshotId = SnapshotId {
    end_offset: 0,
    epoch: 0,
};

/// Which records a snapshot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// First offset of the log that is not in it.
    pub end_offset: i64,
    /// Quorum leader epoch of the last record in it.
    pub epoch: i32,
}

impl SnapshotId {
    /// Id of a snapshot of an image.
    #[must_use]
    pub fn of(image: &Image) -> Self {
        let at = image.provenance;
        Self {
            end_offset: at.offset + 1,
            epoch: at.epoch.max(0),
        }
    }

    /// Name of its file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!(
            "{:020}-{:010}{CHECKPOINT_SUFFIX}",
            self.end_offset, self.epoch
        )
    }

    /// Id from the name of a file; `None` for files that are no snapshot, or only part of one.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let (offset, epoch) = name.strip_suffix(CHECKPOINT_SUFFIX)?.split_once('-')?;
        let digits = |text: &str, count: usize| {
            text.len() == count && text.bytes().all(|letter| letter.is_ascii_digit())
        };
        if !digits(offset, 20) || !digits(epoch, 10) {
            return None;
        }
        Some(Self {
            end_offset: offset.parse().ok()?,
            epoch: epoch.parse().ok()?,
        })
    }
}

/// Batches of a snapshot are no longer: each is read and written in one piece of memory.
const BATCH_BYTES: usize = 64 << 10;

/// Bytes of a snapshot of `image`, in pieces.
///
/// The voters go with it when `kraft.version` is above 0, since the log before it may be deleted.
///
/// # Errors
/// A record cannot be written at the image's level of `metadata.version`, or the log holds records
/// that are not known here.
pub fn write_snapshot(
    image: &Image,
    quorum: &QuorumFacts,
    now_ms: i64,
) -> Result<Vec<Bytes>, EntryError> {
    if image.unknown_records > 0 {
        let problem = format!(
            "{} record(s) of unknown types would be lost",
            image.unknown_records
        );
        return Err(EntryError::new(image.provenance.offset, problem));
    }
    let version = MetadataVersion(
        image
            .features
            .metadata_version()
            .unwrap_or(MINIMUM_METADATA_VERSION),
    );
    let timestamp_ms = image.provenance.timestamp_ms.max(0);
    let mut writer = begin(quorum, SnapshotId::of(image).epoch, timestamp_ms, now_ms)?;
    let mut written = Ok(());
    snapshot_records(image, |record| {
        if written.is_ok() {
            written = writer.metadata(&version.versioned(record));
        }
    });
    written?;
    end(writer)
}

/// Bytes of a checkpoint with these records, in pieces: header, voters, records, footer.
///
/// # Errors
/// A record cannot be written in its version.
pub fn write_checkpoint(
    records: &[VersionedRecord],
    quorum: &QuorumFacts,
    epoch: i32,
    last_contained_log_timestamp: i64,
    now_ms: i64,
) -> Result<Vec<Bytes>, EntryError> {
    let mut writer = begin(quorum, epoch, last_contained_log_timestamp, now_ms)?;
    for record in records {
        writer.metadata(record)?;
    }
    end(writer)
}

/// What stands before the records.
fn begin(
    quorum: &QuorumFacts,
    epoch: i32,
    last_contained_log_timestamp: i64,
    now_ms: i64,
) -> Result<EntryWriter, EntryError> {
    let mut writer = EntryWriter::new(0, epoch, now_ms).batches_of(BATCH_BYTES);
    writer.control(&ControlEntry::SnapshotHeader(SnapshotHeaderRecord {
        version: 0,
        last_contained_log_timestamp,
    }))?;
    if quorum.kraft_version > 0 {
        writer.control(&kraft_version_entry(quorum.kraft_version))?;
        if let Some(voters) = &quorum.voters {
            writer.control(&ControlEntry::Voters(voters.clone()))?;
        }
    }
    Ok(writer)
}

/// What stands behind them.
fn end(mut writer: EntryWriter) -> Result<Vec<Bytes>, EntryError> {
    writer.end_batch()?;
    writer.control(&ControlEntry::SnapshotFooter(SnapshotFooterRecord {
        version: 0,
    }))?;
    writer.finish()
}

/// The control record of a level of `kraft.version`.
#[must_use]
pub fn kraft_version_entry(kraft_version: i16) -> ControlEntry {
    ControlEntry::KRaftVersion(KRaftVersionRecord {
        version: 0,
        kraft_version,
    })
}

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    pub records: Vec<VersionedRecord>,
    pub quorum: QuorumFacts,
    /// Append time of the last record it stands for, unix ms.
    pub last_contained_log_timestamp: i64,
}

/// Reads a checkpoint whole: for bootstrap records, which are few.
///
/// # Errors
/// Bytes that cannot be read, or no header, or no footer: the file was not written to its end.
pub fn read_checkpoint(content: Pieces) -> Result<Checkpoint, EntryError> {
    let mut checkpoint = Checkpoint::default();
    let mut records = Vec::new();
    let (quorum, timestamp) = walk(content, |entry| {
        if let Entry::Metadata(record) = entry.entry {
            records.push(record);
        }
        Ok(())
    })?;
    checkpoint.records = records;
    checkpoint.quorum = quorum;
    checkpoint.last_contained_log_timestamp = timestamp;
    Ok(checkpoint)
}

/// Append time of the last record that a snapshot stands for, unix ms.
///
/// # Errors
/// As [`read_checkpoint`].
pub fn last_contained_log_timestamp(content: Pieces) -> Result<i64, EntryError> {
    walk(content, |_| Ok(())).map(|(_, timestamp_ms)| timestamp_ms)
}

/// Replays a snapshot into an empty [`Replay`].
///
/// # Errors
/// As [`read_checkpoint`], and a record that contradicts those before it.
pub fn replay_snapshot(content: Pieces, id: SnapshotId) -> Result<Replay, EntryError> {
    let mut replay = Replay::default();
    let (_, timestamp_ms) = walk(content, |entry| replay.apply_from_snapshot(&entry))?;
    replay.end_snapshot(Provenance {
        offset: id.end_offset - 1,
        epoch: id.epoch,
        timestamp_ms,
    });
    Ok(replay)
}

/// Walks all entries and checks that they stand between a header and a footer.
fn walk(
    mut content: Pieces,
    mut visit: impl FnMut(LogEntry) -> Result<(), EntryError>,
) -> Result<(QuorumFacts, i64), EntryError> {
    let mut quorum = QuorumFacts::default();
    let mut header = None;
    let mut ended = false;
    read_entries_of(&mut content, |entry| {
        let offset = entry.offset;
        match &entry.entry {
            Entry::Control(ControlEntry::SnapshotHeader(it)) if header.is_none() && offset == 0 => {
                header = Some(it.last_contained_log_timestamp);
            }
            _ if header.is_none() || ended => {
                return Err(EntryError::new(
                    offset,
                    "a record outside header and footer",
                ));
            }
            Entry::Control(ControlEntry::SnapshotFooter(_)) => ended = true,
            Entry::Control(ControlEntry::KRaftVersion(it)) => {
                quorum.kraft_version = it.kraft_version;
            }
            Entry::Control(ControlEntry::Voters(it)) => quorum.voters = Some(it.clone()),
            _ => {}
        }
        visit(entry)
    })?;
    match (header, ended) {
        (Some(timestamp), true) => Ok((quorum, timestamp)),
        (None, _) => Err(EntryError::new(-1, "no header: the file is no snapshot")),
        (_, false) => Err(EntryError::new(
            -1,
            "no footer: the file was not written to its end",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_apache() {
        let id = SnapshotId {
            end_offset: 91,
            epoch: 1,
        };
        assert_eq!(id.file_name(), "00000000000000000091-0000000001.checkpoint");
        assert_eq!(SnapshotId::from_file_name(&id.file_name()), Some(id));
        for other in [
            BOOTSTRAP_CHECKPOINT,
            "00000000000000000091-0000000001.checkpoint.part",
            "00000000000000000091-0000000001.checkpoint.deleted",
            "91-1.checkpoint",
            "-0000000000000000001-0000000001.checkpoint",
            "00000000000000000091.snapshot",
        ] {
            assert_eq!(SnapshotId::from_file_name(other), None, "{other}");
        }
    }
}
