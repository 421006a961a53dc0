//! The broker.
#![forbid(unsafe_code)]

pub mod config;
pub mod controller;
pub mod coordinator;
pub mod features;
pub mod handlers;
pub mod metadata;
pub mod network;
pub mod outgoing;
pub mod replication;
pub mod server;
pub mod shard;
