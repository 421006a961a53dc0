//! The codec against the schema, read by an interpreter of its own; against other people's
//! codecs; and against hostile bytes.

#[path = "../../build/schema.rs"]
#[allow(
    dead_code,
    reason = "shared with the build script, which uses the rest"
)]
mod schema;

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../fuzz/entries.rs"]
mod entries;
mod golden;
mod hostile;
mod hot_fetch;
mod hot_produce;
mod interpreter;
mod json;
mod random;
mod round_trip;
