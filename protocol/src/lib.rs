//! The wire: frames, every API version, record formats and stored records. Pure, no I/O.
//!
//! Where to look: [`frame`] for headers, [`messages`] and [`stored`] for what the schema describes,
//! [`wire`] for the primitives, [`api`] for the table of APIs and versions,
//! [`records`] for record batches, [`hot`] for what carries them.
#![forbid(unsafe_code)]

pub mod api;
mod array;
mod error_code;
pub mod frame;
pub mod hot;
pub mod json;
mod message;
pub mod messages;
mod pieces;
pub mod records;
pub mod stored;
mod text;
mod uuid;
pub mod wire;

pub use api::{ApiKey, ListenerKind, VersionRange};
pub use array::Array;
pub use error_code::ErrorCode;
pub use message::{Message, MessageInfo, RecodeError, Request, Response};
pub use pieces::Pieces;
pub use text::Str;
pub use uuid::{Uuid, UuidError};
