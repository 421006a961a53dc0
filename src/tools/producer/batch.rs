//! Records of one partition on their way.

use std::time::Instant;

use bytes::Bytes;
use protocol::records::{BatchBuilder, Compression};

use super::ProducerRecord;
use crate::tools::client::ClientError;

/// What is kept of a record until it is delivered.
#[derive(Clone, Copy, Debug)]
pub(in crate::tools) struct RecordFacts {
    pub(in crate::tools) sent: Instant,
    pub(in crate::tools) key_size: Option<usize>,
    pub(in crate::tools) value_size: Option<usize>,
}

/// A batch that is written, or given up.
#[derive(Debug)]
pub(in crate::tools) struct Delivery {
    pub(in crate::tools) records: Vec<RecordFacts>,
    pub(in crate::tools) failure: Option<ClientError>,
}

/// One batch.
pub(super) struct Batch {
    builder: BatchBuilder,
    pub(super) records: Vec<RecordFacts>,
    pub(super) created: Instant,
    /// The sequence of the first record, once it is sent for the first time.
    pub(super) sequence: Option<i32>,
    pub(super) attempts: u32,
    /// Not sent again before.
    pub(super) not_before: Option<Instant>,
    /// Why it was not written when it was sent last.
    pub(super) trouble: Option<String>,
    /// Bytes that it takes of the buffer.
    pub(super) size: usize,
}

/// More than any record's own numbers take.
const RECORD_OVERHEAD: usize = 21;

/// Bytes that a record takes of a batch at most.
pub(super) fn record_size(record: &ProducerRecord<'_>) -> usize {
    let headers: usize = record
        .headers
        .iter()
        .map(|(key, value)| 10 + key.len() + value.map_or(0, <[u8]>::len))
        .sum();
    RECORD_OVERHEAD
        + record.key.map_or(0, <[u8]>::len)
        + record.value.map_or(0, <[u8]>::len)
        + headers
}

impl Batch {
    pub(super) fn new(compression: Compression, now: Instant) -> Batch {
        Batch {
            builder: BatchBuilder::new(0).codec(compression),
            records: Vec::new(),
            created: now,
            sequence: None,
            attempts: 0,
            not_before: None,
            trouble: None,
            size: 0,
        }
    }

    pub(super) fn append(&mut self, record: &ProducerRecord<'_>, size: usize, now: Instant) {
        self.builder
            .append(record.timestamp, record.key, record.value, record.headers);
        self.records.push(RecordFacts {
            sent: now,
            key_size: record.key.map(<[u8]>::len),
            value_size: record.value.map(<[u8]>::len),
        });
        self.size += size;
    }

    /// Whether a record of this size still fits. One always does.
    pub(super) fn has_room(&self, size: usize, batch_size: usize) -> bool {
        self.records.is_empty() || self.builder.size_in_bytes() + size <= batch_size
    }

    pub(super) fn is_full(&self, batch_size: usize) -> bool {
        self.builder.size_in_bytes() >= batch_size
    }

    /// The batch as it is sent. It stays, to be sent again.
    pub(super) fn bytes(&self, producer: Option<(i64, i16)>) -> Result<Bytes, String> {
        let builder = self.builder.clone();
        let builder = match (producer, self.sequence) {
            (Some((id, epoch)), Some(sequence)) => builder.producer(id, epoch, sequence),
            _ => builder,
        };
        builder.build_bytes().map_err(|error| error.to_string())
    }
}
