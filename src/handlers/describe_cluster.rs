//! DescribeCluster: the nodes, by the address of the listener that was asked.

use protocol::messages::{
    DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseDescribeClusterBroker,
};
use protocol::{ErrorCode, ListenerKind};

use super::api::{Call, Handler};
use super::operations;
use crate::metadata::{Image, MetadataVersion};

/// The handler.
pub struct DescribeCluster;

/// `endpoint_type` of brokers (KIP-919).
const BROKERS: i8 = 1;
/// `endpoint_type` of controllers.
const CONTROLLERS: i8 = 2;

impl Handler for DescribeCluster {
    type Request = DescribeClusterRequest;

    async fn handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse {
        let asked = match call.caller.kind {
            ListenerKind::Broker => BROKERS,
            ListenerKind::Controller => CONTROLLERS,
        };
        let image = call.shard.image();
        if request.endpoint_type != asked {
            return mismatch(asked, request.endpoint_type);
        }
        if asked == CONTROLLERS && !registers_controllers(&image) {
            return refused(
                ErrorCode::UnsupportedVersion,
                "Direct-to-controller communication is not supported with the current \
                 MetadataVersion."
                    .to_owned(),
            );
        }
        let nodes = match asked {
            CONTROLLERS => controllers(&call, &image),
            _ => brokers(&call, &image, request.include_fenced_brokers),
        };
        let mut response = DescribeClusterResponse {
            endpoint_type: asked,
            cluster_id: call.shard.cluster_id.clone(),
            controller_id: call.shard.config.node_id,
            brokers: nodes.into(),
            ..Default::default()
        };
        if request.include_cluster_authorized_operations {
            response.cluster_authorized_operations = operations::CLUSTER;
        }
        response
    }
}

fn brokers(
    call: &Call,
    image: &Image,
    fenced_too: bool,
) -> Vec<DescribeClusterResponseDescribeClusterBroker> {
    let shown = image
        .brokers()
        .filter(|broker| !broker.fenced || fenced_too);
    let described = shown.filter_map(|broker| {
        let address = call
            .shard
            .node_address(image, broker.id, call.caller.listener)?;
        Some(DescribeClusterResponseDescribeClusterBroker {
            broker_id: broker.id,
            host: address.host,
            port: address.port,
            rack: address.rack,
            is_fenced: broker.fenced,
        })
    });
    described.collect()
}

/// Controllers register themselves from this level on.
fn registers_controllers(image: &Image) -> bool {
    let level = image.features.metadata_version();
    level.is_some_and(|level| MetadataVersion(level).has_controller_registration())
}

/// The quorum, by the addresses of the controller's listener that was asked.
fn controllers(call: &Call, image: &Image) -> Vec<DescribeClusterResponseDescribeClusterBroker> {
    let listeners = &call.shard.config.controller_listeners;
    let name = listeners
        .get(call.caller.listener)
        .map(|it| it.name.as_str());
    let described = image.controllers().filter_map(|controller| {
        let mut endpoints = controller.endpoints.iter();
        let endpoint = endpoints.find(|it| Some(&*it.name) == name)?;
        Some(DescribeClusterResponseDescribeClusterBroker {
            broker_id: controller.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            ..Default::default()
        })
    });
    described.collect()
}

/// A listener tells of the nodes that listen as it does, and no listener of anything else.
fn mismatch(asked: i8, wanted: i8) -> DescribeClusterResponse {
    let name = |endpoint_type| match endpoint_type {
        CONTROLLERS => "CONTROLLER",
        _ => "BROKER",
    };
    match wanted {
        BROKERS | CONTROLLERS => refused(
            ErrorCode::MismatchedEndpointType,
            format!(
                "The request was sent to an endpoint of type {}, but we wanted an endpoint of type {}",
                name(asked),
                name(wanted)
            ),
        ),
        _ => refused(
            ErrorCode::UnsupportedEndpointType,
            format!("Unsupported endpoint type {wanted}"),
        ),
    }
}

fn refused(error: ErrorCode, message: String) -> DescribeClusterResponse {
    DescribeClusterResponse {
        error_code: error.code(),
        error_message: Some(message.into()),
        ..Default::default()
    }
}
