//! Flags that many tools have.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::client::{Client, Settings, Target, read_properties};

/// `--bootstrap-server` alone, required.
#[derive(Args, Debug, Clone)]
pub(super) struct Brokers {
    /// The brokers to connect to at first
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(super) bootstrap_server: String,
    #[command(flatten)]
    pub(super) config: CommandConfig,
}

impl Brokers {
    pub(super) fn connect(&self) -> Result<Client, Failure> {
        let settings = self
            .config
            .settings(Target::Brokers, &self.bootstrap_server)?;
        Ok(Client::connect(settings)?)
    }
}

/// `--bootstrap-server` or `--bootstrap-controller`, one of them required.
#[derive(Args, Debug, Clone)]
pub(super) struct BrokersOrControllers {
    #[command(flatten)]
    addresses: Addresses,
    #[command(flatten)]
    config: CommandConfig,
}

#[derive(Args, Debug, Clone)]
#[group(required = true, multiple = false)]
struct Addresses {
    /// The brokers to connect to at first
    #[arg(long, short = 'b', value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,
    /// The controllers to connect to at first, instead of brokers
    #[arg(long, short = 'C', value_name = "HOST:PORT,...")]
    bootstrap_controller: Option<String>,
}

impl BrokersOrControllers {
    /// As [`Self::connect`], where the file may be named by another flag.
    pub(super) fn connect_with(&self, file: Option<&PathBuf>) -> Result<Client, Failure> {
        let mut flags = self.clone();
        flags.config.command_config = flags.config.command_config.or_else(|| file.cloned());
        flags.connect()
    }

    pub(super) fn connect(&self) -> Result<Client, Failure> {
        let addresses = &self.addresses;
        let (target, text) = match &addresses.bootstrap_controller {
            Some(text) => (Target::Controllers, text.as_str()),
            None => (
                Target::Brokers,
                addresses.bootstrap_server.as_deref().unwrap_or_default(),
            ),
        };
        Ok(Client::connect(self.config.settings(target, text)?)?)
    }
}

/// The same before a command of which not every one connects.
#[derive(Args, Debug, Clone)]
pub(super) struct MaybeAddresses {
    /// The brokers to connect to at first
    #[arg(long, value_name = "HOST:PORT,...", global = true)]
    bootstrap_server: Option<String>,
    /// The controllers to connect to at first, instead of brokers
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        global = true,
        conflicts_with = "bootstrap_server"
    )]
    bootstrap_controller: Option<String>,
    /// A properties file for the client: timeouts, client.id
    #[arg(long, value_name = "FILE", global = true)]
    command_config: Option<PathBuf>,
}

impl MaybeAddresses {
    pub(super) fn connect(&self) -> Result<Client, Failure> {
        let (target, text) = match (&self.bootstrap_controller, &self.bootstrap_server) {
            (Some(text), _) => (Target::Controllers, text),
            (None, Some(text)) => (Target::Brokers, text),
            (None, None) => {
                return Err(Failure::new(
                    "You must specify either --bootstrap-controller or --bootstrap-server.",
                ));
            }
        };
        let config = CommandConfig {
            command_config: self.command_config.clone(),
        };
        Ok(Client::connect(config.settings(target, text)?)?)
    }
}

/// `--command-config`.
#[derive(Args, Debug, Clone)]
pub(super) struct CommandConfig {
    /// A properties file for the client: timeouts, client.id
    #[arg(long, short = 'c', value_name = "FILE")]
    command_config: Option<PathBuf>,
}

impl CommandConfig {
    pub(super) fn settings(&self, target: Target, addresses: &str) -> Result<Settings, Failure> {
        let properties = match &self.command_config {
            Some(path) => read_properties(path)?,
            None => std::collections::BTreeMap::default(),
        };
        Ok(Settings::new(target, addresses, properties)?)
    }
}

/// An error where a flag is given that does not go with the others; `place` says where it does.
pub(super) fn only(given: bool, flag: &str, fits: bool, place: &str) -> Result<(), Failure> {
    if given && !fits {
        return Err(Failure::new(format!(
            "{flag} can only be used with {place}"
        )));
    }
    Ok(())
}
