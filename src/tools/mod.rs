//! Kafka's command-line tools, with Kafka's flags and what Kafka's print: one file or folder a tool, over a small blocking
//! client. They speak to any Kafka broker.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a tool is a process of its own without cores: it waits, sleeps and reads the clock as it likes"
)]

mod admin;
mod broker_api_versions;
pub mod client;
mod cluster;
mod columns;
mod configs;
mod console_consumer;
mod console_producer;
mod consumer;
mod consumer_groups;
mod consumer_perf_test;
mod delete_records;
mod doctor;
mod dump_log;
mod exception;
mod failure;
pub(crate) mod features;
mod flags;
mod get_offsets;
mod groups;
mod log_dirs;
mod metadata_quorum;
mod pattern;
mod producer;
mod producer_perf_test;
mod progress;
mod properties;
mod signals;
mod stored;
mod topics;
mod waiting;
mod wake;

use std::io::Write;

use clap::Subcommand;

pub use failure::Failure;

/// The tools, each under the name of Kafka's script without `kafka-` and `.sh`.
#[derive(Subcommand, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one of them in a process"
)]
pub enum Tool {
    /// Show which versions of which APIs each broker speaks
    BrokerApiVersions(broker_api_versions::BrokerApiVersionsArgs),
    /// Show the cluster's id and its nodes, unregister a node
    Cluster(cluster::ClusterArgs),
    /// Say in plain words what is wrong with a cluster; code 0 when nothing is
    Doctor(doctor::DoctorArgs),
    /// Show and change the settings of topics, brokers, their loggers, groups and client metrics
    Configs(configs::ConfigsArgs),
    /// List, describe and delete consumer groups, reset their offsets
    ConsumerGroups(consumer_groups::ConsumerGroupsArgs),
    /// Delete the records of partitions up to an offset
    DeleteRecords(delete_records::DeleteRecordsArgs),
    /// Show and change the levels of the cluster's features
    Features(features::FeaturesArgs),
    /// Show the offsets of a moment in each partition
    GetOffsets(get_offsets::GetOffsetsArgs),
    /// List groups of all types
    Groups(groups::GroupsArgs),
    /// Show what lies in the data directories of brokers
    LogDirs(log_dirs::LogDirsArgs),
    /// Show the quorum of controllers
    MetadataQuorum(metadata_quorum::MetadataQuorumArgs),
    /// Create, delete, describe and change topics
    Topics(topics::TopicsArgs),
    /// Print the records of a topic
    ConsoleConsumer(console_consumer::ConsoleConsumerArgs),
    /// Write lines of standard input to a topic
    ConsoleProducer(console_producer::ConsoleProducerArgs),
    /// Measure how fast records are read
    ConsumerPerfTest(consumer_perf_test::ConsumerPerfTestArgs),
    /// Measure how fast records are written
    ProducerPerfTest(producer_perf_test::ProducerPerfTestArgs),
    /// Show what is in the files of a log directory
    DumpLog(dump_log::DumpLogArgs),
}

impl Tool {
    /// Runs a tool; what it answers goes to `out`.
    ///
    /// # Errors
    /// Why it ended with code 1.
    pub fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        self.run_with(out, &mut std::io::stderr())
    }

    /// The same; what is found to be wrong with files goes to `errors`.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_with(self, out: &mut dyn Write, errors: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Tool::BrokerApiVersions(arguments) => broker_api_versions::run(&arguments, out),
            Tool::Cluster(arguments) => cluster::run(&arguments, out),
            Tool::Doctor(arguments) => doctor::run(&arguments, out),
            Tool::Configs(arguments) => configs::run(&arguments, out),
            Tool::ConsumerGroups(arguments) => consumer_groups::run(&arguments, out),
            Tool::DeleteRecords(arguments) => delete_records::run(&arguments, out),
            Tool::Features(arguments) => features::run(&arguments, out),
            Tool::GetOffsets(arguments) => get_offsets::run(&arguments, out),
            Tool::Groups(arguments) => groups::run(&arguments, out),
            Tool::LogDirs(arguments) => log_dirs::run(&arguments, out),
            Tool::MetadataQuorum(arguments) => metadata_quorum::run(&arguments, out),
            Tool::Topics(arguments) => topics::run(&arguments, out),
            Tool::ConsoleConsumer(arguments) => console_consumer::run(&arguments, out),
            Tool::ConsumerPerfTest(arguments) => consumer_perf_test::run(&arguments, out),
            Tool::ProducerPerfTest(arguments) => producer_perf_test::run(&arguments, out),
            Tool::ConsoleProducer(arguments) => console_producer::run(&arguments),
            Tool::DumpLog(arguments) => dump_log::run(&arguments, out, errors),
        }
    }
}
