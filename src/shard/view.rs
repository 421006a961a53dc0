//! The cluster as a core sees it: metadata, and which core of this node owns what.

use std::sync::Arc;

use protocol::Uuid;
use shards::CoreId;

use crate::config::BrokerConfig;
use crate::metadata::{Image, Placement};

/// An immutable snapshot, shared by all cores.
pub struct ClusterView {
    /// The replayed metadata log.
    pub image: Arc<Image>,
    /// The configuration of this node, with what the metadata sets.
    pub config: Arc<BrokerConfig>,
    /// Partition to core.
    pub placement: Arc<Placement>,
}

impl ClusterView {
    /// The core that owns a partition of an existing topic.
    pub fn owner(&self, topic_id: Uuid, partition: i32) -> Option<CoreId> {
        self.image.partition(topic_id, partition)?;
        self.placement.core_of(topic_id, partition).map(CoreId)
    }
}
