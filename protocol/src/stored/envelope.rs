//! What stands before a stored record: enough to say which record it is.
//!
//! - Records of the metadata log and of tiered storage: varint frame version (1), varint type id,
//!   varint version, the record.
//! - Keys of coordinators: int16 type id, the key. Values: int16 version, the value; which value
//!   it is says the key.

use bytes::Bytes;

use crate::wire::{DecodeError, DecodeErrorKind, Reader, Writer};

const FRAME_VERSION: u32 = 1;

/// A record that this crate does not know, or not in this version. It is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRecord {
    pub type_id: i16,
    pub version: i16,
    pub body: Bytes,
}

/// A key that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    pub type_id: i16,
    pub body: Bytes,
}

/// Reads up to the record; gives type id and version.
pub(super) fn read_frame(reader: &mut Reader) -> Result<(i16, i16), DecodeError> {
    let frame_version = reader.unsigned_varint()?;
    if frame_version != FRAME_VERSION {
        return Err(reader.error(DecodeErrorKind::Invalid("frame version of a record")));
    }
    let mut number = || {
        let value = reader.unsigned_varint()?;
        i16::try_from(value)
            .map_err(|_| reader.error(DecodeErrorKind::Invalid("type or version of a record")))
    };
    Ok((number()?, number()?))
}

pub(super) fn write_frame(writer: &mut Writer, type_id: i16, version: i16) {
    writer.unsigned_varint(FRAME_VERSION);
    writer.unsigned_varint(u32::from(type_id.cast_unsigned()));
    writer.unsigned_varint(u32::from(version.cast_unsigned()));
}

/// Stored bytes hold one record and nothing after it.
pub(super) fn expect_end(reader: &Reader) -> Result<(), DecodeError> {
    if reader.remaining() == 0 {
        return Ok(());
    }
    Err(reader.error(DecodeErrorKind::Invalid("bytes after a record")))
}

macro_rules! framed_records {
    ($name:ident { $($variant:ident($message:ident) = $id:literal,)* }) => {
        /// One record of the log, by its type id.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "records are handled one by one")]
        pub enum $name {
            $($variant($message),)*
            Unknown(UnknownRecord),
        }

        impl $name {
            pub fn type_id(&self) -> i16 {
                match self {
                    $($name::$variant(_) => $id,)*
                    $name::Unknown(unknown) => unknown.type_id,
                }
            }

            /// The name of the record's schema; nothing for one that is not known.
            pub fn name(&self) -> Option<&'static str> {
                match self {
                    $($name::$variant(_) => Some(stringify!($message)),)*
                    $name::Unknown(_) => None,
                }
            }

            /// The record in this version as Kafka's tools show it; nothing for one that is not known.
            pub fn json(&self, version: i16) -> Option<Json> {
                match self {
                    $($name::$variant(record) => Some(record.json(version)),)*
                    $name::Unknown(_) => None,
                }
            }

            /// The newest version of this record that can be written.
            pub fn latest_version(&self) -> i16 {
                match self {
                    $($name::$variant(_) => <$message as $crate::Message>::LATEST_STABLE,)*
                    $name::Unknown(unknown) => unknown.version,
                }
            }

            /// Reads a framed record, and says its version. A type or version that is not known
            /// here gives `Unknown`.
            pub fn decode(bytes: Bytes) -> Result<(Self, i16), DecodeError> {
                let mut reader = Reader::new(bytes);
                let r = &mut reader;
                let (type_id, version) = envelope::read_frame(r)?;
                let record = match type_id {
                    $($id if <$message as $crate::Message>::VERSIONS.contains(version) => {
                        $name::$variant($message::decode(r, version)?)
                    })*
                    _ => $name::Unknown(UnknownRecord { type_id, version, body: r.rest() }),
                };
                envelope::expect_end(r)?;
                Ok((record, version))
            }

            /// Writes the record with its frame. The version of an unknown one is its own.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                let mut writer = Writer::new();
                let w = &mut writer;
                match self {
                    $($name::$variant(record) => {
                        envelope::write_frame(w, $id, version);
                        record.encode(w, version)?;
                    })*
                    $name::Unknown(unknown) => {
                        envelope::write_frame(w, unknown.type_id, unknown.version);
                        w.raw(&unknown.body);
                    }
                }
                Ok(writer.freeze())
            }
        }

        $(impl From<$message> for $name {
            fn from(record: $message) -> Self {
                $name::$variant(record)
            }
        })*
    };
}

