//! The rules of groups and offsets, tested as a whole: start, event, advance time, compare
//! records and answers. No thread, no sleep; half an hour takes a millisecond.

mod admin;
mod apache;
mod churn;
mod expiry;
pub(super) mod harness;
mod join;
mod leave;
mod offsets;
mod rollback;
mod static_members;
mod sync;
