//! The settings of the group coordinator, under Kafka's names and with Kafka's defaults.

use std::time::Duration;

use crate::config::{GroupsConfig, OffsetsConfig};

/// How long a JoinGroup of a new member may stay parked before the member is dropped.
///
/// Kafka has no key for it: a new member has no id yet, so it cannot send heartbeats, and a client
/// that gave up would otherwise stay in the group for ever.
pub const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What the coordinator needs from the broker's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`
    pub max_group_size: usize,
    /// `offset.metadata.max.bytes`, compared with UTF-16 units as in Kafka
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`, in milliseconds
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            max_group_size: i32::MAX as usize,
            offset_metadata_max: 4_096,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_retention_check_interval: Duration::from_secs(600),
        }
    }
}

impl Settings {
    /// The settings that the broker was configured with.
    pub fn from_config(groups: &GroupsConfig, offsets: &OffsetsConfig) -> Self {
        Settings {
            min_session_timeout_ms: groups.min_session_timeout_ms,
            max_session_timeout_ms: groups.max_session_timeout_ms,
            initial_rebalance_delay_ms: groups.initial_rebalance_delay_ms,
            max_group_size: usize::try_from(groups.max_size).unwrap_or(0),
            offset_metadata_max: usize::try_from(offsets.metadata_max_bytes).unwrap_or(0),
            offsets_retention_ms: i64::try_from(offsets.retention.as_millis()).unwrap_or(i64::MAX),
            offsets_retention_check_interval: offsets.retention_check_interval,
        }
    }
}
