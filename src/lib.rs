//! The broker.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::too_many_lines, reason = "a test may be a long table")
)]

pub mod cli;
pub mod config;
pub mod controller;
pub mod coordinator;
pub mod features;
pub mod handlers;
pub mod http;
pub mod metadata;
pub mod network;
pub mod outgoing;
pub mod replication;
pub mod server;
pub mod shard;
pub mod telemetry;
pub mod tools;
