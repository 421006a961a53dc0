//! A partition as the metadata log describes it.

use protocol::Uuid;

/// No broker leads the partition.
pub const NO_LEADER: i32 = -1;

/// Reserved directory ids (KIP-858): what a replica's directory may be besides a real one.
pub mod directory {
    use protocol::Uuid;

    /// The partition was written before directories were known.
    pub const MIGRATING: Uuid = Uuid([0; 16]);
    /// The broker has not chosen a directory yet.
    pub const UNASSIGNED: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    /// The directory is offline and its id is not known.
    pub const LOST: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);

    /// True for ids that name a real directory.
    #[must_use]
    pub fn is_assigned(id: Uuid) -> bool {
        id != MIGRATING && id != UNASSIGNED && id != LOST
    }
}

/// Registration of one partition: the merge of its `PartitionRecord` and all later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Broker ids, the preferred leader first. Never empty.
    pub replicas: Box<[i32]>,
    /// Directory id of each replica, same order and length as `replicas`.
    pub directories: Box<[Uuid]>,
    /// In-sync replicas; may be empty only while eligible leader replicas are in use (KIP-966).
    pub isr: Box<[i32]>,
    /// Replicas that a reassignment takes away.
    pub removing_replicas: Box<[i32]>,
    /// Replicas that a reassignment adds.
    pub adding_replicas: Box<[i32]>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Box<[i32]>,
    /// Last known leader when `isr` and `elr` are empty (KIP-966).
    pub last_known_elr: Box<[i32]>,
    /// Broker id or [`NO_LEADER`].
    pub leader: i32,
    /// Grows by one with every change that names a leader.
    pub leader_epoch: i32,
    /// Grows by one with every change.
    pub partition_epoch: i32,
    /// 0 recovered, 1 recovering from an unclean election (KIP-704).
    pub leader_recovery_state: i8,
}

impl Partition {
    /// Directory of the replica on `broker`; `None` when the broker has no replica.
    #[must_use]
    pub fn directory_of(&self, broker: i32) -> Option<Uuid> {
        let position = self
            .replicas
            .iter()
            .position(|&replica| replica == broker)?;
        self.directories.get(position).copied()
    }

    /// True while the partition moves between brokers.
    #[must_use]
    pub fn is_reassigning(&self) -> bool {
        !self.adding_replicas.is_empty() || !self.removing_replicas.is_empty()
    }
}
