//! Offsets of groups: committed, read, deleted, expired. See [`super::super::state`] for where
//! they are kept.

pub(crate) mod commit;
pub(crate) mod delete;
pub(crate) mod expire;
pub(crate) mod fetch;
