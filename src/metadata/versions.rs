//! Which version of each record a level of `metadata.version` writes.
//!
//! Levels below 7 (3.3-IV3) cannot be opened by Apache 4.x either.

use protocol::stored::MetadataRecord;

use super::entries::VersionedRecord;

/// The level that a first start finalizes: 4.4-IV2, as Apache 4.4 does.
pub const LATEST_METADATA_VERSION: i16 = 33;
/// The lowest level that can be opened: 3.3-IV3.
pub const MINIMUM_METADATA_VERSION: i16 = 7;

/// Levels of `metadata.version` at which what is written changes.
mod level {
    pub const DIRECTORIES: i16 = 17; // 3.7-IV2, KIP-858
    pub const CONTROLLER_REGISTRATION: i16 = 15; // 3.7-IV0, KIP-919
    pub const ZK_MIGRATION: i16 = 8; // 3.4-IV0, KIP-866
    pub const ELR: i16 = 23; // 4.0-IV1, KIP-966
    pub const CORDONED_DIRECTORIES: i16 = 30; // 4.3-IV0, KIP-1066
    pub const TRANSACTIONS: i16 = 13; // 3.6-IV1, KIP-868
}

/// A level of `metadata.version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetadataVersion(pub i16);

impl MetadataVersion {
    /// Bootstrap records stand in a transaction of the metadata log.
    #[must_use]
    pub fn has_transactions(self) -> bool {
        self.0 >= level::TRANSACTIONS
    }

    /// Controllers register themselves.
    #[must_use]
    pub fn has_controller_registration(self) -> bool {
        self.0 >= level::CONTROLLER_REGISTRATION
    }

    /// Replicas are assigned to directories.
    #[must_use]
    pub fn has_directories(self) -> bool {
        self.0 >= level::DIRECTORIES
    }

    /// Brokers say which directories take no new replicas.
    #[must_use]
    pub fn has_cordoned_directories(self) -> bool {
        self.0 >= level::CORDONED_DIRECTORIES
    }

    /// The record in the version this level writes.
    #[must_use]
    pub fn versioned(self, mut record: MetadataRecord) -> VersionedRecord {
        self.leave_out_unsaid(&mut record);
        let version = match &record {
            MetadataRecord::RegisterBroker(_) => match self.0 {
                level::CORDONED_DIRECTORIES.. => 4,
                level::DIRECTORIES.. => 3,
                level::ZK_MIGRATION.. => 2,
                _ => 1,
            },
            MetadataRecord::Partition(_) | MetadataRecord::PartitionChange(_) => match self.0 {
                level::ELR.. => 2,
                level::DIRECTORIES.. => 1,
                _ => 0,
            },
            // The lowest version that can say it, which every level that wants to say it has.
            MetadataRecord::BrokerRegistrationChange(change) => {
                if change.cordoned_log_dirs.is_some() {
                    3
                } else if !change.log_dirs.is_empty() {
                    2
                } else {
                    i16::from(change.in_controlled_shutdown != 0)
                }
            }
            _ => 0,
        };
        VersionedRecord { version, record }
    }

    /// Empties the fields that records of this level do not have.
    fn leave_out_unsaid(self, record: &mut MetadataRecord) {
        match record {
            MetadataRecord::RegisterBroker(it) => {
                if !self.has_directories() {
                    it.log_dirs.clear();
                }
                if !self.has_cordoned_directories() {
                    it.cordoned_log_dirs = None;
                }
                it.is_migrating_zk_broker &= self.0 >= level::ZK_MIGRATION;
            }
            MetadataRecord::Partition(it) => {
                if !self.has_directories() {
                    it.directories.clear();
                }
                if self.0 < level::ELR {
                    it.eligible_leader_replicas = None;
                    it.last_known_elr = None;
                }
            }
            MetadataRecord::PartitionChange(it) => {
                if !self.has_directories() {
                    it.directories = None;
                }
                if self.0 < level::ELR {
                    it.eligible_leader_replicas = None;
                    it.last_known_elr = None;
                }
            }
            _ => {}
        }
    }
}
