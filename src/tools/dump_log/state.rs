//! What a log keeps beside its records: producers, and transactions that were aborted.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use bytes::Bytes;
use protocol::stored::{AbortedTxn, ProducerSnapshot};
use protocol::wire::{DecodeError, Reader};

use super::{Failure, failed};

/// Version and checksum stand before what the checksum is of.
const PRODUCERS_AT: usize = 6;
/// 46 bytes a producer: some two million of them.
const LARGEST_SNAPSHOT: u64 = 100 << 20;

/// A damaged snapshot is told and no failure, as in Kafka.
pub(super) fn dump_producers(
    path: &Path,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<(), Failure> {
    let size = std::fs::metadata(path).map_err(|error| failed(path, error))?;
    if size.len() > LARGEST_SNAPSHOT {
        let why = format!(
            "{} bytes are too many for a snapshot of producers",
            size.len()
        );
        return Err(failed(path, why));
    }
    let bytes = Bytes::from(std::fs::read(path).map_err(|error| failed(path, error))?);
    match read_producers(bytes) {
        Ok(snapshot) => print_producers(&snapshot, out),
        Err(why) => {
            out.flush()?;
            // Nobody is left to be told if standard error is gone.
            let _ = writeln!(errors, "{why}");
            Ok(())
        }
    }
}

fn read_producers(bytes: Bytes) -> Result<ProducerSnapshot, String> {
    let invalid =
        |error: &dyn std::fmt::Display| format!("Snapshot failed schema validation: {error}");
    let mut reader = Reader::new(bytes.clone());
    let version = reader.i16().map_err(|error| invalid(&error))?;
    if version != 1 {
        let why = format!("Snapshot contained an unknown file version {version}");
        return Err(invalid(&why));
    }
    let decode = |reader: &mut Reader| -> Result<ProducerSnapshot, DecodeError> {
        ProducerSnapshot::decode(reader, version)
    };
    let snapshot = decode(&mut reader).map_err(|error| invalid(&error))?;
    let computed = crc32c::crc32c(bytes.get(PRODUCERS_AT..).unwrap_or_default());
    if snapshot.crc != computed {
        return Err(format!(
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: {}. Computed crc: {computed}",
            snapshot.crc
        ));
    }
    Ok(snapshot)
}

fn print_producers(snapshot: &ProducerSnapshot, out: &mut dyn Write) -> Result<(), Failure> {
    for producer in &snapshot.producer_entries {
        let transaction = match producer.current_txn_first_offset {
            offset if offset >= 0 => format!("OptionalLong[{offset}]"),
            _ => "OptionalLong.empty".to_owned(),
        };
        write!(
            out,
            "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {transaction} lastTimestamp: {}",
            producer.producer_id, producer.epoch, producer.coordinator_epoch, producer.timestamp
        )?;
        if producer.last_offset >= 0 {
            write!(
                out,
                " firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
                first_sequence(producer.last_sequence, producer.offset_delta),
                producer.last_sequence,
                producer.last_offset,
                producer.offset_delta,
                producer.timestamp
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Sequences go on at 0 behind the largest.
fn first_sequence(last: i32, delta: i32) -> i32 {
    if last < delta {
        i32::MAX
            .wrapping_sub(delta.wrapping_sub(last))
            .wrapping_add(1)
    } else {
        last.wrapping_sub(delta)
    }
}

/// int16 version, then the entry.
const ABORTED: usize = 34;

pub(super) fn dump_aborted(path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        // As in Kafka, where the file comes with the first entry.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(path, error)),
    };
    let mut file = BufReader::new(file);
    let mut bytes = [0; ABORTED];
    // What is too short at the end is no entry.
    while file.read_exact(&mut bytes).is_ok() {
        let mut reader = Reader::new(Bytes::copy_from_slice(&bytes));
        let entry = |reader: &mut Reader| -> Result<(i16, AbortedTxn), DecodeError> {
            Ok((reader.i16()?, AbortedTxn::decode(reader, 0)?))
        };
        let (version, entry) = entry(&mut reader).map_err(|error| failed(path, error))?;
        if version > 0 {
            return Err(Failure::new(format!(
                "Unexpected aborted transaction version {version} in transaction index {}, current version is 0",
                super::absolute(path).display()
            )));
        }
        writeln!(
            out,
            "version: {version} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        )?;
    }
    Ok(())
}
