//! Kafka's command-line tools, with Kafka's flags and what Kafka's print: one file or folder a tool, over a small blocking
//! client. They speak to any Kafka broker.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a tool is a process of its own without cores: it waits, sleeps and reads the clock as it likes"
)]

mod admin;
pub mod client;
mod cluster;
mod columns;
mod doctor;
mod dump_log;
mod failure;
mod flags;
mod pattern;
mod progress;
mod stored;
mod topics;

use std::io::Write;

use clap::Subcommand;

pub use failure::Failure;

/// The tools, each under the name of Kafka's script without `kafka-` and `.sh`.
#[derive(Subcommand, Debug)]
pub enum Tool {
    /// Show the cluster's id and its nodes, unregister a node
    Cluster(cluster::ClusterArgs),
    /// Say in plain words what is wrong with a cluster; code 0 when nothing is
    Doctor(doctor::DoctorArgs),
    /// Create, delete, describe and change topics
    Topics(topics::TopicsArgs),
    /// Show what is in the files of a log directory
    DumpLog(dump_log::DumpLogArgs),
}

impl Tool {
    /// Runs a tool; what it answers goes to `out`.
    ///
    /// # Errors
    /// Why it ended with code 1.
    pub fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Tool::Cluster(arguments) => cluster::run(&arguments, out),
            Tool::Doctor(arguments) => doctor::run(&arguments, out),
            Tool::Topics(arguments) => topics::run(&arguments, out),
            Tool::DumpLog(arguments) => dump_log::run(&arguments, out),
        }
    }
}
