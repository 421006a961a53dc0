//! Listeners: who listens where, under which protocol, and what is told to others.

use std::collections::BTreeMap;

use super::endpoint::{Endpoint, SecurityProtocol, Voter};
use super::error::ConfigError;
use super::settings::Settings;

/// The listeners of a node, sorted into those for clients and those for the quorum.
pub(super) struct Listeners {
    /// `controller.listener.names`, in the file's order.
    pub controller_names: Vec<String>,
    pub broker: Vec<Endpoint>,
    pub controller: Vec<Endpoint>,
    pub advertised_broker: Vec<Endpoint>,
    pub advertised_controller: Vec<Endpoint>,
    /// Name of the listener between brokers.
    pub inter_broker: String,
}

impl Listeners {
    pub(super) fn from_settings(settings: &Settings) -> Result<Listeners, ConfigError> {
        let protocols = protocol_map(settings)?;
        let controller_names = settings.list("controller.listener.names").to_vec();
        let all = parse_all("listeners", settings.list("listeners"), &protocols)?;
        check_distinct_ports(&all, settings.list("listeners"))?;
        let advertised = match settings.maybe_list("advertised.listeners") {
            Some(entries) => Some(parse_all("advertised.listeners", entries, &protocols)?),
            None => None,
        };
        let for_quorum = |endpoint: &Endpoint| controller_names.contains(&endpoint.name);
        let (controller, broker): (Vec<_>, Vec<_>) = all.into_iter().partition(for_quorum);
        let (told_controller, told_broker) = match advertised {
            Some(told) => told.into_iter().partition(for_quorum),
            None => (Vec::new(), broker.clone()),
        };
        let advertised_controller =
            advertise_controllers(settings, &controller_names, &controller, &told_controller);
        Ok(Listeners {
            inter_broker: inter_broker(settings, &protocols)?,
            controller_names,
            broker,
            controller,
            advertised_broker: told_broker,
            advertised_controller,
        })
    }
}

/// The protocol of each listener name. Controller listeners need no entry if nobody wrote a map.
fn protocol_map(settings: &Settings) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    const KEY: &str = "listener.security.protocol.map";
    let mut map = BTreeMap::new();
    for entry in settings
        .text(KEY)
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let (name, protocol) = entry.rsplit_once(':').ok_or_else(|| {
            ConfigError::value(
                KEY,
                entry,
                "each entry should be in the form LISTENER:PROTOCOL",
            )
        })?;
        let protocol = SecurityProtocol::parse(protocol.trim()).ok_or_else(|| {
            ConfigError::about(
                KEY,
                format!(
                    "Invalid security protocol `{}` defined in {KEY}",
                    protocol.trim()
                ),
            )
        })?;
        map.insert(name.trim().to_uppercase(), protocol);
    }
    if settings.written(KEY).is_none() {
        let secured = |name: &str| {
            SecurityProtocol::parse(name).is_some_and(|p| p != SecurityProtocol::Plaintext)
        };
        let listener_name =
            |entry: &String| entry.split(':').next().unwrap_or_default().to_uppercase();
        let names = settings.list("controller.listener.names");
        let any_secured = names.iter().any(|name| secured(name))
            || settings
                .list("listeners")
                .iter()
                .any(|entry| secured(&listener_name(entry)));
        if !any_secured {
            for name in names {
                map.entry(name.clone())
                    .or_insert(SecurityProtocol::Plaintext);
            }
        }
    }
    Ok(map)
}

