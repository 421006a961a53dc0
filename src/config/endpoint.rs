//! Listeners, voters and other addresses, in Kafka's grammar.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use super::error::ConfigError;

/// How a listener protects its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    /// Kafka's name, in upper case.
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// The id in broker registration records.
    pub fn wire_id(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }

    /// The protocol of this name, in any case.
    pub fn parse(name: &str) -> Option<SecurityProtocol> {
        use SecurityProtocol::{Plaintext, SaslPlaintext, SaslSsl, Ssl};
        [Plaintext, Ssl, SaslPlaintext, SaslSsl]
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

/// One `NAME://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name, in upper case.
    pub name: String,
    pub protocol: SecurityProtocol,
    /// None where the text had no host: all interfaces when binding, this machine's name when advertised.
    pub host: Option<String>,
    /// 0 lets the system choose when binding.
    pub port: u16,
}

impl Endpoint {
    /// Parses one entry of `listeners` or `advertised.listeners`.
    ///
    /// # Errors
    /// The text is not `NAME://host:port`, or no protocol is known for the name.
    pub fn parse(
        text: &str,
        protocols: &BTreeMap<String, SecurityProtocol>,
    ) -> Result<Endpoint, String> {
        let unreadable = || format!("Unable to parse {text} to a broker endpoint");
        let (name, address) = text.rsplit_once("://").ok_or_else(unreadable)?;
        let (host, port) = split_host_port(address).ok_or_else(unreadable)?;
        let port = port
            .parse::<u16>()
            .map_err(|_| format!("{text} has a port that is not between 0 and 65535"))?;
        let name = name.to_uppercase();
        let protocol = *protocols
            .get(&name)
            .ok_or_else(|| format!("No security protocol defined for listener {name}"))?;
        let host = (!host.is_empty()).then(|| host.to_string());
        Ok(Endpoint {
            name,
            protocol,
            host,
            port,
        })
    }

    /// The addresses to listen on: every address of the host, so that `localhost` means 127.0.0.1 and ::1.
    ///
    /// Asks the system's resolver, which may block: not for a running core.
    ///
    /// # Errors
    /// The host name does not resolve.
    pub fn bind_addresses(&self) -> Result<Vec<BindAddress>, std::io::Error> {
        let port = self.port;
        // Both families, each with a socket of its own; IPv6 only where the machine has it.
        let both = |v4, v6| {
            let of = |ip, required| BindAddress {
                address: SocketAddr::new(ip, port),
                required,
            };
            Ok(vec![of(IpAddr::V4(v4), true), of(IpAddr::V6(v6), false)])
        };
        let Some(host) = &self.host else {
            return both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        };
        if host.eq_ignore_ascii_case("localhost") {
            return both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        }
        let mut addresses: Vec<BindAddress> = Vec::new();
        for address in (host.as_str(), port).to_socket_addrs()? {
            if addresses.iter().all(|known| known.address != address) {
                addresses.push(BindAddress {
                    address,
                    required: true,
                });
            }
        }
        Ok(addresses)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or("");
        if host.contains(':') {
            write!(f, "{}://[{host}]:{}", self.name, self.port)
        } else {
            write!(f, "{}://{host}:{}", self.name, self.port)
        }
    }
}

/// One address to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    pub address: SocketAddr,
    /// If false, a system without the address (no IPv6) may do without it.
    pub required: bool,
}

/// A member of `controller.quorum.voters`: `id@host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    pub id: i32,
    pub host: String,
    pub port: u16,
}

impl Voter {
    /// Parses one entry.
    ///
    /// # Errors
    /// Not of the form `id@host:port`; Kafka's words.
    pub fn parse(entry: &str) -> Result<Voter, ConfigError> {
        const KEY: &str = "controller.quorum.voters";
        const FORM: &str = "Each entry should be in the form `{id}@{host}:{port}`.";
        let (id, address) = entry
            .split_once('@')
            .filter(|(_, address)| !address.contains('@'))
            .ok_or_else(|| {
                ConfigError::about(
                    KEY,
                    format!("Invalid configuration value for {KEY}. {FORM}"),
                )
            })?;
        let id = id.parse().map_err(|_| {
            ConfigError::about(
                KEY,
                format!("Failed to parse voter ID as an integer from {id}"),
            )
        })?;
        let (host, port) = split_host_port(address).filter(|(host, port)| !host.is_empty() && !port.starts_with('-')).ok_or_else(
            || ConfigError::about(KEY, format!("Failed to parse host name from entry {entry} for the configuration {KEY}. {FORM}")),
        )?;
        let port = port.parse().map_err(|_| {
            ConfigError::about(KEY, format!("Failed to parse host port from entry {entry} for the configuration {KEY}. {FORM}"))
        })?;
        Ok(Voter {
            id,
            host: host.to_string(),
            port,
        })
    }
}

