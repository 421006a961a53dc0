//! Transactions and producer ids.

broker_keys! {
    "transaction.state.log.min.isr" int "2" (at_least 1) high read_only done
        "";
    "transaction.state.log.load.buffer.size" int "5242880" (at_least 1) high read_only done
        "";
    "transaction.state.log.replication.factor" short "3" (at_least 1) high read_only done
        "";
    "transaction.state.log.num.partitions" int "50" (at_least 1) high read_only done
        "";
    "transaction.state.log.segment.bytes" int "104857600" (at_least 1) high read_only done
        "";
    "transaction.partition.verification.enable" boolean "true" any low cluster_wide done
        "";
    "producer.id.expiration.ms" int "86400000" (at_least 1) low cluster_wide done
        "";
    [internal] "producer.id.expiration.check.interval.ms" int "600000" (at_least 1) low read_only done
        "";
    "transactional.id.expiration.ms" int "604800000" (at_least 1) high read_only done
        "";
    "transaction.max.timeout.ms" int "900000" (at_least 1) high read_only done
        "";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms" int "10000" (at_least 1) low read_only done
        "";
    "transaction.remove.expired.transaction.cleanup.interval.ms" int "3600000" (at_least 1) low read_only done
        "";
    "transaction.two.phase.commit.enable" boolean "false" any low read_only done
        "";
    "add.partitions.to.txn.retry.backoff.max.ms" int "100" (at_least 0) high read_only done
        "";
    "add.partitions.to.txn.retry.backoff.ms" int "20" (at_least 1) high read_only done
        "";
}
