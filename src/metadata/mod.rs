//! The cluster's metadata: the image that every core reads, and how it comes out of the metadata
//! log. See README.md beside this file. No I/O here.

mod apply;
mod broker;
pub mod configs;
mod diff;
mod entries;
#[cfg(test)]
mod golden_tests;
mod image;
mod kept;
pub mod partition;
mod partitions;
mod placement;
mod quorum_state;
pub mod records;
mod replay;
mod retired;
pub mod snapshot_file;
mod topic_name;
mod versions;

pub use apply::ApplyError;
pub use broker::{BrokerRegistration, ControllerRegistration, Endpoint, SupportedFeature};
pub use diff::{PartitionChange, changed_partitions};
pub use entries::{
    BATCH_BYTES_MAX, ControlEntry, Entry, EntryError, EntryWriter, LogEntry, VersionedRecord,
    read_entries, read_entries_of,
};
pub use image::{ELR_VERSION, Features, Image, METADATA_VERSION, ProducerIds, Provenance, Topic};
pub use kept::{KeptKey, KeptRecords};
pub use partition::{NO_LEADER, Partition};
pub use partitions::Partitions;
pub use placement::{Assignment, PLACEMENT_FILE, Placement, PlacementError};
pub use quorum_state::{QUORUM_STATE_FILE, QuorumState, QuorumStateError};
pub use replay::{QuorumFacts, Replay, is_only_voter};
pub use topic_name::{OFFSETS_TOPIC, TopicNameProblem, is_internal, topic_name_problem};
pub use versions::{LATEST_METADATA_VERSION, MINIMUM_METADATA_VERSION, MetadataVersion};