/// Parses one `host:port` of `controller.quorum.bootstrap.servers`.
///
/// # Errors
/// Not of that form; Kafka's words.
pub fn parse_bootstrap_server(entry: &str) -> Result<(String, u16), ConfigError> {
    const KEY: &str = "controller.quorum.bootstrap.servers";
    let failed = |what: &str| {
        ConfigError::about(
            KEY,
            format!(
                "Failed to parse {what} from {entry} for the configuration {KEY}. \
                 Each entry should be in the form \"{{host}}:{{port}}\""
            ),
        )
    };
    let (host, port) = split_host_port(entry)
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| failed("host name"))?;
    let port = port.parse().map_err(|_| failed("host port"))?;
    Ok((host.to_string(), port))
}

/// `host:port`, `[v6]:port` or `:port`, with Kafka's set of host characters.
pub fn split_host_port(address: &str) -> Option<(&str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let digits = port.strip_prefix('-').unwrap_or(port);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) || !is_host_text(host)
    {
        return None;
    }
    Some((host, port))
}

/// Only characters that Kafka allows in a host.
pub fn is_host_text(host: &str) -> bool {
    host.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocols() -> BTreeMap<String, SecurityProtocol> {
        BTreeMap::from([
            ("PLAINTEXT".to_string(), SecurityProtocol::Plaintext),
            ("CONTROLLER".to_string(), SecurityProtocol::Plaintext),
            ("MY.NET".to_string(), SecurityProtocol::Ssl),
        ])
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn endpoints_parse_and_print() {
        for (text, host, port, shown) in [
            ("PLAINTEXT://:9092", None, 9092, "PLAINTEXT://:9092"),
            (
                "plaintext://localhost:0",
                Some("localhost"),
                0,
                "PLAINTEXT://localhost:0",
            ),
            (
                "CONTROLLER://[::1]:9093",
                Some("::1"),
                9093,
                "CONTROLLER://[::1]:9093",
            ),
            (
                "PLAINTEXT://fe80::1%eth0:1",
                Some("fe80::1%eth0"),
                1,
                "PLAINTEXT://[fe80::1%eth0]:1",
            ),
            (
                "My.Net://a_b-c.example:65535",
                Some("a_b-c.example"),
                65535,
                "MY.NET://a_b-c.example:65535",
            ),
        ] {
            let endpoint = Endpoint::parse(text, &protocols()).unwrap();
            assert_eq!(endpoint.host.as_deref(), host, "{text}");
            assert_eq!(endpoint.port, port, "{text}");
            assert_eq!(endpoint.to_string(), shown);
        }
    }

    #[test]
    fn unreadable_endpoints_are_refused() {
        for text in [
            "",
            "PLAINTEXT",
            "PLAINTEXT:9092",
            "PLAINTEXT://host",
            "PLAINTEXT://host:",
            "PLAINTEXT://ho st:1",
            "PLAINTEXT://h:9x",
        ] {
            let error = Endpoint::parse(text, &protocols()).unwrap_err();
            assert_eq!(
                error,
                format!("Unable to parse {text} to a broker endpoint")
            );
        }
        assert!(
            Endpoint::parse("PLAINTEXT://h:65536", &protocols())
                .unwrap_err()
                .contains("between 0 and 65535")
        );
        assert!(Endpoint::parse("PLAINTEXT://h:-1", &protocols()).is_err());
        assert_eq!(
            Endpoint::parse("OTHER://h:1", &protocols()).unwrap_err(),
            "No security protocol defined for listener OTHER"
        );
    }

    #[test]
    fn localhost_is_both_loopbacks_and_no_host_is_every_interface() {
        let bound = |text| {
            Endpoint::parse(text, &protocols())
                .unwrap()
                .bind_addresses()
                .unwrap()
        };
        let local = bound("PLAINTEXT://localhost:9092");
        assert_eq!(local[0].address, address("127.0.0.1:9092"));
        assert_eq!(local[1].address, address("[::1]:9092"));
        assert!(local[0].required && !local[1].required);
        let all = bound("PLAINTEXT://:9092");
        assert_eq!(all[0].address, address("0.0.0.0:9092"));
        assert_eq!(all[1].address, address("[::]:9092"));
        assert_eq!(bound("PLAINTEXT://[::1]:7")[0].address, address("[::1]:7"));
    }

    #[test]
    fn voters_parse_or_say_the_form() {
        assert_eq!(
            Voter::parse("3@a.example:9093").unwrap(),
            Voter {
                id: 3,
                host: "a.example".into(),
                port: 9093
            }
        );
        assert_eq!(Voter::parse("3@[::1]:9093").unwrap().host, "::1");
        for wrong in [
            "a.example:9093",
            "x@a:1",
            "1@a",
            "1@:9093",
            "1@a:1@b:2",
            "1@a:-1",
        ] {
            assert!(Voter::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            Voter::parse("a:1").unwrap_err().to_string(),
            "Invalid configuration value for controller.quorum.voters. Each entry should be in the form `{id}@{host}:{port}`."
        );
    }
}
