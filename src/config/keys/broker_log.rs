//! The log: directories, segments, flushing, retention, and how topics come to be.

broker_keys! {
    "message.max.bytes" int "1048588" (at_least 0) high cluster_wide done
        "Largest record batch that is accepted, as compressed by the producer.";
    "max.decompressed.message.bytes" int "2147483639" (between 1 and 2_147_483_639) medium cluster_wide (ignored ONE_DECOMPRESSED_BOUND)
        "Largest record after decompression.";
    "delete.topic.enable" boolean "true" any high read_only done
        "Topics may be deleted.";
    "compression.type" string "producer" (one_of "uncompressed" "zstd" "lz4" "snappy" "gzip" "producer") high cluster_wide done
        "Codec in which batches are stored; producer leaves them as they came.";
    "compression.gzip.level" int "-1" gzip_level medium cluster_wide done
        "Level of gzip where the broker compresses; -1 is the library's default.";
    "compression.lz4.level" int "9" (between 1 and 17) medium cluster_wide done
        "Level of lz4 where the broker compresses.";
    "compression.zstd.level" int "3" (between -131072 and 22) medium cluster_wide done
        "Level of zstd where the broker compresses.";
    "default.replication.factor" int "1" any medium read_only done
        "Replicas of a topic that is created without a count, or by itself. One node can only hold one.";
    "unclean.leader.election.enable" boolean "false" any high cluster_wide (ignored NO_REPLICATION)
        "A replica that is out of sync may become leader, losing records, if no other is left.";
    "log.cleaner.threads" int "1" (at_least 0) medium cluster_wide (ignored NO_COMPACTION)
        "Threads that compact logs.";
    "log.cleaner.io.max.bytes.per.second" double "1.7976931348623157E308" any medium cluster_wide (ignored NO_COMPACTION)
        "Reads and writes of compaction are held below this rate.";
    "log.cleaner.dedupe.buffer.size" long "134217728" any medium cluster_wide (ignored NO_COMPACTION)
        "Memory for the keys of a log while it is compacted.";
    "log.cleaner.io.buffer.size" int "524288" (at_least 0) medium cluster_wide (ignored NO_COMPACTION)
        "Memory of compaction for reading and writing.";
    "log.cleaner.io.buffer.load.factor" double "0.9" any medium cluster_wide (ignored NO_COMPACTION)
        "How full the table of keys may get.";
    "log.cleaner.backoff.ms" long "15000" (at_least 0) medium cluster_wide (ignored NO_COMPACTION)
        "Pause of compaction when there is nothing to do.";
    "log.cleaner.min.cleanable.ratio" double "0.5" (fraction 0.0 to 1.0) medium cluster_wide (ignored NO_COMPACTION)
        "A log is compacted once this part of it is new.";
    "log.cleaner.enable" boolean "true" any medium read_only (ignored NO_COMPACTION)
        "Compact logs at all.";
    "log.cleaner.delete.retention.ms" long "86400000" (at_least 0) medium cluster_wide (ignored NO_COMPACTION)
        "How long the mark of a deleted key is kept.";
    "log.cleaner.min.compaction.lag.ms" long "0" (at_least 0) medium cluster_wide (ignored NO_COMPACTION)
        "A record stays uncompacted at least so long.";
    "log.cleaner.max.compaction.lag.ms" long "9223372036854775807" (at_least 1) medium cluster_wide (ignored NO_COMPACTION)
        "A record stays uncompacted at most so long.";
    "num.partitions" int "1" (at_least 1) medium read_only done
        "Partitions of a topic that is created without a count, or by itself.";
    "log.dir" list "/tmp/kafka-logs" (some_elements) high read_only done
        "Data directories, if log.dirs is not set.";
    "log.dirs" list null null_or_some_elements high read_only done
        "Data directories, comma separated. New partitions go to the one with the fewest.";
    "cordoned.log.dirs" list "" null_or_elements medium per_broker (ignored NO_DIR_MOVES)
        "Directories that get no new partitions.";
    "log.segment.bytes" int "1073741824" (at_least 1048576) high cluster_wide done
        "Largest segment of a log.";
    "log.roll.ms" long null any high cluster_wide done
        "A segment is closed after so much time even if it is small.";
    "log.roll.hours" int "168" (at_least 1) high read_only done
        "The same in hours, if log.roll.ms is not set.";
    "log.roll.jitter.ms" long null any high cluster_wide done
        "Up to so much is taken off the time after which a segment is closed, at random.";
    "log.roll.jitter.hours" int "0" (at_least 0) high read_only done
        "The same in hours, if log.roll.jitter.ms is not set.";
    "log.retention.ms" long null any high cluster_wide (ignored NO_RETENTION)
        "Segments older than this are deleted; -1 keeps them for ever.";
    "log.retention.minutes" int null any high read_only (ignored NO_RETENTION)
        "The same in minutes, if log.retention.ms is not set.";
    "log.retention.hours" int "168" any high read_only (ignored NO_RETENTION)
        "The same in hours, if neither of the others is set.";
    "log.retention.bytes" long "-1" any high cluster_wide (ignored NO_RETENTION)
        "A partition above this size loses its oldest segments; -1 means no limit.";
    "log.retention.check.interval.ms" long "300000" (at_least 1) medium read_only (ignored NO_RETENTION)
        "How often segments to delete are looked for.";
    "log.cleanup.policy" list "delete" (elements "compact" "delete") medium cluster_wide (ignored NO_COMPACTION)
        "What becomes of old data: delete, compact, or both. A compacted topic refuses records without keys already.";
    "log.index.size.max.bytes" int "10485760" (at_least 4) medium cluster_wide done
        "Largest offset index of a segment.";
    "log.index.interval.bytes" int "4096" (at_least 0) medium cluster_wide done
        "The offset index gets an entry after so many bytes of records.";
    "log.flush.interval.messages" long "9223372036854775807" (at_least 1) high cluster_wide done
        "A write is durable after so many records; 1 makes every acknowledged record survive power loss.";
    "log.segment.delete.delay.ms" long "60000" (at_least 0) high cluster_wide done
        "Delay before the files of a removed segment or partition are deleted.";
    "log.flush.scheduler.interval.ms" long "9223372036854775807" any high read_only done
        "How often logs that must become durable by time are looked for.";
    "log.flush.interval.ms" long null any high cluster_wide done
        "What was written is durable after so much time.";
    "log.flush.offset.checkpoint.interval.ms" int "60000" (at_least 0) high read_only done
        "How often it is noted up to where logs are durable; recovery starts there.";
    "log.flush.start.offset.checkpoint.interval.ms" int "60000" (at_least 0) high read_only (ignored ONE_CHECKPOINT)
        "How often the start offsets of logs are noted.";
    "log.preallocate" boolean "false" any medium cluster_wide done
        "Give a new segment its full size at once.";
    "num.recovery.threads.per.data.dir" int "2" (at_least 1) high cluster_wide (ignored THREADS)
        "How many logs of one directory are recovered at a time.";
    "auto.create.topics.enable" boolean "true" any high read_only done
        "A topic that a client asks for is created if it does not exist.";
    "min.insync.replicas" int "1" (at_least 1) high cluster_wide done
        "In-sync replicas that acks=all needs.";
    "log.message.timestamp.type" string "CreateTime" (one_of "CreateTime" "LogAppendTime") medium cluster_wide done
        "Whose clock the timestamp of a record is: the producer's (CreateTime) or the broker's (LogAppendTime).";
    "log.message.timestamp.before.max.ms" long "9223372036854775807" (at_least 0) medium cluster_wide done
        "A record whose CreateTime lies further back than this is refused.";
    "log.message.timestamp.after.max.ms" long "3600000" (at_least 0) medium cluster_wide done
        "A record whose CreateTime lies further ahead than this is refused.";
    "create.topic.policy.class.name" class null any low read_only (refused NO_POLICY)
        "Class that may refuse new topics.";
    "alter.config.policy.class.name" class null any low read_only (refused NO_POLICY)
        "Class that may refuse changes of settings.";
    "log.dir.failure.timeout.ms" long "30000" (at_least 1) low read_only (ignored NO_REPLICATION)
        "The broker stops if the controller does not hear of a failed directory in this time.";
    [internal] "log.initial.task.delay.ms" long "30000" (at_least 0) low read_only (ignored NO_RETENTION)
        "Pause before the first look at retention after a start.";
}
