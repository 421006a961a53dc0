//! What a topic's configuration means for one partition: the log's settings and the rules for
//! batches that arrive.

use protocol::records::validate::{Origin, Rules};
use protocol::records::{Codec, Compression, TimestampType as BatchTimestampType};
use storage::{LogConfig, TimestampType as LogTimestampType};

use crate::config::{TimestampType, TopicCompression, TopicConfig};

/// The limits that no topic key carries, from the broker's configuration.
#[derive(Clone, Copy, Debug)]
pub struct BrokerLimits {
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// Producers remembered in one partition.
    pub max_producers: usize,
    /// What one compressed batch may unpack to.
    pub max_decompressed: usize,
}

/// The settings of one partition; replaced as a whole when its topic's configuration changes.
#[derive(Clone, Debug)]
pub struct PartitionSettings {
    /// For the log.
    pub log: LogConfig,
    /// For batches that clients send.
    pub client_rules: Rules,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
    /// `cleanup.policy` lets records go by age or size, and so DeleteRecords too.
    pub deletes: bool,
    /// `compression.type` is zstd: only clients that know it may fetch (KIP-110).
    pub zstd_only: bool,
}

impl PartitionSettings {
    /// Derives the settings from a topic's configuration.
    pub fn new(topic: &TopicConfig, limits: BrokerLimits) -> Self {
        let timestamp_type = match topic.timestamp_type {
            TimestampType::CreateTime => BatchTimestampType::CreateTime,
            TimestampType::LogAppendTime => BatchTimestampType::LogAppendTime,
        };
        PartitionSettings {
            log: log_config(topic, limits),
            client_rules: Rules {
                origin: Origin::Client,
                max_message_bytes: topic.max_message_bytes as usize,
                compacted: topic.cleanup.compact,
                timestamp_type,
                timestamp_before_max_ms: topic.timestamp_before_max_ms,
                timestamp_after_max_ms: topic.timestamp_after_max_ms,
                compression: target_compression(topic.compression),
                max_record_bytes: topic.max_decompressed_message_bytes as usize,
                max_decompressed: limits.max_decompressed,
            },
            min_insync_replicas: topic.min_insync_replicas,
            deletes: topic.cleanup.delete,
            zstd_only: matches!(topic.compression, TopicCompression::Zstd(_)),
        }
    }
}

fn log_config(topic: &TopicConfig, limits: BrokerLimits) -> LogConfig {
    LogConfig {
        segment_bytes: topic.segment_bytes,
        segment_ms: topic.segment_ms,
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: topic.segment_index_bytes,
        index_interval_bytes: topic.index_interval_bytes,
        flush_messages: topic.flush_messages,
        flush_ms: topic.flush_ms,
        preallocate: topic.preallocate,
        compacted: topic.cleanup.compact,
        timestamp_type: match topic.timestamp_type {
            TimestampType::CreateTime => LogTimestampType::CreateTime,
            TimestampType::LogAppendTime => LogTimestampType::LogAppendTime,
        },
        producer_id_expiration_ms: limits.producer_id_expiration_ms,
        max_producers: limits.max_producers,
        journal: true,
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        file_delete_delay_ms: topic.file_delete_delay_ms,
    }
}

fn target_compression(wanted: TopicCompression) -> protocol::records::TopicCompression {
    use protocol::records::TopicCompression::{Producer, To};
    match wanted {
        TopicCompression::Producer => Producer,
        TopicCompression::Uncompressed => To(Codec::NONE),
        TopicCompression::Gzip(level) => To(Codec::new(Compression::Gzip, level)),
        TopicCompression::Snappy => To(Compression::Snappy.into()),
        TopicCompression::Lz4(level) => To(Codec::new(Compression::Lz4, level)),
        TopicCompression::Zstd(level) => To(Codec::new(Compression::Zstd, level)),
    }
}
