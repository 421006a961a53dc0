//! Whom to ask and how long to wait: flags and the file of `--command-config`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use protocol::Str;

use super::ClientError;
use crate::config::properties;

/// Which kind of node the addresses on the command line belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `--bootstrap-server`
    Brokers,
    /// `--bootstrap-controller`
    Controllers,
}

impl Target {
    pub(super) fn who(self) -> &'static str {
        match self {
            Target::Brokers => "broker",
            Target::Controllers => "controller",
        }
    }

    pub(super) fn flag(self) -> &'static str {
        match self {
            Target::Brokers => "--bootstrap-server",
            Target::Controllers => "--bootstrap-controller",
        }
    }
}

/// A host and a port, as a client names them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What a client needs to know before it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub target: Target,
    pub bootstrap: Vec<Address>,
    pub client_id: Str,
    /// How long one answer may take.
    pub request_timeout: Duration,
    /// How long a whole call may take, with all its retries.
    pub api_timeout: Duration,
    /// The first pause before something is tried again; later ones are longer.
    pub retry_backoff: Duration,
    /// Everything else that the file said, for tools that know more keys.
    pub properties: BTreeMap<String, String>,
}

impl Settings {
    /// Settings for these addresses, e.g. `a:9092,b:9092`, and the properties of a file or of flags.
    ///
    /// # Errors
    /// Addresses or values that cannot be used, and security, which is not there yet.
    pub fn new(
        target: Target,
        bootstrap: &str,
        properties: BTreeMap<String, String>,
    ) -> Result<Settings, ClientError> {
        refuse_security(&properties)?;
        let millis = |key: &str, default: u64| match properties.get(key) {
            None => Ok(Duration::from_millis(default)),
            Some(text) => text.trim().parse().map(Duration::from_millis).map_err(|_| {
                ClientError::Settings(format!("{key}={text}: it must be a number of milliseconds"))
            }),
        };
        Ok(Settings {
            target,
            bootstrap: addresses(target.flag(), bootstrap)?,
            client_id: properties
                .get("client.id")
                .map_or(Str::from_static("ringmain"), |id| Str::from(id.as_str())),
            request_timeout: millis("request.timeout.ms", 30_000)?,
            api_timeout: millis("default.api.timeout.ms", 60_000)?,
            retry_backoff: millis("retry.backoff.ms", 100)?,
            properties,
        })
    }
}

/// The properties of a file such as `--command-config` names.
///
/// # Errors
/// A file that cannot be read or that Java would refuse too.
pub fn read_properties(path: &Path) -> Result<BTreeMap<String, String>, ClientError> {
    let wrong = |error: &dyn std::fmt::Display| {
        ClientError::Settings(format!("{}: {error}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    properties::parse(&bytes).map_err(|error| wrong(&error))
}

fn refuse_security(properties: &BTreeMap<String, String>) -> Result<(), ClientError> {
    match properties.get("security.protocol") {
        Some(name) if !name.trim().eq_ignore_ascii_case("PLAINTEXT") => {
            Err(ClientError::Settings(format!(
                "security.protocol={name}: TLS and SASL are not supported yet; use a PLAINTEXT listener"
            )))
        }
        _ => Ok(()),
    }
}

fn addresses(flag: &str, text: &str) -> Result<Vec<Address>, ClientError> {
    let all: Result<Vec<Address>, ClientError> = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| address(flag, part))
        .collect();
    match all {
        Ok(all) if all.is_empty() => Err(ClientError::Settings(format!(
            "{flag} {text}: no address is in there; it must be HOST:PORT, or several with commas"
        ))),
        all => all,
    }
}

/// `host:port`, `[v6]:port`, and either behind a protocol, as Kafka takes it.
fn address(flag: &str, text: &str) -> Result<Address, ClientError> {
    let plain = text.rsplit_once("://").map_or(text, |(_, rest)| rest);
    let parts = plain.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse::<u16>().ok()?;
        (!host.is_empty()).then(|| Address {
            host: host.to_owned(),
            port,
        })
    });
    parts.ok_or_else(|| {
        ClientError::Settings(format!(
            "{flag} {text}: it must be HOST:PORT, such as localhost:9092"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(bootstrap: &str, properties: &[(&str, &str)]) -> Result<Settings, String> {
        let properties = properties
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Settings::new(Target::Brokers, bootstrap, properties).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_are_read_as_kafka_reads_them() {
        let found = settings("a:1, [::1]:2,PLAINTEXT://b:3,", &[]).unwrap();
        let shown: Vec<String> = found.bootstrap.iter().map(Address::to_string).collect();
        assert_eq!(shown, ["a:1", "[::1]:2", "b:3"]);
        for wrong in ["a", "a:", ":1", "a:70000", "a:x"] {
            let error = settings(wrong, &[]).unwrap_err();
            assert!(
                error.starts_with(&format!("--bootstrap-server {wrong}: it must be HOST:PORT")),
                "{error}"
            );
        }
        assert!(settings(",", &[]).is_err());
    }

    #[test]
    fn what_the_file_says_counts_and_security_is_refused() {
        let found = settings("a:1", &[("client.id", "me"), ("request.timeout.ms", "5")]).unwrap();
        assert_eq!(found.client_id, "me");
        assert_eq!(found.request_timeout, Duration::from_millis(5));
        assert_eq!(
            settings("a:1", &[("request.timeout.ms", "soon")]).unwrap_err(),
            "request.timeout.ms=soon: it must be a number of milliseconds"
        );
        assert!(
            settings("a:1", &[("security.protocol", "SASL_SSL")])
                .unwrap_err()
                .starts_with("security.protocol=SASL_SSL: TLS and SASL are not supported yet")
        );
        assert!(settings("a:1", &[("security.protocol", "plaintext")]).is_ok());
    }
}
