//! Calls that several tools make, as Kafka's admin client makes them.

mod configs;
mod topics;

pub(super) use configs::{ConfigEntry, Resource, describe_configs};
pub(super) use topics::{
    PartitionInfo, TopicInfo, describe_topics, describe_topics_by_id, list_topics,
};
