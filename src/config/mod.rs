//! Configuration: one table of keys, and everything that follows from it.
//!
//! The way of a setting: a file ([`properties`]) and overrides become [`Settings`], every broker key typed and
//! checked by its row of the table ([`keys`]); [`BrokerConfig::new`] checks the relations between keys and makes the
//! typed snapshot that the rest of the broker reads. A topic's own settings are laid over it by [`TopicConfig::new`].

mod check;
mod connection_limits;
pub mod describe;
pub mod describe_group;
pub mod directories;
#[cfg(test)]
mod docs;
pub mod dynamic;
mod endpoint;
mod error;
pub mod keys;
mod listeners;
pub mod properties;
#[cfg(test)]
mod same_as_apache;
mod settings;
mod single_node;
mod snapshot;
#[cfg(test)]
mod tests;
mod topic;
mod validate;
mod value;

pub use connection_limits::ConnectionLimits;
pub use endpoint::{BindAddress, Endpoint, SecurityProtocol, Voter, split_host_port};
pub use error::ConfigError;
pub use settings::{DynamicSettings, Settings, what_is_allowed};
pub use single_node::{DATA_DIRECTORY, single_node};
pub use snapshot::{
    BrokerConfig, FetchConfig, GroupsConfig, IoBackend, MetadataLogConfig, NetworkConfig,
    OffsetsConfig, ProducerIdsConfig, QuorumConfig, ReplicationConfig, RuntimeConfig,
    StorageConfig, TopicsConfig,
};
pub use topic::{
    CleanupPolicy, Overrides, TimestampType, TopicCompression, TopicConfig, validate_overrides,
};
pub use value::Value;
