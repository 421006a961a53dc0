//! The keys of a topic.

topic_keys! {
    "segment.bytes" int "1073741824" (at_least 1048576) medium done
        "Largest segment." => ["log.segment.bytes"];
    "segment.ms" long "604800000" (at_least 1) medium done
        "A segment is closed after so much time even if it is small." => ["log.roll.ms", "log.roll.hours" hours];
    "segment.jitter.ms" long "0" (at_least 0) medium done
        "Up to so much is taken off segment.ms, at random." => ["log.roll.jitter.ms", "log.roll.jitter.hours" hours];
    "segment.index.bytes" int "10485760" (at_least 4) medium done
        "Largest offset index of a segment." => ["log.index.size.max.bytes"];
    "flush.messages" long "9223372036854775807" (at_least 1) medium done
        "A write is durable after so many records; 1 makes every acknowledged record survive power loss." => ["log.flush.interval.messages"];
    "flush.ms" long "9223372036854775807" (at_least 0) medium done
        "What was written is durable after so much time." => ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    "retention.bytes" long "-1" any medium (ignored NO_RETENTION)
        "A partition above this size loses its oldest segments; -1 means no limit." => ["log.retention.bytes"];
    "retention.ms" long "604800000" (at_least -1) medium (ignored NO_RETENTION)
        "Segments older than this are deleted; -1 keeps them for ever." => ["log.retention.ms", "log.retention.minutes" minutes, "log.retention.hours" hours];
    "max.message.bytes" int "1048588" (at_least 0) medium done
        "Largest record batch that is accepted, as compressed by the producer." => ["message.max.bytes"];
    "max.decompressed.message.bytes" int "2147483639" (between 1 and 2_147_483_639) medium (ignored ONE_DECOMPRESSED_BOUND)
        "Largest record after decompression." => ["max.decompressed.message.bytes"];
    "index.interval.bytes" int "4096" (at_least 0) medium done
        "The offset index gets an entry after so many bytes of records." => ["log.index.interval.bytes"];
    "delete.retention.ms" long "86400000" (at_least 0) medium (ignored NO_COMPACTION)
        "How long the mark of a deleted key is kept." => ["log.cleaner.delete.retention.ms"];
    "min.compaction.lag.ms" long "0" (at_least 0) medium (ignored NO_COMPACTION)
        "A record stays uncompacted at least so long." => ["log.cleaner.min.compaction.lag.ms"];
    "max.compaction.lag.ms" long "9223372036854775807" (at_least 1) medium (ignored NO_COMPACTION)
        "A record stays uncompacted at most so long; segments close in time for it already." => ["log.cleaner.max.compaction.lag.ms"];
    "file.delete.delay.ms" long "60000" (at_least 0) medium done
        "Delay before the files of a removed segment are deleted." => ["log.segment.delete.delay.ms"];
    "min.cleanable.dirty.ratio" double "0.5" (fraction 0.0 to 1.0) medium (ignored NO_COMPACTION)
        "The log is compacted once this part of it is new." => ["log.cleaner.min.cleanable.ratio"];
    "cleanup.policy" list "delete" (elements "compact" "delete") medium (ignored NO_COMPACTION)
        "What becomes of old data: delete, compact, or both; empty keeps all. A compacted topic refuses records without keys already." => ["log.cleanup.policy"];
    "unclean.leader.election.enable" boolean "false" any medium (ignored NO_REPLICATION)
        "A replica that is out of sync may become leader, losing records, if no other is left." => ["unclean.leader.election.enable"];
    "min.insync.replicas" int "1" (at_least 1) medium done
        "In-sync replicas that acks=all needs." => ["min.insync.replicas"];
    "compression.type" string "producer" (one_of "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer") medium done
        "Codec in which batches are stored; producer leaves them as they came." => ["compression.type"];
    "compression.gzip.level" int "-1" gzip_level medium done
        "Level of gzip where the broker compresses; -1 is the library's default." => ["compression.gzip.level"];
    "compression.lz4.level" int "9" (between 1 and 17) medium done
        "Level of lz4 where the broker compresses." => ["compression.lz4.level"];
    "compression.zstd.level" int "3" (between -131072 and 22) medium done
        "Level of zstd where the broker compresses." => ["compression.zstd.level"];
    "preallocate" boolean "false" any medium done
        "Give a new segment its full size at once." => ["log.preallocate"];
    "message.timestamp.type" string "CreateTime" (one_of "CreateTime" "LogAppendTime") medium done
        "Whose clock the timestamp of a record is: the producer's (CreateTime) or the broker's (LogAppendTime)." => ["log.message.timestamp.type"];
    "message.timestamp.before.max.ms" long "9223372036854775807" (at_least 0) medium done
        "A record whose CreateTime lies further back than this is refused." => ["log.message.timestamp.before.max.ms"];
    "message.timestamp.after.max.ms" long "3600000" (at_least 0) medium done
        "A record whose CreateTime lies further ahead than this is refused." => ["log.message.timestamp.after.max.ms"];
    "leader.replication.throttled.replicas" list "" throttled_replicas medium (ignored NO_QUOTAS)
        "Replicas whose replication is throttled at the leader, as partition:broker, or * for all." => [];
    "follower.replication.throttled.replicas" list "" throttled_replicas medium (ignored NO_QUOTAS)
        "Replicas whose replication is throttled at the follower, as partition:broker, or * for all." => [];
    "remote.storage.enable" boolean "false" any medium (refused NO_REMOTE_STORAGE)
        "Keep old segments in remote storage." => [];
    "local.retention.ms" long "-2" (at_least -2) medium (ignored NO_REMOTE_STORAGE)
        "Copied segments stay on this disk for so long; -2 takes retention.ms." => ["log.local.retention.ms"];
    "local.retention.bytes" long "-2" (at_least -2) medium (ignored NO_REMOTE_STORAGE)
        "Copied segments of a partition may take so much of this disk; -2 takes retention.bytes." => ["log.local.retention.bytes"];
    "remote.log.copy.disable" boolean "false" any medium (ignored NO_REMOTE_STORAGE)
        "Copy no more segments to remote storage." => [];
    "remote.copy.lag.ms" long "0" (at_least -1) medium (ignored NO_REMOTE_STORAGE)
        "A segment is copied once it is so old; 0 at once, -1 as local retention says." => ["log.remote.copy.lag.ms"];
    "remote.copy.lag.bytes" long "-1" (at_least -1) medium (ignored NO_REMOTE_STORAGE)
        "A segment is copied once so many bytes follow it; 0 at once, -1 as local retention says." => ["log.remote.copy.lag.bytes"];
    "remote.log.delete.on.disable" boolean "false" any medium (ignored NO_REMOTE_STORAGE)
        "Delete what is in remote storage when it is turned off." => [];
    "errors.deadletterqueue.group.enable" boolean "false" any medium (ignored NO_SHARE_GROUPS)
        "Share groups may write dead letters to this topic." => [];
    [internal] "internal.segment.bytes" int null any medium done
        "Segment size below the usual minimum, for tests." => [];
}
