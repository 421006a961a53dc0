//! What the broker speaks: one file an API, one list of them all.
//!
//! A request goes the same way everywhere: validate, authorize, route, apply, answer. Failures
//! belong to the smallest thing that failed: a partition, not the request.

mod acls;
mod admin;
mod alter_configs;
mod api;
mod api_versions;
mod delete_records;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod describe_user_scram_credentials;
mod elect_leaders;
mod fetch;
mod fetch_answer;
mod find_coordinator;
mod groups;
mod init_producer_id;
mod list_config_resources;
mod list_offsets;
mod loggers;
mod many;
mod metadata;
mod offset_for_leader_epoch;
mod operations;
mod produce;
mod reassignments;
mod transactions;
mod unregister_broker;
mod update_features;

pub use api::{Begun, Call, Handler, Request, RequestError, SUPPORTED, begin, open, supported};

#[cfg(test)]
mod supported_docs;
