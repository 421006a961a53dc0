//! The runtime of a thread-per-core server: pinned cores, rings, tasks, timers, buffers, mailboxes.
//!
//! It knows nothing of Kafka. All `unsafe` code of the workspace lives here.
