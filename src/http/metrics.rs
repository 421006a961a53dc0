//! What the broker has counted, in the text format of OpenMetrics, which Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::rc::Rc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use protocol::{ApiKey, ErrorCode};
use shards::TaskClass;
use shards::metrics::{BUSY_SECONDS, CORE_METRICS, Family, HistogramSnapshot, Metric, MetricKind};
use storage::{DISK_METRICS, DISK_WRITE_SECONDS, STORAGE_METRICS};

use super::Answer;
use super::look::{self, CoreLook, DiskLook, Holdings, PartitionLook, ProcessLook};
use crate::shard::*;

/// Before every name.
pub const PREFIX: &str = "ringmain";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn page(shard: &Rc<Shard>) -> Answer {
    let scrape = Scrape {
        cores: look::all_cores(shard).await,
        disks: look::disks(shard).await,
        process: look::process(shard).await,
        partitions_to_open: shard.start.partitions() as u64,
        ready: shard.start.is_ready(),
        with_partitions: shard.config.runtime.partition_metrics,
    };
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(scrape));
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

/// One look at all of the node.
#[derive(Debug)]
struct Scrape {
    cores: Vec<CoreLook>,
    disks: Vec<DiskLook>,
    process: ProcessLook,
    partitions_to_open: u64,
    ready: bool,
    with_partitions: bool,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let out = &mut encoder;
        self.table(out, CORE_METRICS, |core| &core.core)?;
        self.busy(out)?;
        self.table(out, STORAGE_METRICS, |core| &core.storage)?;
        self.table(out, SHARD_METRICS, |core| &core.shard)?;
        self.reasons(out)?;
        self.requests(out)?;
        self.clients(out)?;
        self.disks(out)?;
        self.partitions(out)?;
        self.node(out)
    }
}

impl Scrape {
    fn table<T>(
        &self,
        out: &mut DescriptorEncoder<'_>,
        table: &[Metric<T>],
        part: fn(&CoreLook) -> &T,
    ) -> Result<(), Error> {
        for metric in table {
            let kind = kind_of(metric.kind);
            let mut family = out.encode_descriptor(metric.name, metric.help, None, kind)?;
            for (number, core) in self.cores.iter().enumerate() {
                let labels = [("core", number.to_string())];
                let value = (metric.value)(part(core));
                number_of(&mut family, &labels, metric.kind, value)?;
            }
        }
        Ok(())
    }

    fn busy(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut lines = Lines::new(out, &BUSY_SECONDS)?;
        for (number, core) in self.cores.iter().enumerate() {
            for (class, nanos) in TaskClass::ALL.into_iter().zip(core.core.busy_nanos) {
                let class = format!("{class:?}").to_lowercase();
                lines.seconds(&[&number.to_string(), &class], nanos as f64 / 1e9)?;
            }
        }
        Ok(())
    }

    fn reasons(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let parks = |reason: &Park| reason.name();
        self.by_reason(out, &PARKED, Park::ALL, parks, |it| &it.parked)?;
        self.by_reason(out, &PARKS, Park::ALL, parks, |it| &it.parks)?;
        self.by_reason(out, &DROPS, Drop::ALL, |it| it.name(), |it| &it.drops)?;
        let bad = |reason: &BadRequest| reason.name();
        self.by_reason(out, &BAD_REQUESTS, BadRequest::ALL, bad, |it| {
            &it.bad_requests
        })
    }

    fn by_reason<R>(
        &self,
        out: &mut DescriptorEncoder<'_>,
        family: &Family,
        reasons: &[R],
        name: fn(&R) -> &'static str,
        counts: fn(&ReasonSnapshot) -> &[u64],
    ) -> Result<(), Error> {
        let mut lines = Lines::new(out, family)?;
        for (number, core) in self.cores.iter().enumerate() {
            for (reason, count) in reasons.iter().zip(counts(&core.reasons)) {
                lines.number(&[&number.to_string(), name(reason)], *count)?;
            }
        }
        Ok(())
    }

