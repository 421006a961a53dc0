//! What this node tells the cluster about itself.

use protocol::{Str, Uuid};

use crate::config::{BrokerConfig, Endpoint as Listener};
use crate::controller::NodeRegistration;
use crate::features::SUPPORTED_FEATURES;
use crate::metadata::{BrokerRegistration, ControllerRegistration, Endpoint, SupportedFeature};

/// The registration of a node with these log directories.
pub fn registration(config: &BrokerConfig, log_dirs: Vec<Uuid>) -> NodeRegistration {
    NodeRegistration {
        broker: BrokerRegistration {
            id: config.node_id,
            epoch: -1,
            incarnation_id: Uuid::ZERO,
            endpoints: endpoints(&config.advertised_listeners),
            features: features(),
            rack: config
                .rack
                .as_deref()
                .map(|rack| Str::from(rack.to_owned())),
            fenced: true,
            in_controlled_shutdown: false,
            is_migrating_zk_broker: false,
            log_dirs,
            cordoned_log_dirs: Some(Vec::new()),
        },
        controller: ControllerRegistration {
            id: config.node_id,
            incarnation_id: Uuid::ZERO,
            zk_migration_ready: false,
            endpoints: endpoints(&config.advertised_controller_listeners),
            features: features(),
        },
    }
}

fn endpoints(listeners: &[Listener]) -> Vec<Endpoint> {
    listeners
        .iter()
        .map(|listener| Endpoint {
            name: Str::from(listener.name.clone()),
            host: Str::from(listener.host.clone().unwrap_or_else(host_name)),
            port: listener.port,
            security_protocol: listener.protocol.wire_id(),
        })
        .collect()
}

fn features() -> Vec<SupportedFeature> {
    SUPPORTED_FEATURES
        .iter()
        .map(|feature| SupportedFeature {
            name: Str::from(feature.name),
            min: feature.min,
            max: feature.max,
        })
        .collect()
}

/// The name of this machine, for listeners that advertise none.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}
