//! `ringmain broker-api-versions`: which versions of which APIs each broker speaks.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponseApiVersion};
use protocol::{ApiKey, Array, ListenerKind};

use super::Failure;
use super::client::{Client, ClientError, Node};
use super::flags::Brokers;

#[derive(Args, Debug)]
pub struct BrokerApiVersionsArgs {
    #[command(flatten)]
    brokers: Brokers,
}

pub(super) fn run(arguments: &BrokerApiVersionsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    show(&mut arguments.brokers.connect()?, out)
}

/// Each node of the cluster, or of the quorum if controllers are asked, with what it speaks.
pub(super) fn show(client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    for node in client.nodes()? {
        let rack = node.rack.as_deref().unwrap_or("null");
        let (host, port) = (&node.address.host, node.address.port);
        let id = node.id;
        write!(
            out,
            "{host}:{port} (id: {id} rack: {rack} isFenced: false) -> "
        )?;
        let answer = client.send(
            Node::Id(id),
            &ApiVersionsRequest {
                client_software_name: "ringmain".into(),
                client_software_version: env!("CARGO_PKG_VERSION").into(),
                ..ApiVersionsRequest::default()
            },
        );
        let answer = answer.and_then(|answer| {
            ClientError::check(answer.error_code, None)?;
            Ok(answer.api_keys)
        });
        match answer {
            Ok(apis) => writeln!(out, "(\n\t{}\n)", lines(&apis).join(",\n\t"))?,
            Err(error) => writeln!(out, "ERROR: {error}")?,
        }
    }
    Ok(())
}

/// One line an API, by key, also for those that the broker does not have.
fn lines(apis: &Array<ApiVersionsResponseApiVersion>) -> Vec<String> {
    let mut lines = BTreeMap::new();
    for api in ApiKey::all().filter(|api| api.versions_on(ListenerKind::Broker).is_some()) {
        lines.insert(api.code(), format!("{api}({}): UNSUPPORTED", api.code()));
    }
    for api in apis {
        lines.insert(api.api_key, line(api));
    }
    lines.into_values().collect()
}

fn line(theirs: &ApiVersionsResponseApiVersion) -> String {
    let (min, max) = (theirs.min_version, theirs.max_version);
    let range = if min == max {
        min.to_string()
    } else {
        format!("{min} to {max}")
    };
    let known = ApiKey::from_i16(theirs.api_key);
    let Some((api, ours)) = known.and_then(|api| Some((api, api.versions()?))) else {
        return format!("UNKNOWN({}): {range}", theirs.api_key);
    };
    let usable = if ours.max < min {
        "unusable: node too new".to_owned()
    } else if max < ours.min {
        "unusable: node too old".to_owned()
    } else {
        format!("usable: {}", ours.max.min(max))
    };
    format!("{api}({}): {range} [{usable}]", theirs.api_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_compared_with_ours() {
        let line = |api_key, min_version, max_version| {
            line(&ApiVersionsResponseApiVersion {
                api_key,
                min_version,
                max_version,
            })
        };
        assert_eq!(line(12, 0, 4), "Heartbeat(12): 0 to 4 [usable: 4]");
        assert_eq!(line(12, 9, 9), "Heartbeat(12): 9 [unusable: node too new]");
        assert_eq!(line(1, 0, 3), "Fetch(1): 0 to 3 [unusable: node too old]");
        assert_eq!(line(999, 0, 1), "UNKNOWN(999): 0 to 1");
        assert!(lines(&[].into()).contains(&"Heartbeat(12): UNSUPPORTED".to_owned()));
    }
}
