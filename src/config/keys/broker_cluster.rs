//! Who this node is, the controller quorum, and replication between brokers.

broker_keys! {
    "broker.id" int "-1" any high read_only done
        "The older name of node.id. Both must agree if both are set.";
    "num.replica.alter.log.dirs.threads" int null any high read_only (ignored NO_DIR_MOVES)
        "Threads that copy replicas from one log directory to another.";
    "broker.rack" string null any medium read_only done
        "Rack, zone or other place of this broker: told to clients, and used to spread replicas.";
    "controlled.shutdown.enable" boolean "true" any medium read_only (ignored NO_REPLICATION)
        "Hand leadership over before stopping.";
    [internal] "unstable.api.versions.enable" boolean "false" any high read_only (refused NO_UNSTABLE)
        "Offer API versions that may still change.";
    [internal] "unstable.feature.versions.enable" boolean "false" any high read_only (refused NO_UNSTABLE)
        "Allow feature levels that may still change.";
    "process.roles" list required (some_elements "broker" "controller") high read_only done
        "What the process is: broker, controller, or both. Only both in one process is supported yet.";
    "node.id" int required (at_least 0) high read_only done
        "Id of this node, unique in the cluster. It must be the one with which the log directories were formatted.";
    "initial.broker.registration.timeout.ms" int "60000" any medium read_only (ignored NO_QUORUM)
        "How long a starting broker tries to register with the controller before it gives up.";
    "broker.heartbeat.interval.ms" int "2000" any medium read_only (ignored NO_QUORUM)
        "Time between heartbeats of a broker to the controller.";
    "broker.session.timeout.ms" int "9000" any medium read_only (ignored NO_QUORUM)
        "A broker that sends no heartbeat for so long is fenced.";
    "controller.listener.names" list required (some_elements) high read_only done
        "Names of the listeners that the controller uses, out of listeners. Clients are never told of them.";
    [internal] "controller.performance.sample.period.ms" long "60000" (at_least 100) medium read_only (ignored NO_METRICS)
        "Period over which controller events are summed up in the log.";
    [internal] "controller.performance.always.log.threshold.ms" long "2000" (at_least 0) medium read_only (ignored NO_METRICS)
        "A controller event that takes longer is logged.";
    [internal] "server.max.startup.time.ms" long "9223372036854775807" (at_least 0) medium read_only (ignored NO_QUORUM)
        "The process ends if it has not started after so long.";
    "metadata.log.max.record.bytes.between.snapshots" long "20971520" (at_least 1) high read_only done
        "A new snapshot of the metadata is written after so many bytes of records.";
    "metadata.log.max.snapshot.interval.ms" long "3600000" (at_least 0) high read_only done
        "A new snapshot of the metadata is written after so much time if there are new records; 0 turns that off.";
    "metadata.log.dir" string null any high read_only done
        "Directory of the metadata log; by default the first of log.dirs.";
    "metadata.log.segment.bytes" int "1073741824" (at_least 8388608) high read_only done
        "Largest segment of the metadata log.";
    "metadata.log.segment.ms" long "604800000" any high read_only done
        "A segment of the metadata log is closed after so much time.";
    "metadata.max.retention.bytes" long "104857600" any high read_only done
        "Metadata log and snapshots together may take so much before old ones go; negative means no limit.";
    "metadata.max.retention.ms" long "604800000" any high read_only done
        "Old snapshots and metadata segments are kept for so long; negative means for ever.";
    "metadata.max.idle.interval.ms" int "500" (at_least 0) low read_only (ignored NO_QUORUM)
        "Interval of the empty records that an idle active controller writes for its followers; a lone controller writes none.";
    [internal] "internal.metadata.log.segment.bytes" int null any low read_only (ignored OWN_SIZES)
        "Segment size of the metadata log below the usual minimum, for tests.";
    [internal] "internal.metadata.max.batch.size.in.bytes" int "8388608" any low read_only (ignored OWN_SIZES)
        "Largest batch in the metadata log.";
    [internal] "internal.metadata.delete.delay.millis" long "60000" any low read_only (ignored OWN_SIZES)
        "Delay before removed files of the metadata log are deleted.";
    "controller.socket.timeout.ms" int "30000" any medium read_only (ignored NO_QUORUM)
        "How long a request to the controller may take.";
    "replica.lag.time.max.ms" long "30000" any high read_only (ignored NO_REPLICATION)
        "A follower that has not caught up for so long leaves the in-sync set.";
    "replica.socket.timeout.ms" int "30000" any high read_only (ignored NO_REPLICATION)
        "How long a fetch between brokers may take.";
    "replica.socket.receive.buffer.bytes" int "65536" any high read_only (ignored NO_REPLICATION)
        "Receive buffer of connections to leaders.";
    "replica.fetch.max.bytes" int "1048576" (at_least 0) medium read_only (ignored NO_REPLICATION)
        "Bytes that a follower asks for from each partition.";
    "replica.fetch.wait.max.ms" int "500" any high read_only (ignored NO_REPLICATION)
        "How long a leader may hold a follower's fetch while there is nothing new.";
    "replica.fetch.backoff.ms" int "1000" (at_least 0) medium read_only (ignored NO_REPLICATION)
        "Pause before a partition is fetched again after an error.";
    "replica.fetch.min.bytes" int "1" any high read_only (ignored NO_REPLICATION)
        "Bytes for which a leader holds a follower's fetch.";
    "replica.fetch.response.max.bytes" int "10485760" (at_least 0) medium read_only (ignored NO_REPLICATION)
        "Most bytes that a follower asks for in one fetch.";
    "num.replica.fetchers" int "1" (at_least 1) high cluster_wide (ignored NO_REPLICATION)
        "Fetchers for each leader that a follower copies from.";
    "replica.high.watermark.checkpoint.interval.ms" long "5000" any high read_only (ignored ONE_CHECKPOINT)
        "How often high watermarks are written to disk.";
    "auto.leader.rebalance.enable" boolean "true" any high read_only (ignored NO_REPLICATION)
        "Give leadership back to preferred replicas.";
    "leader.imbalance.check.interval.seconds" long "300" (at_least 1) high read_only (ignored NO_REPLICATION)
        "How often the controller looks for partitions not led by their preferred replica.";
    [internal] "unclean.leader.election.interval.ms" long "300000" (at_least 1) medium read_only (ignored NO_REPLICATION)
        "How often the controller looks for partitions that need an unclean election.";
    "replica.selector.class" string null any medium read_only (ignored NO_REPLICATION)
        "Class that chooses a replica near the consumer.";
    "controller.quorum.voters" list "" quorum_voters high read_only done
        "The controllers of a static quorum, as id@host:port. Leave it out for a dynamic quorum (KIP-853).";
    "controller.quorum.bootstrap.servers" list "" bootstrap_servers high read_only done
        "Addresses at which controllers of a dynamic quorum are found.";
    "controller.quorum.election.timeout.ms" int "1000" (at_least 0) high read_only (ignored NO_QUORUM)
        "A controller that hears of no leader for so long starts an election.";
    "controller.quorum.fetch.timeout.ms" int "2000" (at_least 0) high read_only (ignored NO_QUORUM)
        "A follower that cannot fetch from its leader for so long becomes a candidate; a leader that is not fetched from resigns.";
    "controller.quorum.election.backoff.max.ms" int "1000" (at_least 0) high read_only (ignored NO_QUORUM)
        "Longest random pause before a failed election is tried again.";
    "controller.quorum.append.linger.ms" int "25" (at_least 0) medium read_only (ignored NO_QUORUM)
        "How long the quorum leader gathers records before it writes them.";
    "controller.quorum.request.timeout.ms" int "2000" (at_least 0) medium read_only (ignored NO_QUORUM)
        "How long a request between controllers may take.";
    "controller.quorum.retry.backoff.ms" int "20" (at_least 0) low read_only (ignored NO_QUORUM)
        "Pause before a failed request between controllers is sent again.";
    "controller.quorum.auto.join.enable" boolean "false" any low read_only (ignored NO_QUORUM)
        "A controller that is no voter yet adds itself to the quorum.";
    "controller.quorum.fetch.snapshot.max.bytes" int "1048576" (at_least 1) low read_only (ignored NO_QUORUM)
        "Most bytes of a snapshot in one answer.";
    "controller.quorum.fetch.max.bytes" int "1048576" (at_least 1) low read_only (ignored NO_QUORUM)
        "Most bytes of the metadata log in one answer.";
    "replication.quota.window.num" int "11" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Windows over which the replication rate is taken.";
    "controller.quota.window.num" int "11" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Windows over which the rate of topic changes is taken.";
    "replication.quota.window.size.seconds" int "1" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Length of such a window for replication.";
    "controller.quota.window.size.seconds" int "1" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Length of such a window for topic changes.";
}
