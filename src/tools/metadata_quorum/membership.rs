//! Who belongs to the quorum: a controller that comes, and one that goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use protocol::Uuid;
use protocol::messages::{
    AddRaftVoterRequest, AddRaftVoterRequestListener, RemoveRaftVoterRequest,
    UnregisterControllerRequest,
};

use super::{RemoveArgs, node};
use crate::config::directories::{META_PROPERTIES, MetaProperties};
use crate::config::split_host_port;
use crate::tools::Failure;
use crate::tools::client::{Client, ClientError};

/// A controller as its own files describe it.
#[derive(Debug, PartialEq)]
struct Controller {
    id: i32,
    directory_id: Uuid,
    listeners: Vec<AddRaftVoterRequestListener>,
}

impl Controller {
    /// From its configuration, and the `meta.properties` in its metadata directory.
    fn new(properties: &BTreeMap<String, String>) -> Result<Controller, Failure> {
        let wrong = |what: &str| {
            Failure::new(format!(
                "{what}: --command-config must be the configuration file of the controller"
            ))
        };
        let text = |key: &str| properties.get(key).map(|text| text.trim());
        let id = text("node.id").ok_or_else(|| wrong("node.id is missing"))?;
        let id = id.parse().ok().filter(|id| *id >= 0);
        let id = id.ok_or_else(|| wrong("node.id is not a number from 0 on"))?;
        if !text("process.roles")
            .unwrap_or_default()
            .contains("controller")
        {
            return Err(wrong("process.roles has no controller"));
        }
        let first = |key: &str| text(key)?.split(',').next().filter(|path| !path.is_empty());
        let directory = text("metadata.log.dir")
            .or_else(|| first("log.dirs"))
            .ok_or_else(|| wrong("neither metadata.log.dir nor log.dirs is there"))?;
        let names = text("controller.listener.names")
            .ok_or_else(|| wrong("controller.listener.names is missing"))?;
        let listed = [text("listeners"), text("advertised.listeners")];
        Ok(Controller {
            id,
            directory_id: directory_id(Path::new(directory))?,
            listeners: advertised(names, listed).map_err(|what| wrong(&what))?,
        })
    }

