//! Quotas, metrics, and what fits nowhere else.

broker_keys! {
    "config.providers" list "" (elements) low cluster_wide (refused NO_CONFIG_PROVIDERS)
        "Names of classes that fetch values from elsewhere.";
    "producer.purgatory.purge.interval.requests" int "1000" any medium read_only (ignored PURGATORY)
        "Produce requests after which finished waiters are purged.";
    "delete.records.purgatory.purge.interval.requests" int "1" any medium read_only (ignored PURGATORY)
        "DeleteRecords requests after which finished waiters are purged.";
    "metrics.num.samples" int "2" (at_least 1) low read_only (ignored NO_METRICS)
        "Windows over which a metric is averaged.";
    "metrics.sample.window.ms" long "30000" (at_least 1) low read_only (ignored NO_METRICS)
        "Length of such a window.";
    "metric.reporters" list "org.apache.kafka.common.metrics.JmxReporter" (elements) low cluster_wide (ignored JVM)
        "Classes that metrics are given to.";
    "metrics.recording.level" string "INFO" any low read_only (ignored NO_METRICS)
        "How detailed metrics are.";
    "kafka.metrics.reporters" list "" (elements) low read_only (ignored JVM)
        "Classes that the older kind of metrics are given to.";
    "kafka.metrics.polling.interval.secs" int "10" (at_least 1) low read_only (ignored JVM)
        "How often those classes are called.";
    "telemetry.max.bytes" int "1048576" (at_least 1) low read_only (ignored NO_TELEMETRY)
        "Largest metrics report accepted from a client.";
    "quota.window.num" int "11" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Windows over which a client's rate is taken.";
    "alter.log.dirs.replication.quota.window.num" int "11" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Windows over which the rate of moves between directories is taken.";
    "quota.window.size.seconds" int "1" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Length of such a window for clients.";
    "alter.log.dirs.replication.quota.window.size.seconds" int "1" (at_least 1) low read_only (ignored NO_QUOTAS)
        "Length of such a window for moves between directories.";
    "client.quota.callback.class" class null any low read_only (refused NO_POLICY)
        "Class that decides about quotas.";
}
