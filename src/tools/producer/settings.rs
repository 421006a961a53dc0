//! The producer's keys, with Kafka's names and defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::records::Compression;

use crate::tools::Failure;
use crate::tools::properties::Typed;

/// What `ProducerConfig` says, as far as it has effect here.
#[derive(Clone, Debug)]
pub(in crate::tools) struct ProducerSettings {
    /// -1 for all.
    pub(super) acks: i16,
    pub(super) idempotent: bool,
    pub(super) compression: Compression,
    pub(super) batch_size: usize,
    pub(super) linger: Duration,
    pub(super) buffer_memory: usize,
    pub(super) max_request_size: usize,
    pub(super) max_in_flight: usize,
    pub(super) retries: u32,
    pub(super) retry_backoff: Duration,
    pub(super) request_timeout: Duration,
    pub(super) delivery_timeout: Duration,
    pub(super) max_block: Duration,
    pub(super) metadata_max_age: Duration,
}

/// A broker tells late batches from those sent twice for so many.
const IN_FLIGHT_MAX: usize = 5;

impl ProducerSettings {
    /// # Errors
    /// A value that cannot be, or keys that contradict each other.
    pub(in crate::tools) fn new(
        properties: &BTreeMap<String, String>,
    ) -> Result<ProducerSettings, Failure> {
        let typed = Typed(properties);
        if properties.contains_key("transactional.id") {
            return Err(Failure::new(
                "transactional.id: transactions are not supported by this tool",
            ));
        }
        let acks = match typed.text("acks", "all") {
            "all" | "-1" => -1,
            "0" => 0,
            "1" => 1,
            other => {
                return Err(Failure::new(format!(
                    "acks={other}: it must be all, -1, 0 or 1"
                )));
            }
        };
        let name = typed.text("compression.type", "none");
        let compression = Compression::from_name(name).ok_or_else(|| {
            Failure::new(format!(
                "compression.type={name}: it must be none, gzip, snappy, lz4 or zstd"
            ))
        })?;
        let retries = typed.number("retries", i32::MAX as u32)?;
        let max_in_flight = typed.number("max.in.flight.requests.per.connection", IN_FLIGHT_MAX)?;
        let possible = acks == -1 && retries > 0 && max_in_flight <= IN_FLIGHT_MAX;
        let idempotent = match properties.get("enable.idempotence") {
            None => possible,
            Some(_) if typed.boolean("enable.idempotence", true)? => {
                if !possible {
                    return Err(Failure::new(
                        "enable.idempotence=true: it needs acks=all, retries above 0 and at most 5 in max.in.flight.requests.per.connection",
                    ));
                }
                true
            }
            Some(_) => false,
        };
        Ok(ProducerSettings {
            acks,
            idempotent,
            compression,
            batch_size: typed.number("batch.size", 16384)?,
            linger: typed.millis("linger.ms", 5)?,
            buffer_memory: typed.number("buffer.memory", 32 << 20)?,
            max_request_size: typed.number("max.request.size", 1 << 20)?,
            max_in_flight: max_in_flight.max(1),
            retries,
            retry_backoff: typed.millis("retry.backoff.ms", 100)?,
            request_timeout: typed.millis("request.timeout.ms", 30_000)?,
            delivery_timeout: typed.millis("delivery.timeout.ms", 120_000)?,
            max_block: typed.millis("max.block.ms", 60_000)?,
            metadata_max_age: typed.millis("metadata.max.age.ms", 300_000)?,
        })
    }
}
