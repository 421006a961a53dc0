//! Tiered storage.

broker_keys! {
    "remote.log.storage.system.enable" boolean "false" any medium read_only (refused NO_REMOTE_STORAGE)
        "Keep old segments in remote storage.";
    "remote.log.storage.manager.impl.prefix" string "rsm.config." non_empty medium read_only (ignored NO_REMOTE_STORAGE)
        "Prefix of the keys for the storage plugin.";
    "remote.log.metadata.manager.impl.prefix" string "rlmm.config." non_empty medium read_only (ignored NO_REMOTE_STORAGE)
        "Prefix of the keys for the metadata plugin.";
    "remote.log.storage.manager.class.name" string null non_empty medium read_only (ignored NO_REMOTE_STORAGE)
        "Class of the storage plugin.";
    "remote.log.storage.manager.class.path" string null any medium read_only (ignored NO_REMOTE_STORAGE)
        "Class path of the storage plugin.";
    "remote.log.metadata.manager.class.name" string "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager" non_empty medium read_only (ignored NO_REMOTE_STORAGE)
        "Class of the metadata plugin.";
    "remote.log.metadata.manager.class.path" string null any medium read_only (ignored NO_REMOTE_STORAGE)
        "Class path of the metadata plugin.";
    "remote.log.metadata.manager.listener.name" string null non_empty medium read_only (ignored NO_REMOTE_STORAGE)
        "Listener that the metadata plugin connects to.";
    "remote.log.metadata.custom.metadata.max.bytes" int "128" (at_least 0) low read_only (ignored NO_REMOTE_STORAGE)
        "Most bytes of a segment's own metadata from the plugin.";
    "remote.log.index.file.cache.total.size.bytes" long "1073741824" (at_least 1) low cluster_wide (ignored NO_REMOTE_STORAGE)
        "Disk space for indexes fetched from remote storage.";
    [internal] "remote.log.index.file.cache.ttl.ms" long "900000" (at_least -1) low read_only (ignored NO_REMOTE_STORAGE)
        "How long an unused index stays there.";
    "remote.log.manager.thread.pool.size" int "2" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Threads that manage remote segments.";
    "remote.log.manager.copier.thread.pool.size" int "10" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Threads that copy segments out.";
    "remote.log.manager.expiration.thread.pool.size" int "10" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Threads that delete remote segments.";
    "remote.log.manager.follower.thread.pool.size" int "2" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Threads that follow the leader's copies.";
    "remote.log.manager.task.interval.ms" long "30000" (at_least 1) low read_only (ignored NO_REMOTE_STORAGE)
        "How often work on remote segments is looked for.";
    [internal] "remote.log.manager.task.retry.backoff.ms" long "500" (at_least 1) low read_only (ignored NO_REMOTE_STORAGE)
        "First pause after a failure.";
    [internal] "remote.log.manager.task.retry.backoff.max.ms" long "30000" (at_least 1) low read_only (ignored NO_REMOTE_STORAGE)
        "Longest pause after a failure.";
    [internal] "remote.log.manager.task.retry.jitter" double "0.2" (fraction 0.0 to 0.5) low read_only (ignored NO_REMOTE_STORAGE)
        "Random part of the pause.";
    "remote.log.reader.threads" int "10" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Threads that read from remote storage.";
    "remote.log.reader.max.pending.tasks" int "100" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Remote reads that may wait.";
    "log.local.retention.ms" long "-2" (at_least -2) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Copied segments stay on this disk for so long; -2 takes the retention of the topic.";
    "log.local.retention.bytes" long "-2" (at_least -2) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Copied segments of a partition may take so much of this disk; -2 takes the retention of the topic.";
    "log.remote.copy.lag.ms" long "0" (at_least -1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "A segment is copied once it is so old; 0 at once, -1 as local retention says.";
    "log.remote.copy.lag.bytes" long "-1" (at_least -1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "A segment is copied once so many bytes follow it; 0 at once, -1 as local retention says.";
    "remote.log.manager.copy.max.bytes.per.second" long "9223372036854775807" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Rate of copies to remote storage.";
    "remote.log.manager.copy.quota.window.num" int "11" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Windows over which that rate is taken.";
    "remote.log.manager.copy.quota.window.size.seconds" int "1" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Length of such a window.";
    "remote.log.manager.fetch.max.bytes.per.second" long "9223372036854775807" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "Rate of reads from remote storage.";
    "remote.log.manager.fetch.quota.window.num" int "11" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Windows over which that rate is taken.";
    "remote.log.manager.fetch.quota.window.size.seconds" int "1" (at_least 1) medium read_only (ignored NO_REMOTE_STORAGE)
        "Length of such a window.";
    "remote.fetch.max.wait.ms" int "500" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "How long a fetch may wait for remote storage.";
    "remote.list.offsets.request.timeout.ms" long "30000" (at_least 1) medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "How long ListOffsets may wait for remote storage.";
    "follower.fetch.last.tiered.offset.enable" boolean "false" any medium cluster_wide (ignored NO_REMOTE_STORAGE)
        "A new follower starts where the local log of the leader begins.";
}
