//! Between batches of the metadata log (or of a snapshot) and what stands in them.

use bytes::Bytes;
use protocol::Pieces;
use protocol::records::{BatchBuilder, BatchView, BuildError, Record, split_batches};
use protocol::stored::{
    KRaftVersionRecord, LeaderChangeMessage, MetadataRecord, SnapshotFooterRecord,
    SnapshotHeaderRecord, VotersRecord,
};
use protocol::wire::{DecodeError, EncodeError, Reader, Writer};

/// Apache appends batches of at most this many bytes to the metadata log and to snapshots.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes a compressed batch of the metadata log may expand to. Apache writes none compressed.
const INFLATED_BYTES_MAX: usize = 16 * BATCH_BYTES_MAX;

/// Something is wrong with the bytes of the metadata log or of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {problem}")]
pub struct EntryError {
    /// Offset of the record, or of the batch where that is as far as one can tell; -1 before that.
    pub offset: i64,
    pub problem: String,
}

impl EntryError {
    pub(super) fn new(offset: i64, problem: impl std::fmt::Display) -> Self {
        Self {
            offset,
            problem: problem.to_string(),
        }
    }
}

/// A record with the schema version it is written in.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedRecord {
    pub version: i16,
    pub record: MetadataRecord,
}

impl VersionedRecord {
    fn decode(value: Bytes) -> Result<Self, DecodeError> {
        let (record, version) = MetadataRecord::decode(value)?;
        Ok(Self { version, record })
    }

    fn encode(&self) -> Result<Bytes, EncodeError> {
        self.record.encode(self.version)
    }
}

/// A record of the quorum itself, from a control batch.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlEntry {
    LeaderChange(LeaderChangeMessage),
    SnapshotHeader(SnapshotHeaderRecord),
    SnapshotFooter(SnapshotFooterRecord),
    KRaftVersion(KRaftVersionRecord),
    Voters(VotersRecord),
    /// A control record of another type.
    Other(i16),
}

/// What one record of a batch holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Control(ControlEntry),
    Metadata(VersionedRecord),
}

/// One record, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    pub offset: i64,
    /// Quorum leader epoch of the batch.
    pub epoch: i32,
    /// Append time, unix ms.
    pub timestamp_ms: i64,
    pub entry: Entry,
}

/// Type ids of control records; see `ControlRecordType` in Apache's clients.
mod control_type {
    pub const LEADER_CHANGE: i16 = 2;
    pub const SNAPSHOT_HEADER: i16 = 3;
    pub const SNAPSHOT_FOOTER: i16 = 4;
    pub const KRAFT_VERSION: i16 = 5;
    pub const KRAFT_VOTERS: i16 = 6;
}

/// Schema version of every control record written: the highest that Apache 4.4 writes.
const CONTROL_VERSION: i16 = 0;

impl ControlEntry {
    fn type_id(&self) -> i16 {
        match self {
            Self::LeaderChange(_) => control_type::LEADER_CHANGE,
            Self::SnapshotHeader(_) => control_type::SNAPSHOT_HEADER,
            Self::SnapshotFooter(_) => control_type::SNAPSHOT_FOOTER,
            Self::KRaftVersion(_) => control_type::KRAFT_VERSION,
            Self::Voters(_) => control_type::KRAFT_VOTERS,
            Self::Other(id) => *id,
        }
    }

    fn value(&self) -> Result<Bytes, EntryError> {
        let mut writer = Writer::new();
        match self {
            Self::LeaderChange(it) => it.encode(&mut writer, it.version),
            Self::SnapshotHeader(it) => it.encode(&mut writer, CONTROL_VERSION),
            Self::SnapshotFooter(it) => it.encode(&mut writer, CONTROL_VERSION),
            Self::KRaftVersion(it) => it.encode(&mut writer, CONTROL_VERSION),
            Self::Voters(it) => it.encode(&mut writer, CONTROL_VERSION),
            Self::Other(_) => Ok(()),
        }
        .map_err(|error| EntryError::new(-1, error))?;
        Ok(writer.freeze())
    }

