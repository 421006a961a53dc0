//! The log: directories, segments, flushing, retention, and how topics come to be.

broker_keys! {
    "message.max.bytes" int "1048588" (at_least 0) high cluster_wide done
        "";
    "max.decompressed.message.bytes" int "2147483639" (between 1 and 2_147_483_639) medium cluster_wide done
        "";
    "delete.topic.enable" boolean "true" any high read_only done
        "";
    "compression.type" string "producer" (one_of "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer") high cluster_wide done
        "";
    "compression.gzip.level" int "-1" gzip_level medium cluster_wide done
        "";
    "compression.lz4.level" int "9" (between 1 and 17) medium cluster_wide done
        "";
    "compression.zstd.level" int "3" (between -131072 and 22) medium cluster_wide done
        "";
    "default.replication.factor" int "1" any medium read_only done
        "";
    "unclean.leader.election.enable" boolean "false" any high cluster_wide done
        "";
    "log.cleaner.threads" int "1" (at_least 0) medium cluster_wide done
        "";
    "log.cleaner.io.max.bytes.per.second" double "1.7976931348623157E308" any medium cluster_wide done
        "";
    "log.cleaner.dedupe.buffer.size" long "134217728" any medium cluster_wide done
        "";
    "log.cleaner.io.buffer.size" int "524288" (at_least 0) medium cluster_wide done
        "";
    "log.cleaner.io.buffer.load.factor" double "0.9" any medium cluster_wide done
        "";
    "log.cleaner.backoff.ms" long "15000" (at_least 0) medium cluster_wide done
        "";
    "log.cleaner.min.cleanable.ratio" double "0.5" (fraction 0.0 to 1.0) medium cluster_wide done
        "";
    "log.cleaner.enable" boolean "true" any medium read_only done
        "";
    "log.cleaner.delete.retention.ms" long "86400000" (at_least 0) medium cluster_wide done
        "";
    "log.cleaner.min.compaction.lag.ms" long "0" (at_least 0) medium cluster_wide done
        "";
    "log.cleaner.max.compaction.lag.ms" long "9223372036854775807" (at_least 1) medium cluster_wide done
        "";
    "num.partitions" int "1" (at_least 1) medium read_only done
        "";
    "log.dir" list "/tmp/kafka-logs" (some_elements) high read_only done
        "";
    "log.dirs" list null null_or_some_elements high read_only done
        "";
    "cordoned.log.dirs" list "" null_or_elements medium per_broker done
        "";
    "log.segment.bytes" int "1073741824" (at_least 1048576) high cluster_wide done
        "";
    "log.roll.ms" long null any high cluster_wide done
        "";
    "log.roll.hours" int "168" (at_least 1) high read_only done
        "";
    "log.roll.jitter.ms" long null any high cluster_wide done
        "";
    "log.roll.jitter.hours" int "0" (at_least 0) high read_only done
        "";
    "log.retention.ms" long null any high cluster_wide done
        "";
    "log.retention.minutes" int null any high read_only done
        "";
    "log.retention.hours" int "168" any high read_only done
        "";
    "log.retention.bytes" long "-1" any high cluster_wide done
        "";
    "log.retention.check.interval.ms" long "300000" (at_least 1) medium read_only done
        "";
    "log.cleanup.policy" list "delete" (elements "compact" "delete") medium cluster_wide done
        "";
    "log.index.size.max.bytes" int "10485760" (at_least 4) medium cluster_wide done
        "";
    "log.index.interval.bytes" int "4096" (at_least 0) medium cluster_wide done
        "";
    "log.flush.interval.messages" long "9223372036854775807" (at_least 1) high cluster_wide done
        "";
    "log.segment.delete.delay.ms" long "60000" (at_least 0) high cluster_wide done
        "";
    "log.flush.scheduler.interval.ms" long "9223372036854775807" any high read_only done
        "";
    "log.flush.interval.ms" long null any high cluster_wide done
        "";
    "log.flush.offset.checkpoint.interval.ms" int "60000" (at_least 0) high read_only done
        "";
    "log.flush.start.offset.checkpoint.interval.ms" int "60000" (at_least 0) high read_only done
        "";
    "log.preallocate" boolean "false" any medium cluster_wide done
        "";
    "num.recovery.threads.per.data.dir" int "2" (at_least 1) high cluster_wide done
        "";
    "auto.create.topics.enable" boolean "true" any high read_only done
        "";
    "min.insync.replicas" int "1" (at_least 1) high cluster_wide done
        "";
    "log.message.timestamp.type" string "CreateTime" (one_of "CreateTime" "LogAppendTime") medium cluster_wide done
        "";
    "log.message.timestamp.before.max.ms" long "9223372036854775807" (at_least 0) medium cluster_wide done
        "";
    "log.message.timestamp.after.max.ms" long "3600000" (at_least 0) medium cluster_wide done
        "";
    "create.topic.policy.class.name" class null any low read_only done
        "";
    "alter.config.policy.class.name" class null any low read_only done
        "";
    "log.dir.failure.timeout.ms" long "30000" (at_least 1) low read_only done
        "";
    [internal] "log.initial.task.delay.ms" long "30000" (at_least 0) low read_only done
        "";
}
