//! The broker.
#![forbid(unsafe_code)]
