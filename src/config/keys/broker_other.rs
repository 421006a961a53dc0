//! Quotas, metrics, and what fits nowhere else.

broker_keys! {
    "config.providers" list "" (elements) low cluster_wide done
        "";
    "producer.purgatory.purge.interval.requests" int "1000" any medium read_only done
        "";
    "delete.records.purgatory.purge.interval.requests" int "1" any medium read_only done
        "";
    "metrics.num.samples" int "2" (at_least 1) low read_only done
        "";
    "metrics.sample.window.ms" long "30000" (at_least 1) low read_only done
        "";
    "metric.reporters" list "org.apache.kafka.common.metrics.JmxReporter" (elements) low cluster_wide done
        "";
    "metrics.recording.level" string "INFO" any low read_only done
        "";
    "kafka.metrics.reporters" list "" (elements) low read_only done
        "";
    "kafka.metrics.polling.interval.secs" int "10" (at_least 1) low read_only done
        "";
    "telemetry.max.bytes" int "1048576" (at_least 1) low read_only done
        "";
    "quota.window.num" int "11" (at_least 1) low read_only done
        "";
    "alter.log.dirs.replication.quota.window.num" int "11" (at_least 1) low read_only done
        "";
    "quota.window.size.seconds" int "1" (at_least 1) low read_only done
        "";
    "alter.log.dirs.replication.quota.window.size.seconds" int "1" (at_least 1) low read_only done
        "";
    "client.quota.callback.class" class null any low read_only done
        "";
}
