//! Records of `__consumer_offsets`: as written, and as read back.

use bytes::Bytes;
use protocol::Str;
use protocol::stored::{
    GroupKey, GroupMetadataKey, GroupMetadataValue, GroupValue, OffsetCommitKey, OffsetCommitValue,
};

use super::state::ForeignType;

/// Version of group records that Kafka 4.4 writes.
const GROUP_VERSION: i16 = 3;
/// Versions of offset records that Kafka 4.4 writes: only version 1 has an expiry of its own.
const OFFSET_VERSION: i16 = 4;
const OFFSET_WITH_EXPIRY_VERSION: i16 = 1;

/// A record to append. A tombstone has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

const FITS: &str = "strings that came in a request are short enough for a record";

impl Record {
    pub(crate) fn group(id: &Str, value: &GroupMetadataValue) -> Record {
        let value = GroupValue::GroupMetadata(value.clone());
        Record {
            key: group_key(id),
            value: Some(value.encode(GROUP_VERSION).expect(FITS)),
        }
    }

    /// The record that makes a new group known before it has had members.
    pub(crate) fn empty_group(id: &Str, now_ms: i64) -> Record {
        let value = GroupMetadataValue {
            current_state_timestamp: now_ms,
            protocol: None,
            leader: None,
            ..Default::default()
        };
        Record::group(id, &value)
    }

    pub(crate) fn group_tombstone(id: &Str) -> Record {
        Record {
            key: group_key(id),
            value: None,
        }
    }

    pub(crate) fn offset(
        group: &Str,
        topic: &Str,
        partition: i32,
        value: OffsetCommitValue,
    ) -> Record {
        let version = match value.expire_timestamp {
            -1 => OFFSET_VERSION,
            _ => OFFSET_WITH_EXPIRY_VERSION,
        };
        let value = GroupValue::OffsetCommit(value);
        Record {
            key: offset_key(group, topic, partition),
            value: Some(value.encode(version).expect(FITS)),
        }
    }

    pub(crate) fn offset_tombstone(group: &Str, topic: &Str, partition: i32) -> Record {
        Record {
            key: offset_key(group, topic, partition),
            value: None,
        }
    }
}

fn group_key(id: &Str) -> Bytes {
    GroupKey::GroupMetadata(GroupMetadataKey { group: id.clone() })
        .encode()
        .expect(FITS)
}

fn offset_key(group: &Str, topic: &Str, partition: i32) -> Bytes {
    let key = OffsetCommitKey {
        group: group.clone(),
        topic: topic.clone(),
        partition,
    };
    GroupKey::OffsetCommit(key).encode().expect(FITS)
}

/// A record of the log, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// -1 outside of transactions.
    pub producer_id: i64,
    pub stored: Stored,
}

/// What a record says. Without a value it is a tombstone.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    Group {
        group: Str,
        value: Option<GroupMetadataValue>,
    },
    Offset {
        group: Str,
        topic: Str,
        partition: i32,
        value: Option<OffsetCommitValue>,
    },
    /// A record of a group type that is not served here. It stays in the log as it is. `kind` is
    /// set for the one record that every group of that type has.
    Foreign {
        group: Option<Str>,
        kind: Option<ForeignType>,
        present: bool,
    },
    /// A marker at the end of a transaction.
    EndTransaction { commit: bool },
    /// From a later version. It stays in the log as it is.
    Unknown,
}

impl LogRecord {
    /// A record as the coordinator itself appends it.
    pub fn decode(record: &Record) -> LogRecord {
        LogRecord::decode_parts(-1, record.key.clone(), record.value.clone())
    }

    /// Understands a record of the log. What cannot be read counts as unknown.
    pub fn decode_parts(producer_id: i64, key: Bytes, value: Option<Bytes>) -> LogRecord {
        let stored = decode(key, value).unwrap_or(Stored::Unknown);
        LogRecord {
            producer_id,
            stored,
        }
    }
}

fn decode(key: Bytes, value: Option<Bytes>) -> Option<Stored> {
    let key = GroupKey::decode(key).ok()?;
    let kind = match &key {
        GroupKey::ConsumerGroupMetadata(_) => Some(ForeignType::Consumer),
        GroupKey::ShareGroupMetadata(_) => Some(ForeignType::Share),
        GroupKey::StreamsGroupMetadata(_) => Some(ForeignType::Streams),
        _ => None,
    };
    let present = value.is_some();
    let type_id = key.type_id();
    let stored = match key {
        GroupKey::GroupMetadata(key) => {
            let value = match decode_value(type_id, value)? {
                Some(GroupValue::GroupMetadata(value)) => Some(value),
                _ => None,
            };
            Stored::Group {
                group: key.group,
                value,
            }
        }
        GroupKey::OffsetCommit(key) => {
            let value = match decode_value(type_id, value)? {
                Some(GroupValue::OffsetCommit(value)) => Some(value),
                _ => None,
            };
            let (group, topic, partition) = (key.group, key.topic, key.partition);
            Stored::Offset {
                group,
                topic,
                partition,
                value,
            }
        }
        GroupKey::LegacyOffsetCommit(key) => {
            let value = match decode_value(type_id, value)? {
                Some(GroupValue::LegacyOffsetCommit(value)) => Some(OffsetCommitValue {
                    offset: value.offset,
                    metadata: value.metadata,
                    commit_timestamp: value.commit_timestamp,
                    ..Default::default()
                }),
                _ => None,
            };
            let (group, topic, partition) = (key.group, key.topic, key.partition);
            Stored::Offset {
                group,
                topic,
                partition,
                value,
            }
        }
        GroupKey::ConsumerGroupMetadata(key) => foreign(key.group_id, kind, present),
        GroupKey::ShareGroupMetadata(key) => foreign(key.group_id, kind, present),
        GroupKey::StreamsGroupMetadata(key) => foreign(key.group_id, kind, present),
        _ => Stored::Foreign {
            group: None,
            kind: None,
            present,
        },
    };
    Some(stored)
}

fn foreign(group: Str, kind: Option<ForeignType>, present: bool) -> Stored {
    Stored::Foreign {
        group: Some(group),
        kind,
        present,
    }
}

/// The outer None says that the value cannot be read, the inner one that there is none.
#[allow(
    clippy::option_option,
    reason = "two different absences, told apart above"
)]
fn decode_value(type_id: i16, value: Option<Bytes>) -> Option<Option<GroupValue>> {
    match value {
        None => Some(None),
        Some(bytes) => GroupValue::decode(type_id, bytes)
            .ok()
            .map(|(value, _)| Some(value)),
    }
}
