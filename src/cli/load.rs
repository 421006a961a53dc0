//! From file and overrides to settings, with errors that name the file, the key and what would be right.

use std::collections::BTreeMap;
use std::path::Path;

use super::environment::{Environment, variable_of};
use super::{Failure, Overrides};
use crate::config::{
    BrokerConfig, ConfigError, Settings, properties, single_node, what_is_allowed,
};

/// The configuration of a node: from a file, or without one the settings of a node that serves this machine.
pub(super) fn broker_config(
    file: Option<&Path>,
    overrides: &Overrides,
) -> Result<BrokerConfig, Failure> {
    config_with(file, &Environment::default(), overrides)
}

/// As [`broker_config`], with settings from the environment between the file and the overrides. Where they are a whole
/// configuration, and there is no file, they replace the built-in one.
pub(super) fn config_with(
    file: Option<&Path>,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<BrokerConfig, Failure> {
    let overrides = parse_overrides(&overrides.overrides)?;
    let mut given = environment.settings.clone();
    given.extend(overrides.clone());
    let written = match file {
        None if environment.is_whole() => given,
        None => single_node(&given),
        Some(path) => {
            let mut written = read(path)?;
            written.extend(given);
            written
        }
    };
    let variable = |error: &ConfigError| {
        let key = error.key()?;
        let from_there = environment.settings.contains_key(key) && !overrides.contains_key(key);
        from_there.then(|| variable_of(key))
    };
    Settings::new(written)
        .and_then(BrokerConfig::new)
        .map_err(|error| match variable(&error) {
            Some(variable) => explained(Some(Path::new(&variable)), &error),
            None => explained(file, &error),
        })
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    properties::parse(&bytes).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// `KEY=VALUE` each; the last of a key counts.
fn parse_overrides(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut overrides = BTreeMap::new();
    for text in texts {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| Failure::new(format!("--override {text}: it must be KEY=VALUE")))?;
        overrides.insert(key.trim().to_string(), value.to_string());
    }
    Ok(overrides)
}

/// One line: where, what is wrong, what is allowed.
fn explained(file: Option<&Path>, error: &ConfigError) -> Failure {
    let place = file
        .map(|path| format!("{}: ", path.display()))
        .unwrap_or_default();
    let allowed = error
        .key()
        .filter(|_| error.to_string().starts_with("Invalid value"))
        .and_then(what_is_allowed)
        .map(|allowed| format!(" (allowed: {allowed})"))
        .unwrap_or_default();
    Failure::new(format!("{place}{error}{allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(texts: &[&str]) -> Overrides {
        Overrides {
            overrides: texts.iter().map(|text| text.to_string()).collect(),
        }
    }

    fn failure(file: &str, texts: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.properties");
        let shipped = include_str!("../config/fixtures/combined.properties");
        std::fs::write(&path, format!("{shipped}{file}")).unwrap();
        let failure = broker_config(Some(&path), &overrides(texts))
            .unwrap_err()
            .to_string();
        failure.replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn an_override_is_stronger_than_the_file_and_the_last_one_counts() {
        let config = broker_config(
            None,
            &overrides(&["num.partitions=3", "log.dirs=/a=b", "num.partitions=4"]),
        )
        .unwrap();
        assert_eq!(config.topics.partitions, 4);
        assert_eq!(config.storage.log_dirs, [std::path::PathBuf::from("/a=b")]);
    }

    #[test]
    fn a_wrong_value_is_one_line_with_key_value_reason_and_what_is_allowed() {
        assert_eq!(
            failure("num.partitions=many\n", &[]),
            "FILE: Invalid value many for configuration num.partitions: Not a number of type INT \
             (allowed: int, at least 1, default 1)"
        );
        assert_eq!(
            failure("", &["num.partitions=0"]),
            "FILE: Invalid value 0 for configuration num.partitions: Value must be at least 1 \
             (allowed: int, at least 1, default 1)"
        );
    }

    #[test]
    fn the_environment_is_stronger_than_the_file_and_weaker_than_an_override() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.properties");
        let shipped = include_str!("../config/fixtures/combined.properties");
        std::fs::write(&path, format!("{shipped}num.partitions=2\n")).unwrap();
        let environment = |value: &str| Environment {
            settings: BTreeMap::from([("num.partitions".to_owned(), value.to_owned())]),
            ..Environment::default()
        };
        let partitions = |value: &str, texts: &[&str]| {
            config_with(Some(&path), &environment(value), &overrides(texts))
                .map(|config| config.topics.partitions)
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(partitions("3", &[]), Ok(3));
        assert_eq!(partitions("3", &["num.partitions=4"]), Ok(4));
        assert_eq!(
            partitions("many", &[]).unwrap_err(),
            "KAFKA_NUM_PARTITIONS: Invalid value many for configuration num.partitions: Not a \
             number of type INT (allowed: int, at least 1, default 1)"
        );
    }

    #[test]
    fn an_environment_with_roles_replaces_the_built_in_settings() {
        let settings = [
            ("process.roles", "broker,controller"),
            ("node.id", "7"),
            ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
            ("advertised.listeners", "PLAINTEXT://localhost:9092"),
            ("controller.listener.names", "CONTROLLER"),
            ("controller.quorum.voters", "7@localhost:9093"),
        ];
        let environment = Environment {
            settings: settings
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..Environment::default()
        };
        let config = config_with(None, &environment, &overrides(&[])).unwrap();
        assert_eq!(config.node_id, 7);
        assert_eq!(
            config.offsets.topic_replication_factor, 3,
            "Kafka's default"
        );
        assert_eq!(config.quorum.static_voters.len(), 1);
    }

    #[test]
    fn unreadable_files_and_overrides_say_so() {
        assert_eq!(
            broker_config(Some(Path::new("/nowhere/x.properties")), &overrides(&[]))
                .unwrap_err()
                .to_string(),
            "/nowhere/x.properties: No such file or directory (os error 2)"
        );
        assert_eq!(
            failure("a=\\u12\n", &[]),
            "FILE: a \\u escape needs four hexadecimal digits, in the line: a=\\u12"
        );
        for wrong in ["x", "=1", " =1"] {
            assert_eq!(
                failure("", &[wrong]),
                format!("--override {wrong}: it must be KEY=VALUE")
            );
        }
    }
}
