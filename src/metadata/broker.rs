//! Who has registered with the controller: brokers and controllers.

use protocol::{Str, Uuid};

use super::partition::directory;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of the listener.
    pub name: Str,
    pub host: Str,
    pub port: u16,
    /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// Versions of a feature that a node supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    pub name: Str,
    pub min: i16,
    pub max: i16,
}

/// One incarnation of a broker: `RegisterBrokerRecord` merged with its later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRegistration {
    pub id: i32,
    /// Offset of the registration's record in the metadata log.
    pub epoch: i64,
    pub incarnation_id: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<SupportedFeature>,
    pub rack: Option<Str>,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    /// Left over from the migration off ZooKeeper; written back as it was.
    pub is_migrating_zk_broker: bool,
    /// Directories that are online.
    pub log_dirs: Vec<Uuid>,
    /// Directories that take no new replicas; `None` until the broker has said (KIP-1066).
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl BrokerRegistration {
    /// Endpoint of a listener.
    #[must_use]
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints
            .iter()
            .find(|endpoint| &*endpoint.name == listener)
    }

    /// Whether a replica in this directory can be online: it is there, or not known yet.
    #[must_use]
    pub fn has_online(&self, id: Uuid) -> bool {
        id != directory::LOST && (!directory::is_assigned(id) || self.log_dirs.contains(&id))
    }

    /// Directories that may take a new replica.
    pub fn uncordoned_log_dirs(&self) -> impl Iterator<Item = Uuid> {
        let cordoned = self.cordoned_log_dirs.as_deref().unwrap_or_default();
        self.log_dirs
            .iter()
            .copied()
            .filter(move |directory| !cordoned.contains(directory))
    }
}

/// One incarnation of a controller (KIP-919).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRegistration {
    pub id: i32,
    pub incarnation_id: Uuid,
    /// Left over from the migration off ZooKeeper; written back as it was.
    pub zk_migration_ready: bool,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<SupportedFeature>,
}
