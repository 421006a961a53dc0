//! The keys of a topic.

topic_keys! {
    "segment.bytes" int "1073741824" (at_least 1048576) medium done
        "" => ["log.segment.bytes"];
    "segment.ms" long "604800000" (at_least 1) medium done
        "" => ["log.roll.ms", "log.roll.hours" hours];
    "segment.jitter.ms" long "0" (at_least 0) medium done
        "" => ["log.roll.jitter.ms", "log.roll.jitter.hours" hours];
    "segment.index.bytes" int "10485760" (at_least 4) medium done
        "" => ["log.index.size.max.bytes"];
    "flush.messages" long "9223372036854775807" (at_least 1) medium done
        "" => ["log.flush.interval.messages"];
    "flush.ms" long "9223372036854775807" (at_least 0) medium done
        "" => ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    "retention.bytes" long "-1" any medium done
        "" => ["log.retention.bytes"];
    "retention.ms" long "604800000" (at_least -1) medium done
        "" => ["log.retention.ms", "log.retention.minutes" minutes, "log.retention.hours" hours];
    "max.message.bytes" int "1048588" (at_least 0) medium done
        "" => ["message.max.bytes"];
    "max.decompressed.message.bytes" int "2147483639" (between 1 and 2_147_483_639) medium done
        "" => ["max.decompressed.message.bytes"];
    "index.interval.bytes" int "4096" (at_least 0) medium done
        "" => ["log.index.interval.bytes"];
    "delete.retention.ms" long "86400000" (at_least 0) medium done
        "" => ["log.cleaner.delete.retention.ms"];
    "min.compaction.lag.ms" long "0" (at_least 0) medium done
        "" => ["log.cleaner.min.compaction.lag.ms"];
    "max.compaction.lag.ms" long "9223372036854775807" (at_least 1) medium done
        "" => ["log.cleaner.max.compaction.lag.ms"];
    "file.delete.delay.ms" long "60000" (at_least 0) medium done
        "" => ["log.segment.delete.delay.ms"];
    "min.cleanable.dirty.ratio" double "0.5" (fraction 0.0 to 1.0) medium done
        "" => ["log.cleaner.min.cleanable.ratio"];
    "cleanup.policy" list "delete" (elements "compact" "delete") medium done
        "" => ["log.cleanup.policy"];
    "unclean.leader.election.enable" boolean "false" any medium done
        "" => ["unclean.leader.election.enable"];
    "min.insync.replicas" int "1" (at_least 1) medium done
        "" => ["min.insync.replicas"];
    "compression.type" string "producer" (one_of "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer") medium done
        "" => ["compression.type"];
    "compression.gzip.level" int "-1" gzip_level medium done
        "" => ["compression.gzip.level"];
    "compression.lz4.level" int "9" (between 1 and 17) medium done
        "" => ["compression.lz4.level"];
    "compression.zstd.level" int "3" (between -131072 and 22) medium done
        "" => ["compression.zstd.level"];
    "preallocate" boolean "false" any medium done
        "" => ["log.preallocate"];
    "message.timestamp.type" string "CreateTime" (one_of "CreateTime" "LogAppendTime") medium done
        "" => ["log.message.timestamp.type"];
    "message.timestamp.before.max.ms" long "9223372036854775807" (at_least 0) medium done
        "" => ["log.message.timestamp.before.max.ms"];
    "message.timestamp.after.max.ms" long "3600000" (at_least 0) medium done
        "" => ["log.message.timestamp.after.max.ms"];
    "leader.replication.throttled.replicas" list "" throttled_replicas medium done
        "" => [];
    "follower.replication.throttled.replicas" list "" throttled_replicas medium done
        "" => [];
    "remote.storage.enable" boolean "false" any medium done
        "" => [];
    "local.retention.ms" long "-2" (at_least -2) medium done
        "" => ["log.local.retention.ms"];
    "local.retention.bytes" long "-2" (at_least -2) medium done
        "" => ["log.local.retention.bytes"];
    "remote.log.copy.disable" boolean "false" any medium done
        "" => [];
    "remote.copy.lag.ms" long "0" (at_least -1) medium done
        "" => ["log.remote.copy.lag.ms"];
    "remote.copy.lag.bytes" long "-1" (at_least -1) medium done
        "" => ["log.remote.copy.lag.bytes"];
    "remote.log.delete.on.disable" boolean "false" any medium done
        "" => [];
    "errors.deadletterqueue.group.enable" boolean "false" any medium done
        "" => [];
    [internal] "internal.segment.bytes" int null any medium done
        "" => [];
}
