//! What all generated messages have in common.

use std::fmt::Debug;

use crate::api::{ApiKey, VersionRange};
use crate::wire::{DecodeError, EncodeError, Reader, Writer};

/// A message with a schema. `Default` gives the schema's defaults.
///
/// Reading stops at the end of the message: bytes after it are left, and Kafka ignores them too.
/// So does whoever reads requests here.
pub trait Message: Sized + Clone + Debug + Default + PartialEq {
    const NAME: &'static str;
    /// What can be read and written, unstable versions too.
    const VERSIONS: VersionRange;
    const LATEST_STABLE: i16;
    /// The first version with compact lengths and tagged fields; `i16::MAX` if none.
    const FLEXIBLE_FROM: i16;

    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;

    /// Fails where a field that is not ignorable differs from its default in a version without
    /// it. What was written by then stays in the writer.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError>;
}

pub trait Request: Message {
    const API: ApiKey;
    type Response: Response;
}

pub trait Response: Message {
    const API: ApiKey;

    /// Calls `visit` with every error code of the answer, those that say "none" too.
    fn each_error(&self, visit: &mut dyn FnMut(i16));
}

/// A message as a value, for whoever walks all of them.
#[derive(Clone, Copy, Debug)]
pub struct MessageInfo {
    pub name: &'static str,
    pub versions: VersionRange,
    pub flexible_from: i16,
    /// Reads a message in one version and writes it in another.
    pub recode: fn(&mut Reader, i16, &mut Writer, i16) -> Result<(), RecodeError>,
    /// Writes the message with all fields at their defaults.
    pub encode_default: fn(&mut Writer, i16) -> Result<(), EncodeError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecodeError {
    Decode(DecodeError),
    Encode(EncodeError),
}

impl MessageInfo {
    pub(crate) const fn of<M: Message>() -> Self {
        MessageInfo {
            name: M::NAME,
            versions: M::VERSIONS,
            flexible_from: M::FLEXIBLE_FROM,
            recode: |reader, from, writer, to| {
                let message = M::decode(reader, from).map_err(RecodeError::Decode)?;
                message.encode(writer, to).map_err(RecodeError::Encode)
            },
            encode_default: |writer, version| M::default().encode(writer, version),
        }
    }
}

/// The checks around the generated `read` and `write` of a whole message.
macro_rules! message {
    ($name:ident, $min:literal, $max:literal, $stable:literal, $flexible:literal) => {
        impl $name {
            pub fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
                <Self as $crate::Message>::decode(reader, version)
            }

            pub fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
                <Self as $crate::Message>::encode(self, writer, version)
            }
        }

        impl $crate::Message for $name {
            const NAME: &'static str = stringify!($name);
            const VERSIONS: VersionRange = VersionRange::new($min, $max);
            const LATEST_STABLE: i16 = $stable;
            const FLEXIBLE_FROM: i16 = $flexible;

            fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
                if !Self::VERSIONS.contains(version) {
                    let error = reader.error(DecodeErrorKind::UnsupportedVersion);
                    return Err(error.in_message(Self::NAME, version));
                }
                Self::read(reader, version).map_err(|error| error.in_message(Self::NAME, version))
            }

            fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
                if !Self::VERSIONS.contains(version) {
                    let error = EncodeError::from(EncodeErrorKind::UnsupportedVersion);
                    return Err(error.in_message(Self::NAME, version));
                }
                self.write(writer, version)
                    .map_err(|error| error.in_message(Self::NAME, version))
            }
        }
    };
}

macro_rules! request {
    ($name:ident, $api:ident, $response:ident) => {
        impl $crate::Request for $name {
            const API: $crate::ApiKey = $crate::ApiKey::$api;
            type Response = $response;
        }
    };
}

macro_rules! response {
    ($name:ident, $api:ident, $response:ident) => {
        impl $crate::Response for $name {
            const API: $crate::ApiKey = $crate::ApiKey::$api;

            fn each_error(&self, visit: &mut dyn FnMut(i16)) {
                $name::each_error(self, visit);
            }
        }
    };
}

pub(crate) use {message, request, response};
