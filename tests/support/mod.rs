//! What the black-box tests share: a broker in a process of its own, drivers of foreign clients, real input.
#![allow(
    dead_code,
    reason = "every test binary compiles this folder and uses its own part of it"
)]

pub mod apache;
pub mod broker;
pub mod clock;
pub mod commands;
pub mod control_group;
pub mod corpus;
pub mod doctor;
pub mod driver;
pub mod mount;
pub mod port;
pub mod process;
pub mod random;
pub mod record;
pub mod scrape;
pub mod segments;
pub mod tools;
