//! DescribeCluster: the nodes, by the address of the listener that was asked.

use protocol::ErrorCode;
use protocol::messages::{
    DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseDescribeClusterBroker,
};

use super::api::{Call, Handler};
use super::operations;

/// The handler.
pub struct DescribeCluster;

/// `endpoint_type` of brokers (KIP-919).
const BROKERS: i8 = 1;
/// `endpoint_type` of controllers.
const CONTROLLERS: i8 = 2;

impl Handler for DescribeCluster {
    type Request = DescribeClusterRequest;

    async fn handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse {
        if request.endpoint_type != BROKERS {
            return mismatch(request.endpoint_type);
        }
        let image = call.shard.image();
        let brokers = image
            .brokers()
            .filter(|broker| !broker.fenced || request.include_fenced_brokers)
            .filter_map(|broker| {
                let address = call
                    .shard
                    .node_address(&image, broker.id, call.caller.listener)?;
                Some(DescribeClusterResponseDescribeClusterBroker {
                    broker_id: broker.id,
                    host: address.host,
                    port: address.port,
                    rack: address.rack,
                    is_fenced: broker.fenced,
                })
            })
            .collect();
        let mut response = DescribeClusterResponse {
            endpoint_type: BROKERS,
            cluster_id: call.shard.cluster_id.clone(),
            controller_id: call.shard.config.node_id,
            brokers,
            ..Default::default()
        };
        if request.include_cluster_authorized_operations {
            response.cluster_authorized_operations = operations::CLUSTER;
        }
        response
    }
}

/// A broker's listener does not tell of controllers, and no listener of anything else.
fn mismatch(endpoint_type: i8) -> DescribeClusterResponse {
    let (error, message) = match endpoint_type {
        CONTROLLERS => (
            ErrorCode::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
             type CONTROLLER"
                .to_owned(),
        ),
        _ => (
            ErrorCode::UnsupportedEndpointType,
            format!("Unsupported endpoint type {endpoint_type}"),
        ),
    };
    DescribeClusterResponse {
        error_code: error.code(),
        error_message: Some(message.into()),
        ..Default::default()
    }
}
