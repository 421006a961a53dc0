//! The same requests to Apache Kafka and to this broker: decoded answers are equal, except for the differences that
//! `differential/differences.txt` names. See `differential/README.md`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "../protocol/build/schema.rs"]
#[allow(
    dead_code,
    reason = "shared with the build script, which uses the rest"
)]
mod schema;

#[path = "wire/batch.rs"]
#[allow(dead_code, reason = "shared with the wire tests, which use the rest")]
mod batch;

#[path = "differential/bases/mod.rs"]
mod bases;
#[path = "differential/case.rs"]
mod case;
#[path = "differential/codec.rs"]
mod codec;
#[path = "differential/difference.rs"]
mod difference;
#[path = "differential/fixture.rs"]
mod fixture;
#[path = "differential/messages.rs"]
mod messages;
#[path = "differential/mutation.rs"]
mod mutation;
#[path = "differential/normal.rs"]
mod normal;
#[path = "differential/report.rs"]
mod report;
#[path = "differential/run.rs"]
mod run;
#[path = "differential/side.rs"]
mod side;
#[path = "differential/stage.rs"]
mod stage;
#[path = "differential/value.rs"]
mod value;

#[test]
fn answers_as_apache_kafka_does() {
    run::run();
}
