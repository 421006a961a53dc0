//! Tiered storage.

broker_keys! {
    "remote.log.storage.system.enable" boolean "false" any medium read_only done
        "";
    "remote.log.storage.manager.impl.prefix" string "rsm.config." non_empty medium read_only done
        "";
    "remote.log.metadata.manager.impl.prefix" string "rlmm.config." non_empty medium read_only done
        "";
    "remote.log.storage.manager.class.name" string null non_empty medium read_only done
        "";
    "remote.log.storage.manager.class.path" string null any medium read_only done
        "";
    "remote.log.metadata.manager.class.name" string "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager" non_empty medium read_only done
        "";
    "remote.log.metadata.manager.class.path" string null any medium read_only done
        "";
    "remote.log.metadata.manager.listener.name" string null non_empty medium read_only done
        "";
    "remote.log.metadata.custom.metadata.max.bytes" int "128" (at_least 0) low read_only done
        "";
    "remote.log.index.file.cache.total.size.bytes" long "1073741824" (at_least 1) low cluster_wide done
        "";
    [internal] "remote.log.index.file.cache.ttl.ms" long "900000" (at_least -1) low read_only done
        "";
    "remote.log.manager.thread.pool.size" int "2" (at_least 1) medium read_only done
        "";
    "remote.log.manager.copier.thread.pool.size" int "10" (at_least 1) medium cluster_wide done
        "";
    "remote.log.manager.expiration.thread.pool.size" int "10" (at_least 1) medium cluster_wide done
        "";
    "remote.log.manager.follower.thread.pool.size" int "2" (at_least 1) medium cluster_wide done
        "";
    "remote.log.manager.task.interval.ms" long "30000" (at_least 1) low read_only done
        "";
    [internal] "remote.log.manager.task.retry.backoff.ms" long "500" (at_least 1) low read_only done
        "";
    [internal] "remote.log.manager.task.retry.backoff.max.ms" long "30000" (at_least 1) low read_only done
        "";
    [internal] "remote.log.manager.task.retry.jitter" double "0.2" (fraction 0.0 to 0.5) low read_only done
        "";
    "remote.log.reader.threads" int "10" (at_least 1) medium cluster_wide done
        "";
    "remote.log.reader.max.pending.tasks" int "100" (at_least 1) medium read_only done
        "";
    "log.local.retention.ms" long "-2" (at_least -2) medium cluster_wide done
        "";
    "log.local.retention.bytes" long "-2" (at_least -2) medium cluster_wide done
        "";
    "log.remote.copy.lag.ms" long "0" (at_least -1) medium cluster_wide done
        "";
    "log.remote.copy.lag.bytes" long "-1" (at_least -1) medium cluster_wide done
        "";
    "remote.log.manager.copy.max.bytes.per.second" long "9223372036854775807" (at_least 1) medium cluster_wide done
        "";
    "remote.log.manager.copy.quota.window.num" int "11" (at_least 1) medium read_only done
        "";
    "remote.log.manager.copy.quota.window.size.seconds" int "1" (at_least 1) medium read_only done
        "";
    "remote.log.manager.fetch.max.bytes.per.second" long "9223372036854775807" (at_least 1) medium cluster_wide done
        "";
    "remote.log.manager.fetch.quota.window.num" int "11" (at_least 1) medium read_only done
        "";
    "remote.log.manager.fetch.quota.window.size.seconds" int "1" (at_least 1) medium read_only done
        "";
    "remote.fetch.max.wait.ms" int "500" (at_least 1) medium cluster_wide done
        "";
    "remote.list.offsets.request.timeout.ms" long "30000" (at_least 1) medium cluster_wide done
        "";
    "follower.fetch.last.tiered.offset.enable" boolean "false" any medium cluster_wide done
        "";
}
