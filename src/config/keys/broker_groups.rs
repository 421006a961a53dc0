//! Consumer groups of every kind, and the offsets they commit.

broker_keys! {
    "group.coordinator.rebalance.protocols" list "classic,consumer,streams" (some_elements "consumer" "classic" "share" "streams") medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Group protocols that are offered; classic must be among them.";
    "group.coordinator.threads" int "4" (at_least 1) high read_only (ignored THREADS)
        "Threads of group coordinators.";
    "group.coordinator.background.threads" int "2" (at_least 1) high read_only (ignored THREADS)
        "Threads for long work of group coordinators.";
    "group.coordinator.append.linger.ms" int "-1" (at_least -1) medium read_only (ignored OWN_SIZES)
        "How long the coordinator gathers records before it writes them; -1 adapts.";
    "offsets.commit.timeout.ms" int "5000" (at_least 1) high read_only (ignored NO_REPLICATION)
        "How long a commit may wait until its write is safe.";
    "offsets.load.buffer.size" int "5242880" (at_least 1) high read_only done
        "Bytes read at a time while a coordinator loads its groups.";
    "offsets.topic.replication.factor" short "3" (at_least 1) high read_only done
        "Replicas of the offsets topic. One node can only hold one.";
    "offsets.topic.num.partitions" int "50" (at_least 1) high read_only done
        "Partitions of the offsets topic; must not change once it exists.";
    "offsets.topic.segment.bytes" int "104857600" (at_least 1) high read_only done
        "Segment size of the offsets topic, small so that compaction and loading stay quick.";
    "offsets.topic.compression.codec" int "0" any high read_only done
        "Codec of the batches that coordinators write: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.";
    "group.coordinator.cached.buffer.max.bytes" int "1048588" (at_least 524288) medium cluster_wide (ignored OWN_SIZES)
        "Largest buffer that a coordinator keeps for its next write.";
    "offset.metadata.max.bytes" int "4096" any high read_only done
        "Longest text that may go with a committed offset.";
    "offsets.retention.minutes" int "10080" (at_least 1) high read_only done
        "Offsets of a group without members are forgotten after so long.";
    "offsets.retention.check.interval.ms" long "600000" (at_least 1) high read_only done
        "How often offsets to forget are looked for.";
    "group.min.session.timeout.ms" int "6000" any medium read_only done
        "Shortest session timeout that a member of a classic group may ask for.";
    "group.max.session.timeout.ms" int "1800000" any medium read_only done
        "Longest session timeout that a member of a classic group may ask for.";
    "group.initial.rebalance.delay.ms" int "3000" any medium read_only done
        "How long the first rebalance of an empty group waits for more members.";
    "group.max.size" int "2147483647" (at_least 1) medium read_only done
        "Members that a classic group may have.";
    "group.consumer.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "A member that sends no heartbeat for so long is removed.";
    "group.consumer.min.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Shortest session timeout that a group may set.";
    "group.consumer.max.session.timeout.ms" int "60000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Longest session timeout that a group may set.";
    "group.consumer.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Time between heartbeats that members are told to keep.";
    "group.consumer.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Shortest heartbeat interval that a group may set.";
    "group.consumer.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Longest heartbeat interval that a group may set.";
    "group.consumer.max.size" int "2147483647" (at_least 1) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Members that a group may have.";
    "group.consumer.assignors" list "uniform,range" (some_elements) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Server-side assignors, the default first.";
    "group.consumer.migration.policy" string "bidirectional" (one_of_any_case "DISABLED" "DOWNGRADE" "UPGRADE" "BIDIRECTIONAL") medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Which way groups may change between the classic and the new protocol while they have members.";
    "group.consumer.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide (ignored NO_CONSUMER_PROTOCOL)
        "Shortest time between two assignments of a group.";
    "group.consumer.min.assignment.interval.ms" int "0" (at_least 0) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Lowest assignment interval that a group may set.";
    "group.consumer.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "Highest assignment interval that a group may set.";
    [internal] "group.consumer.assignor.offload.enable" boolean "true" any medium cluster_wide (ignored NO_CONSUMER_PROTOCOL)
        "Compute assignments on a background thread.";
    [internal] "group.consumer.regex.refresh.interval.ms" int "600000" (at_least 10000) medium read_only (ignored NO_CONSUMER_PROTOCOL)
        "How often subscriptions by pattern are matched against the topics.";
    "group.share.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "A member that sends no heartbeat for so long is removed.";
    "group.share.min.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Shortest session timeout that a share group may set.";
    "group.share.max.session.timeout.ms" int "60000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Longest session timeout that a share group may set.";
    "group.share.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Time between heartbeats that members are told to keep.";
    "group.share.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Shortest heartbeat interval that a share group may set.";
    "group.share.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Longest heartbeat interval that a share group may set.";
    "group.share.max.size" int "200" (between 1 and 1_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Members that a share group may have.";
    "group.share.assignors" list "simple" (some_elements) medium read_only (ignored NO_SHARE_GROUPS)
        "The assignor of share groups.";
    "group.share.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide (ignored NO_SHARE_GROUPS)
        "Shortest time between two assignments of a share group.";
    "group.share.min.assignment.interval.ms" int "0" (at_least 0) medium read_only (ignored NO_SHARE_GROUPS)
        "Lowest assignment interval that a share group may set.";
    "group.share.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only (ignored NO_SHARE_GROUPS)
        "Highest assignment interval that a share group may set.";
    [internal] "group.share.assignor.offload.enable" boolean "true" any medium cluster_wide (ignored NO_SHARE_GROUPS)
        "Compute assignments on a background thread.";
    [internal] "group.share.initialize.retry.interval.ms" int "30000" (at_least 1) low read_only (ignored NO_SHARE_GROUPS)
        "Pause before partitions of a share group are initialised again.";
    "errors.deadletterqueue.auto.create.topics.enable" boolean "false" any medium cluster_wide (ignored NO_SHARE_GROUPS)
        "Create missing dead letter topics.";
    "errors.deadletterqueue.topic.name.prefix" string "dlq." any medium cluster_wide (ignored NO_SHARE_GROUPS)
        "Prefix that dead letter topics must have.";
    "group.streams.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "A member that sends no heartbeat for so long is removed.";
    "group.streams.min.session.timeout.ms" int "45000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Shortest session timeout that a streams group may set.";
    "group.streams.max.session.timeout.ms" int "60000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Longest session timeout that a streams group may set.";
    "group.streams.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Time between heartbeats that members are told to keep.";
    "group.streams.min.heartbeat.interval.ms" int "5000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Shortest heartbeat interval that a streams group may set.";
    "group.streams.max.heartbeat.interval.ms" int "15000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Longest heartbeat interval that a streams group may set.";
    "group.streams.max.size" int "2147483647" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Members that a streams group may have.";
    "group.streams.num.standby.replicas" int "0" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Standby copies of each task's state.";
    "group.streams.max.standby.replicas" int "2" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Most standby copies that a streams group may set.";
    "group.streams.initial.rebalance.delay.ms" int "3000" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "How long the first assignment of an empty group waits for more members.";
    "group.streams.assignment.interval.ms" int "1000" (at_least 0) medium cluster_wide (ignored NO_STREAMS_GROUPS)
        "Shortest time between two assignments of a streams group.";
    "group.streams.min.assignment.interval.ms" int "0" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Lowest assignment interval that a streams group may set.";
    "group.streams.max.assignment.interval.ms" int "15000" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Highest assignment interval that a streams group may set.";
    "group.streams.assignors" list "sticky" (some_elements) medium read_only (ignored NO_STREAMS_GROUPS)
        "Server-side assignors of tasks, the default first.";
    [internal] "group.streams.assignor.offload.enable" boolean "true" any medium cluster_wide (ignored NO_STREAMS_GROUPS)
        "Compute assignments on a background thread.";
    [internal] "group.streams.task.offset.interval.ms" int "60000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "How often members report the offsets of their tasks.";
    [internal] "group.streams.min.task.offset.interval.ms" int "15000" (at_least 1) medium read_only (ignored NO_STREAMS_GROUPS)
        "Shortest report interval that a streams group may set.";
    [internal] "group.streams.num.warmup.replicas" int "2" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Extra copies that warm up before a task moves.";
    [internal] "group.streams.max.warmup.replicas" int "20" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "Most warm-up copies that a streams group may set.";
    "group.streams.rack.aware.assignment.tags" list "" (elements) low read_only (ignored NO_STREAMS_GROUPS)
        "Client tags over which standby copies are spread.";
    "group.streams.topology.description.plugin.class" class null any medium read_only (ignored NO_STREAMS_GROUPS)
        "Class that describes topologies.";
    [internal] "group.streams.acceptable.recovery.lag" long "10000" (at_least 0) medium read_only (ignored NO_STREAMS_GROUPS)
        "A copy of a task within this lag counts as caught up.";
    "group.share.delivery.count.limit" int "5" (between 2 and 10) medium read_only (ignored NO_SHARE_GROUPS)
        "How often a record is delivered before it is given up.";
    "group.share.max.delivery.count.limit" int "10" (between 5 and 25) medium read_only (ignored NO_SHARE_GROUPS)
        "Highest delivery count that a share group may set.";
    "group.share.min.delivery.count.limit" int "2" (between 2 and 5) medium read_only (ignored NO_SHARE_GROUPS)
        "Lowest delivery count that a share group may set.";
    "group.share.record.lock.duration.ms" int "30000" (between 1000 and 3_600_000) medium read_only (ignored NO_SHARE_GROUPS)
        "How long a delivered record belongs to its consumer.";
    "group.share.min.record.lock.duration.ms" int "15000" (between 1000 and 30_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Shortest lock that a share group may set.";
    "group.share.max.record.lock.duration.ms" int "60000" (between 30000 and 3_600_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Longest lock that a share group may set.";
    "group.share.partition.max.record.locks" int "2000" (between 100 and 10_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Records of one partition that may be in delivery at a time.";
    "group.share.max.partition.max.record.locks" int "4000" (between 2000 and 10_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Highest number of locks that a share group may set.";
    "group.share.min.partition.max.record.locks" int "100" (between 100 and 2_000) medium read_only (ignored NO_SHARE_GROUPS)
        "Lowest number of locks that a share group may set.";
    "share.fetch.purgatory.purge.interval.requests" int "1000" any medium read_only (ignored NO_SHARE_GROUPS)
        "Share fetches after which finished waiters are purged.";
    "group.share.max.share.sessions" int "2000" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Share sessions that a broker remembers.";
    [internal] "group.share.persister.class.name" string "org.apache.kafka.server.share.persister.DefaultStatePersister" any medium read_only (ignored NO_SHARE_GROUPS)
        "Class that stores the state of share groups.";
    [internal] "group.share.dlq.manager.class.name" string "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager" any medium read_only (ignored NO_SHARE_GROUPS)
        "Class that writes dead letters.";
    "share.coordinator.state.topic.num.partitions" int "50" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "Partitions of the share state topic.";
    "share.coordinator.state.topic.replication.factor" short "3" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "Replicas of the share state topic.";
    "share.coordinator.state.topic.min.isr" short "2" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "In-sync replicas that a write to the share state topic needs.";
    "share.coordinator.state.topic.segment.bytes" int "104857600" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "Segment size of the share state topic.";
    "share.coordinator.threads" int "1" (at_least 1) medium read_only (ignored NO_SHARE_GROUPS)
        "Threads of share coordinators.";
    "share.coordinator.snapshot.update.records.per.snapshot" int "500" (between 0 and 500) medium read_only (ignored NO_SHARE_GROUPS)
        "Updates of share state between two snapshots.";
    "share.coordinator.load.buffer.size" int "5242880" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "Bytes read at a time while share state is loaded.";
    "share.coordinator.state.topic.compression.codec" int "0" any high read_only (ignored NO_SHARE_GROUPS)
        "Codec of the share state topic.";
    "share.coordinator.append.linger.ms" int "-1" (at_least -1) medium read_only (ignored NO_SHARE_GROUPS)
        "How long the share coordinator gathers records before it writes them.";
    "share.coordinator.write.timeout.ms" int "5000" (at_least 1) high read_only (ignored NO_SHARE_GROUPS)
        "How long a write of share state may take.";
    [internal] "share.coordinator.state.topic.prune.interval.ms" int "300000" (at_least 1) low read_only (ignored NO_SHARE_GROUPS)
        "How often outdated share state is cut off.";
    [internal] "share.coordinator.cold.partition.snapshot.interval.ms" int "300000" (at_least 1) low read_only (ignored NO_SHARE_GROUPS)
        "How often share state that does not change is written again.";
    "share.coordinator.cached.buffer.max.bytes" int "1048588" (at_least 524288) medium cluster_wide (ignored NO_SHARE_GROUPS)
        "Largest buffer that a share coordinator keeps for its next write.";
}
