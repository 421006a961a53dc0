//! Who this node is, the controller quorum, and replication between brokers.

broker_keys! {
    "broker.id" int "-1" any high read_only done
        "";
    "num.replica.alter.log.dirs.threads" int null any high read_only done
        "";
    "broker.rack" string null any medium read_only done
        "";
    "controlled.shutdown.enable" boolean "true" any medium read_only done
        "";
    [internal] "unstable.api.versions.enable" boolean "false" any high read_only done
        "";
    [internal] "unstable.feature.versions.enable" boolean "false" any high read_only done
        "";
    "process.roles" list required (some_elements "broker" "controller") high read_only done
        "";
    "node.id" int required (at_least 0) high read_only done
        "";
    "initial.broker.registration.timeout.ms" int "60000" any medium read_only done
        "";
    "broker.heartbeat.interval.ms" int "2000" any medium read_only done
        "";
    "broker.session.timeout.ms" int "9000" any medium read_only done
        "";
    "controller.listener.names" list required (some_elements) high read_only done
        "";
    [internal] "controller.performance.sample.period.ms" long "60000" (at_least 100) medium read_only done
        "";
    [internal] "controller.performance.always.log.threshold.ms" long "2000" (at_least 0) medium read_only done
        "";
    [internal] "server.max.startup.time.ms" long "9223372036854775807" (at_least 0) medium read_only done
        "";
    "metadata.log.max.record.bytes.between.snapshots" long "20971520" (at_least 1) high read_only done
        "";
    "metadata.log.max.snapshot.interval.ms" long "3600000" (at_least 0) high read_only done
        "";
    "metadata.log.dir" string null any high read_only done
        "";
    "metadata.log.segment.bytes" int "1073741824" (at_least 8388608) high read_only done
        "";
    "metadata.log.segment.ms" long "604800000" any high read_only done
        "";
    "metadata.max.retention.bytes" long "104857600" any high read_only done
        "";
    "metadata.max.retention.ms" long "604800000" any high read_only done
        "";
    "metadata.max.idle.interval.ms" int "500" (at_least 0) low read_only done
        "";
    [internal] "internal.metadata.log.segment.bytes" int null any low read_only done
        "";
    [internal] "internal.metadata.max.batch.size.in.bytes" int "8388608" any low read_only done
        "";
    [internal] "internal.metadata.delete.delay.millis" long "60000" any low read_only done
        "";
    "controller.socket.timeout.ms" int "30000" any medium read_only done
        "";
    "replica.lag.time.max.ms" long "30000" any high read_only done
        "";
    "replica.socket.timeout.ms" int "30000" any high read_only done
        "";
    "replica.socket.receive.buffer.bytes" int "65536" any high read_only done
        "";
    "replica.fetch.max.bytes" int "1048576" (at_least 0) medium read_only done
        "";
    "replica.fetch.wait.max.ms" int "500" any high read_only done
        "";
    "replica.fetch.backoff.ms" int "1000" (at_least 0) medium read_only done
        "";
    "replica.fetch.min.bytes" int "1" any high read_only done
        "";
    "replica.fetch.response.max.bytes" int "10485760" (at_least 0) medium read_only done
        "";
    "num.replica.fetchers" int "1" (at_least 1) high cluster_wide done
        "";
    "replica.high.watermark.checkpoint.interval.ms" long "5000" any high read_only done
        "";
    "auto.leader.rebalance.enable" boolean "true" any high read_only done
        "";
    "leader.imbalance.check.interval.seconds" long "300" (at_least 1) high read_only done
        "";
    [internal] "unclean.leader.election.interval.ms" long "300000" (at_least 1) medium read_only done
        "";
    "replica.selector.class" string null any medium read_only done
        "";
    "controller.quorum.voters" list "" quorum_voters high read_only done
        "";
    "controller.quorum.bootstrap.servers" list "" bootstrap_servers high read_only done
        "";
    "controller.quorum.election.timeout.ms" int "1000" (at_least 0) high read_only done
        "";
    "controller.quorum.fetch.timeout.ms" int "2000" (at_least 0) high read_only done
        "";
    "controller.quorum.election.backoff.max.ms" int "1000" (at_least 0) high read_only done
        "";
    "controller.quorum.append.linger.ms" int "25" (at_least 0) medium read_only done
        "";
    "controller.quorum.request.timeout.ms" int "2000" (at_least 0) medium read_only done
        "";
    "controller.quorum.retry.backoff.ms" int "20" (at_least 0) low read_only done
        "";
    "controller.quorum.auto.join.enable" boolean "false" any low read_only done
        "";
    "controller.quorum.fetch.snapshot.max.bytes" int "1048576" (at_least 1) low read_only done
        "";
    "controller.quorum.fetch.max.bytes" int "1048576" (at_least 1) low read_only done
        "";
    "replication.quota.window.num" int "11" (at_least 1) low read_only done
        "";
    "controller.quota.window.num" int "11" (at_least 1) low read_only done
        "";
    "replication.quota.window.size.seconds" int "1" (at_least 1) low read_only done
        "";
    "controller.quota.window.size.seconds" int "1" (at_least 1) low read_only done
        "";
}
