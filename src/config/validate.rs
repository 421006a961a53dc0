//! Relations between keys that must hold before a node starts, with Kafka's words where it has the same rule.

use super::endpoint::{Endpoint, Voter, is_host_text};
use super::error::ConfigError;
use super::listeners::Listeners;
use super::settings::Settings;

/// `log.dirs`, else `log.dir`.
pub(super) fn log_dirs(settings: &Settings) -> &[String] {
    settings
        .maybe_list("log.dirs")
        .unwrap_or_else(|| settings.list("log.dir"))
}

/// Every rule that concerns more than one key.
pub(super) fn relations(settings: &Settings, listeners: &Listeners) -> Result<(), ConfigError> {
    node_id(settings)?;
    times(settings)?;
    replication(settings)?;
    roles(settings)?;
    quorum(settings)?;
    controller_listeners(settings, listeners)?;
    broker_listeners(settings, listeners)?;
    log_directories(settings)?;
    network(settings)?;
    groups(settings)
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::relation(message()))
    }
}

fn node_id(settings: &Settings) -> Result<(), ConfigError> {
    require(settings.int("node.id") == settings.int("broker.id"), || {
        "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, \
         please use `node.id` instead."
            .to_string()
    })
}

fn times(settings: &Settings) -> Result<(), ConfigError> {
    let at_least = |name: &'static str, low: i64| {
        settings
            .maybe_integer(name)
            .is_none_or(|value| value >= low)
    };
    require(at_least("log.roll.ms", 1), || {
        "log.roll.ms must be greater than or equal to 1".to_string()
    })?;
    require(at_least("log.roll.jitter.ms", 0), || {
        "log.roll.jitter.ms must be greater than or equal to 0".to_string()
    })?;
    let retention = [
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ]
    .into_iter()
    .find_map(|name| settings.maybe_integer(name))
    .unwrap_or(-1);
    // Kafka folds every negative span to "unlimited" first, so only zero is left to refuse.
    require(retention != 0, || {
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1".to_string()
    })?;
    let threads = settings.integer("log.cleaner.threads").max(1);
    require(
        settings.integer("log.cleaner.dedupe.buffer.size") / threads > 1024 * 1024,
        || "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.".to_string(),
    )?;
    let (low, high) = (
        settings.integer("log.cleaner.min.compaction.lag.ms"),
        settings.integer("log.cleaner.max.compaction.lag.ms"),
    );
    require(low <= high, || {
        format!(
            "conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    })
}

fn replication(settings: &Settings) -> Result<(), ConfigError> {
    let wait = settings.integer("replica.fetch.wait.max.ms");
    require(
        wait <= settings.integer("replica.socket.timeout.ms"),
        || {
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary \
         socket timeouts"
            .to_string()
        },
    )?;
    require(wait <= settings.integer("replica.lag.time.max.ms"), || {
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent \
         frequent changes in ISR"
            .to_string()
    })
}

/// This version runs as broker and controller in one process.
fn roles(settings: &Settings) -> Result<(), ConfigError> {
    let roles = settings.list("process.roles");
    let both = ["broker", "controller"]
        .iter()
        .all(|role| roles.iter().any(|given| given == role));
    require(both, || {
        format!(
            "process.roles={} is not supported yet: a node is broker and controller in one, \
             set process.roles=broker,controller",
            roles.join(",")
        )
    })
}

fn quorum(settings: &Settings) -> Result<(), ConfigError> {
    let voters: Vec<Voter> = settings
        .list("controller.quorum.voters")
        .iter()
        .map(|entry| Voter::parse(entry))
        .collect::<Result<_, _>>()?;
    let bootstrap = settings.list("controller.quorum.bootstrap.servers");
    require(!voters.is_empty() || !bootstrap.is_empty(), || {
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap \
         controllers or controller.quorum.voters must contain a parseable set of controllers."
            .to_string()
    })?;
    if voters.is_empty() {
        return Ok(());
    }
    let node_id = settings.int("node.id");
    require(voters.iter().any(|voter| voter.id == node_id), || {
        let ids: Vec<String> = voters.iter().map(|voter| voter.id.to_string()).collect();
        format!(
            "If process.roles contains the 'controller' role, the node id {node_id} must be included in the set of \
             voters controller.quorum.voters=Set({})",
            ids.join(", ")
        )
    })?;
    if let Some(voter) = voters.iter().find(|voter| voter.host == "0.0.0.0") {
        return Err(ConfigError::about(
            "controller.quorum.voters",
            format!("Host string ({}) is not routeable", voter.host),
        ));
    }
    require(voters.len() == 1, || {
        "controller.quorum.voters names other controllers, but a cluster of several nodes is not supported yet"
            .to_string()
    })
}

fn controller_listeners(settings: &Settings, listeners: &Listeners) -> Result<(), ConfigError> {
    require(!listeners.advertised_controller.is_empty(), || {
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when \
         running the KRaft controller role"
            .to_string()
    })?;
    let all_listed = listeners.controller_names.iter().all(|name| {
        listeners
            .controller
            .iter()
            .any(|endpoint| endpoint.name.eq_ignore_ascii_case(name))
    });
    require(all_listed, || {
        "controller.listener.names must only contain values appearing in the 'listeners' configuration when running \
         the KRaft controller role"
            .to_string()
    })?;
    let early = settings.list("early.start.listeners");
    let known = |name: &String| {
        listeners
            .broker
            .iter()
            .chain(&listeners.controller)
            .any(|endpoint| endpoint.name == *name)
            || listeners.controller_names.contains(name)
    };
    match early.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(ConfigError::about(
            "early.start.listeners",
            format!(
                "early.start.listeners contains listener {name}, but this is not contained in listeners or \
                 controller.listener.names"
            ),
        )),
    }
}

fn broker_listeners(settings: &Settings, listeners: &Listeners) -> Result<(), ConfigError> {
    let names = |endpoints: &[Endpoint]| {
        endpoints
            .iter()
            .map(|endpoint| endpoint.name.as_str())
            .collect::<Vec<_>>()
            .join(",")
    };
    let advertised = &listeners.advertised_broker;
    require(!advertised.is_empty(), || {
        let hint = if settings.list("listeners").len() == listeners.controller.len() {
            " Perhaps all listeners appear in controller.listener.names?"
        } else {
            ""
        };
        format!("There must be at least one broker advertised listener.{hint}")
    })?;
    require(
        advertised
            .iter()
            .any(|endpoint| endpoint.name == listeners.inter_broker),
        || {
            format!(
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options \
             based on currently configured listeners are {}",
                names(advertised)
            )
        },
    )?;
    let listed = |endpoint: &Endpoint| {
        listeners
            .broker
            .iter()
            .any(|listener| listener.name == endpoint.name)
    };
    require(advertised.iter().all(listed), || {
        format!(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. \
             Found {}. The valid options based on the current configuration are {}",
            names(advertised),
            names(&listeners.broker)
        )
    })?;
    let meta_address = |endpoint: &Endpoint| endpoint.host.as_deref() == Some("0.0.0.0");
    if let Some(endpoint) = advertised
        .iter()
        .chain(&listeners.advertised_controller)
        .find(|one| meta_address(one))
    {
        let hint = if settings.written("advertised.listeners").is_some() {
            format!("Found {endpoint}.")
        } else {
            format!(
                "Found {endpoint} in listeners: leave its host empty, or set advertised.listeners."
            )
        };
        return Err(ConfigError::about(
            "advertised.listeners",
            format!(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address. {hint}"
            ),
        ));
    }
    Ok(())
}

fn log_directories(settings: &Settings) -> Result<(), ConfigError> {
    let dirs = log_dirs(settings);
    require(!dirs.is_empty(), || {
        "At least one log directory must be defined via log.dirs or log.dir.".to_string()
    })?;
    let cordoned = settings.list("cordoned.log.dirs");
    if cordoned.iter().any(|dir| dir == "*") {
        return require(cordoned.len() == 1, || {
            "When cordoned.log.dirs is set to *, it must not contain other values".to_string()
        });
    }
    let missing: Vec<&str> = cordoned
        .iter()
        .filter(|dir| !dirs.contains(dir))
        .map(String::as_str)
        .collect();
    require(missing.is_empty(), || {
        format!(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : {}",
            missing.join(", ")
        )
    })
}

fn network(settings: &Settings) -> Result<(), ConfigError> {
    let queued = settings.integer("queued.max.request.bytes");
    require(
        queued <= 0 || queued >= settings.integer("socket.request.max.bytes"),
        || {
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
                .to_string()
        },
    )?;
    let overrides = settings
        .text("max.connections.per.ip.overrides")
        .unwrap_or_default();
    let hosts: Vec<&str> = overrides
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            entry
                .rsplit_once(':')
                .map_or(entry, |(host, _)| host.trim())
        })
        .collect();
    require(
        settings.integer("max.connections.per.ip") != 0 || !hosts.is_empty(),
        || {
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
            .to_string()
        },
    )?;
    let invalid: Vec<&str> = hosts
        .into_iter()
        .filter(|host| !is_host_text(host))
        .collect();
    require(invalid.is_empty(), || {
        format!(
            "max.connections.per.ip.overrides contains invalid addresses : {}",
            invalid.join(",")
        )
    })?;
    let idle = settings.integer("connections.max.idle.ms");
    let delay = settings.integer("connection.failed.authentication.delay.ms");
    require(idle < 0 || delay < idle, || {
        format!(
            "connection.failed.authentication.delay.ms={delay} should always be less than \
             connections.max.idle.ms={idle} to prevent failed authentication responses from timing out"
        )
    })
}

