//! Broker settings that change while the broker runs (KIP-226): what may be set, and what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::ConfigError;
use super::keys::{self, Key, Update};
use super::settings::{self, DynamicSettings, Settings};
use super::value::Value;
use super::{BrokerConfig, Endpoint};

/// Whom a dynamic setting is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicScope {
    /// Every broker.
    Cluster,
    /// One broker.
    Broker,
}

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
    let changed = BrokerConfig::new(settings.with_dynamic(dynamic))?;
    match after.contains_key("listeners") {
        true => check_listeners(&BrokerConfig::new(settings.clone())?, &changed),
        false => Ok(()),
    }
}

/// Who was told of a listener must find it.
fn check_listeners(before: &BrokerConfig, after: &BrokerConfig) -> Result<(), ConfigError> {
    let names = |endpoints: &[&[Endpoint]]| -> BTreeSet<String> {
        let all = endpoints.iter().flat_map(|endpoints| endpoints.iter());
        all.map(|endpoint| endpoint.name.clone()).collect()
    };
    let advertised = names(&[&before.advertised_listeners]);
    let listeners = names(&[&after.listeners, &after.controller_listeners]);
    if advertised.is_subset(&listeners) {
        return Ok(());
    }
    let set = |names: &BTreeSet<String>| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("ListenerName({name})"))
            .collect();
        format!("Set({})", names.join(", "))
    };
    Err(ConfigError::relation(format!(
        "Advertised listeners '{}' must be a subset of listeners '{}'",
        set(&advertised),
        set(&listeners)
    )))
}

impl BrokerConfig {
    /// The configuration of the same node under other dynamic settings. Where they do not fit together (another
    /// broker version wrote them), nothing changes.
    ///
    /// # Errors
    /// Why they do not fit.
    pub fn with_dynamic(&self, dynamic: DynamicSettings) -> Result<BrokerConfig, ConfigError> {
        let mut changed = BrokerConfig::new(self.settings.with_dynamic(dynamic))?;
        let bound = |wanted: Endpoint| {
            let mut known = self.listeners.iter();
            let known = known.find(|known| known.name == wanted.name);
            known.cloned().unwrap_or(wanted)
        };
        let listeners = std::mem::take(&mut changed.listeners);
        Ok(BrokerConfig {
            // Bound already, perhaps to ports that the system chose: one that stays keeps its address, as in Kafka.
            listeners: listeners.into_iter().map(bound).collect(),
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
