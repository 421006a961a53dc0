//! Names and help of the numbers of the broker that are told apart by labels.

use shards::metrics::{Family, MetricKind};

use MetricKind::{Counter, Gauge, Histogram};

macro_rules! families {
    ($($constant:ident $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Family = Family {
                name: $name,
                help: $help,
                kind: $kind,
                labels: &[$($label),*],
            };
        )*

        /// All of them.
        pub const SHARD_FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    REQUESTS Counter "requests" ["api", "version"] "Requests begun, by API and version.";
    REQUEST_ERRORS Counter "request_errors" ["api", "error"] "Error codes in answers, by Kafka's name.";
    REQUEST_BYTES Counter "request_bytes" ["api"] "Bytes of requests.";
    RESPONSE_BYTES Counter "response_bytes" ["api"] "Bytes of answers.";
    REQUEST_SECONDS Histogram "request_seconds" ["api"] "From the last byte of a request until the last of its answer.";
    REQUEST_STAGE_SECONDS Histogram "request_stage_seconds" ["api", "stage"] "Where that time went: queue, decode, hop, append, read, park, handle, write.";
    OLD_VERSION_REQUESTS Counter "old_version_requests" ["api", "version", "software", "software_version", "answered"] "Requests in versions that Kafka has dropped (not answered) or announced to drop.";
    CLIENTS Gauge "clients" ["software", "software_version"] "Open connections by what the client calls itself.";
    PARKED Gauge "parked" ["core", "reason"] "Who waits without keeping the core busy, by what for.";
    PARKS Counter "parks" ["core", "reason"] "How often somebody began to wait, by what for.";
    DROPS Counter "drops" ["core", "reason"] "What was given up to protect the rest.";
    BAD_REQUESTS Counter "bad_requests" ["core", "reason"] "Frames that were no request we answer; their connections were closed.";
    DISK_OFFLINE Gauge "disk_offline" ["disk"] "1 where a log directory has failed and its partitions are offline.";
    DISK_FREE_BYTES Gauge "disk_free_bytes" ["disk"] "Free space of the filesystem of a log directory.";
    DISK_TOTAL_BYTES Gauge "disk_total_bytes" ["disk"] "Size of the filesystem of a log directory.";
    DISK_PARTITIONS Gauge "disk_partitions" ["disk"] "Partitions that lie in a log directory and are served.";
    DISK_LOG_BYTES Gauge "disk_log_bytes" ["disk"] "Bytes of their segments.";
    PARTITION_LOG_BYTES Gauge "partition_log_bytes" ["topic", "partition"] "Bytes of the segments of a partition.";
    PARTITION_SEGMENTS Gauge "partition_segments" ["topic", "partition"] "Segments of a partition.";
    PARTITION_START_OFFSET Gauge "partition_log_start_offset" ["topic", "partition"] "First offset of a partition.";
    PARTITION_END_OFFSET Gauge "partition_log_end_offset" ["topic", "partition"] "Offset that the next record of a partition gets, once written.";
    PARTITION_PRODUCERS Gauge "partition_producers" ["topic", "partition"] "Idempotent producers that a partition remembers.";
    PARTITION_APPENDED_BYTES Counter "partition_appended_bytes" ["topic", "partition"] "Bytes of batches appended to a partition.";
    PARTITION_FETCHED_BYTES Counter "partition_fetched_bytes" ["topic", "partition"] "Record bytes of a partition in answers to fetches.";
    START_PARTITIONS Gauge "start_partitions" [] "Partitions that the start of the broker has to open.";
    READY Gauge "ready" [] "1 once clients are served.";
    RESIDENT_BYTES Gauge "process_resident_bytes" [] "Memory of the process that is resident.";
    OPEN_DESCRIPTORS Gauge "process_open_descriptors" [] "Open files and sockets of the process.";
    CPU_SECONDS Counter "process_cpu_seconds" [] "CPU time of the process.";
}
