use crate::hot::walk::{Entry, Form, TopicEntry, Walk};
use crate::wire::{DecodeError, DecodeErrorKind, Reader};
use crate::{ApiKey, Str, Uuid};

use super::{TOPIC_IDS_FROM, VERSIONS};

const NAME: &str = "FetchRequest";
/// The replica moved from the front into a tagged field.
const REPLICA_STATE_FROM: i16 = 15;
const SESSIONS_FROM: i16 = 7;

/// A fetch request whose topics are still in the frame. What a version lacks has its default.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    pub cluster_id: Option<Str>,
    /// The follower that fetches; -1 for a consumer.
    pub replica_id: i32,
    /// -1 where not given.
    pub replica_epoch: i64,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    /// 0: read uncommitted, 1: read committed.
    pub isolation_level: i8,
    pub session_id: i32,
    pub session_epoch: i32,
    pub rack_id: Str,
    partitions: Walk<FetchPartition>,
    forgotten: Walk<ForgottenPartition>,
}

/// Where to fetch from, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    pub partition: i32,
    /// -1 where not given.
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    /// -1 where not given.
    pub last_fetched_epoch: i32,
    /// Of the follower; -1 for a consumer.
    pub log_start_offset: i64,
    pub max_bytes: i32,
    pub replica_directory_id: Uuid,
    /// That the follower knows; `i64::MAX` where not given.
    pub high_watermark: i64,
}

/// A partition that shall leave the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenPartition(pub i32);

impl FetchRequest {
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
        let flexible = ApiKey::Fetch.is_flexible(version);
        let form = Form {
            version,
            flexible,
            by_id: version >= TOPIC_IDS_FROM,
        };
        let replica_id = if version < REPLICA_STATE_FROM {
            reader.i32()?
        } else {
            -1
        };
        let max_wait_ms = reader.i32()?;
        let min_bytes = reader.i32()?;
        let max_bytes = if version >= 3 {
            reader.i32()?
        } else {
            i32::MAX
        };
        let isolation_level = if version >= 4 { reader.i8()? } else { 0 };
        let sessions = version >= SESSIONS_FROM;
        let session_id = if sessions { reader.i32()? } else { 0 };
        let session_epoch = if sessions { reader.i32()? } else { -1 };
        let partitions = Walk::parse(reader, form)?;
        let forgotten = if sessions {
            Walk::parse(reader, form)?
        } else {
            Walk::empty(reader, form)
        };
        let rack_id = if version >= 11 {
            reader.string(flexible)?
        } else {
            Str::default()
        };
        let mut request = FetchRequest {
            cluster_id: None,
            replica_id,
            replica_epoch: -1,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            rack_id,
            partitions,
            forgotten,
        };
        if flexible {
            reader.tags(|reader, tag| request.read_tag(reader, tag, version))?;
        }
        Ok(request)
    }

    fn read_tag(
        &mut self,
        reader: &mut Reader,
        tag: u32,
        version: i16,
    ) -> Result<bool, DecodeError> {
        match tag {
            0 => self.cluster_id = reader.nullable_string(true)?,
            1 if version >= REPLICA_STATE_FROM => {
                self.replica_id = reader.i32()?;
                self.replica_epoch = reader.i64()?;
                reader.skip_tags()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// All partitions of all topics, in the order of the request.
    pub fn partitions(&self) -> impl ExactSizeIterator<Item = TopicEntry<FetchPartition>> {
        self.partitions.clone()
    }

    /// Partitions to take out of the session.
    pub fn forgotten(&self) -> impl ExactSizeIterator<Item = TopicEntry<ForgottenPartition>> {
        self.forgotten.clone()
    }
}

impl Entry for FetchPartition {
    /// Partition, offset and limit; more in later versions.
    const BYTES_MIN: usize = 4 + 8 + 4;

    fn read(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let mut entry = FetchPartition {
            partition: reader.i32()?,
            current_leader_epoch: if version >= 9 { reader.i32()? } else { -1 },
            fetch_offset: reader.i64()?,
            last_fetched_epoch: if version >= 12 { reader.i32()? } else { -1 },
            log_start_offset: if version >= 5 { reader.i64()? } else { -1 },
            max_bytes: reader.i32()?,
            replica_directory_id: Uuid::ZERO,
            high_watermark: i64::MAX,
        };
        if ApiKey::Fetch.is_flexible(version) {
            reader.tags(|reader, tag| {
                match tag {
                    0 if version >= 17 => entry.replica_directory_id = reader.uuid()?,
                    1 if version >= 18 => entry.high_watermark = reader.i64()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(entry)
    }
}

impl Entry for ForgottenPartition {
    const BYTES_MIN: usize = 4;

    fn read(reader: &mut Reader, _version: i16) -> Result<Self, DecodeError> {
        reader.i32().map(ForgottenPartition)
    }
}
