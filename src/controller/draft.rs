//! What is about to be appended: batches, and the machine as it will be when they are durable.

use bytes::Bytes;

use super::machine::Machine;
use crate::metadata::{ControlEntry, Entry, EntryError, EntryWriter, LogEntry, VersionedRecord};

/// Collects decisions against a copy of the machine (which shares all that does not change), so
/// that several commands go to disk in one durable write, and none is seen before.
pub(super) struct Draft {
    machine: Machine,
    batches: Vec<Bytes>,
    next_offset: i64,
    now_ms: i64,
}

impl Draft {
    /// Begins behind `end_offset` of the log.
    pub fn new(machine: Machine, end_offset: i64, now_ms: i64) -> Self {
        Self {
            machine,
            batches: Vec::new(),
            next_offset: end_offset,
            now_ms,
        }
    }

    /// The machine with everything drafted so far.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Offset of the next record.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Bytes drafted so far.
    pub fn len(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }

    /// Adds records of one decision, as one batch.
    ///
    /// # Errors
    /// A record cannot be written, or contradicts the state: an error in the decision. The draft
    /// is as it was before.
    pub fn add(
        &mut self,
        records: impl IntoIterator<Item = VersionedRecord>,
    ) -> Result<(), EntryError> {
        self.add_entries(records.into_iter().map(Entry::Metadata))
    }

    /// Adds control records, as one batch.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_control(&mut self, records: Vec<ControlEntry>) -> Result<(), EntryError> {
        self.add_entries(records.into_iter().map(Entry::Control))
    }

    fn add_entries(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), EntryError> {
        let mut entries = entries.peekable();
        if entries.peek().is_none() {
            return Ok(());
        }
        let epoch = self.machine.quorum_epoch();
        let mut writer = EntryWriter::new(self.next_offset, epoch, self.now_ms);
        let mut after = self.machine.clone();
        for entry in entries {
            let offset = writer.next_offset();
            match &entry {
                Entry::Metadata(record) => writer.metadata(record)?,
                Entry::Control(record) => writer.control(record)?,
            }
            after.apply(&LogEntry {
                offset,
                epoch,
                timestamp_ms: self.now_ms,
                entry,
            })?;
        }
        self.next_offset = writer.next_offset();
        self.batches.extend(writer.finish()?);
        self.machine = after;
        Ok(())
    }

    /// The batches, and the machine that follows from them.
    pub fn finish(self) -> (Vec<Bytes>, Machine) {
        (self.batches, self.machine)
    }
}
