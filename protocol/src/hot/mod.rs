//! Produce and Fetch by hand: requests are walked in place, answers are framed around record
//! bytes that stay where they are. Property tests hold both to the generated codec.

pub mod fetch;
pub mod produce;
mod walk;

pub use walk::{TopicEntry, TopicKey, Walk};
