//! The consumer's keys, with Kafka's names and defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::Str;

use crate::tools::Failure;
use crate::tools::properties::Typed;

/// Where to begin without a committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools) enum OffsetReset {
    Earliest,
    Latest,
    /// An error.
    None,
}

/// What `ConsumerConfig` says, as far as it has effect here.
#[derive(Clone, Debug)]
pub(in crate::tools) struct ConsumerSettings {
    pub(super) group: Option<Str>,
    pub(super) instance: Option<Str>,
    pub(super) reset: OffsetReset,
    pub(super) auto_commit: bool,
    pub(super) auto_commit_interval: Duration,
    pub(super) read_committed: bool,
    pub(super) check_crcs: bool,
    pub(super) fetch_min_bytes: i32,
    pub(super) fetch_max_bytes: i32,
    pub(super) fetch_max_wait: Duration,
    pub(super) partition_max_bytes: i32,
    pub(super) session_timeout: Duration,
    pub(super) heartbeat_interval: Duration,
    pub(super) rebalance_timeout: Duration,
    pub(super) retry_backoff: Duration,
    pub(super) metadata_max_age: Duration,
}

impl ConsumerSettings {
    /// # Errors
    /// A value that cannot be.
    pub(in crate::tools) fn new(
        properties: &BTreeMap<String, String>,
    ) -> Result<ConsumerSettings, Failure> {
        let typed = Typed(properties);
        let reset = match typed.text("auto.offset.reset", "latest") {
            "earliest" => OffsetReset::Earliest,
            "latest" => OffsetReset::Latest,
            "none" => OffsetReset::None,
            other => {
                return Err(Failure::new(format!(
                    "auto.offset.reset={other}: it must be earliest, latest or none"
                )));
            }
        };
        let read_committed = match typed.text("isolation.level", "read_uncommitted") {
            "read_committed" => true,
            "read_uncommitted" => false,
            other => {
                return Err(Failure::new(format!(
                    "isolation.level={other}: it must be read_committed or read_uncommitted"
                )));
            }
        };
        let name = typed.text("group.protocol", "classic");
        if !name.eq_ignore_ascii_case("classic") {
            return Err(Failure::new(format!(
                "group.protocol={name}: only classic is supported by this tool"
            )));
        }
        Ok(ConsumerSettings {
            group: properties.get("group.id").map(|id| Str::from(id.as_str())),
            instance: properties
                .get("group.instance.id")
                .map(|id| Str::from(id.as_str())),
            reset,
            auto_commit: typed.boolean("enable.auto.commit", true)?,
            auto_commit_interval: typed.millis("auto.commit.interval.ms", 5000)?,
            read_committed,
            check_crcs: typed.boolean("check.crcs", true)?,
            fetch_min_bytes: typed.number("fetch.min.bytes", 1)?,
            fetch_max_bytes: typed.number("fetch.max.bytes", 50 << 20)?,
            fetch_max_wait: typed.millis("fetch.max.wait.ms", 500)?,
            partition_max_bytes: typed.number("max.partition.fetch.bytes", 1 << 20)?,
            session_timeout: typed.millis("session.timeout.ms", 45_000)?,
            heartbeat_interval: typed.millis("heartbeat.interval.ms", 3000)?,
            rebalance_timeout: typed.millis("max.poll.interval.ms", 300_000)?,
            retry_backoff: typed.millis("retry.backoff.ms", 100)?,
            metadata_max_age: typed.millis("metadata.max.age.ms", 300_000)?,
        })
    }

    /// As a request has it.
    pub(super) fn isolation_level(&self) -> i8 {
        i8::from(self.read_committed)
    }
}

/// For fields of requests.
pub(super) fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
