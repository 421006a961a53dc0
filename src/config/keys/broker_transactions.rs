//! Transactions and producer ids.

broker_keys! {
    "transaction.state.log.min.isr" int "2" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "In-sync replicas that a write to the transaction topic needs.";
    "transaction.state.log.load.buffer.size" int "5242880" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Bytes read at a time while transaction state is loaded.";
    "transaction.state.log.replication.factor" short "3" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Replicas of the transaction topic.";
    "transaction.state.log.num.partitions" int "50" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Partitions of the transaction topic.";
    "transaction.state.log.segment.bytes" int "104857600" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Segment size of the transaction topic.";
    "transaction.partition.verification.enable" boolean "true" any low cluster_wide (ignored NO_TRANSACTIONS)
        "Check that a partition was added to the transaction before it is written (KIP-890).";
    "producer.id.expiration.ms" int "86400000" (at_least 1) low cluster_wide done
        "The sequence numbers of a producer that is silent for so long are forgotten.";
    [internal] "producer.id.expiration.check.interval.ms" int "600000" (at_least 1) low read_only done
        "How often such producers are looked for.";
    "transactional.id.expiration.ms" int "604800000" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "A transactional id that is not used for so long is forgotten.";
    "transaction.max.timeout.ms" int "900000" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Longest transaction timeout that a producer may ask for.";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms" int "10000" (at_least 1) low read_only (ignored NO_TRANSACTIONS)
        "How often transactions past their timeout are aborted.";
    "transaction.remove.expired.transaction.cleanup.interval.ms" int "3600000" (at_least 1) low read_only (ignored NO_TRANSACTIONS)
        "How often unused transactional ids are looked for.";
    "transaction.two.phase.commit.enable" boolean "false" any low read_only (ignored NO_TRANSACTIONS)
        "Allow transactions without a timeout, ended by an outside coordinator (KIP-939).";
    "add.partitions.to.txn.retry.backoff.max.ms" int "100" (at_least 0) high read_only (ignored NO_TRANSACTIONS)
        "How long the broker retries by itself to add a partition to a transaction.";
    "add.partitions.to.txn.retry.backoff.ms" int "20" (at_least 1) high read_only (ignored NO_TRANSACTIONS)
        "Pause between such retries.";
}
