//! What every core has counted, in the text format of OpenMetrics, which Prometheus reads.

use std::fmt::Error;
use std::rc::Rc;

use futures_util::future::join_all;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use protocol::ApiKey;
use shards::TaskClass;
use shards::metrics::{CORE_METRICS, CoreMetrics, Metric, MetricKind};
use storage::{Counters, STORAGE_METRICS};

use super::Answer;
use crate::shard::{SHARD_METRICS, Shard, ShardSnapshot};

const PREFIX: &str = "ringmain";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn page(shard: &Rc<Shard>) -> Answer {
    let asked = shard.cores().map(|core| {
        let look = |shard: &Rc<Shard>| std::future::ready(CoreSnapshot::of(shard));
        shard.mesh().call(core, TaskClass::Network, look)
    });
    let cores = join_all(asked).await;
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Scrape { cores }));
    let mut body = String::new();
    match encode(&mut body, &registry) {
        Ok(()) => Answer {
            status: 200,
            content_type: OPEN_METRICS,
            body,
        },
        // It only writes to memory.
        Err(error) => Answer::text(500, error.to_string()),
    }
}

#[derive(Debug)]
struct CoreSnapshot {
    core: CoreMetrics,
    storage: Counters,
    shard: ShardSnapshot,
    requests: Vec<(ApiKey, u64)>,
}

impl CoreSnapshot {
    fn of(shard: &Rc<Shard>) -> Self {
        CoreSnapshot {
            core: shard.core.metrics(),
            storage: shard.storage.counters(),
            shard: shard.snapshot(),
            requests: shard.metrics.requests(),
        }
    }
}

/// One look at all cores.
#[derive(Debug)]
struct Scrape {
    cores: Vec<CoreSnapshot>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.table(&mut encoder, CORE_METRICS, |core| &core.core)?;
        self.table(&mut encoder, STORAGE_METRICS, |core| &core.storage)?;
        self.table(&mut encoder, SHARD_METRICS, |core| &core.shard)?;
        let help = "Requests begun, by API.";
        let mut family = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for (number, core) in self.cores.iter().enumerate() {
            for (api, count) in &core.requests {
                let labels = [("core", number.to_string()), ("api", api.name().to_owned())];
                number_of(&mut family, &labels, MetricKind::Counter, *count)?;
            }
        }
        Ok(())
    }
}

impl Scrape {
    fn table<T>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        table: &[Metric<T>],
        part: fn(&CoreSnapshot) -> &T,
    ) -> Result<(), Error> {
        for metric in table {
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            for (number, core) in self.cores.iter().enumerate() {
                let labels = [("core", number.to_string())];
                let value = (metric.value)(part(core));
                number_of(&mut family, &labels, metric.kind, value)?;
            }
        }
        Ok(())
    }
}

fn number_of(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    kind: MetricKind,
    value: u64,
) -> Result<(), Error> {
    let mut one = family.encode_family(labels)?;
    match kind {
        MetricKind::Counter => one.encode_counter::<NoLabelSet, _, u64>(&value, None),
        MetricKind::Gauge => one.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX)),
    }
}
