mod configs;
mod features;
mod harness;
mod properties;
mod shell;
mod start;
#[allow(clippy::too_many_lines, reason = "tables of answers")]
mod topics;
