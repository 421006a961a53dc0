//! The settings of one log, typed: what Kafka's topic keys say, with its defaults.

/// Whose clock stamps the records (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    #[default]
    CreateTime,
    LogAppendTime,
}

/// Settings of one log. Plain data: the broker builds it from topic and broker keys and shares it by `Rc`.
/// Units are in the names; -1 means no limit where Kafka says so.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment rolls before it would grow beyond.
    pub segment_bytes: u32,
    /// `segment.ms`: and when its first record is this old, by record time.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: at most this much earlier, so that partitions do not roll together.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: room of an index; a full one rolls the segment.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: bytes of log between two index entries.
    pub index_interval_bytes: u32,
    /// `flush.messages`: records between forced writes; 1 makes every acknowledgement durable.
    pub flush_messages: i64,
    /// `flush.ms`: longest time written bytes may stay without a forced write.
    pub flush_ms: i64,
    /// `preallocate`: give a new segment all its space at once.
    pub preallocate: bool,
    /// `cleanup.policy` has `compact`: offsets may be missing between two segments.
    pub compacted: bool,
    pub timestamp_type: TimestampType,
    /// Small appends may go to the core's journal of the disk first (where there is one).
    pub journal: bool,
    /// `producer.id.expiration.ms`: idle producers are forgotten after this.
    pub producer_id_expiration_ms: i64,
    /// Producers remembered per partition; beyond it the longest idle ones are forgotten (they may then
    /// continue at any sequence, as after expiry).
    pub max_producers: usize,
    /// Stored for later use: `retention.ms`, `retention.bytes`, `file.delete.delay.ms`.
    pub retention_ms: i64,
    pub retention_bytes: i64,
    pub file_delete_delay_ms: i64,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            preallocate: false,
            compacted: false,
            timestamp_type: TimestampType::CreateTime,
            journal: false,
            producer_id_expiration_ms: 86_400_000,
            max_producers: 100_000,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
        }
    }
}
