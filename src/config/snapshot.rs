//! The typed configuration of a broker: what the code reads. Nothing else looks keys up by name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::connection_limits::ConnectionLimits;
use super::endpoint::{Endpoint, SecurityProtocol, Voter, split_host_port};
use super::error::ConfigError;
use super::listeners::Listeners;
use super::settings::Settings;
use super::topic::TopicConfig;
use super::validate;

/// The configuration of one node. Cheap to share between cores behind an `Arc`; never changes while it is shared,
/// a change is a new snapshot.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// `node.id`, the id of broker and controller.
    pub node_id: i32,
    /// `broker.rack`, told to clients and used when replicas are placed.
    pub rack: Option<String>,
    /// Where clients connect.
    pub listeners: Vec<Endpoint>,
    /// What clients are told to connect to; names are those of `listeners`.
    pub advertised_listeners: Vec<Endpoint>,
    /// Where controllers and brokers of the quorum talk; not for clients.
    pub controller_listeners: Vec<Endpoint>,
    /// What other nodes are told to connect to.
    pub advertised_controller_listeners: Vec<Endpoint>,
    /// The listener that brokers use among themselves; one of `listeners`.
    pub inter_broker_listener: String,
    pub storage: StorageConfig,
    pub quorum: QuorumConfig,
    pub runtime: RuntimeConfig,
    pub network: NetworkConfig,
    pub topics: TopicsConfig,
    pub fetch: FetchConfig,
    pub groups: GroupsConfig,
    pub offsets: OffsetsConfig,
    pub producer_ids: ProducerIdsConfig,
    pub replication: ReplicationConfig,
    pub metadata_log: MetadataLogConfig,
    /// What a topic without own settings does.
    pub topic_defaults: TopicConfig,
    /// Everything that was written, for DescribeConfigs and for topics with own settings.
    pub settings: Arc<Settings>,
}

/// Where data lies and how it gets durable.
#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// `log.dirs`, at least one, each once, in the order of the file.
    pub log_dirs: Vec<PathBuf>,
    /// The directory of the metadata log: `metadata.log.dir`, else the first of `log_dirs`. May lie outside of them.
    pub metadata_log_dir: PathBuf,
    /// `log.flush.offset.checkpoint.interval.ms`: how often recovery points are written.
    pub recovery_point_interval: Duration,
    /// `log.flush.start.offset.checkpoint.interval.ms`.
    pub log_start_offset_interval: Duration,
    /// `log.flush.scheduler.interval.ms`: how often logs are looked at for `flush.ms`.
    pub flush_check_interval: Duration,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
    /// `log.dir.failure.timeout.ms`.
    pub dir_failure_timeout: Duration,
    /// `num.recovery.threads.per.data.dir`: how many logs of one directory are recovered at a time.
    pub recovery_parallelism: u32,
}

/// The controllers of the cluster.
#[derive(Clone, Debug)]
pub struct QuorumConfig {
    /// `controller.quorum.voters`; empty with a dynamic quorum, whose voters stand in the metadata log (KIP-853).
    pub static_voters: Vec<Voter>,
    /// `controller.quorum.bootstrap.servers`.
    pub bootstrap_servers: Vec<(String, u16)>,
    /// The name of the first controller listener, under which voters are recorded.
    pub listener: String,
}

/// Cores and I/O.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Number of shards; None makes one for each core that the process may use.
    pub shards: Option<u16>,
    /// Keep each shard on its core.
    pub pin: bool,
    pub backend: IoBackend,
    /// `ringmain.journal.bytes`: of each core, on each log directory.
    pub journal_bytes: u64,
    /// `ringmain.http.listener`: where metrics, health and flame graphs are told.
    pub http: Option<Endpoint>,
    /// `ringmain.metrics.partitions`.
    pub partition_metrics: bool,
    /// `ringmain.slow.request.ms`: from how long on a request is told in the log.
    pub slow_request: Option<Duration>,
}

/// `ringmain.io.backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoBackend {
    Auto,
    Ring,
    Epoll,
}

