//! Which APIs there are, in which versions, on which listeners.

use std::fmt;

use crate::wire::{DecodeError, DecodeErrorKind};

include!(concat!(env!("OUT_DIR"), "/apis.rs"));

/// An inclusive range of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    pub min: i16,
    pub max: i16,
}

impl VersionRange {
    pub const fn new(min: i16, max: i16) -> Self {
        VersionRange { min, max }
    }

    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    pub fn iter(self) -> std::ops::RangeInclusive<i16> {
        self.min..=self.max
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}

/// Who is served on a listener: clients and brokers, or the quorum's peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    Broker,
    Controller,
}

/// One row of the table. A removed API has an empty range.
struct ApiInfo {
    key: ApiKey,
    name: &'static str,
    min: i16,
    max: i16,
    /// The last version that is advertised and served unless unstable ones are asked for.
    max_stable: i16,
    /// `i16::MAX`: never.
    flexible_from: i16,
    advertised_min: i16,
    on_broker: bool,
    on_controller: bool,
    cluster_action: bool,
    forwardable: bool,
}

impl ApiKey {
    pub fn all() -> impl Iterator<Item = ApiKey> {
        APIS.iter().map(|info| info.key)
    }

    pub fn from_i16(code: i16) -> Option<Self> {
        let row = usize::try_from(code).ok()?;
        APIS.get(row).map(|info| info.key)
    }

    pub const fn code(self) -> i16 {
        self as i16
    }

    fn info(self) -> &'static ApiInfo {
        &APIS[self as usize]
    }

    /// Kafka's name, e.g. `OffsetForLeaderEpoch`.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Versions that 4.4 serves, without unstable ones. None for an API that 4.0 removed.
    pub fn versions(self) -> Option<VersionRange> {
        let info = self.info();
        (info.min <= info.max_stable).then(|| VersionRange::new(info.min, info.max_stable))
    }

    /// Versions that this crate can read and write, unstable ones too.
    pub fn known_versions(self) -> Option<VersionRange> {
        let info = self.info();
        (info.min <= info.max).then(|| VersionRange::new(info.min, info.max))
    }

    /// Versions served on such a listener. None: not served there.
    pub fn versions_on(self, listener: ListenerKind) -> Option<VersionRange> {
        let info = self.info();
        let served = match listener {
            ListenerKind::Broker => info.on_broker,
            ListenerKind::Controller => info.on_controller,
        };
        if served { self.versions() } else { None }
    }

    /// What ApiVersions says on such a listener. On brokers, Produce is said to start at 0, since
    /// librdkafka takes anything else for a broker that cannot compress (KAFKA-18659).
    pub fn advertised_on(self, listener: ListenerKind) -> Option<VersionRange> {
        let served = self.versions_on(listener)?;
        Some(match listener {
            ListenerKind::Broker => VersionRange::new(self.info().advertised_min, served.max),
            ListenerKind::Controller => served,
        })
    }

    /// The first flexible version (KIP-482): compact lengths and tagged fields.
    pub fn flexible_from(self) -> Option<i16> {
        let from = self.info().flexible_from;
        (from != i16::MAX).then_some(from)
    }

    pub fn is_flexible(self, version: i16) -> bool {
        version >= self.info().flexible_from
    }

    /// The last version that Kafka 3.9 announced to drop (KIP-896); 4.0 dropped some of them. Who
    /// speaks these is older than Kafka 2.1, or not kept up to date.
    pub const fn last_deprecated(self) -> Option<i16> {
        Some(match self {
            ApiKey::ListOffsets
            | ApiKey::OffsetFetch
            | ApiKey::FindCoordinator
            | ApiKey::SaslHandshake
            | ApiKey::DeleteTopics
            | ApiKey::DescribeAcls
            | ApiKey::CreateAcls
            | ApiKey::DeleteAcls
            | ApiKey::DescribeConfigs
            | ApiKey::AlterReplicaLogDirs
            | ApiKey::DescribeLogDirs
            | ApiKey::CreateDelegationToken
            | ApiKey::RenewDelegationToken
            | ApiKey::ExpireDelegationToken
            | ApiKey::DescribeDelegationToken
            | ApiKey::DeleteGroups => 0,
            ApiKey::OffsetCommit
            | ApiKey::JoinGroup
            | ApiKey::CreateTopics
            | ApiKey::OffsetForLeaderEpoch => 1,
            ApiKey::Fetch | ApiKey::Metadata => 3,
            ApiKey::Produce => 6,
            _ => return None,
        })
    }

    /// Only for peers that may act for the cluster.
    pub fn is_cluster_action(self) -> bool {
        self.info().cluster_action
    }

    /// A broker passes such a request on to the active controller.
    pub fn is_forwardable(self) -> bool {
        self.info().forwardable
    }

    /// 2 for flexible versions, else 1; ControlledShutdown v0 had 0, without a client id.
    pub fn request_header_version(self, version: i16) -> i16 {
        match self {
            ApiKey::ControlledShutdown if version == 0 => 0,
            _ if self.is_flexible(version) => 2,
            _ => 1,
        }
    }

    /// 1 for flexible versions, else 0. ApiVersions always has 0: the client does not know yet
    /// what the broker speaks (KIP-511).
    pub fn response_header_version(self, version: i16) -> i16 {
        i16::from(self != ApiKey::ApiVersions && self.is_flexible(version))
    }
}

impl TryFrom<i16> for ApiKey {
    type Error = DecodeError;

    fn try_from(code: i16) -> Result<Self, DecodeError> {
        ApiKey::from_i16(code).ok_or(DecodeError {
            kind: DecodeErrorKind::UnknownApiKey(code),
            at: 0,
            message: "RequestHeader",
            version: 0,
        })
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_order() {
        for (row, info) in APIS.iter().enumerate() {
            assert_eq!(info.key as usize, row);
        }
        assert_eq!(ApiKey::from_i16(-1), None);
        assert_eq!(ApiKey::from_i16(95), None);
    }

    #[test]
    fn listeners_and_ranges() {
        use ListenerKind::{Broker, Controller};
        let range = |min, max| Some(VersionRange::new(min, max));
        assert_eq!(ApiKey::Produce.versions(), range(3, 13));
        assert_eq!(ApiKey::Produce.advertised_on(Broker), range(0, 13));
        assert_eq!(ApiKey::Produce.advertised_on(Controller), None);
        assert_eq!(ApiKey::Fetch.advertised_on(Broker), range(4, 18));
        assert_eq!(ApiKey::Vote.versions_on(Broker), None);
        assert_eq!(ApiKey::Vote.versions_on(Controller), range(0, 2));
        assert_eq!(ApiKey::LeaderAndIsr.versions(), None);
        assert_eq!(ApiKey::InitProducerId.versions(), range(0, 5));
        assert_eq!(ApiKey::InitProducerId.known_versions(), range(0, 6));
    }

    #[test]
    fn header_versions() {
        assert_eq!(ApiKey::ApiVersions.request_header_version(3), 2);
        assert_eq!(ApiKey::ApiVersions.response_header_version(4), 0);
        assert_eq!(ApiKey::Fetch.request_header_version(11), 1);
        assert_eq!(ApiKey::Fetch.response_header_version(12), 1);
        assert_eq!(ApiKey::SaslHandshake.request_header_version(1), 1);
        assert_eq!(ApiKey::OffsetDelete.flexible_from(), None);
        assert_eq!(ApiKey::ControlledShutdown.request_header_version(0), 0);
    }
}