fn groups(settings: &Settings) -> Result<(), ConfigError> {
    let protocols = settings.list("group.coordinator.rebalance.protocols");
    require(
        protocols
            .iter()
            .any(|name| name.eq_ignore_ascii_case("classic")),
        || "Disabling the 'classic' protocol is not supported.".to_string(),
    )?;
    let codec = settings.integer("offsets.topic.compression.codec");
    require((0..=4).contains(&codec), || {
        format!(
            "offsets.topic.compression.codec={codec} is no codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"
        )
    })?;
    let metadata = settings.integer("offset.metadata.max.bytes");
    require(metadata >= 0, || {
        format!("offset.metadata.max.bytes={metadata} must be greater than or equal to 0")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::config::{BrokerConfig, ConfigError, Settings, properties};

    /// The file that Apache ships, with other values for some keys; a value of `-` takes the key out.
    fn with(changes: &[(&str, &str)]) -> Result<BrokerConfig, ConfigError> {
        let mut written: BTreeMap<String, String> =
            properties::parse(include_bytes!("fixtures/combined.properties")).unwrap();
        for (key, value) in changes {
            if *value == "-" {
                written.remove(*key);
            } else {
                written.insert(key.to_string(), value.to_string());
            }
        }
        BrokerConfig::new(Settings::new(written)?)
    }

    fn refused(changes: &[(&str, &str)]) -> String {
        with(changes).expect_err("should be refused").to_string()
    }

    #[test]
    fn the_shipped_file_is_accepted() {
        let config = with(&[]).unwrap();
        assert_eq!(config.listeners[0].to_string(), "PLAINTEXT://:9092");
        assert_eq!(
            config.controller_listeners[0].to_string(),
            "CONTROLLER://:9093"
        );
        assert_eq!(
            config.advertised_listeners[0].to_string(),
            "PLAINTEXT://localhost:9092"
        );
        assert_eq!(
            config.advertised_controller_listeners[0].to_string(),
            "CONTROLLER://localhost:9093"
        );
        assert_eq!(
            config.quorum.bootstrap_servers,
            [("localhost".to_string(), 9093)]
        );
        assert!(config.quorum.static_voters.is_empty());
        assert_eq!(config.network.queued_max_bytes, None);
    }

    #[test]
    fn missing_and_wrong_ids_are_named() {
        assert_eq!(
            refused(&[("node.id", "-")]),
            "Missing required configuration \"node.id\" which has no default value."
        );
        assert_eq!(
            with(&[("node.id", "-"), ("broker.id", "7")])
                .unwrap()
                .node_id,
            7
        );
        assert!(
            refused(&[("broker.id", "7")])
                .starts_with("`node.id` and `broker.id` must be set to the same value.")
        );
        assert_eq!(
            refused(&[("node.id", "-1 ")]),
            "Invalid value -1 for configuration node.id: Value must be at least 0"
        );
    }

    #[test]
    fn a_node_is_broker_and_controller() {
        for roles in ["broker", "controller"] {
            assert!(refused(&[("process.roles", roles)]).contains("not supported yet"));
        }
        assert_eq!(
            refused(&[("process.roles", "broker,zookeeper")]),
            "Invalid value zookeeper for configuration process.roles: String must be one of: broker, controller"
        );
        assert!(with(&[("process.roles", "controller, broker")]).is_ok());
    }

    #[test]
    fn listeners_that_cannot_work_are_refused() {
        let listeners = |text: &str| refused(&[("listeners", text), ("advertised.listeners", "-")]);
        assert_eq!(
            listeners("PLAINTEXT://:9092,CONTROLLER://:9092"),
            "Error creating broker listeners from '[PLAINTEXT://:9092, CONTROLLER://:9092]': Each listener must have a \
             different port, listeners: [PLAINTEXT://:9092, CONTROLLER://:9092]"
        );
        assert_eq!(
            listeners("PLAINTEXT://:9092,PLAINTEXT://:9093"),
            "Error creating broker listeners from '[PLAINTEXT://:9092, PLAINTEXT://:9093]': Each listener must have a \
             different name, listeners: [PLAINTEXT://:9092, PLAINTEXT://:9093]"
        );
        assert!(
            listeners("PLAINTEXT:9092")
                .ends_with("Unable to parse PLAINTEXT:9092 to a broker endpoint")
        );
        assert!(
            listeners("PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.2:1")
                .contains("one needs to be IPv4")
        );
        assert_eq!(
            listeners(""),
            "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"
        );
        assert!(
            listeners("SSL://:9092,CONTROLLER://:9093").contains("only PLAINTEXT is supported yet")
        );
        assert!(
            listeners("OTHER://:9092,CONTROLLER://:9093")
                .ends_with("No security protocol defined for listener OTHER")
        );
        assert!(
            listeners("PLAINTEXT://:9092")
                .contains("controller.listener.names must contain at least one value")
        );
        assert!(listeners("CONTROLLER://:9093").starts_with(
            "There must be at least one broker advertised listener. Perhaps all listeners appear in"
        ));
        let two_families = "PLAINTEXT://127.0.0.1:9092,V6://[::1]:9092,CONTROLLER://:9093";
        let map = "PLAINTEXT:PLAINTEXT,V6:PLAINTEXT,CONTROLLER:PLAINTEXT";
        let changes = [
            ("listeners", two_families),
            ("listener.security.protocol.map", map),
        ];
        assert_eq!(with(&changes).unwrap().listeners.len(), 2);
    }

    #[test]
    fn clients_are_not_told_an_address_that_nobody_can_reach() {
        let hint = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.";
        assert!(refused(&[("advertised.listeners", "PLAINTEXT://0.0.0.0:9092")]).starts_with(hint));
        let changes = [
            ("advertised.listeners", "-"),
            ("listeners", "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"),
        ];
        assert!(refused(&changes).starts_with(hint));
        let bound_everywhere = [(
            "listeners",
            "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        )];
        assert!(
            with(&bound_everywhere).is_ok(),
            "with advertised listeners of its own"
        );
    }

    #[test]
    fn names_of_listeners_must_agree() {
        assert!(
            refused(&[("inter.broker.listener.name", "SSL")]).starts_with(
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options \
                 based on currently configured listeners are PLAINTEXT"
            )
        );
        assert_eq!(
            refused(&[("inter.broker.listener.name", "NONE")]),
            "Listener with name NONE defined in inter.broker.listener.name not found in listener.security.protocol.map."
        );
        assert_eq!(
            refused(&[("security.inter.broker.protocol", "PLAINTEXT")]),
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
        );
        assert_eq!(
            refused(&[("listener.security.protocol.map", "PLAINTEXT:NOTHING")]),
            "Invalid security protocol `NOTHING` defined in listener.security.protocol.map"
        );
        assert!(
            refused(&[("controller.listener.names", "CONTROLLER,OTHER")])
                .contains("must only contain values")
        );
        let subset = [("advertised.listeners", "PLAINTEXT://a:1,SSL://b:2")];
        assert!(refused(&subset).contains("only PLAINTEXT is supported yet"));
    }

    #[test]
    fn quorums_of_others_are_refused() {
        let own = [("controller.quorum.voters", "1@localhost:9093")];
        assert_eq!(with(&own).unwrap().quorum.static_voters[0].id, 1);
        assert!(
            refused(&[("controller.quorum.voters", "2@localhost:9093")])
                .contains("the node id 1 must be included")
        );
        assert!(
            refused(&[("controller.quorum.voters", "1@a:1,2@b:1")])
                .contains("several nodes is not supported yet")
        );
        assert!(
            refused(&[("controller.quorum.bootstrap.servers", "-")])
                .starts_with("If using process.roles, either")
        );
    }

    #[test]
    fn an_open_controller_host_is_the_voters() {
        let changes = [
            ("advertised.listeners", "PLAINTEXT://localhost:9092"),
            ("controller.quorum.voters", "1@controller.example:9093"),
        ];
        let told = with(&changes).unwrap().advertised_controller_listeners;
        assert_eq!(told[0].to_string(), "CONTROLLER://controller.example:9093");
        let unknown = with(&changes[..1]).unwrap().advertised_controller_listeners;
        assert_eq!(unknown[0].host, None);
    }

    #[test]
    fn relations_between_numbers_hold() {
        for (changes, why) in [
            (
                &[("log.retention.ms", "0")][..],
                "log.retention.ms must be unlimited (-1) or",
            ),
            (
                &[("log.roll.ms", "0")],
                "log.roll.ms must be greater than or equal to 1",
            ),
            (
                &[("replica.fetch.wait.max.ms", "40000")],
                "replica.socket.timeout.ms should always be at least",
            ),
            (
                &[("replica.lag.time.max.ms", "100")],
                "replica.fetch.wait.max.ms should always be less",
            ),
            (
                &[("queued.max.request.bytes", "1000")],
                "queued.max.request.bytes must be larger or equal",
            ),
            (
                &[("max.connections.per.ip", "0")],
                "max.connections.per.ip can be set to zero only if",
            ),
            (
                &[("max.connections.per.ip.overrides", "a b:5")],
                "max.connections.per.ip.overrides contains invalid",
            ),
            (
                &[("connections.max.idle.ms", "50")],
                "connection.failed.authentication.delay.ms=100 should always",
            ),
            (
                &[("log.cleaner.dedupe.buffer.size", "1000")],
                "log.cleaner.dedupe.buffer.size must be at least 1MB",
            ),
            (
                &[("cordoned.log.dirs", "/x")],
                "All entries in cordoned.log.dirs must be present in log.dirs",
            ),
            (
                &[("offsets.topic.compression.codec", "5")],
                "offsets.topic.compression.codec=5 is no codec",
            ),
            (
                &[("group.coordinator.rebalance.protocols", "consumer")],
                "Disabling the 'classic' protocol",
            ),
            (
                &[("authorizer.class.name", "my.Authorizer")],
                "authorizer.class.name=my.Authorizer is refused: ",
            ),
            (
                &[("log.dirs", "/a,,/b")],
                "Configuration 'log.dirs' values must not be empty.",
            ),
        ] {
            let error = refused(changes);
            assert!(error.starts_with(why), "{changes:?}: {error}");
        }
        assert!(with(&[("authorizer.class.name", "")]).is_ok());
        assert!(
            with(&[("connections.max.idle.ms", "-1")])
                .unwrap()
                .network
                .idle_timeout
                .is_none()
        );
    }

    #[test]
    fn a_directory_given_twice_counts_once() {
        assert_eq!(
            with(&[("log.dirs", "/a,/b,/a")])
                .unwrap()
                .storage
                .log_dirs
                .len(),
            2
        );
        let config = with(&[
            ("log.dirs", "-"),
            ("log.dir", "/one"),
            ("metadata.log.dir", "/two"),
        ])
        .unwrap();
        assert_eq!(config.storage.log_dirs, [std::path::PathBuf::from("/one")]);
        assert_eq!(
            config.storage.metadata_log_dir,
            std::path::PathBuf::from("/two")
        );
    }

    #[test]
    fn what_one_node_cannot_do_is_said_at_start() {
        let none = with(&[]).unwrap().warnings();
        assert!(
            none.iter().all(|line| !line.contains("one node")),
            "{none:?}"
        );
        let lines = with(&[
            ("offsets.topic.replication.factor", "-"),
            ("min.insync.replicas", "2"),
        ])
        .unwrap()
        .warnings();
        assert!(lines.iter().any(|line| {
            line.starts_with("offsets.topic.replication.factor=3, but there is one node")
        }));
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("min.insync.replicas=2, but there is one node"))
        );
    }

    #[test]
    fn keys_without_effect_are_named_once_with_the_reason() {
        let lines = with(&[("foo", "1"), ("ssl.protocol", "x"), ("ssl.provider", "y")])
            .unwrap()
            .settings
            .warnings();
        let expected = "without effect: ssl.protocol, ssl.provider (TLS is not supported yet; only PLAINTEXT listeners can be served)";
        assert!(lines.contains(&expected.to_string()), "{lines:?}");
        assert_eq!(lines[0], "unknown and ignored: foo");
        assert!(
            lines
                .iter()
                .all(|line| !line.contains("socket.request.max.bytes"))
        );
    }
}
