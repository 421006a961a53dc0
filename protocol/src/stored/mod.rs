//! What is kept in logs and files: metadata records, coordinators' keys and values, control
//! records and the like, generated from `schema/stored`.
//!
//! [`MetadataRecord`], [`GroupKey`], [`GroupValue`], [`TransactionKey`], [`TransactionValue`],
//! [`ShareKey`], [`ShareValue`] and [`TieredRecord`] read and write them with what stands before
//! them; the structs alone are the bare records.
#![allow(
    unused_mut,
    clippy::collapsible_if,
    clippy::field_reassign_with_default,
    clippy::manual_range_contains,
    clippy::nonminimal_bool,
    clippy::vec_init_then_push,
    clippy::too_many_lines,
    reason = "generated"
)]

mod envelope;

use bytes::Bytes;

use self::envelope::{coordinator_keys, coordinator_values, framed_records};
use crate::api::VersionRange;
use crate::json::Json;
use crate::message::{MessageInfo, message};
use crate::wire::{
    DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, TagWriter, Writer,
};
use crate::{Array, Str, Uuid};

pub use self::envelope::{UnknownKey, UnknownRecord};

/// Reads a message in a version and shows it as JSON.
pub type Show = fn(&mut Reader, i16) -> Result<Json, DecodeError>;

include!(concat!(env!("OUT_DIR"), "/stored.rs"));
include!(concat!(env!("OUT_DIR"), "/records.rs"));
