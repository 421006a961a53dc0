//! Logs and snapshots: a line a batch, and a line a record.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use protocol::records::legacy::LegacyView;
use protocol::records::{
    BatchError, BatchView, Compression, NO_SEQUENCE, Record, increment_sequence,
};

use super::decoders::Decoder;
use super::entries::{Entry, LogFile};
use super::{DumpLogArgs, Failure, Findings, control, failed, offset_of};
use crate::tools::progress::Progress;

/// What a compressed batch may unpack to. Brokers take requests up to 100 MiB.
pub(super) const MOST_UNPACKED: usize = 1 << 30;

pub(super) fn dump(
    arguments: &DumpLogArgs,
    path: &Path,
    out: &mut dyn Write,
    findings: &mut Findings,
) -> Result<(), Failure> {
    print_title(path, out)?;
    let log = LogFile::open(path)?;
    let end = log
        .size()
        .min(u64::from(arguments.max_bytes.unsigned_abs()));
    let prints_records = arguments.prints_records();
    let mut records = (arguments.deep_iteration || prints_records).then(|| Records {
        decoder: arguments.decoder(),
        contents: prints_records,
        metadata: !arguments.skip_record_metadata,
        path,
        last_offset: -1,
    });
    let mut progress = Progress::beside_output("dump-log", end);
    let mut position = 0;
    while let Some(entry) = log.entry(position, end)? {
        let batch = Batch::read(&log, &entry)?;
        batch.print(&log, &entry, out)?;
        if let Some(records) = &mut records {
            records
                .print(&batch, out, findings)
                .map_err(|stop| match stop {
                    Stop::Batch(error) => log.at(position, error),
                    Stop::Failure(failure) => failure,
                })?;
        }
        position += entry.size as u64;
        progress.at(position);
    }
    drop(progress);
    if position < end && arguments.max_bytes == i32::MAX {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left = end - position;
        writeln!(out, "Found {left} invalid bytes at the end of {name}")?;
    }
    Ok(())
}

/// Which offset the file begins or ends at.
fn print_title(path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = name.strip_suffix(".checkpoint") else {
        writeln!(out, "Log starting offset: {}", offset_of(path)?)?;
        return Ok(());
    };
    if stem == "bootstrap" {
        writeln!(out, "KRaft bootstrap snapshot")?;
        return Ok(());
    }
    let numbers = stem.split_once('-').and_then(|(offset, epoch)| {
        Some((offset.parse::<i64>().ok()?, epoch.parse::<i32>().ok()?))
    });
    let (offset, epoch) = numbers.ok_or_else(|| {
        failed(
            path,
            "the name of a snapshot must be OFFSET-EPOCH.checkpoint",
        )
    })?;
    writeln!(out, "Snapshot end offset: {offset}, epoch: {epoch}")?;
    Ok(())
}

/// A batch of either kind.
pub(super) enum Batch {
    Old(LegacyView),
    New(BatchView),
}

impl Batch {
    pub(super) fn read(log: &LogFile, entry: &Entry) -> Result<Batch, Failure> {
        let bytes = log.bytes(entry)?;
        Batch::parse(&bytes, entry.magic).map_err(|error| log.at(entry.position, error))
    }

    fn parse(bytes: &Bytes, magic: i8) -> Result<Batch, BatchError> {
        if magic < 2 {
            LegacyView::parse(bytes).map(Batch::Old)
        } else {
            BatchView::parse(bytes).map(Batch::New)
        }
    }

    fn print(&self, log: &LogFile, entry: &Entry, out: &mut dyn Write) -> Result<(), Failure> {
        let failed = |error: BatchError| log.at(entry.position, error);
        let (time, compression, crc, valid) = match self {
            Batch::Old(batch) => {
                write!(out, "offset: {}", batch.offset)?;
                let time = (old_timestamp_type(batch), batch.timestamp);
                (time, batch.compression(), batch.crc, batch.crc_ok())
            }
            Batch::New(batch) => {
                let horizon = if batch.attributes.has_delete_horizon() {
                    format!("OptionalLong[{}]", batch.base_timestamp)
                } else {
                    "OptionalLong.empty".to_owned()
                };
                write!(
                    out,
                    "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} \
                     producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} isControl: {} \
                     deleteHorizonMs: {horizon}",
                    batch.base_offset,
                    batch.last_offset(),
                    batch.records_count,
                    batch.base_sequence,
                    last_sequence(batch),
                    batch.producer_id,
                    batch.producer_epoch,
                    batch.partition_leader_epoch,
                    batch.is_transactional(),
                    batch.is_control(),
                )?;
                let time = (timestamp_type(batch.timestamp_type()), batch.max_timestamp);
                (time, batch.compression(), batch.crc, batch.crc_ok())
            }
        };
        writeln!(
            out,
            " position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {crc} isvalid: {valid}",
            entry.position,
            time.0,
            time.1,
            entry.size,
            entry.magic,
            compression.map_err(failed)?.name(),
        )?;
        Ok(())
    }
}