macro_rules! coordinator_keys {
    ($name:ident { $($variant:ident($message:ident) = $id:literal,)* }) => {
        /// Key of a coordinator's record, by its type id.
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($variant($message),)*
            Unknown(UnknownKey),
        }

        impl $name {
            pub fn type_id(&self) -> i16 {
                match self {
                    $($name::$variant(_) => $id,)*
                    $name::Unknown(unknown) => unknown.type_id,
                }
            }

            /// The key as Kafka's tools show it; nothing for one that is not known.
            pub fn json(&self) -> Option<Json> {
                match self {
                    $($name::$variant(key) => Some(key.json(0)),)*
                    $name::Unknown(_) => None,
                }
            }

            /// Reads a key with its type id. A type that is not known here gives `Unknown`.
            pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
                let mut reader = Reader::new(bytes);
                let r = &mut reader;
                let type_id = r.i16()?;
                Ok(match type_id {
                    $($id => $name::$variant($message::decode(r, 0)?),)*
                    _ => $name::Unknown(UnknownKey { type_id, body: r.rest() }),
                })
            }

            /// Writes the key with its type id.
            pub fn encode(&self) -> Result<Bytes, EncodeError> {
                let mut writer = Writer::new();
                writer.i16(self.type_id());
                match self {
                    $($name::$variant(key) => key.encode(&mut writer, 0)?,)*
                    $name::Unknown(unknown) => writer.raw(&unknown.body),
                }
                Ok(writer.freeze())
            }
        }

        $(impl From<$message> for $name {
            fn from(key: $message) -> Self {
                $name::$variant(key)
            }
        })*
    };
}

macro_rules! coordinator_values {
    ($name:ident { $($variant:ident($message:ident) = $id:literal,)* }) => {
        /// Value of a coordinator's record, by the type id of its key.
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($variant($message),)*
        }

        impl $name {
            /// Type id of the key that goes with this value.
            pub fn type_id(&self) -> i16 {
                match self {
                    $($name::$variant(_) => $id,)*
                }
            }

            /// The value in this version as Kafka's tools show it.
            pub fn json(&self, version: i16) -> Json {
                match self {
                    $($name::$variant(value) => value.json(version),)*
                }
            }

            /// The newest version of this value that can be written.
            pub fn latest_version(&self) -> i16 {
                match self {
                    $($name::$variant(_) => <$message as $crate::Message>::LATEST_STABLE,)*
                }
            }

            /// Reads the value that belongs to a key of type `type_id`, and says its version.
            pub fn decode(type_id: i16, bytes: Bytes) -> Result<(Self, i16), DecodeError> {
                let mut reader = Reader::new(bytes);
                let r = &mut reader;
                let version = r.i16()?;
                let value = match type_id {
                    $($id => $name::$variant($message::decode(r, version)?),)*
                    _ => return Err(r.error(DecodeErrorKind::Invalid("type of a key"))),
                };
                Ok((value, version))
            }

            /// Writes the value with its version.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                let mut writer = Writer::new();
                writer.i16(version);
                match self {
                    $($name::$variant(value) => value.encode(&mut writer, version)?,)*
                }
                Ok(writer.freeze())
            }
        }

        $(impl From<$message> for $name {
            fn from(value: $message) -> Self {
                $name::$variant(value)
            }
        })*
    };
}

pub(super) use {coordinator_keys, coordinator_values, framed_records};
