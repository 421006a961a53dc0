mod harness;
mod properties;
mod shell;
mod start;
mod topics;
