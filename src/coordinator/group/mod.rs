//! Groups: the classic protocol, the offsets, and what administrators ask.

pub(super) mod admin;
pub(super) mod classic;
pub(super) mod offsets;
pub(super) mod subscription;
