//! Fetch: requests walked in place, answers framed around the records.

mod request;
mod response;

use crate::VersionRange;

pub use request::{FetchPartition, FetchRequest, ForgottenPartition};
pub use response::{FetchAnswer, NodeEndpoint, Part, PartitionAnswer, parts_len};

/// Versions that can be parsed and answered.
pub const VERSIONS: VersionRange = VersionRange::new(4, 18);

const TOPIC_IDS_FROM: i16 = 13;
