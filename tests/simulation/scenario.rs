//! What a seed means: the broker's settings, who its clients are, and which faults may happen.

use std::time::Duration;

use shards::sim::Random;

/// Which kinds of fault a run has beside kills, restarts and a network that fails, which all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The machine loses its power.
    pub power: bool,
    /// The disk reports errors, or is full.
    pub disk_errors: bool,
    /// The disk, the network and the cores are slow at times.
    pub slowness: bool,
    /// The wall clock jumps.
    pub clock: bool,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub cores: usize,
    /// `flush.messages=1`: what was acknowledged survives power loss too.
    pub flush_each: bool,
    /// Partitions of each topic that stays.
    pub topics: Vec<i32>,
    /// Small ones have logs of many segments.
    pub segment_bytes: u32,
    pub index_interval_bytes: u32,
    /// Room of each core's journal; 0 for none.
    pub journal_bytes: u32,
    pub session_slots: u32,
    pub plain_producers: usize,
    pub idempotent_producers: usize,
    pub readers: usize,
    pub members: usize,
    pub faults: Faults,
    /// How long faults happen.
    pub trouble: Duration,
}

impl Scenario {
    pub fn new(seed: u64) -> Self {
        let random = Random::new(seed, 10_000);
        let half = || random.chance(500_000);
        let between = |low: u64, high: u64| low + random.below(high - low + 1);
        let count = |low: u64, high: u64| usize::try_from(between(low, high)).expect("small");
        Self {
            seed,
            cores: count(1, 3),
            flush_each: half(),
            topics: (0..between(1, 2))
                .map(|_| if half() { 1 } else { 3 })
                .collect(),
            segment_bytes: if half() { 8 << 10 } else { 64 << 10 },
            index_interval_bytes: if half() { 128 } else { 4096 },
            journal_bytes: journal_bytes(seed),
            session_slots: if half() { 2 } else { 1000 },
            plain_producers: count(1, 2),
            idempotent_producers: count(1, 2),
            readers: count(1, 2),
            members: count(2, 3),
            faults: Faults {
                power: half(),
                disk_errors: random.chance(300_000),
                slowness: half(),
                clock: random.chance(300_000),
            },
            trouble: Duration::from_secs(between(2, 6)),
        }
    }

    /// What the broker is started with, beside its listeners and directories.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("offsets.topic.num.partitions", "2".to_owned()),
            ("group.min.session.timeout.ms", "500".to_owned()),
            ("group.initial.rebalance.delay.ms", "100".to_owned()),
            ("log.flush.offset.checkpoint.interval.ms", "1500".to_owned()),
            ("log.segment.delete.delay.ms", "1000".to_owned()),
            ("auto.create.topics.enable", "false".to_owned()),
            (
                "max.incremental.fetch.session.cache.slots",
                self.session_slots.to_string(),
            ),
        ];
        settings.push(("ringmain.journal.bytes", self.journal_bytes.to_string()));
        if self.flush_each {
            settings.push(("log.flush.interval.messages", "1".to_owned()));
        }
        settings
    }

    /// The settings of each topic that stays.
    pub fn topic_settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("internal.segment.bytes", self.segment_bytes.to_string()),
            (
                "index.interval.bytes",
                self.index_interval_bytes.to_string(),
            ),
        ]
    }
}

/// Seeds below this were played before there was a journal, and mean what they meant.
const WITH_JOURNALS: u64 = 100_000;

/// A journal's room: small, so that it is full at times.
fn journal_bytes(seed: u64) -> u32 {
    if seed < WITH_JOURNALS {
        return 0;
    }
    [0, 256 << 10, 256 << 10, 512 << 10][(seed % 4) as usize]
}