    /// `CONTROLLER://host:9093, ...`
    fn endpoints(&self) -> String {
        let shown = |at: &AddRaftVoterRequestListener| match at.host.contains(':') {
            true => format!("{}://[{}]:{}", at.name, at.host, at.port),
            false => format!("{}://{}:{}", at.name, at.host, at.port),
        };
        self.listeners
            .iter()
            .map(shown)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

fn directory_id(directory: &Path) -> Result<Uuid, Failure> {
    let file = directory.join(META_PROPERTIES);
    let wrong = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(&file).map_err(|error| wrong(&error))?;
    let meta = MetaProperties::parse(&bytes).map_err(|why| wrong(&why))?;
    meta.directory_id
        .ok_or_else(|| wrong(&"it has no directory.id; the node writes one at its next start"))
}

/// Where each of the controller's listeners is reached: as advertised, else where it listens.
fn advertised(
    names: &str,
    listed: [Option<&str>; 2],
) -> Result<Vec<AddRaftVoterRequestListener>, String> {
    let mut known = BTreeMap::new();
    for entry in listed
        .into_iter()
        .flatten()
        .flat_map(|text| text.split(','))
    {
        let entry = entry.trim();
        let parts = entry.rsplit_once("://").and_then(|(name, address)| {
            let (host, port) = split_host_port(address)?;
            Some((name.to_uppercase(), host, port.parse().ok()?))
        });
        let (name, host, port) = parts.ok_or_else(|| format!("{entry} is no listener"))?;
        known.insert(name, (host, port));
    }
    let listener = |name: &str| {
        let name = name.trim().to_uppercase();
        let (host, port) = known
            .get(&name)
            .ok_or_else(|| format!("listeners has none of the name {name}"))?;
        let host = if host.is_empty() { "localhost" } else { host };
        Ok(AddRaftVoterRequestListener {
            name: name.into(),
            host: host.into(),
            port: *port,
        })
    };
    names.split(',').map(listener).collect()
}

pub(super) fn add(client: &mut Client, dry_run: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let controller = Controller::new(&client.settings().properties)?;
    if !dry_run {
        let request = AddRaftVoterRequest {
            cluster_id: cluster_id(client)?,
            timeout_ms: i32::try_from(client.settings().request_timeout.as_millis())
                .unwrap_or(i32::MAX),
            voter_id: controller.id,
            voter_directory_id: controller.directory_id,
            listeners: controller.listeners.clone().into(),
            ..AddRaftVoterRequest::default()
        };
        client.retrying(|client| {
            let response = client.send(node(client), &request)?;
            ClientError::check(response.error_code, response.error_message.as_ref())
        })?;
    }
    Ok(writeln!(
        out,
        "{} controller {} with directory id {} and endpoints: {}",
        if dry_run {
            "DRY RUN of adding"
        } else {
            "Added"
        },
        controller.id,
        controller.directory_id,
        controller.endpoints()
    )?)
}

pub(super) fn remove(
    client: &mut Client,
    wanted: &RemoveArgs,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let id = wanted.controller_id;
    if !wanted.dry_run {
        remove_voter(client, wanted)?;
    }
    let done = if wanted.dry_run {
        "DRY RUN of removing"
    } else {
        "Removed"
    };
    writeln!(
        out,
        "{done} KRaft controller {id} with directory id {}",
        wanted.controller_directory_id
    )?;
    if !wanted.unregister {
        return Ok(());
    }
    if !wanted.dry_run {
        unregister(client, id)?;
    }
    let done = if wanted.dry_run {
        "DRY RUN of unregistering"
    } else {
        "Unregistered"
    };
    Ok(writeln!(out, "{done} KRaft controller {id}")?)
}

fn remove_voter(client: &mut Client, wanted: &RemoveArgs) -> Result<(), Failure> {
    let request = RemoveRaftVoterRequest {
        cluster_id: cluster_id(client)?,
        voter_id: wanted.controller_id,
        voter_directory_id: wanted.controller_directory_id,
    };
    let removed = client.retrying(|client| {
        let response = client.send(node(client), &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())
    });
    removed.map_err(|error| match wanted.unregister {
        true => Failure::new(format!("{error}; it was not unregistered either")),
        false => error.into(),
    })
}

fn unregister(client: &mut Client, controller_id: i32) -> Result<(), Failure> {
    let request = UnregisterControllerRequest { controller_id };
    let done = client.retrying(|client| {
        let response = client.send(node(client), &request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())
    });
    done.map_err(|error| {
        Failure::new(format!(
            "controller {controller_id} is out of the quorum, but could not be unregistered: {error}"
        ))
    })
}

/// So that a controller of another cluster refuses.
fn cluster_id(client: &mut Client) -> Result<Option<protocol::Str>, ClientError> {
    if client.cluster().id.is_none() {
        client.refresh()?;
    }
    Ok(client.cluster().id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A formatted directory, and the properties of its controller.
    fn configured(changes: &[(&str, &str)]) -> (tempfile::TempDir, BTreeMap<String, String>) {
        let directory = tempfile::tempdir().unwrap();
        let meta = "version=1\nnode.id=7\ncluster.id=c\ndirectory.id=CmROyTZTRuS1zydHpCgVkw\n";
        std::fs::write(directory.path().join(META_PROPERTIES), meta).unwrap();
        let path = directory.path().display().to_string();
        let mut properties: BTreeMap<String, String> = [
            ("node.id", "7"),
            ("process.roles", "controller"),
            ("log.dirs", path.as_str()),
            ("controller.listener.names", "controller"),
            ("listeners", "CONTROLLER://:9093"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        for (key, value) in changes {
            match value.is_empty() {
                true => properties.remove(*key),
                false => properties.insert((*key).to_owned(), (*value).to_owned()),
            };
        }
        (directory, properties)
    }

    #[test]
    fn a_controller_is_what_its_files_say() {
        for (changes, endpoints) in [
            (vec![], "CONTROLLER://localhost:9093"),
            (
                vec![("advertised.listeners", "CONTROLLER://[::1]:19093")],
                "CONTROLLER://[::1]:19093",
            ),
            (
                vec![
                    ("listeners", "A://:1, B://b:2"),
                    ("controller.listener.names", "B,A"),
                ],
                "B://b:2, A://localhost:1",
            ),
        ] {
            let (_directory, properties) = configured(&changes);
            let controller = Controller::new(&properties).unwrap();
            assert_eq!(controller.id, 7);
            assert_eq!(
                controller.directory_id.to_string(),
                "CmROyTZTRuS1zydHpCgVkw"
            );
            assert_eq!(controller.endpoints(), endpoints);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (key, value, told) in [
            ("node.id", "", "node.id is missing"),
            ("node.id", "-1", "node.id is not a number from 0 on"),
            ("process.roles", "broker", "process.roles has no controller"),
            ("log.dirs", "", "neither metadata.log.dir nor log.dirs"),
            (
                "log.dirs",
                "/nowhere",
                "/nowhere/meta.properties: No such file",
            ),
            (
                "controller.listener.names",
                "",
                "controller.listener.names is missing",
            ),
            (
                "controller.listener.names",
                "X",
                "listeners has none of the name X",
            ),
            ("listeners", "CONTROLLER", "CONTROLLER is no listener"),
        ] {
            let (_directory, properties) = configured(&[(key, value)]);
            let failure = Controller::new(&properties).unwrap_err().to_string();
            assert!(failure.contains(told), "{key}={value}: {failure}");
        }
    }
}
