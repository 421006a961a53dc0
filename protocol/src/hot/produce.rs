//! Produce requests, walked in place.

use bytes::Bytes;

use super::walk::{Entry, Form, TopicEntry, Walk};
use crate::wire::{DecodeError, DecodeErrorKind, Reader};
use crate::{ApiKey, Str, VersionRange};

/// Versions that can be parsed.
pub const VERSIONS: VersionRange = VersionRange::new(3, 13);

const NAME: &str = "ProduceRequest";
const TOPIC_IDS_FROM: i16 = 13;
const TRANSACTIONAL_ID_FROM: i16 = 3;

/// A produce request whose topics and records are still in the frame.
#[derive(Clone, Debug)]
pub struct ProduceRequest {
    pub transactional_id: Option<Str>,
    /// 0: no answer at all; 1: the leader has it; -1: all in-sync replicas have it.
    pub acks: i16,
    /// How long to wait for the replicas.
    pub timeout_ms: i32,
    partitions: Walk<ProducePartition>,
}

/// The records for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducePartition {
    pub partition: i32,
    /// A slice of the frame, not looked into.
    pub records: Option<Bytes>,
}

impl ProduceRequest {
    /// Reads the body of a request, behind its header, and checks its form to the end. Whatever
    /// the counts claim, nothing is allocated, but for text that is not UTF-8 and so is repaired.
    pub fn parse(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        if !VERSIONS.contains(version) {
            let error = reader.error(DecodeErrorKind::UnsupportedVersion);
            return Err(error.in_message(NAME, version));
        }
        Self::parse_fields(reader, version).map_err(|error| error.in_message(NAME, version))
    }

    fn parse_fields(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let flexible = ApiKey::Produce.is_flexible(version);
        let transactional_id = if version >= TRANSACTIONAL_ID_FROM {
            reader.nullable_string(flexible)?
        } else {
            None
        };
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let form = Form {
            version,
            flexible,
            by_id: version >= TOPIC_IDS_FROM,
        };
        let partitions = Walk::parse(reader, form)?;
        if flexible {
            reader.skip_tags()?;
        }
        Ok(ProduceRequest {
            transactional_id,
            acks,
            timeout_ms,
            partitions,
        })
    }

    /// All partitions of all topics, in the order of the request.
    pub fn partitions(&self) -> impl ExactSizeIterator<Item = TopicEntry<ProducePartition>> {
        self.partitions.clone()
    }
}

impl Entry for ProducePartition {
    /// A partition and a compact length.
    const BYTES_MIN: usize = 4 + 1;

    fn read(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let flexible = ApiKey::Produce.is_flexible(version);
        let partition = reader.i32()?;
        let records = reader.nullable_bytes(flexible)?;
        if flexible {
            reader.skip_tags()?;
        }
        Ok(ProducePartition { partition, records })
    }
}
