//! DescribeQuorum: the quorum of the metadata log, whose only voter this node is.

use protocol::messages::{
    DescribeQuorumRequest, DescribeQuorumResponse, DescribeQuorumResponseListener,
    DescribeQuorumResponseNode, DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState, DescribeQuorumResponseTopicData,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::controller::QuorumInfo;
use crate::metadata::Image;
use crate::shard::ask_controller;

/// First version whose answers have the voters' addresses, and texts beside the codes.
const NODES_SINCE: i16 = 2;
const METADATA_TOPIC: &str = "__cluster_metadata";

/// The handler.
pub struct DescribeQuorum;

impl Handler for DescribeQuorum {
    type Request = DescribeQuorumRequest;

    async fn handle(call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
        if !asks_for_metadata(&request) {
            return unknown_partitions(&request);
        }
        let asked = ask_controller(
            &call.shard,
            |controller| async move { Ok(controller.quorum()) },
        );
        match asked.await {
            Ok(quorum) => answer(&call, &quorum),
            Err(error) => DescribeQuorumResponse {
                error_code: error.code().code(),
                error_message: Some(error.code().message().into()),
                ..Default::default()
            },
        }
    }
}

/// There is one partition to ask for, alone.
fn asks_for_metadata(request: &DescribeQuorumRequest) -> bool {
    let Some(topic) = request.topics.only() else {
        return false;
    };
    let indexes = topic.partitions.iter().map(|it| it.partition_index);
    &*topic.topic_name == METADATA_TOPIC && indexes.eq([0])
}

fn unknown_partitions(request: &DescribeQuorumRequest) -> DescribeQuorumResponse {
    let error = ErrorCode::UnknownTopicOrPartition;
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|asked| DescribeQuorumResponsePartitionData {
            partition_index: asked.partition_index,
            error_code: error.code(),
            error_message: Some(error.message().into()),
            ..Default::default()
        });
        DescribeQuorumResponseTopicData {
            topic_name: topic.topic_name.clone(),
            partitions: partitions.collect(),
        }
    });
    DescribeQuorumResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn answer(call: &Call, quorum: &QuorumInfo) -> DescribeQuorumResponse {
    let now = call.shard.core.wall_clock_ms();
    let node = call.shard.config.node_id;
    let voter = DescribeQuorumResponseReplicaState {
        replica_id: node,
        replica_directory_id: quorum.directory_id,
        log_end_offset: quorum.end_offset,
        last_fetch_timestamp: now,
        last_caught_up_timestamp: now,
    };
    let texts = call.version() >= NODES_SINCE;
    let partition = DescribeQuorumResponsePartitionData {
        error_message: texts.then(Str::default),
        leader_id: node,
        leader_epoch: quorum.epoch,
        high_watermark: quorum.end_offset,
        current_voters: [voter].into(),
        ..Default::default()
    };
    DescribeQuorumResponse {
        error_message: texts.then(Str::default),
        topics: [DescribeQuorumResponseTopicData {
            topic_name: Str::from_static(METADATA_TOPIC),
            partitions: [partition].into(),
        }]
        .into(),
        nodes: match texts {
            true => nodes(&call.shard.image(), node).into(),
            false => [].into(),
        },
        ..Default::default()
    }
}

fn nodes(image: &Image, node: i32) -> Vec<DescribeQuorumResponseNode> {
    let Some(controller) = image.controller(node) else {
        return Vec::new();
    };
    let listeners = controller.endpoints.iter();
    let listeners = listeners.map(|endpoint| DescribeQuorumResponseListener {
        name: endpoint.name.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
    });
    vec![DescribeQuorumResponseNode {
        node_id: node,
        listeners: listeners.collect(),
    }]
}