fn parse_all(
    key: &str,
    entries: &[String],
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<Vec<Endpoint>, ConfigError> {
    let failed = |why: &str| {
        ConfigError::about(
            key,
            format!(
                "Error creating broker listeners from '[{}]': {why}",
                entries.join(", ")
            ),
        )
    };
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for entry in entries {
        let endpoint = Endpoint::parse(entry, protocols).map_err(|why| failed(&why))?;
        if endpoints.iter().any(|other| other.name == endpoint.name) {
            return Err(failed(&format!(
                "Each listener must have a different name, listeners: [{}]",
                entries.join(", ")
            )));
        }
        if endpoint.protocol != SecurityProtocol::Plaintext {
            return Err(ConfigError::about(
                key,
                format!(
                    "{key}: {entry} would use {}, but only PLAINTEXT is supported yet",
                    endpoint.protocol.name()
                ),
            ));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

/// Two listeners may share a port only if one has an IPv4 and the other an IPv6 address.
fn check_distinct_ports(endpoints: &[Endpoint], entries: &[String]) -> Result<(), ConfigError> {
    let listeners = format!("listeners: [{}]", entries.join(", "));
    let mut by_port: BTreeMap<u16, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.port != 0) {
        by_port.entry(endpoint.port).or_default().push(endpoint);
    }
    for (port, sharing) in by_port.into_iter().filter(|(_, sharing)| sharing.len() > 1) {
        let family = |endpoint: &Endpoint| -> Option<bool> {
            endpoint
                .host
                .as_ref()?
                .parse()
                .ok()
                .map(|address: std::net::IpAddr| address.is_ipv4())
        };
        let families: Vec<bool> = sharing
            .iter()
            .filter_map(|endpoint| family(endpoint))
            .collect();
        let why = match (sharing.len() - families.len(), families.as_slice()) {
            (0, [one, other]) if one != other => continue,
            (2.., _) => format!("Each listener must have a different port, {listeners}"),
            (_, [_, _]) => format!(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, \
                 {listeners}, port: {port}"
            ),
            _ => format!(
                "Each listener must have a different port unless exactly one listener has an IPv4 address and the \
                 other IPv6 address, {listeners}, port: {port}"
            ),
        };
        let message = format!(
            "Error creating broker listeners from '[{}]': {why}",
            entries.join(", ")
        );
        return Err(ConfigError::about("listeners", message));
    }
    Ok(())
}

/// What others are told about the controller listeners: an advertised entry, else the listener itself.
fn advertise_controllers(
    settings: &Settings,
    names: &[String],
    listeners: &[Endpoint],
    advertised: &[Endpoint],
) -> Vec<Endpoint> {
    let mut told = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(endpoint) = advertised.iter().find(|endpoint| endpoint.name == *name) {
            told.push(endpoint.clone());
        } else if let Some(endpoint) = listeners.iter().find(|endpoint| endpoint.name == *name) {
            told.push(told_by_default(settings, endpoint, index == 0));
        }
    }
    told
}

/// A listener without an advertised entry. Where its host is open, the first controller listener has the address
/// under which the static voters know this node.
fn told_by_default(settings: &Settings, listener: &Endpoint, first: bool) -> Endpoint {
    let mut told = listener.clone();
    let open = told.host.as_deref().is_none_or(|host| host == "0.0.0.0");
    if open {
        let voters = settings
            .list("controller.quorum.voters")
            .iter()
            .filter_map(|entry| Voter::parse(entry).ok());
        let own_id = settings.int("node.id");
        let own = voters.filter(|_| first).find(|voter| voter.id == own_id);
        told.host = own.as_ref().map(|voter| voter.host.clone());
        told.port = own.map_or(told.port, |voter| voter.port);
    }
    told
}

fn inter_broker(
    settings: &Settings,
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<String, ConfigError> {
    const KEY: &str = "inter.broker.listener.name";
    let Some(name) = settings.text(KEY) else {
        return Ok(settings
            .text("security.inter.broker.protocol")
            .unwrap_or("PLAINTEXT")
            .to_string());
    };
    if settings.written("security.inter.broker.protocol").is_some() {
        return Err(ConfigError::relation(format!(
            "Only one of {KEY} and security.inter.broker.protocol should be set."
        )));
    }
    let name = name.to_uppercase();
    if !protocols.contains_key(&name) {
        let message = format!(
            "Listener with name {name} defined in {KEY} not found in listener.security.protocol.map."
        );
        return Err(ConfigError::about(KEY, message));
    }
    Ok(name)
}
