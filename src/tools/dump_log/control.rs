//! Control records: the ends of transactions, and what the quorum notes for itself.

use std::io::Write;

use protocol::records::Record;
use protocol::stored::{
    ControlRecordTypeSchema, EndTxnMarker, KRaftVersionRecord, LeaderChangeMessage,
    SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use protocol::wire::{DecodeError, Reader};

use crate::tools::Failure;

/// Kafka reads all of them as this version, also those that say another about themselves.
const VERSION: i16 = 0;

pub(super) fn print(record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
    let text = describe(record).map_err(|error| {
        Failure::new(format!(
            "the control record at offset {}: {error}",
            record.offset
        ))
    })?;
    write!(out, " {text}")?;
    Ok(())
}

fn describe(record: &Record) -> Result<String, DecodeError> {
    let mut key = Reader::new(record.key.clone().unwrap_or_default());
    let version = key.i16()?;
    let kind = ControlRecordTypeSchema::decode(&mut key, version.min(VERSION))?.r#type;
    let value = &mut Reader::new(record.value.clone().unwrap_or_default());
    Ok(match kind {
        0 | 1 => {
            // Markers have their version in front.
            let version = value.i16()?;
            let marker = EndTxnMarker::decode(value, version.min(VERSION))?;
            let name = if kind == 0 { "ABORT" } else { "COMMIT" };
            format!(
                "endTxnMarker: {name} coordinatorEpoch: {}",
                marker.coordinator_epoch
            )
        }
        2 => {
            let change = LeaderChangeMessage::decode(value, VERSION)?;
            format!("LeaderChange: {}", change.json(change.version))
        }
        3 => {
            let header = SnapshotHeaderRecord::decode(value, VERSION)?;
            format!("SnapshotHeader {}", header.json(header.version))
        }
        4 => {
            let footer = SnapshotFooterRecord::decode(value, VERSION)?;
            format!("SnapshotFooter {}", footer.json(footer.version))
        }
        5 => {
            let level = KRaftVersionRecord::decode(value, VERSION)?;
            format!("KRaftVersion {}", level.json(level.version))
        }
        6 => {
            let voters = VotersRecord::decode(value, VERSION)?;
            format!("KRaftVoters {}", voters.json(voters.version))
        }
        other => format!("controlType: UNKNOWN({other})"),
    })
}
