//! Settings from environment variables, by the rules of Apache Kafka's container image: `KAFKA_LOG_DIRS` is `log.dirs`.
//!
//! `_` stands for `.`, `__` for `_`, `___` for `-`. They are stronger than the file, and weaker than `--override`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::Failure;
use crate::config::{keys, properties};

const PREFIX: &str = "KAFKA_";
/// The cluster that unformatted directories become part of.
const CLUSTER_ID: &str = "CLUSTER_ID";

/// Variables of the image that are no settings.
const NO_SETTINGS: [&str; 11] = [
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
];

/// What the environment says about the node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// Settings by key.
    pub settings: BTreeMap<String, String>,
    /// `CLUSTER_ID`.
    pub cluster_id: Option<String>,
    /// What is left out, a line each.
    pub warnings: Vec<String>,
}

impl Environment {
    /// Sorts the variables of a process.
    ///
    /// # Errors
    /// One that cannot be a setting, by name.
    pub fn read(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Environment, Failure> {
        let mut environment = Environment::default();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            if name != CLUSTER_ID && !name.starts_with(PREFIX) {
                continue;
            }
            let value = value
                .to_str()
                .ok_or_else(|| Failure::new(format!("{name}: the value is no UTF-8 text")))?;
            environment.add(name, value)?;
        }
        environment.derive_listeners()?;
        Ok(environment)
    }

    /// Whether the variables are a whole configuration, as those of the image are.
    pub fn is_whole(&self) -> bool {
        self.settings.contains_key("process.roles")
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if name == CLUSTER_ID {
            self.cluster_id = Some(value.to_owned()).filter(|id| !id.is_empty());
            return Ok(());
        }
        if NO_SETTINGS.contains(&name) {
            return Ok(());
        }
        let key = key_of(name);
        if keys::broker_key(&key).is_none() && keys::listener_override(&key).is_none() {
            let line = format!("{name} is ignored: there is no setting {key}");
            self.warnings.push(line);
            return Ok(());
        }
        // The image writes a line of a properties file, in which a backslash escapes.
        let line = format!("{key}={value}");
        let read = properties::parse(line.as_bytes())
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        // Of bytes the file format makes characters; here they are text already.
        let value = match read.get(&key) {
            Some(read) if value.contains('\\') && value.is_ascii() => read.clone(),
            _ => value.trim_start().to_owned(),
        };
        self.settings.insert(key, value);
        Ok(())
    }

    /// Who only says what to advertise listens there on every interface.
    fn derive_listeners(&mut self) -> Result<(), Failure> {
        const ADVERTISED: &str = "advertised.listeners";
        let given = |key: &str| self.settings.get(key).filter(|value| !value.is_empty());
        let controller = given("process.roles").is_some_and(|roles| roles == "controller");
        let Some(advertised) = given(ADVERTISED) else {
            if controller {
                self.settings.remove(ADVERTISED);
            }
            return Ok(());
        };
        if controller {
            let line = "KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.";
            return Err(Failure::new(line));
        }
        if given("listeners").is_none() {
            let everywhere = advertised.split(',').map(|entry| {
                let Some((name, address)) = entry.split_once("://") else {
                    return entry.to_owned();
                };
                let port = address.rsplit_once(':').map_or("", |(_, port)| port);
                format!("{name}://0.0.0.0:{port}")
            });
            let listeners: Vec<String> = everywhere.collect();
            self.settings
                .insert("listeners".to_owned(), listeners.join(","));
        }
        Ok(())
    }
}

/// The key that a variable stands for.
fn key_of(name: &str) -> String {
    name.strip_prefix(PREFIX)
        .unwrap_or(name)
        .to_lowercase()
        .replace('_', ".")
        .replace("...", "-")
        .replace("..", "_")
}

/// The variable that stands for a key.
pub(super) fn variable_of(key: &str) -> String {
    let name = key.replace('_', "__").replace('-', "___").replace('.', "_");
    format!("{PREFIX}{}", name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Environment::read(variables).map_err(|failure| failure.to_string())
    }

    #[test]
    fn names_become_keys_as_in_the_image() {
        for (variable, key) in [
            ("KAFKA_LISTENERS", "listeners"),
            ("KAFKA_ABC_DEF", "abc.def"),
            ("KAFKA_ABC___DEF", "abc-def"),
            ("KAFKA_ABC__DEF", "abc_def"),
            (
                "KAFKA_LISTENER_NAME_MY__NET_SSL_X",
                "listener.name.my_net.ssl.x",
            ),
        ] {
            assert_eq!(key_of(variable), key);
            assert_eq!(variable_of(key), variable);
        }
    }

    #[test]
    fn only_settings_are_taken() {
        let environment = read(&[
            ("KAFKA_NUM_PARTITIONS", "3"),
            ("KAFKA_HEAP_OPTS", "-Xmx1g"),
            ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
            ("CLUSTER_ID", "5L6g3nShT-eMCtK--X86sw"),
            ("PATH", "/bin"),
            ("NUM_PARTITIONS", "4"),
        ])
        .unwrap();
        let expected = BTreeMap::from([("num.partitions".to_owned(), "3".to_owned())]);
        assert_eq!(environment.settings, expected);
        assert_eq!(
            environment.cluster_id.as_deref(),
            Some("5L6g3nShT-eMCtK--X86sw")
        );
        assert_eq!(
            environment.warnings,
            ["KAFKA_PORT is ignored: there is no setting port"]
        );
        assert!(!environment.is_whole());
    }

    #[test]
    fn listeners_follow_from_what_is_advertised() {
        let environment = read(&[(
            "KAFKA_ADVERTISED_LISTENERS",
            "PLAINTEXT://broker.example.org:9092,IN://[::1]:29092",
        )])
        .unwrap();
        assert_eq!(
            environment.settings["listeners"],
            "PLAINTEXT://0.0.0.0:9092,IN://0.0.0.0:29092"
        );
        let both = [
            ("KAFKA_LISTENERS", "PLAINTEXT://:1"),
            ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://a:2"),
        ];
        assert_eq!(read(&both).unwrap().settings["listeners"], "PLAINTEXT://:1");
        let controller = [
            ("KAFKA_PROCESS_ROLES", "controller"),
            ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://a:2"),
        ];
        assert_eq!(
            read(&controller).unwrap_err(),
            "KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller."
        );
    }

    #[test]
    fn values_are_read_as_lines_of_a_properties_file() {
        let environment = read(&[
            ("KAFKA_LOG_DIRS", "/a=b"),
            ("KAFKA_BROKER_RACK", "r\\u00e4k"),
        ])
        .unwrap();
        assert_eq!(environment.settings["log.dirs"], "/a=b");
        assert_eq!(environment.settings["broker.rack"], "räk");
        let malformed = read(&[("KAFKA_BROKER_RACK", "\\u12")]).unwrap_err();
        assert!(
            malformed.starts_with("KAFKA_BROKER_RACK: a \\u escape"),
            "{malformed}"
        );
    }
}
