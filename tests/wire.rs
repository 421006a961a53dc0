//! The wire, byte by byte: what Apache Kafka 4.4 answers where brokers get it wrong, and what hostile bytes do.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/batch.rs"]
mod batch;
#[path = "wire/client.rs"]
mod client;
#[path = "wire/common.rs"]
mod common;

#[path = "wire/administration.rs"]
mod administration;
#[path = "wire/amplified.rs"]
mod amplified;
#[path = "wire/claims.rs"]
mod claims;
#[path = "wire/cluster.rs"]
mod cluster;
#[path = "wire/controllers.rs"]
mod controllers;
#[path = "wire/creating.rs"]
mod creating;
#[path = "wire/crowds.rs"]
mod crowds;
#[path = "wire/doctor.rs"]
mod doctor;
#[path = "wire/epochs.rs"]
mod epochs;
#[path = "wire/fetching.rs"]
mod fetching;
#[path = "wire/flame.rs"]
mod flame;
#[path = "wire/groups.rs"]
mod groups;
#[path = "wire/hostile.rs"]
mod hostile;
#[path = "wire/listeners.rs"]
mod listeners;
#[path = "wire/loggers.rs"]
mod loggers;
#[path = "wire/negotiation.rs"]
mod negotiation;
#[path = "wire/offsets.rs"]
mod offsets;
#[path = "wire/producing.rs"]
mod producing;
#[path = "wire/prometheus.rs"]
mod prometheus;
#[path = "wire/recovering.rs"]
mod recovering;
#[path = "wire/sessions.rs"]
mod sessions;
#[path = "wire/stricter.rs"]
mod stricter;
#[path = "wire/topics.rs"]
mod topics;
#[path = "wire/watching.rs"]
mod watching;