/// A damaged header may have any number.
fn last_sequence(batch: &BatchView) -> i32 {
    if batch.base_sequence < NO_SEQUENCE {
        return batch.base_sequence.wrapping_add(batch.last_offset_delta);
    }
    batch.last_sequence()
}

fn timestamp_type(kind: protocol::records::TimestampType) -> &'static str {
    match kind {
        protocol::records::TimestampType::CreateTime => "CreateTime",
        protocol::records::TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn old_timestamp_type(batch: &LegacyView) -> &'static str {
    if batch.magic == 0 {
        "NoTimestampType"
    } else {
        timestamp_type(batch.timestamp_type())
    }
}

/// How records are printed.
struct Records<'a> {
    decoder: Decoder,
    /// Keys and values.
    contents: bool,
    metadata: bool,
    path: &'a Path,
    /// Of the record before.
    last_offset: i64,
}

/// Why the records of a batch could not be printed to their end.
enum Stop {
    Batch(BatchError),
    Failure(Failure),
}

impl From<BatchError> for Stop {
    fn from(error: BatchError) -> Stop {
        Stop::Batch(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failure(Failure::from(error))
    }
}

impl Records<'_> {
    fn print(
        &mut self,
        batch: &Batch,
        out: &mut dyn Write,
        findings: &mut Findings,
    ) -> Result<(), Stop> {
        match batch {
            Batch::New(batch) => {
                for record in batch.records(MOST_UNPACKED)? {
                    let record = record?;
                    self.follow(record.offset, findings);
                    if self.metadata {
                        print_metadata(batch, &record, out)?;
                    }
                    if self.contents && !batch.is_control() {
                        self.print_contents(&record, out)?;
                    }
                    writeln!(out)?;
                }
            }
            Batch::Old(batch) => {
                // A wrong checksum inside a wrapper is an error.
                let valid = batch.crc_ok();
                let wrapper = batch.compression()? != Compression::None;
                let mut records = batch.records(MOST_UNPACKED)?;
                while let Some(record) = records.next_with_crc() {
                    let (record, crc) = record?;
                    self.follow(record.offset, findings);
                    if self.metadata {
                        print_sizes(old_timestamp_type(batch), &record, out)?;
                        write!(out, " isValid: {} crc: {crc}", wrapper || valid)?;
                    }
                    if self.contents {
                        self.print_contents(&record, out)?;
                    }
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }

    fn follow(&mut self, offset: i64, findings: &mut Findings) {
        if self.last_offset.checked_add(1) != Some(offset) {
            Findings::add(&mut findings.holes, self.path, self.last_offset, offset);
        }
        self.last_offset = offset;
    }

    fn print_contents(&self, record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
        let (key, value) = self.decoder.decode(record)?;
        let mut before = if self.metadata { " " } else { "| " };
        if let Some(key) = key {
            write!(out, "{before}key: {key}")?;
            before = " ";
        }
        if let Some(value) = value {
            write!(out, "{before}payload: {value}")?;
        }
        Ok(())
    }
}

fn print_metadata(batch: &BatchView, record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
    print_sizes(timestamp_type(batch.timestamp_type()), record, out)?;
    let sequence = if batch.base_sequence >= 0 {
        // A delta is an int32 in the record.
        let delta = record.offset.wrapping_sub(batch.base_offset);
        increment_sequence(batch.base_sequence, i32::try_from(delta).unwrap_or(0))
    } else {
        NO_SEQUENCE
    };
    write!(out, " sequence: {sequence} headerKeys: [")?;
    for (at, header) in record.headers.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{}", String::from_utf8_lossy(&header.key))?;
    }
    write!(out, "]")?;
    if batch.is_control() {
        control::print(record, out)?;
    }
    Ok(())
}

fn print_sizes(kind: &str, record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
    let size = |part: &Option<Bytes>| part.as_ref().map_or(-1, |part| part.len() as i64);
    write!(
        out,
        "| offset: {} {kind}: {} keySize: {} valueSize: {}",
        record.offset,
        record.timestamp,
        size(&record.key),
        size(&record.value)
    )?;
    Ok(())
}
