//! Calls that several tools make, as Kafka's admin client makes them.

mod configs;
mod groups;
mod offsets;
mod topics;

pub(super) use configs::{ConfigEntry, Resource, describe_configs};
pub(super) use groups::{
    Committed, GroupInfo, ListedGroup, MemberInfo, committed_offsets, describe_consumer_group,
    list_groups,
};
pub(super) use offsets::{EARLIEST, Each, LATEST, list_offsets, on_leaders};
pub(super) use topics::{
    PartitionInfo, TopicInfo, describe_topics, describe_topics_by_id, list_topics,
};