    fn decode(record: &Record) -> Result<Self, EntryError> {
        let at = |problem: String| EntryError::new(record.offset, problem);
        let mut key = Reader::new(record.key.clone().unwrap_or_default());
        let key_error = |error| at(format!("control record key: {error}"));
        key.i16().map_err(key_error)?;
        let type_id = key.i16().map_err(key_error)?;
        let bytes = record.value.clone().unwrap_or_default();
        let mut value = Reader::new(bytes.clone());
        let decoded = match type_id {
            control_type::LEADER_CHANGE => {
                // The first field is the schema version: the record describes itself.
                let version = Reader::new(bytes)
                    .i16()
                    .map_err(|error| at(error.to_string()))?;
                LeaderChangeMessage::decode(&mut value, version).map(Self::LeaderChange)
            }
            control_type::SNAPSHOT_HEADER => {
                SnapshotHeaderRecord::decode(&mut value, CONTROL_VERSION).map(Self::SnapshotHeader)
            }
            control_type::SNAPSHOT_FOOTER => {
                SnapshotFooterRecord::decode(&mut value, CONTROL_VERSION).map(Self::SnapshotFooter)
            }
            control_type::KRAFT_VERSION => {
                KRaftVersionRecord::decode(&mut value, CONTROL_VERSION).map(Self::KRaftVersion)
            }
            control_type::KRAFT_VOTERS => {
                VotersRecord::decode(&mut value, CONTROL_VERSION).map(Self::Voters)
            }
            other => Ok(Self::Other(other)),
        };
        decoded.map_err(|error| at(format!("control record of type {type_id}: {error}")))
    }
}

/// Calls `visit` for every record of `batches`, in order.
///
/// # Errors
/// A batch or record that cannot be read, or what `visit` returns.
pub fn read_entries(
    batches: Bytes,
    visit: impl FnMut(LogEntry) -> Result<(), EntryError>,
) -> Result<(), EntryError> {
    read_entries_of(&mut Pieces::from(batches), visit)
}

/// The same for batches that are read one after the other.
///
/// # Errors
/// As [`read_entries`].
pub fn read_entries_of(
    batches: &mut Pieces,
    mut visit: impl FnMut(LogEntry) -> Result<(), EntryError>,
) -> Result<(), EntryError> {
    let mut next_offset = -1;
    while let Some(bytes) = next_batch(batches) {
        for batch in split_batches(bytes) {
            let batch = batch.map_err(|error| EntryError::new(next_offset, error))?;
            if next_offset != -1 && batch.base_offset != next_offset {
                let problem = format!("the next batch starts at {}", batch.base_offset);
                return Err(EntryError::new(next_offset, problem));
            }
            batch
                .check_crc()
                .map_err(|error| EntryError::new(batch.base_offset, error))?;
            next_offset = batch.next_offset();
            read_batch(&batch, &mut visit)?;
        }
    }
    Ok(())
}

/// The bytes of the next batch, which may be cut short or say anything; none at the end.
fn next_batch(batches: &mut Pieces) -> Option<Bytes> {
    /// Base offset, and the length of what follows.
    const HEAD: usize = 12;
    if batches.is_empty() {
        return None;
    }
    let length = batches.peek::<HEAD>().map_or(0, |head| {
        let [.., a, b, c, d] = head;
        usize::try_from(i32::from_be_bytes([a, b, c, d])).unwrap_or(0)
    });
    Some(batches.take_bytes(HEAD + length))
}

