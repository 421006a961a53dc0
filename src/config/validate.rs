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