    /// Requests are told for the whole node: which core served them says nothing, and the page stays small.
    fn requests(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut apis: BTreeMap<ApiKey, ApiSnapshot> = BTreeMap::new();
        for (api, counts) in self.cores.iter().flat_map(|core| &core.requests) {
            apis.entry(*api).or_default().merge(counts);
        }
        let mut lines = Lines::new(out, &REQUESTS)?;
        for (api, counts) in &apis {
            for (version, count) in &counts.versions {
                lines.number(&[api.name(), &version.to_string()], *count)?;
            }
        }
        let mut lines = Lines::new(out, &REQUEST_ERRORS)?;
        for (api, counts) in &apis {
            for (code, count) in &counts.errors {
                let error = ErrorCode::from_i16(*code).unwrap_or(ErrorCode::UnknownServerError);
                lines.number(&[api.name(), error.name()], *count)?;
            }
        }
        let mut lines = Lines::new(out, &REQUEST_BYTES)?;
        for (api, counts) in &apis {
            lines.number(&[api.name()], counts.request_bytes)?;
        }
        let mut lines = Lines::new(out, &RESPONSE_BYTES)?;
        for (api, counts) in &apis {
            lines.number(&[api.name()], counts.response_bytes)?;
        }
        let mut lines = Lines::new(out, &REQUEST_SECONDS)?;
        for (api, counts) in &apis {
            lines.durations(&[api.name()], &counts.total)?;
        }
        let mut lines = Lines::new(out, &REQUEST_STAGE_SECONDS)?;
        for (api, counts) in &apis {
            for (stage, durations) in Stage::ALL.into_iter().zip(&counts.stages) {
                if durations.count() > 0 {
                    lines.durations(&[api.name(), stage.name()], durations)?;
                }
            }
        }
        Ok(())
    }

    fn clients(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut old: BTreeMap<_, u64> = BTreeMap::new();
        let mut connected = SoftwareCounts::default();
        for core in &self.cores {
            for ((api, version, software), client) in &core.old_versions {
                let key = (*api, *version, software.clone(), client.served);
                *old.entry(key).or_default() += client.count;
            }
            for (software, count) in &core.clients {
                connected.add(Some(software.clone()), *count);
            }
        }
        let mut lines = Lines::new(out, &OLD_VERSION_REQUESTS)?;
        for ((api, version, (name, software), served), count) in &old {
            let version = version.to_string();
            let served = if *served { "yes" } else { "no" };
            lines.number(&[api.name(), &version, name, software, served], *count)?;
        }
        let mut lines = Lines::new(out, &CLIENTS)?;
        for ((name, version), count) in connected.into_all() {
            lines.number(&[&name, &version], count)?;
        }
        Ok(())
    }

    fn disks(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        for (family, value) in DISK_METRICS {
            let mut lines = Lines::new(out, family)?;
            for (number, core) in self.cores.iter().enumerate() {
                for disk in &core.disks {
                    let path = disk.directory.display().to_string();
                    lines.number(&[&number.to_string(), &path], value(disk))?;
                }
            }
        }
        let mut lines = Lines::new(out, &DISK_WRITE_SECONDS)?;
        for (number, core) in self.cores.iter().enumerate() {
            for disk in &core.disks {
                let path = disk.directory.display().to_string();
                lines.durations(&[&number.to_string(), &path], &disk.write_time)?;
            }
        }
        self.of_disks(out, &DISK_OFFLINE, |disk| Some(u64::from(disk.failed)))?;
        self.of_disks(out, &DISK_FREE_BYTES, |disk| Some(disk.space?.free))?;
        self.of_disks(out, &DISK_TOTAL_BYTES, |disk| Some(disk.space?.total))?;
        let holds = |disk: &DiskLook, part: fn(&Holdings) -> u64| {
            let cores = self.cores.iter();
            let held = cores.filter_map(|core| core.directories.get(&disk.path));
            Some(held.map(part).sum())
        };
        self.of_disks(out, &DISK_PARTITIONS, |disk| {
            holds(disk, |it| it.partitions)
        })?;
        self.of_disks(out, &DISK_LOG_BYTES, |disk| holds(disk, |it| it.bytes))
    }

