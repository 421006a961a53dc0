//! Consumer groups of every kind, and the offsets they commit.

broker_keys! {
    "group.coordinator.rebalance.protocols" list "classic,consumer,streams" (some_elements "consumer" "classic" "share" "streams") medium read_only done
        "";
    "group.coordinator.threads" int "4" (at_least 1) high read_only done
        "";
    "group.coordinator.background.threads" int "2" (at_least 1) high read_only done
        "";
    "group.coordinator.append.linger.ms" int "-1" (at_least -1) medium read_only done
        "";
    "offsets.commit.timeout.ms" int "5000" (at_least 1) high read_only done
        "";
    "offsets.load.buffer.size" int "5242880" (at_least 1) high read_only done
        "";
    "offsets.topic.replication.factor" short "3" (at_least 1) high read_only done
        "";
    "offsets.topic.num.partitions" int "50" (at_least 1) high read_only done
        "";
    "offsets.topic.segment.bytes" int "104857600" (at_least 1) high read_only done
        "";
    "offsets.topic.compression.codec" int "0" any high read_only done
        "";
    "group.coordinator.cached.buffer.max.bytes" int "1048588" (at_least 524288) medium cluster_wide done
        "";
    "offset.metadata.max.bytes" int "4096" any high read_only done
        "";
    "offsets.retention.minutes" int "10080" (at_least 1) high read_only done
        "";
    "offsets.retention.check.interval.ms" long "600000" (at_least 1) high read_only done
        "";
    "group.min.session.timeout.ms" int "6000" any medium read_only done
        "";
    "group.max.session.timeout.ms" int "1800000" any medium read_only done
        "";
    "group.initial.rebalance.delay.ms" int "3000" any medium read_only done
        "";
    "group.max.size" int "2147483647" (at_least 1) medium read_only done
        "";
    "group.consumer.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.consumer.min.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.consumer.max.session.timeout.ms" int "60000" (at_least 1) medium read_only done
        "";
    "group.consumer.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.consumer.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.consumer.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only done
        "";
    "group.consumer.max.size" int "2147483647" (at_least 1) medium read_only done
        "";
    "group.consumer.assignors" list "uniform,range" (some_elements) medium read_only done
        "";
    "group.consumer.migration.policy" string "bidirectional" (one_of_any_case "DISABLED" "DOWNGRADE" "UPGRADE" "BIDIRECTIONAL") medium read_only done
        "";
    "group.consumer.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide done
        "";
    "group.consumer.min.assignment.interval.ms" int "0" (at_least 0) medium read_only done
        "";
    "group.consumer.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only done
        "";
    [internal] "group.consumer.assignor.offload.enable" boolean "true" any medium cluster_wide done
        "";
    [internal] "group.consumer.regex.refresh.interval.ms" int "600000" (at_least 10000) medium read_only done
        "";
    "group.share.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.share.min.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.share.max.session.timeout.ms" int "60000" (at_least 1) medium read_only done
        "";
    "group.share.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.share.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.share.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only done
        "";
    "group.share.max.size" int "200" (between 1 and 1_000) medium read_only done
        "";
    "group.share.assignors" list "simple" (some_elements) medium read_only done
        "";
    "group.share.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide done
        "";
    "group.share.min.assignment.interval.ms" int "0" (at_least 0) medium read_only done
        "";
    "group.share.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only done
        "";
    [internal] "group.share.assignor.offload.enable" boolean "true" any medium cluster_wide done
        "";
    [internal] "group.share.initialize.retry.interval.ms" int "30000" (at_least 1) low read_only done
        "";
    "errors.deadletterqueue.auto.create.topics.enable" boolean "false" any medium cluster_wide done
        "";
    "errors.deadletterqueue.topic.name.prefix" string "dlq." any medium cluster_wide done
        "";
    "group.streams.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.streams.min.session.timeout.ms" int "45000" (at_least 1) medium read_only done
        "";
    "group.streams.max.session.timeout.ms" int "60000" (at_least 1) medium read_only done
        "";
    "group.streams.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.streams.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only done
        "";
    "group.streams.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only done
        "";
    "group.streams.max.size" int "2147483647" (at_least 1) medium read_only done
        "";
    "group.streams.num.standby.replicas" int "0" (at_least 0) medium read_only done
        "";
    "group.streams.max.standby.replicas" int "2" (at_least 0) medium read_only done
        "";
    "group.streams.initial.rebalance.delay.ms" int "3000" (at_least 0) medium read_only done
        "";
    "group.streams.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide done
        "";
    "group.streams.min.assignment.interval.ms" int "0" (at_least 0) medium read_only done
        "";
    "group.streams.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only done
        "";
    "group.streams.assignors" list "sticky" (some_elements) medium read_only done
        "";
    [internal] "group.streams.assignor.offload.enable" boolean "true" any medium cluster_wide done
        "";
    [internal] "group.streams.task.offset.interval.ms" int "60000" (at_least 1) medium read_only done
        "";
    [internal] "group.streams.min.task.offset.interval.ms" int "15000" (at_least 1) medium read_only done
        "";
    [internal] "group.streams.num.warmup.replicas" int "2" (at_least 0) medium read_only done
        "";
    [internal] "group.streams.max.warmup.replicas" int "20" (at_least 0) medium read_only done
        "";
    "group.streams.rack.aware.assignment.tags" list "" (elements) low read_only done
        "";
    "group.streams.topology.description.plugin.class" class null any medium read_only done
        "";
    [internal] "group.streams.acceptable.recovery.lag" long "10000" (at_least 0) medium read_only done
        "";
    "group.share.delivery.count.limit" int "5" (between 2 and 10) medium read_only done
        "";
    "group.share.max.delivery.count.limit" int "10" (between 5 and 25) medium read_only done
        "";
    "group.share.min.delivery.count.limit" int "2" (between 2 and 5) medium read_only done
        "";
    "group.share.record.lock.duration.ms" int "30000" (between 1000 and 3_600_000) medium read_only done
        "";
    "group.share.min.record.lock.duration.ms" int "15000" (between 1000 and 30_000) medium read_only done
        "";
    "group.share.max.record.lock.duration.ms" int "60000" (between 30000 and 3_600_000) medium read_only done
        "";
    "group.share.partition.max.record.locks" int "2000" (between 100 and 10_000) medium read_only done
        "";
    "group.share.max.partition.max.record.locks" int "4000" (between 2000 and 10_000) medium read_only done
        "";
    "group.share.min.partition.max.record.locks" int "100" (between 100 and 2_000) medium read_only done
        "";
    "share.fetch.purgatory.purge.interval.requests" int "1000" any medium read_only done
        "";
    "group.share.max.share.sessions" int "2000" (at_least 1) medium read_only done
        "";
    [internal] "group.share.persister.class.name" string "org.apache.kafka.server.share.persister.DefaultStatePersister" any medium read_only done
        "";
    [internal] "group.share.dlq.manager.class.name" string "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager" any medium read_only done
        "";
    "share.coordinator.state.topic.num.partitions" int "50" (at_least 1) high read_only done
        "";
    "share.coordinator.state.topic.replication.factor" short "3" (at_least 1) high read_only done
        "";
    "share.coordinator.state.topic.min.isr" short "2" (at_least 1) high read_only done
        "";
    "share.coordinator.state.topic.segment.bytes" int "104857600" (at_least 1) high read_only done
        "";
    "share.coordinator.threads" int "1" (at_least 1) medium read_only done
        "";
    "share.coordinator.snapshot.update.records.per.snapshot" int "500" (between 0 and 500) medium read_only done
        "";
    "share.coordinator.load.buffer.size" int "5242880" (at_least 1) high read_only done
        "";
    "share.coordinator.state.topic.compression.codec" int "0" any high read_only done
        "";
    "share.coordinator.append.linger.ms" int "-1" (at_least -1) medium read_only done
        "";
    "share.coordinator.write.timeout.ms" int "5000" (at_least 1) high read_only done
        "";
    [internal] "share.coordinator.state.topic.prune.interval.ms" int "300000" (at_least 1) low read_only done
        "";
    [internal] "share.coordinator.cold.partition.snapshot.interval.ms" int "300000" (at_least 1) low read_only done
        "";
    "share.coordinator.cached.buffer.max.bytes" int "1048588" (at_least 524288) medium cluster_wide done
        "";
}
