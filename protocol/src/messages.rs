//! Requests and responses of every API of Kafka 4.4, generated from `schema/api`.
//!
//! Structs inside a message carry its name before Kafka's: `FetchRequestFetchTopic`.
#![allow(
    unused_mut,
    clippy::collapsible_if,
    clippy::field_reassign_with_default,
    clippy::manual_range_contains,
    clippy::nonminimal_bool,
    clippy::too_many_lines,
    reason = "generated"
)]

use bytes::Bytes;

use crate::api::VersionRange;
use crate::message::{MessageInfo, message, request, response};
use crate::wire::{
    DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, TagWriter, Writer,
};
use crate::{Array, Str, Uuid};

include!(concat!(env!("OUT_DIR"), "/messages.rs"));
