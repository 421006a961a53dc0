use clap::{Args, ValueEnum};
use protocol::Str;

use crate::tools::Failure;
use crate::tools::client::Node;

/// What the settings are of: `--entity-type` and `--entity-name`, or one flag for both.
#[derive(Args, Debug)]
pub(super) struct EntityArgs {
    /// What kind of thing the settings are of
    #[arg(long, value_name = "TYPE")]
    entity_type: Option<EntityType>,
    /// Which one: a topic's name, a broker's id, a group
    #[arg(long, value_name = "NAME", requires = "entity_type")]
    entity_name: Option<String>,
    /// What holds for all that have no setting of their own
    #[arg(long, requires = "entity_type", conflicts_with = "entity_name")]
    entity_default: bool,
    /// A topic, by name
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    topic: Option<String>,
    /// A broker, by id
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    broker: Option<String>,
    /// All brokers that have no setting of their own
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    broker_defaults: bool,
    /// The loggers of a broker, by its id
    #[arg(
        long,
        value_name = "BROKER",
        group = "entity",
        conflicts_with = "entity_type"
    )]
    broker_logger: Option<String>,
    /// A group, by id
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    group: Option<String>,
    /// A subscription of client metrics, by name
    #[arg(
        long,
        value_name = "NAME",
        group = "entity",
        conflicts_with = "entity_type"
    )]
    client_metrics: Option<String>,
    /// A client's quotas (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    client: Option<String>,
    /// The quotas of clients without their own (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    client_defaults: bool,
    /// A user's quotas and credentials (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    user: Option<String>,
    /// The quotas of users without their own (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    user_defaults: bool,
    /// An address's quotas (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    ip: Option<String>,
    /// The quotas of addresses without their own (refused: there are none yet)
    #[arg(long, group = "entity", conflicts_with = "entity_type")]
    ip_defaults: bool,
}

/// Kafka's words for `--entity-type`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum EntityType {
    Topics,
    Brokers,
    BrokerLoggers,
    Groups,
    ClientMetrics,
    Clients,
    Users,
    Ips,
}

/// What has settings as a resource, unlike quotas and credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Topics,
    Brokers,
    BrokerLoggers,
    ClientMetrics,
    Groups,
}

/// A kind, and which one of it, the empty name for the defaults; without a name all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entity {
    pub kind: Kind,
    pub name: Option<Str>,
}

impl EntityArgs {
    pub(super) fn entity(&self) -> Result<Entity, Failure> {
        let given = |name: &Option<String>| name.as_deref().map(Str::from);
        let quotas = [&self.client, &self.user, &self.ip];
        let defaults = [self.client_defaults, self.user_defaults, self.ip_defaults];
        if quotas.iter().any(|name| name.is_some()) || defaults.contains(&true) {
            return Err(no_quotas());
        }
        let single = [
            (Kind::Topics, given(&self.topic)),
            (Kind::Brokers, given(&self.broker)),
            (Kind::Brokers, self.broker_defaults.then(Str::default)),
            (Kind::BrokerLoggers, given(&self.broker_logger)),
            (Kind::Groups, given(&self.group)),
            (Kind::ClientMetrics, given(&self.client_metrics)),
        ];
        let single = single.into_iter().find(|(_, name)| name.is_some());
        let entity = match (single, self.entity_type) {
            (Some((kind, name)), _) => Entity { kind, name },
            (None, Some(entity_type)) => {
                let default = self.entity_default.then(Str::default);
                let name = given(&self.entity_name).or(default);
                let kind = entity_type.kind().ok_or_else(no_quotas)?;
                Entity { kind, name }
            }
            (None, None) => return Err(Failure::new("At least one entity type must be specified")),
        };
        entity.check_broker_id()?;
        Ok(entity)
    }
}

fn no_quotas() -> Failure {
    Failure::new(
        "users, clients and ips have quotas and credentials only, and this tool does not know those yet",
    )
}

impl EntityType {
    fn kind(self) -> Option<Kind> {
        match self {
            EntityType::Topics => Some(Kind::Topics),
            EntityType::Brokers => Some(Kind::Brokers),
            EntityType::BrokerLoggers => Some(Kind::BrokerLoggers),
            EntityType::Groups => Some(Kind::Groups),
            EntityType::ClientMetrics => Some(Kind::ClientMetrics),
            EntityType::Clients | EntityType::Users | EntityType::Ips => None,
        }
    }
}

impl Entity {
    fn check_broker_id(&self) -> Result<(), Failure> {
        let broker = matches!(self.kind, Kind::Brokers | Kind::BrokerLoggers);
        match &self.name {
            Some(name) if broker && !name.is_empty() && name.parse::<i32>().is_err() => {
                Err(Failure::new(format!(
                    "The entity name for {} must be a valid integer broker id, but it is: {name}",
                    self.kind.plural()
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_describe(&self) -> Result<(), Failure> {
        let plural = self.kind.plural();
        match (&self.name, self.kind) {
            (None, Kind::BrokerLoggers) => Err(Failure::new(format!(
                "An entity name must be specified with --describe of {plural}"
            ))),
            (Some(name), kind) if name.is_empty() && kind != Kind::Brokers => Err(Failure::new(
                format!("--entity-default must not be specified with --describe of {plural}"),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn name_to_alter(&self) -> Result<Str, Failure> {
        match (&self.name, self.kind) {
            (Some(name), kind) if !name.is_empty() || kind == Kind::Brokers => Ok(name.clone()),
            (_, Kind::Brokers) => Err(Failure::new(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips",
            )),
            (_, kind) => Err(Failure::new(format!(
                "An entity name must be specified with --alter of {}",
                kind.plural()
            ))),
        }
    }
}

impl Kind {
    pub(super) fn code(self) -> i8 {
        match self {
            Kind::Topics => 2,
            Kind::Brokers => 4,
            Kind::BrokerLoggers => 8,
            Kind::ClientMetrics => 16,
            Kind::Groups => 32,
        }
    }

    pub(super) fn plural(self) -> &'static str {
        match self {
            Kind::Topics => "topics",
            Kind::Brokers => "brokers",
            Kind::BrokerLoggers => "broker-loggers",
            Kind::ClientMetrics => "client-metrics",
            Kind::Groups => "groups",
        }
    }

    /// Without the last letter, as Kafka has it.
    pub(super) fn singular(self) -> &'static str {
        let plural = self.plural();
        &plural[..plural.len() - 1]
    }

    /// The source of what was set for this very entity while running.
    pub(super) fn dynamic_source(self, name: &str) -> Option<i8> {
        match self {
            Kind::Topics => Some(1),
            Kind::Brokers if name.is_empty() => Some(3),
            Kind::Brokers => Some(2),
            Kind::BrokerLoggers => None,
            Kind::ClientMetrics => Some(7),
            Kind::Groups => Some(8),
        }
    }

    /// What is one broker's own affair is asked of it; the rest anyone knows.
    pub(super) fn node(self, name: &str) -> Node {
        match (self, name.parse()) {
            (Kind::Brokers | Kind::BrokerLoggers, Ok(id)) => Node::Id(id),
            _ => Node::Any,
        }
    }
}