/// Connections and requests.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// `socket.request.max.bytes`: a longer request closes its connection.
    pub request_max_bytes: u32,
    /// `queued.max.request.bytes`: memory for requests that were read and not answered; None for no limit of its own.
    pub queued_max_bytes: Option<u64>,
    /// `queued.max.requests`: requests that were read and not begun, over all connections.
    pub queued_max_requests: u32,
    /// How many connections may be open.
    pub connections: ConnectionLimits,
    /// `connections.max.idle.ms`: a silent connection is closed; None never.
    pub idle_timeout: Option<Duration>,
    /// `socket.send.buffer.bytes`; None leaves it to the system.
    pub send_buffer_bytes: Option<u32>,
    /// `socket.receive.buffer.bytes`; None leaves it to the system.
    pub receive_buffer_bytes: Option<u32>,
    /// `socket.listen.backlog.size`.
    pub backlog: u32,
    /// `max.request.partition.size.limit`: partitions in one answer to DescribeTopicPartitions.
    pub describe_partitions_max: u32,
    /// `request.timeout.ms`: how long a change may wait for the controller.
    pub request_timeout: Duration,
}

/// How topics come to be and go.
#[derive(Clone, Debug)]
pub struct TopicsConfig {
    /// `auto.create.topics.enable`.
    pub auto_create: bool,
    /// `delete.topic.enable`.
    pub delete: bool,
    /// `num.partitions`.
    pub partitions: i32,
    /// `default.replication.factor`.
    pub replication_factor: i16,
}

/// Fetch requests.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// `fetch.max.bytes`: the most bytes in one answer, whatever the client asks.
    pub max_bytes: u32,
    /// `max.incremental.fetch.session.cache.slots`.
    pub session_slots: u32,
}

/// Classic consumer groups.
#[derive(Clone, Debug)]
pub struct GroupsConfig {
    /// `group.min.session.timeout.ms` and `group.max.session.timeout.ms`, in milliseconds as the protocol has them.
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long the first rebalance of an empty group waits for more members.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`.
    pub max_size: i32,
}

/// Committed offsets and the topic that keeps them.
#[derive(Clone, Debug)]
pub struct OffsetsConfig {
    /// `offset.metadata.max.bytes`.
    pub metadata_max_bytes: i32,
    /// `offsets.topic.num.partitions`; fixed by the first creation of the topic.
    pub topic_partitions: i32,
    /// `offsets.topic.replication.factor`.
    pub topic_replication_factor: i16,
    /// `offsets.topic.segment.bytes`.
    pub topic_segment_bytes: i32,
    /// `offsets.topic.compression.codec`: id of the codec of the batches that the coordinator writes, 0 to 4.
    pub compression_codec: i8,
    /// `offsets.load.buffer.size`.
    pub load_buffer_bytes: u32,
    /// `offsets.commit.timeout.ms`.
    pub commit_timeout: Duration,
    /// `offsets.retention.minutes`, as a span.
    pub retention: Duration,
    /// `offsets.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
}

impl OffsetsConfig {
    /// The settings with which `__consumer_offsets` is created, as Kafka sets them.
    pub fn topic_overrides(&self) -> Vec<(&'static str, String)> {
        vec![
            ("cleanup.policy", "compact".to_string()),
            ("compression.type", "producer".to_string()),
            ("segment.bytes", self.topic_segment_bytes.to_string()),
        ]
    }
}

/// Idempotent producers.
#[derive(Clone, Debug)]
pub struct ProducerIdsConfig {
    /// `producer.id.expiration.ms`: how long the state of a silent producer is kept.
    pub expiration: Duration,
    /// `producer.id.expiration.check.interval.ms`.
    pub expiration_check_interval: Duration,
}

/// Brokers among themselves.
#[derive(Clone, Debug)]
pub struct ReplicationConfig {
    /// `replica.lag.time.max.ms`.
    pub lag_max: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub watermark_checkpoint_interval: Duration,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `broker.session.timeout.ms`: a broker that is silent for so long is fenced.
    pub session_timeout: Duration,
}

