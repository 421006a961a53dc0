//! The settings of a node that is started without a file: those of the `server.properties` that Apache ships,
//! for one node that listens on this machine only.

use std::collections::BTreeMap;

/// Where data lies without a file, below the working directory.
pub const DATA_DIRECTORY: &str = "./ringmain-data";

const SETTINGS: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    (
        "listeners",
        "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    ),
    (
        "advertised.listeners",
        "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    ),
    ("inter.broker.listener.name", "PLAINTEXT"),
    ("controller.listener.names", "CONTROLLER"),
    ("controller.quorum.bootstrap.servers", "localhost:9093"),
    ("log.dirs", DATA_DIRECTORY),
    ("num.partitions", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
];

/// The settings of a node without a file, with `overrides` on top.
///
/// If the listeners are overridden without the controller's, or without what is advertised, those follow: nobody
/// should have to name a controller listener to move a broker to another port.
pub fn single_node(overrides: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = SETTINGS
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    if let Some(listeners) = overrides.get("listeners") {
        settings.remove("advertised.listeners");
        if !overrides.contains_key("controller.listener.names") && !mentions_controller(listeners) {
            let with_controller = format!("{listeners},CONTROLLER://localhost:0");
            settings.extend(
                overrides
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            settings.insert("listeners".to_string(), with_controller);
            return settings;
        }
    }
    settings.extend(
        overrides
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    settings
}

fn mentions_controller(listeners: &str) -> bool {
    listeners
        .split(',')
        .any(|entry| entry.trim().to_ascii_uppercase().starts_with("CONTROLLER:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BrokerConfig, Settings};

    fn config(overrides: &[(&str, &str)]) -> BrokerConfig {
        let overrides = overrides
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        BrokerConfig::new(Settings::new(single_node(&overrides)).unwrap()).unwrap()
    }

    #[test]
    fn without_a_file_a_node_serves_this_machine() {
        let config = config(&[]);
        assert_eq!(config.node_id, 1);
        assert_eq!(
            config.listeners[0].to_string(),
            "PLAINTEXT://localhost:9092"
        );
        assert_eq!(config.advertised_listeners, config.listeners);
        assert_eq!(
            config.controller_listeners[0].to_string(),
            "CONTROLLER://localhost:9093"
        );
        assert_eq!(config.inter_broker_listener, "PLAINTEXT");
        assert_eq!(
            config.storage.log_dirs,
            [std::path::PathBuf::from(DATA_DIRECTORY)]
        );
        assert_eq!(
            config.storage.metadata_log_dir,
            std::path::PathBuf::from(DATA_DIRECTORY)
        );
        assert_eq!(config.offsets.topic_replication_factor, 1);
        assert_eq!(config.groups.initial_rebalance_delay_ms, 0);
        assert_eq!(config.topics.partitions, 1);
        assert_eq!(config.runtime.shards, None);
    }

    #[test]
    fn moving_the_broker_to_another_port_takes_one_override() {
        let config = config(&[
            ("listeners", "PLAINTEXT://127.0.0.1:0"),
            ("log.dirs", "/a, /b"),
        ]);
        assert_eq!(config.listeners[0].to_string(), "PLAINTEXT://127.0.0.1:0");
        assert_eq!(config.advertised_listeners, config.listeners);
        assert_eq!(config.controller_listeners[0].port, 0);
        assert_eq!(config.storage.log_dirs.len(), 2);
    }
}
