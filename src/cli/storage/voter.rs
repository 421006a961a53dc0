//! A voter of a dynamic quorum on the command line: `id@host:port:directory-id` (KIP-853).

use protocol::Uuid;

use super::Failure;
use crate::config::directories::parse_directory_id;
use crate::config::{BrokerConfig, split_host_port};

/// A controller that votes from the first start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicVoter {
    pub id: i32,
    pub host: String,
    pub port: u16,
    pub directory_id: Uuid,
}

impl DynamicVoter {
    /// This node, at the address that it tells others about its first controller listener.
    pub fn of_this_node(
        config: &BrokerConfig,
        directory_id: Uuid,
    ) -> Result<DynamicVoter, Failure> {
        let listener = config
            .advertised_controller_listeners
            .first()
            .ok_or_else(|| Failure::new("No controller listeners found."))?;
        let host = listener
            .host
            .clone()
            .unwrap_or_else(|| "localhost".to_string());
        Ok(DynamicVoter {
            id: config.node_id,
            host,
            port: listener.port,
            directory_id,
        })
    }

    /// The one voter of a list; more than one, or another node's, cannot be served yet.
    pub fn only_one_of(text: &str, node_id: i32) -> Result<DynamicVoter, Failure> {
        let entries: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .collect();
        let failed = |why: &str| Failure::new(format!("--initial-controllers {text}: {why}"));
        match entries.as_slice() {
            [] => Err(failed("No voters given.")),
            [entry] => {
                let voter = DynamicVoter::parse(entry).map_err(|why| failed(&why))?;
                if voter.id == node_id {
                    return Ok(voter);
                }
                Err(failed(&format!(
                    "it is another node than node.id={node_id}, but a cluster of several nodes is \
                     not supported yet"
                )))
            }
            _ => Err(failed("a cluster of several nodes is not supported yet")),
        }
    }

    fn parse(entry: &str) -> Result<DynamicVoter, String> {
        const FORM: &str = "it must be id@host:port:directory-id";
        let (id, address) = entry.split_once('@').ok_or(FORM)?;
        let id = id.parse().ok().filter(|id| *id >= 0);
        let id = id.ok_or_else(|| format!("{entry} has no node id"))?;
        let (address, directory_id) = address.rsplit_once(':').ok_or(FORM)?;
        let (host, port) = split_host_port(address).ok_or(FORM)?;
        let port = port.parse().map_err(|_| format!("{port} is no port"))?;
        if host.is_empty() {
            return Err("the host is missing".to_string());
        }
        let directory_id = parse_directory_id(directory_id)?;
        Ok(DynamicVoter {
            id,
            host: host.to_string(),
            port,
            directory_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_is_read() {
        let voter = DynamicVoter::only_one_of("1@[::1]:9093:CmROyTZTRuS1zydHpCgVkw", 1).unwrap();
        assert_eq!((voter.host.as_str(), voter.port), ("::1", 9093));
        assert_eq!(voter.directory_id.to_string(), "CmROyTZTRuS1zydHpCgVkw");
    }

    #[test]
    fn others_and_nonsense_are_refused() {
        const ID: &str = "CmROyTZTRuS1zydHpCgVkw";
        for (text, why) in [
            (String::new(), "No voters given."),
            ("1@a:1:x".to_string(), "directory.id=x is not an id"),
            ("1@a:1".to_string(), "it must be id@host:port:directory-id"),
            (format!("-1@a:1:{ID}"), "has no node id"),
            (format!("1@:1:{ID}"), "the host is missing"),
            (format!("1@a:99999:{ID}"), "99999 is no port"),
            (format!("2@a:1:{ID}"), "it is another node than node.id=1"),
            (
                format!("1@a:1:{ID},2@b:1:{ID}"),
                "several nodes is not supported yet",
            ),
        ] {
            let error = DynamicVoter::only_one_of(&text, 1).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
