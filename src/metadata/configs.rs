//! Dynamic configuration, as `ConfigRecord`s set it.

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use protocol::Str;

use crate::config::DynamicSettings;

/// What a configuration belongs to; the numbers are those of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceType(pub i8);

impl ResourceType {
    pub const TOPIC: Self = Self(2);
    /// The name is a broker id, or empty for the default of all brokers.
    pub const BROKER: Self = Self(4);
    /// The name is a broker id; never stored.
    pub const BROKER_LOGGER: Self = Self(8);
    pub const CLIENT_METRICS: Self = Self(16);
    pub const GROUP: Self = Self(32);
}

/// Name of the broker resource that holds the default of all brokers.
pub const CLUSTER_DEFAULT: &str = "";

/// Values of one resource, by key.
pub type ResourceConfig = OrdMap<Str, Str>;

/// All resources that have at least one value set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configs {
    resources: OrdMap<(ResourceType, Str), ResourceConfig>,
}

impl Configs {
    /// Values of a resource; `None` when it has none.
    #[must_use]
    pub fn resource(&self, kind: ResourceType, name: &str) -> Option<&ResourceConfig> {
        self.resources.get(&(kind, Str::from(name)))
    }

    /// Overrides of a topic.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&ResourceConfig> {
        self.resource(ResourceType::TOPIC, name)
    }

    /// Dynamic values of one broker, without the cluster's default.
    #[must_use]
    pub fn broker(&self, id: i32) -> Option<&ResourceConfig> {
        self.resource(ResourceType::BROKER, &id.to_string())
    }

    /// Dynamic default of all brokers.
    #[must_use]
    pub fn cluster_default(&self) -> Option<&ResourceConfig> {
        self.resource(ResourceType::BROKER, CLUSTER_DEFAULT)
    }

    /// What the metadata sets for the broker `id`.
    #[must_use]
    pub fn dynamic_settings(&self, id: i32) -> DynamicSettings {
        let texts = |values: Option<&ResourceConfig>| {
            let entries = values.into_iter().flatten();
            entries
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect()
        };
        DynamicSettings {
            cluster: texts(self.cluster_default()),
            broker: texts(self.broker(id)),
        }
    }

    /// Names of the topics whose overrides differ from those of `old`. Costs about what changed.
    pub fn changed_topics<'a>(&'a self, old: &'a Configs) -> impl Iterator<Item = &'a Str> {
        let changed = old.resources.diff(&self.resources).map(|item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => key,
            DiffItem::Update { new: (key, _), .. } => key,
        });
        changed
            .filter(|(kind, _)| *kind == ResourceType::TOPIC)
            .map(|(_, name)| name)
    }

    /// All resources, by type and name.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceType, &Str, &ResourceConfig)> {
        self.resources
            .iter()
            .map(|((kind, name), values)| (*kind, name, values))
    }

    pub(super) fn set(&mut self, kind: ResourceType, name: &Str, key: &Str, value: Option<&Str>) {
        let resource = (kind, name.detached());
        let mut values = self.resources.get(&resource).cloned().unwrap_or_default();
        match value {
            Some(value) => drop(values.insert(key.detached(), value.detached())),
            None => drop(values.remove(key)),
        }
        if values.is_empty() {
            self.resources.remove(&resource);
        } else {
            self.resources.insert(resource, values);
        }
    }

    pub(super) fn remove_topic(&mut self, name: &Str) {
        self.resources.remove(&(ResourceType::TOPIC, name.clone()));
    }
}
