//! Who leads a partition, who coordinates a group.

use std::collections::BTreeMap;

use protocol::messages::{
    DescribeClusterResponse, FindCoordinatorRequest, MetadataRequestMetadataRequestTopic,
    MetadataResponse,
};
use protocol::{Request, Str};

use super::{Address, Client, ClientError, Cluster, Node, NodeInfo};

/// A topic's name and a partition's number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    pub topic: Str,
    pub number: i32,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.number)
    }
}

/// The last version of FindCoordinator that asks for one key.
const SINGLE_KEY_MAX: i16 = 3;

impl Client {
    /// The leaders of these topics' partitions. A topic that does not exist is an error; a partition without a leader is one
    /// that passes.
    ///
    /// # Errors
    /// As said, or nobody answers.
    pub fn leaders(&mut self, topics: &[Str]) -> Result<BTreeMap<Partition, Node>, ClientError> {
        let response = self.metadata(Some(topics))?;
        let mut leaders = BTreeMap::new();
        for topic in response.topics {
            ClientError::check(topic.error_code, None)?;
            let name = topic.name.unwrap_or_default();
            for partition in topic.partitions {
                ClientError::check(partition.error_code, None)?;
                let number = partition.partition_index;
                let topic = name.clone();
                leaders.insert(Partition { topic, number }, Node::Id(partition.leader_id));
            }
        }
        Ok(leaders)
    }

    /// The node that coordinates this consumer group.
    ///
    /// # Errors
    /// None does now, which may pass, or nobody answers.
    pub fn group_coordinator(&mut self, group: &str) -> Result<Node, ClientError> {
        self.coordinator(group, 0)
    }

    /// The node that coordinates this key: 0 a group, 1 a transactional id, 2 a share partition.
    ///
    /// # Errors
    /// None does now, which may pass, or nobody answers.
    pub fn coordinator(&mut self, key: &str, key_type: i8) -> Result<Node, ClientError> {
        let highest = self
            .connection(Node::Any)?
            .version::<FindCoordinatorRequest>()?;
        let (node_id, host, port) = if highest > SINGLE_KEY_MAX {
            let request = FindCoordinatorRequest {
                coordinator_keys: [key.into()].into(),
                key_type,
                ..FindCoordinatorRequest::default()
            };
            let response = self.send(Node::Any, &request)?;
            let found = response.coordinators.into_iter().next().unwrap_or_default();
            ClientError::check(found.error_code, found.error_message.as_ref())?;
            (found.node_id, found.host, found.port)
        } else {
            let request = FindCoordinatorRequest {
                key: key.into(),
                key_type,
                ..FindCoordinatorRequest::default()
            };
            let found = self.send_up_to(Node::Any, SINGLE_KEY_MAX, &request)?;
            ClientError::check(found.error_code, found.error_message.as_ref())?;
            (found.node_id, found.host, found.port)
        };
        self.cluster
            .nodes
            .entry(node_id)
            .or_insert_with(|| node(node_id, &host, port, None));
        Ok(Node::Id(node_id))
    }

    /// Asks the coordinator of a group; looked up anew each time that it has moved.
    ///
    /// # Errors
    /// `check` finds an error in the answer that does not pass, or nobody answers.
    pub fn ask_coordinator<R: Request, T>(
        &mut self,
        group: &str,
        request: &R,
        check: impl Fn(R::Response) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        self.retrying(|client| {
            let node = client.group_coordinator(group)?;
            check(client.send(node, request)?)
        })
    }
}

fn node(id: i32, host: &str, port: i32, rack: Option<Str>) -> NodeInfo {
    NodeInfo {
        id,
        address: Address {
            host: host.to_owned(),
            port: u16::try_from(port).unwrap_or_default(),
        },
        rack,
        fenced: false,
    }
}

pub(super) fn metadata_topic(name: &Str) -> MetadataRequestMetadataRequestTopic {
    MetadataRequestMetadataRequestTopic {
        name: Some(name.clone()),
        ..MetadataRequestMetadataRequestTopic::default()
    }
}

pub(super) fn nodes_of(response: &MetadataResponse) -> BTreeMap<i32, NodeInfo> {
    let nodes = response.brokers.iter().map(|broker| {
        let info = node(
            broker.node_id,
            &broker.host,
            broker.port,
            broker.rack.clone(),
        );
        (broker.node_id, info)
    });
    nodes.collect()
}

pub(super) fn cluster_of(response: DescribeClusterResponse) -> Cluster {
    let nodes = response.brokers.into_iter().map(|broker| {
        let mut info = node(broker.broker_id, &broker.host, broker.port, broker.rack);
        info.fenced = broker.is_fenced;
        (broker.broker_id, info)
    });
    Cluster {
        id: Some(response.cluster_id),
        controller: (response.controller_id >= 0).then_some(response.controller_id),
        nodes: nodes.collect(),
    }
}