    fn of_disks(
        &self,
        out: &mut DescriptorEncoder<'_>,
        family: &Family,
        value: impl Fn(&DiskLook) -> Option<u64>,
    ) -> Result<(), Error> {
        let mut lines = Lines::new(out, family)?;
        for disk in &self.disks {
            if let Some(value) = value(disk) {
                lines.number(&[&disk.path.display().to_string()], value)?;
            }
        }
        Ok(())
    }

    fn partitions(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        if !self.with_partitions {
            return Ok(());
        }
        let offset = |offset: i64| u64::try_from(offset).unwrap_or(0);
        self.of_partitions(out, &PARTITION_LOG_BYTES, |it| it.bytes)?;
        self.of_partitions(out, &PARTITION_SEGMENTS, |it| it.segments)?;
        self.of_partitions(out, &PARTITION_START_OFFSET, |it| offset(it.start_offset))?;
        self.of_partitions(out, &PARTITION_END_OFFSET, |it| offset(it.end_offset))?;
        self.of_partitions(out, &PARTITION_PRODUCERS, |it| it.producers)?;
        self.of_partitions(out, &PARTITION_APPENDED_BYTES, |it| it.appended_bytes)?;
        self.of_partitions(out, &PARTITION_FETCHED_BYTES, |it| it.fetched_bytes)
    }

    fn of_partitions(
        &self,
        out: &mut DescriptorEncoder<'_>,
        family: &Family,
        value: impl Fn(&PartitionLook) -> u64,
    ) -> Result<(), Error> {
        let mut lines = Lines::new(out, family)?;
        for partition in self.cores.iter().flat_map(|core| &core.partitions) {
            let labels = [&*partition.topic, &partition.index.to_string()];
            lines.number(&labels, value(partition))?;
        }
        Ok(())
    }

    fn node(&self, out: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let values = [
            (&START_PARTITIONS, Some(self.partitions_to_open)),
            (&READY, Some(u64::from(self.ready))),
            (&RESIDENT_BYTES, self.process.resident_bytes),
            (&OPEN_DESCRIPTORS, self.process.descriptors),
        ];
        for (family, value) in values {
            let mut lines = Lines::new(out, family)?;
            if let Some(value) = value {
                lines.number(&[], value)?;
            }
        }
        let mut lines = Lines::new(out, &CPU_SECONDS)?;
        match self.process.cpu_seconds {
            Some(seconds) => lines.seconds(&[], seconds),
            None => Ok(()),
        }
    }
}

/// The lines of one family.
struct Lines<'a> {
    encoder: MetricEncoder<'a>,
    family: &'a Family,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut DescriptorEncoder<'_>, family: &'a Family) -> Result<Self, Error> {
        let kind = kind_of(family.kind);
        let encoder = out.encode_descriptor(family.name, family.help, None, kind)?;
        Ok(Lines { encoder, family })
    }

    fn labels(&self, values: &[&str]) -> Vec<(&'static str, String)> {
        let names = self.family.labels.iter().copied();
        names
            .zip(values.iter().map(|it| (*it).to_owned()))
            .collect()
    }

    fn number(&mut self, labels: &[&str], value: u64) -> Result<(), Error> {
        let labels = self.labels(labels);
        number_of(&mut self.encoder, &labels, self.family.kind, value)
    }

    fn seconds(&mut self, labels: &[&str], value: f64) -> Result<(), Error> {
        let labels = self.labels(labels);
        let mut one = self.encoder.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn durations(&mut self, labels: &[&str], value: &HistogramSnapshot) -> Result<(), Error> {
        let labels = self.labels(labels);
        let mut one = self.encoder.encode_family(&labels)?;
        let (sum, count) = (value.sum_seconds(), value.count());
        one.encode_histogram::<NoLabelSet>(sum, count, &value.buckets(), None)
    }
}

fn kind_of(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
    }
}

fn number_of<L: EncodeLabelSet>(
    family: &mut MetricEncoder<'_>,
    labels: &L,
    kind: MetricKind,
    value: u64,
) -> Result<(), Error> {
    let mut one = family.encode_family(labels)?;
    match kind {
        MetricKind::Counter => one.encode_counter::<NoLabelSet, _, u64>(&value, None),
        _ => one.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX)),
    }
}
