//! The controller of a cluster with one node: KRaft's metadata log, written by a pure state
//! machine. See README.md beside this file.

mod alter_configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod directories;
mod draft;
mod leadership;
mod load;
mod log;
mod machine;
mod placement;
mod reassignments;
mod refusal;
mod shell;
mod snapshots;
mod start;
#[cfg(test)]
mod tests;
mod unregister_broker;
mod update_features;

pub use alter_configs::{
    AlterConfigs, ConfigChange, ConfigEdit, ConfigOperation, ConfigOutcome, check_edits,
};
pub use load::LoadError;
pub use log::{LogFuture, MetadataLog, MetadataLogError, StoredFile};
pub use machine::{
    AutoTopic, Command, ControllerSettings, Decision, Machine, PRODUCER_ID_BLOCK, Reply,
    Surroundings,
};
pub use shell::{
    Controller, ControllerError, ControllerOptions, FreeBytes, PublishFuture, QuorumInfo,
};
pub use snapshots::SnapshotRules;
pub use start::{NodeRegistration, StartError};
pub use update_features::{FeatureUpdate, UpdateFeatures};
