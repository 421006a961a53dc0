//! What each listener tells clients to connect to, and whether they could.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};

use protocol::messages::{MetadataRequest, MetadataResponse};

use super::super::Failure;
use super::super::client::{Address, Connection, Settings};
use super::report::Report;
use super::{Configs, Patient, listener};

const REMEDY: &str =
    "set advertised.listeners to a name or address under which clients reach this broker";

pub(super) fn examine(
    patient: &mut Patient,
    metadata: &MetadataResponse,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    report.section("Listeners: what clients are told to connect to")?;
    let settings = patient.client.settings().clone();
    let cluster = metadata.cluster_id.as_deref().unwrap_or_default();
    for broker in &metadata.brokers {
        let told = Address {
            host: broker.host.to_string(),
            port: u16::try_from(broker.port).unwrap_or_default(),
        };
        let who = format!("broker {} on the listener that was asked", broker.node_id);
        look_at(&who, &told, true, (&settings, cluster), report)?;
        let configs = patient
            .brokers
            .iter()
            .find(|(id, ..)| *id == broker.node_id)
            .and_then(|(_, _, configs)| configs.as_ref());
        let Some(configs) = configs else { continue };
        let protocols = protocols(configs);
        for (name, address) in advertised(configs) {
            if address != told {
                let plain = protocols.get(&name).is_none_or(|it| it == "PLAINTEXT");
                let who = format!("broker {} on {name}", broker.node_id);
                look_at(&who, &address, plain, (&settings, cluster), report)?;
            }
        }
    }
    if metadata.controller_id < 0 {
        report.bad(
            "the cluster has no controller: nothing can be created or changed, no leader elected",
            "look at the logs of the controllers; most of them have to run and reach each other",
        )?;
    }
    Ok(())
}

/// `advertised.listeners`, or what it is derived from.
fn advertised(configs: &Configs) -> Vec<(String, Address)> {
    let written = |key: &str| configs.get(key).filter(|text| !text.is_empty());
    let text = written("advertised.listeners").or_else(|| written("listeners"));
    let controllers: Vec<&str> = configs
        .get("controller.listener.names")
        .map_or(Vec::new(), |names| names.split(',').collect());
    let all = text.map_or("", String::as_str).split(',');
    all.filter_map(|text| listener(text.trim()))
        // Without an own word for it, a listener on every interface advertises the host's name.
        .filter(|(name, address)| !address.host.is_empty() && !controllers.contains(&&**name))
        .collect()
}

/// Listeners by name, with the protocol that each speaks.
fn protocols(configs: &Configs) -> BTreeMap<String, String> {
    let map = configs.get("listener.security.protocol.map");
    let entries = map.map_or("", String::as_str).split(',');
    entries
        .filter_map(|entry| entry.trim().split_once(':'))
        .map(|(name, protocol)| (name.to_owned(), protocol.to_owned()))
        .collect()
}

fn look_at(
    who: &str,
    address: &Address,
    plain: bool,
    (settings, cluster): (&Settings, &str),
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let says = format!("{who} is advertised as {address}");
    let resolved: Vec<SocketAddr> = match (address.host.as_str(), address.port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => {
            report.bad(
                &format!("{says}, and the name does not resolve ({error})"),
                REMEDY,
            )?;
            return Ok(());
        }
    };
    let numbers: Vec<String> = resolved.iter().map(|it| it.ip().to_string()).collect();
    if resolved.iter().any(|it| it.ip().is_unspecified()) {
        report.bad(
            &format!("{says}, which is no address to connect to"),
            REMEDY,
        )?;
        return Ok(());
    }
    let to = match address.host.parse::<IpAddr>() {
        Ok(_) => String::new(),
        Err(_) => format!(", resolves to {}", numbers.join(" ")),
    };
    let reached = match plain {
        true => speak(address, settings, cluster),
        false => knock(&resolved, settings),
    };
    match reached {
        Ok(how) => report.ok(&format!("{says}{to}, and {how}"))?,
        Err(problem) => report.bad(&format!("{says}{to}, and {problem}"), REMEDY)?,
    }
    if numbers
        .iter()
        .all(|it| it.parse::<IpAddr>().is_ok_and(|it| it.is_loopback()))
    {
        report.note("only clients on the same machine can connect to that")?;
    }
    Ok(())
}

/// Whether a broker of this cluster answers there.
fn speak(address: &Address, settings: &Settings, cluster: &str) -> Result<String, String> {
    let mut connection = Connection::open(address, settings).map_err(|error| error.to_string())?;
    let request = MetadataRequest {
        topics: Some([].into()),
        ..MetadataRequest::default()
    };
    let answer = connection
        .send(&request)
        .map_err(|error| error.to_string())?;
    match answer.cluster_id.as_deref() {
        Some(other) if other != cluster => Err(format!(
            "a broker of another cluster ({other}) answers there"
        )),
        _ => Ok("answers there".to_owned()),
    }
}

/// Whether somebody listens there: TLS and SASL are not spoken here.
fn knock(addresses: &[SocketAddr], settings: &Settings) -> Result<String, String> {
    let mut last = String::new();
    for address in addresses {
        match TcpStream::connect_timeout(address, settings.request_timeout) {
            Ok(_) => {
                return Ok(
                    "somebody listens there (TLS and SASL are not spoken by this tool)".to_owned(),
                );
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(format!("nobody listens there ({last})"))
}
