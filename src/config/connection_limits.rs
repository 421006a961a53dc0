//! How many connections may be open: `max.connections` and its relatives.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

use super::error::ConfigError;
use super::settings::Settings;

const PER_ADDRESS: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";

/// Limits of connections to the broker's listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// `max.connections`: in all. Beyond it nobody is accepted until a connection ends.
    pub in_all: usize,
    /// `max.connections.per.ip`. One more than that is closed at once.
    per_address: usize,
    /// `max.connections.per.ip.overrides`.
    overrides: BTreeMap<IpAddr, usize>,
}

impl ConnectionLimits {
    /// # Errors
    /// A text that is no list of limits, or a name that does not resolve.
    pub(super) fn from_settings(settings: &Settings) -> Result<ConnectionLimits, ConfigError> {
        let count = |name| usize::try_from(settings.integer(name)).unwrap_or(usize::MAX);
        let text = settings.text(OVERRIDES).unwrap_or_default();
        let mut overrides = BTreeMap::new();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let (host, limit) = parse(entry).ok_or_else(|| {
                let why = "each entry should be in the form host:count";
                ConfigError::value(OVERRIDES, entry, why)
            })?;
            for address in resolve(host)? {
                overrides.insert(address, limit);
            }
        }
        Ok(ConnectionLimits {
            in_all: count("max.connections"),
            per_address: count(PER_ADDRESS),
            overrides,
        })
    }

    /// How many connections this address may have.
    pub fn of(&self, address: IpAddr) -> usize {
        let own = self.overrides.get(&address);
        own.copied().unwrap_or(self.per_address)
    }
}

/// `host:count`; what is before the last colon is the host, also where that is an IPv6 address.
fn parse(entry: &str) -> Option<(&str, usize)> {
    let (host, count) = entry.rsplit_once(':')?;
    let host = host.trim();
    (!host.is_empty()).then_some((host, count.trim().parse().ok()?))
}

fn resolve(host: &str) -> Result<Vec<IpAddr>, ConfigError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    match (host, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|it| it.ip()).collect()),
        Err(error) => {
            let text = format!("{OVERRIDES}: {host}: {error}");
            Err(ConfigError::about(OVERRIDES, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BrokerConfig;

    fn limits(settings: &[(&str, &str)]) -> Result<super::ConnectionLimits, String> {
        BrokerConfig::single_node(settings)
            .map(|config| config.network.connections)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_has_its_own_limit_or_that_of_all() {
        let overrides = "10.0.0.1:5, ::1:7";
        let limits = limits(&[
            ("max.connections", "100"),
            ("max.connections.per.ip", "3"),
            ("max.connections.per.ip.overrides", overrides),
        ])
        .unwrap();
        assert_eq!(limits.in_all, 100);
        for (address, expected) in [("10.0.0.1", 5), ("::1", 7), ("10.0.0.2", 3)] {
            assert_eq!(limits.of(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        for wrong in ["x", "10.0.0.1", "10.0.0.1:x", ":5", "10.0.0.1:-1"] {
            let refused = limits(&[("max.connections.per.ip.overrides", wrong)]).unwrap_err();
            assert!(refused.contains("host:count"), "{wrong}: {refused}");
        }
        let nobody = limits(&[("max.connections.per.ip", "0")]).unwrap_err();
        assert!(nobody.contains("can be set to zero only if"), "{nobody}");
    }
}
