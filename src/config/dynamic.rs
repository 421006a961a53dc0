//! Broker settings that change while the broker runs (KIP-226): what may be set, and what follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::BrokerConfig;
use super::error::ConfigError;
use super::keys::{self, Key, Update};
use super::settings::{self, DynamicSettings, Settings};
use super::value::Value;

/// Whom a dynamic setting is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicScope {
    /// Every broker.
    Cluster,
    /// One broker.
    Broker,
}

/// Keys that Kafka can change for one broker and this broker cannot yet.
pub(super) const NOT_YET: [&str; 2] = ["listeners", "listener.security.protocol.map"];

/// Checks all the dynamic settings that `scope` would have then, as Kafka's `DynamicBrokerConfig.validate`.
///
/// # Errors
/// The first thing that is wrong, in Kafka's words.
pub fn check_dynamic(
    settings: &Settings,
    scope: DynamicScope,
    after: &BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    let all = |wrong: &dyn Fn(&str) -> bool| -> Vec<&str> {
        let names = after.keys().map(String::as_str);
        names.filter(|name| wrong(name)).collect()
    };
    let refuse = |names: Vec<&str>, why: &str| match names.as_slice() {
        [] => Ok(()),
        _ => Err(ConfigError::relation(format!(
            "{why}: [{}]",
            names.join(", ")
        ))),
    };
    let update_of = |name: &str| keys::broker_key(name).map(|key| key.update);
    let fixed = all(&|name| update_of(name) == Some(Update::ReadOnly));
    refuse(fixed, "Cannot update these configs dynamically")?;
    let of_a_listener =
        all(&|name| name.starts_with("ssl.") && update_of(name) == Some(Update::PerBroker));
    refuse(
        of_a_listener,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )?;
    if scope == DynamicScope::Cluster {
        let own = all(&|name| {
            update_of(name) == Some(Update::PerBroker) || keys::listener_override(name).is_some()
        });
        let why =
            "Cannot update these configs at default cluster level, broker id must be specified";
        refuse(own, why)?;
    }
    refuse(
        all(&|name| NOT_YET.contains(&name)),
        "Cannot update these configs dynamically yet",
    )?;
    for (name, text) in after {
        // What is for one listener has the type of the key behind it.
        let key = keys::listener_override(name).unwrap_or(name);
        if let Some(key) = keys::broker_key(key) {
            settings::parse(key, text)?;
        }
    }
    let mut dynamic = settings.dynamic().clone();
    match scope {
        DynamicScope::Cluster => dynamic.cluster = after.clone(),
        DynamicScope::Broker => dynamic.broker = after.clone(),
    }
    BrokerConfig::new(settings.with_dynamic(dynamic)).map(|_| ())
}

impl BrokerConfig {
    /// The configuration of the same node under other dynamic settings. Where they do not fit together (another
    /// broker version wrote them), nothing changes.
    ///
    /// # Errors
    /// Why they do not fit.
    pub fn with_dynamic(&self, dynamic: DynamicSettings) -> Result<BrokerConfig, ConfigError> {
        let changed = BrokerConfig::new(self.settings.with_dynamic(dynamic))?;
        Ok(BrokerConfig {
            // Bound already, perhaps to ports that the system chose.
            listeners: self.listeners.clone(),
            advertised_listeners: self.advertised_listeners.clone(),
            controller_listeners: self.controller_listeners.clone(),
            advertised_controller_listeners: self.advertised_controller_listeners.clone(),
            ..changed
        })
    }
}

impl Settings {
    /// These settings with what the metadata says now; shared where nothing changed.
    pub fn under(self: &Arc<Self>, dynamic: DynamicSettings) -> Arc<Settings> {
        match *self.dynamic() == dynamic {
            true => self.clone(),
            false => Arc::new(self.with_dynamic(dynamic)),
        }
    }
}

impl Key {
    /// The default as it would be written.
    pub fn default_text(&self) -> Option<String> {
        Value::default_of(self).to_text()
    }
}
