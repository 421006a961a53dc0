//! How much each module logs, changed while the broker runs (resource type BROKER_LOGGER).
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

use crate::client::Connection;
use crate::common::text;
use crate::support::broker::Broker;
use crate::support::clock;

const BROKER_LOGGER: i8 = 8;
const DYNAMIC_BROKER_LOGGER_SOURCE: i8 = 6;
const SET: i8 = 0;
const DELETE: i8 = 1;

/// Every logger and its level.
fn levels(connection: &mut Connection) -> Vec<(String, String)> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(BROKER_LOGGER)
        .with_resource_name(text("1"))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default()
        .with_resources(vec![resource])
        .with_include_synonyms(true);
    let result = connection.call(4, &request).results.remove(0);
    assert_eq!(result.error_code, 0);
    let configs = result.configs.into_iter().map(|config| {
        assert_eq!(config.config_source, DYNAMIC_BROKER_LOGGER_SOURCE);
        assert!(!config.read_only && !config.is_sensitive && config.synonyms.is_empty());
        assert_eq!(config.documentation.as_deref(), Some(""), "none, not null");
        let value = config.value.expect("a level");
        (config.name.to_string(), value.to_string())
    });
    configs.collect()
}

fn level(connection: &mut Connection, logger: &str) -> String {
    let mut levels = levels(connection).into_iter();
    let (_, level) = levels.find(|(name, _)| name == logger).expect("a logger");
    level
}

fn alter(
    connection: &mut Connection,
    changes: &[(&str, Option<&str>)],
    validate_only: bool,
) -> i16 {
    let configs = changes.iter().map(|(logger, level)| {
        AlterableConfig::default()
            .with_name(text(logger))
            .with_config_operation(if level.is_some() { SET } else { DELETE })
            .with_value(level.map(text))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(BROKER_LOGGER)
        .with_resource_name(text("1"))
        .with_configs(configs.collect());
    let request = IncrementalAlterConfigsRequest::default()
        .with_resources(vec![resource])
        .with_validate_only(validate_only);
    connection.call(1, &request).responses.remove(0).error_code
}

#[test]
fn levels_of_loggers_change_while_the_broker_runs() {
    /// Says a line about each bad request.
    const LOGGER: &str = "broker.handlers.api";
    const INVALID_CONFIG: i16 = 40;
    let broker = Broker::start("loggers", &[]);
    let mut connection = Connection::open(broker.port);
    let lines = || {
        broker
            .log()
            .matches("closing a connection after a bad")
            .count()
    };
    let bad_request = || {
        let mut bad = Connection::open(broker.port);
        // Metadata v12 without its body.
        bad.send_raw(&[0, 0, 0, 11, 0, 3, 0, 12, 0, 0, 0, 1, 255, 255, 0]);
        bad.expect_closed("a request without a body");
    };
    assert_eq!(level(&mut connection, "root"), "INFO");
    assert_eq!(level(&mut connection, LOGGER), "INFO");
    bad_request();
    clock::wait_until("the line of a bad request", || lines() == 1);

    let wrong = [(LOGGER, Some("DEBUG")), ("broker", Some("LOUD"))];
    assert_eq!(alter(&mut connection, &wrong, false), INVALID_CONFIG);
    assert_eq!(alter(&mut connection, &[(LOGGER, Some("ERROR"))], true), 0);
    assert_eq!(
        level(&mut connection, LOGGER),
        "INFO",
        "neither changed any"
    );

    let around = [("broker.handlers", Some("ERROR")), ("root", Some("WARN"))];
    assert_eq!(alter(&mut connection, &around, false), 0);
    assert_eq!(level(&mut connection, LOGGER), "ERROR");
    assert_eq!(level(&mut connection, "broker.server"), "WARN");
    bad_request();
    let back = [("broker::handlers", None), ("root", Some("INFO"))];
    assert_eq!(alter(&mut connection, &back, false), 0);
    assert!(
        levels(&mut connection)
            .iter()
            .all(|(_, level)| level == "INFO")
    );
    bad_request();
    clock::wait_until("the line of the last bad request", || lines() >= 2);
    assert_eq!(lines(), 2, "the one in the middle left none");
}
