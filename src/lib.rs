//! The broker.
#![forbid(unsafe_code)]

pub mod config;
pub mod coordinator;
pub mod features;
pub mod metadata;