/// The metadata log and its snapshots.
#[derive(Clone, Debug)]
pub struct MetadataLogConfig {
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u32,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub snapshot_after_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`; None for no limit by time.
    pub snapshot_after: Option<Duration>,
    /// `metadata.max.retention.bytes`; None for no limit.
    pub retention_bytes: Option<u64>,
    /// `metadata.max.retention.ms`; None for no limit.
    pub retention: Option<Duration>,
}

impl BrokerConfig {
    /// The configuration of a node without a file, with these settings on top: what `serve` without FILE runs with,
    /// and the shortest way to a configuration in a test.
    ///
    /// # Errors
    /// A wrong key, value or relation.
    pub fn single_node(overrides: &[(&str, &str)]) -> Result<BrokerConfig, ConfigError> {
        let overrides = overrides
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        BrokerConfig::new(Settings::new(super::single_node(&overrides))?)
    }

    /// The typed view of settings, after every check of a relation between keys.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub fn new(settings: Settings) -> Result<BrokerConfig, ConfigError> {
        let listeners = Listeners::from_settings(&settings)?;
        validate::relations(&settings, &listeners)?;
        Ok(BrokerConfig {
            node_id: settings.int("node.id"),
            rack: settings.text("broker.rack").map(str::to_string),
            inter_broker_listener: listeners.inter_broker,
            quorum: quorum(&settings, &listeners.controller_names)?,
            listeners: listeners.broker,
            advertised_listeners: listeners.advertised_broker,
            controller_listeners: listeners.controller,
            advertised_controller_listeners: listeners.advertised_controller,
            storage: storage(&settings),
            runtime: runtime(&settings)?,
            network: network(&settings)?,
            topics: TopicsConfig {
                auto_create: settings.boolean("auto.create.topics.enable"),
                delete: settings.boolean("delete.topic.enable"),
                partitions: settings.int("num.partitions"),
                replication_factor: i16::try_from(settings.int("default.replication.factor"))
                    .unwrap_or(i16::MAX),
            },
            fetch: FetchConfig {
                max_bytes: settings.size32("fetch.max.bytes"),
                session_slots: settings.size32("max.incremental.fetch.session.cache.slots"),
            },
            groups: GroupsConfig {
                min_session_timeout_ms: settings.int("group.min.session.timeout.ms"),
                max_session_timeout_ms: settings.int("group.max.session.timeout.ms"),
                initial_rebalance_delay_ms: settings.int("group.initial.rebalance.delay.ms"),
                max_size: settings.int("group.max.size"),
            },
            offsets: offsets(&settings),
            producer_ids: ProducerIdsConfig {
                expiration: settings.millis("producer.id.expiration.ms"),
                expiration_check_interval: settings
                    .millis("producer.id.expiration.check.interval.ms"),
            },
            replication: ReplicationConfig {
                lag_max: settings.millis("replica.lag.time.max.ms"),
                watermark_checkpoint_interval: settings
                    .millis("replica.high.watermark.checkpoint.interval.ms"),
                heartbeat_interval: settings.millis("broker.heartbeat.interval.ms"),
                session_timeout: settings.millis("broker.session.timeout.ms"),
            },
            metadata_log: metadata_log(&settings),
            topic_defaults: TopicConfig::defaults(&settings),
            settings: Arc::new(settings),
        })
    }
}

impl BrokerConfig {
    /// What a person should know before this node runs: keys without effect, and settings that one node cannot meet.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines = self.settings.warnings();
        for (key, replicas, effect) in [
            (
                "offsets.topic.replication.factor",
                self.offsets.topic_replication_factor,
                "consumer groups will not work, because their topic cannot be created",
            ),
            (
                "default.replication.factor",
                self.topics.replication_factor,
                "topics will not be created by themselves",
            ),
        ] {
            if replicas > 1 {
                lines.push(format!(
                    "{key}={replicas}, but there is one node: {effect}; set {key}=1"
                ));
            }
        }
        let replicas = self.topic_defaults.min_insync_replicas;
        if replicas > 1 {
            let effect = "writes with acks=all will be refused";
            lines.push(format!(
                "min.insync.replicas={replicas}, but there is one node: {effect}"
            ));
        }
        lines
    }
}

fn storage(settings: &Settings) -> StorageConfig {
    let log_dirs: Vec<PathBuf> = validate::log_dirs(settings)
        .iter()
        .map(PathBuf::from)
        .collect();
    let first = log_dirs.first().cloned().unwrap_or_default();
    StorageConfig {
        metadata_log_dir: settings
            .text("metadata.log.dir")
            .map_or(first, PathBuf::from),
        log_dirs,
        recovery_point_interval: settings.millis("log.flush.offset.checkpoint.interval.ms"),
        log_start_offset_interval: settings.millis("log.flush.start.offset.checkpoint.interval.ms"),
        flush_check_interval: settings.millis("log.flush.scheduler.interval.ms"),
        retention_check_interval: settings.millis("log.retention.check.interval.ms"),
        dir_failure_timeout: settings.millis("log.dir.failure.timeout.ms"),
        recovery_parallelism: settings.size32("num.recovery.threads.per.data.dir"),
    }
}

fn quorum(settings: &Settings, controller_names: &[String]) -> Result<QuorumConfig, ConfigError> {
    let static_voters = settings
        .list("controller.quorum.voters")
        .iter()
        .map(|entry| Voter::parse(entry))
        .collect::<Result<_, _>>()?;
    let bootstrap_servers = settings
        .list("controller.quorum.bootstrap.servers")
        .iter()
        .map(|entry| super::endpoint::parse_bootstrap_server(entry))
        .collect::<Result<_, _>>()?;
    let listener = controller_names.first().cloned().unwrap_or_default();
    Ok(QuorumConfig {
        static_voters,
        bootstrap_servers,
        listener,
    })
}

fn runtime(settings: &Settings) -> Result<RuntimeConfig, ConfigError> {
    Ok(RuntimeConfig {
        shards: u16::try_from(settings.integer("ringmain.shards"))
            .ok()
            .filter(|count| *count > 0),
        pin: settings.boolean("ringmain.pin"),
        backend: match settings.text("ringmain.io.backend") {
            Some("ring") => IoBackend::Ring,
            Some("epoll") => IoBackend::Epoll,
            _ => IoBackend::Auto,
        },
        journal_bytes: settings.integer("ringmain.journal.bytes").unsigned_abs(),
        http: http(settings)?,
        partition_metrics: settings.boolean("ringmain.metrics.partitions"),
        slow_request: Some(settings.millis("ringmain.slow.request.ms"))
            .filter(|limit| !limit.is_zero()),
    })
}

fn http(settings: &Settings) -> Result<Option<Endpoint>, ConfigError> {
    const KEY: &str = "ringmain.http.listener";
    let text = settings.text(KEY).unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || ConfigError::value(KEY, text, "it should be in the form host:port");
    let (host, port) = split_host_port(text).ok_or_else(wrong)?;
    Ok(Some(Endpoint {
        name: "HTTP".into(),
        protocol: SecurityProtocol::Plaintext,
        host: (!host.is_empty()).then(|| host.to_string()),
        port: port.parse().map_err(|_| wrong())?,
    }))
}

fn network(settings: &Settings) -> Result<NetworkConfig, ConfigError> {
    let buffer = |name| u32::try_from(settings.integer(name)).ok();
    Ok(NetworkConfig {
        connections: ConnectionLimits::from_settings(settings)?,
        request_max_bytes: settings.size32("socket.request.max.bytes"),
        queued_max_bytes: u64::try_from(settings.integer("queued.max.request.bytes"))
            .ok()
            .filter(|bytes| *bytes > 0),
        queued_max_requests: settings.size32("queued.max.requests"),
        idle_timeout: limit(settings, "connections.max.idle.ms"),
        send_buffer_bytes: buffer("socket.send.buffer.bytes"),
        receive_buffer_bytes: buffer("socket.receive.buffer.bytes"),
        backlog: settings.size32("socket.listen.backlog.size"),
        describe_partitions_max: settings.size32("max.request.partition.size.limit"),
        request_timeout: settings.millis("request.timeout.ms"),
    })
}

fn offsets(settings: &Settings) -> OffsetsConfig {
    OffsetsConfig {
        metadata_max_bytes: settings.int("offset.metadata.max.bytes"),
        topic_partitions: settings.int("offsets.topic.num.partitions"),
        topic_replication_factor: i16::try_from(settings.int("offsets.topic.replication.factor"))
            .unwrap_or(i16::MAX),
        topic_segment_bytes: settings.int("offsets.topic.segment.bytes"),
        compression_codec: i8::try_from(settings.int("offsets.topic.compression.codec"))
            .unwrap_or(0),
        load_buffer_bytes: settings.size32("offsets.load.buffer.size"),
        commit_timeout: settings.millis("offsets.commit.timeout.ms"),
        retention: Duration::from_secs(settings.size("offsets.retention.minutes") * 60),
        retention_check_interval: settings.millis("offsets.retention.check.interval.ms"),
    }
}

fn metadata_log(settings: &Settings) -> MetadataLogConfig {
    let interval = settings.millis("metadata.log.max.snapshot.interval.ms");
    MetadataLogConfig {
        segment_bytes: settings.size32("metadata.log.segment.bytes"),
        segment_ms: settings.integer("metadata.log.segment.ms"),
        snapshot_after_bytes: settings.size("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_after: (!interval.is_zero()).then_some(interval),
        retention_bytes: u64::try_from(settings.integer("metadata.max.retention.bytes")).ok(),
        retention: limit(settings, "metadata.max.retention.ms"),
    }
}

/// A span where a negative number means "no limit".
fn limit(settings: &Settings, name: &'static str) -> Option<Duration> {
    u64::try_from(settings.integer(name))
        .ok()
        .map(Duration::from_millis)
}