fn read_batch(
    batch: &BatchView,
    visit: &mut impl FnMut(LogEntry) -> Result<(), EntryError>,
) -> Result<(), EntryError> {
    let base = batch.base_offset;
    let records = batch
        .records(INFLATED_BYTES_MAX)
        .map_err(|error| EntryError::new(base, error))?;
    for record in records {
        let record = record.map_err(|error| EntryError::new(base, error))?;
        let entry = if batch.is_control() {
            Entry::Control(ControlEntry::decode(&record)?)
        } else {
            let value = record.value.clone().unwrap_or_default();
            let decoded = VersionedRecord::decode(value);
            Entry::Metadata(decoded.map_err(|error| EntryError::new(record.offset, error))?)
        };
        visit(LogEntry {
            offset: record.offset,
            epoch: batch.partition_leader_epoch,
            timestamp_ms: record.timestamp,
            entry,
        })?;
    }
    Ok(())
}

/// Writes records as batches: runs of control and of metadata records, each batch at most
/// [`BATCH_BYTES_MAX`] (or [`EntryWriter::batches_of`]) long unless a single record is longer.
#[derive(Debug)]
pub struct EntryWriter {
    epoch: i32,
    now_ms: i64,
    next_offset: i64,
    control: bool,
    batch: Option<BatchBuilder>,
    batch_bytes_max: usize,
    batches: Vec<Bytes>,
}

impl EntryWriter {
    /// Starts at `base_offset`; all batches carry `epoch` and the time `now_ms`.
    #[must_use]
    pub fn new(base_offset: i64, epoch: i32, now_ms: i64) -> Self {
        let next_offset = base_offset;
        Self {
            epoch,
            now_ms,
            next_offset,
            control: false,
            batch: None,
            batch_bytes_max: BATCH_BYTES_MAX,
            batches: Vec::new(),
        }
    }

    /// The same with batches of at most so many bytes.
    #[must_use]
    pub fn batches_of(mut self, bytes: usize) -> Self {
        self.batch_bytes_max = bytes;
        self
    }

    /// Offset that the next record gets.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Adds a metadata record.
    ///
    /// # Errors
    /// The record cannot be written in its version.
    pub fn metadata(&mut self, record: &VersionedRecord) -> Result<(), EntryError> {
        let value = record
            .encode()
            .map_err(|error| EntryError::new(self.next_offset, error))?;
        self.put(false, None, value)
    }

    /// Adds a control record.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn control(&mut self, record: &ControlEntry) -> Result<(), EntryError> {
        let mut key = Writer::new();
        key.i16(CONTROL_VERSION);
        key.i16(record.type_id());
        self.put(true, Some(key.freeze()), record.value()?)
    }

    /// Ends the batch at hand; the next record begins a new one.
    ///
    /// # Errors
    /// The batch is beyond what the format can say.
    pub fn end_batch(&mut self) -> Result<(), EntryError> {
        if let Some(batch) = self.batch.take() {
            let built = batch.build().map_err(|error| self.at(error))?;
            self.batches.push(built.freeze());
        }
        Ok(())
    }

    /// All batches, each by itself.
    ///
    /// # Errors
    /// As [`Self::end_batch`].
    pub fn finish(mut self) -> Result<Vec<Bytes>, EntryError> {
        self.end_batch()?;
        Ok(self.batches)
    }

    fn put(&mut self, control: bool, key: Option<Bytes>, value: Bytes) -> Result<(), EntryError> {
        let max = self.batch_bytes_max;
        let full = |batch: &BatchBuilder| batch.size_in_bytes() + value.len() > max;
        if self.control != control || self.batch.as_ref().is_some_and(full) {
            self.end_batch()?;
        }
        self.control = control;
        let (offset, epoch, timestamp) = (self.next_offset, self.epoch, self.now_ms);
        let batch = self.batch.get_or_insert_with(|| {
            BatchBuilder::new(offset)
                .partition_leader_epoch(epoch)
                .control(control)
        });
        let record = Record {
            offset,
            timestamp,
            key,
            value: Some(value),
            headers: Vec::new(),
        };
        batch
            .append_record(&record)
            .map_err(|error| EntryError::new(offset, error))?;
        self.next_offset += 1;
        Ok(())
    }

    fn at(&self, error: BuildError) -> EntryError {
        EntryError::new(self.next_offset, error)
    }
}
