//! Why a key has no effect yet, or is refused. One sentence for many keys, so that the start says it once.

pub const THREADS: &str =
    "work is spread over shards, one a core (ringmain.shards), not over thread pools";
pub const PURGATORY: &str =
    "waiting requests leave their queues at once; there is nothing to purge";
pub const JVM: &str = "no Java classes are loaded";
pub const NO_RETENTION: &str = "old segments are not deleted yet";
pub const NO_COMPACTION: &str = "logs are not compacted yet";
pub const NO_REPLICATION: &str = "a partition has one replica yet, on this node";
pub const NO_QUORUM: &str = "this node is its own only controller yet";
pub const NO_TRANSACTIONS: &str =
    "transactions are not supported yet; transactional ids are refused";
pub const NO_QUOTAS: &str = "client quotas are not enforced yet";
pub const NO_CONSUMER_PROTOCOL: &str =
    "the new consumer group protocol (KIP-848) is not supported yet; groups are classic";
pub const NO_SHARE_GROUPS: &str = "share groups (KIP-932) are not supported yet";
pub const NO_STREAMS_GROUPS: &str = "streams groups (KIP-1071) are not supported yet";
pub const NO_REMOTE_STORAGE: &str = "tiered storage (KIP-405) is not supported yet";
pub const NO_TLS: &str = "TLS is not supported yet; only PLAINTEXT listeners can be served";
pub const NO_SASL: &str = "SASL is not supported yet; only PLAINTEXT listeners can be served";
pub const NO_AUTHORIZER: &str = "authorization is not supported yet, and an authorizer without effect would leave the cluster open";
pub const NO_DELEGATION_TOKENS: &str = "delegation tokens are not supported yet";
pub const NO_POLICY: &str = "Java policy classes cannot be run, and a policy without effect would let through what it forbids";
pub const NO_CONNECTION_RATES: &str = "the rate of new connections is not limited yet";
pub const NO_METRICS: &str = "metrics are per-core counters, not sampled windows";
pub const NO_TELEMETRY: &str = "client telemetry (KIP-714) is not supported yet";
pub const NO_CONFIG_PROVIDERS: &str =
    "values behind config providers would stay unresolved placeholders";
pub const NO_DIR_MOVES: &str = "replicas do not move between log directories yet";
pub const NO_UNSTABLE: &str = "no unstable API or feature version is implemented";
pub const OWN_SIZES: &str = "buffers are sized by the memory that the process may use";
pub const BYTES_NOT_COUNTS: &str =
    "requests that wait are bounded by their bytes (queued.max.request.bytes), not by their number";
pub const SYSTEM_SOCKETS: &str = "listeners keep the size that the system gives them";
pub const RECEIVE_BUFFERS: &str =
    "the system adapts receive buffers, which takes less time for large requests";
pub const ONE_DECOMPRESSED_BOUND: &str = "one fixed bound holds for what a batch may decompress to";
pub const ONE_CHECKPOINT: &str =
    "all checkpoints are written together (log.flush.offset.checkpoint.interval.ms)";
