//! What a run does: a TOML file, checked before anything is sent.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// One scenario file. An unknown key is an error that names it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, also in the names of the topics that it creates.
    pub name: String,
    /// What it stands for, one line.
    pub about: String,
    pub topic: Topic,
    pub producers: Option<Producers>,
    pub consumers: Option<Consumers>,
    /// Bytes that lie in the topic before the measurement begins.
    pub prefill: Option<Prefill>,
    /// Readers that start at offset 0 when the measurement begins and end where the prefill ended or, while
    /// producers run, where they have caught up.
    pub cold_readers: Option<ColdReaders>,
    /// Connections that say hello once and then nothing.
    #[serde(default)]
    pub idle_connections: u32,
    /// Seconds of load before anything counts.
    pub warm_up_seconds: u32,
    /// Seconds that count. A scenario of cold readers alone ends when they have read all.
    pub duration_seconds: u32,
    /// Seed of contents, keys and partition order.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    pub partitions: u32,
    #[serde(default = "one")]
    pub replication: u32,
    /// Topic settings by Kafka's names, as strings.
    #[serde(default)]
    pub config: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producers {
    pub count: u32,
    /// Bytes of a record's value.
    pub record_bytes: u32,
    /// Records a batch: a number, or [least, most] for a random one.
    pub batch_records: BatchRecords,
    /// Batches of different partitions in one request.
    #[serde(default = "one")]
    pub partitions_per_request: u32,
    pub acks: Acks,
    #[serde(default)]
    pub codec: Codec,
    /// Requests of one producer and leader that may wait for their answers.
    #[serde(default = "five")]
    pub in_flight: u32,
    /// Records a second of all producers together, sent at fixed times whatever the broker does. Absent: as fast
    /// as the answers come.
    pub rate: Option<u64>,
    /// Distinct keys. Absent: records without keys.
    pub keys: Option<u32>,
    #[serde(default)]
    pub content: Content,
    /// Zero-filled records compress to nothing and flatter every broker; they have to be asked for twice.
    #[serde(default)]
    pub allow_zeros: bool,
    /// With producer ids and sequences, as Kafka's default producer.
    #[serde(default)]
    pub idempotent: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BatchRecords {
    Fixed(u32),
    Between([u32; 2]),
}

impl BatchRecords {
    pub fn bounds(self) -> (u32, u32) {
        match self {
            Self::Fixed(count) => (count, count),
            Self::Between([least, most]) => (least, most),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acks {
    #[serde(rename = "0")]
    None,
    #[serde(rename = "1")]
    Leader,
    #[serde(rename = "all")]
    All,
}

impl Acks {
    pub fn wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Lines of a service's JSON log: compress as real ones do, 4 to 6 times.
    #[default]
    JsonLog,
    /// Random bytes: do not compress.
    Random,
    Zeros,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumers {
    /// Each reads everything: the fan-out.
    pub groups: u32,
    /// Consumers that share the partitions of a group.
    #[serde(default = "one")]
    pub per_group: u32,
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u32,
    #[serde(default = "one")]
    pub min_bytes: u32,
    #[serde(default = "default_wait")]
    pub max_wait_ms: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefill {
    pub mebibytes: u64,
    /// Empties the machine's page cache afterwards (needs root).
    #[serde(default)]
    pub drop_caches: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColdReaders {
    pub count: u32,
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u32,
}

fn one() -> u32 {
    1
}

fn five() -> u32 {
    5
}

fn default_seed() -> u64 {
    1
}

fn default_max_bytes() -> u32 {
    50 << 20
}

fn default_wait() -> u32 {
    500
}

impl Scenario {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read scenario {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("scenario {}", path.display()))
    }

    pub fn parse(text: &str) -> Result<Self> {
        let scenario: Self = toml::from_str(text)?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<()> {
        let name_is_plain = self
            .name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        ensure!(
            !self.name.is_empty() && name_is_plain,
            "name: letters, digits and '-' only, it becomes part of a topic's name"
        );
        ensure!(
            (1..=100_000).contains(&self.topic.partitions),
            "topic.partitions: 1 to 100000"
        );
        ensure!(self.topic.replication >= 1, "topic.replication: at least 1");
        ensure!(self.duration_seconds >= 1, "duration_seconds: at least 1");
        ensure!(
            self.producers.is_some() || self.cold_readers.is_some(),
            "nothing to do: neither producers nor cold_readers"
        );
        ensure!(
            self.cold_readers.is_none() || self.prefill.is_some(),
            "cold_readers need a prefill to read"
        );
        if let Some(producers) = &self.producers {
            producers.check()?;
        }
        if let Some(consumers) = &self.consumers {
            ensure!(
                consumers.groups >= 1 && consumers.per_group >= 1,
                "consumers: groups and per_group at least 1"
            );
            ensure!(
                self.producers.is_some(),
                "consumers read what producers write: there are none"
            );
        }
        Ok(())
    }

    /// What the producers send, or what a prefill is made of where there are none.
    pub fn shape(&self) -> Producers {
        self.producers.clone().unwrap_or(Producers {
            count: 1,
            record_bytes: 1024,
            batch_records: BatchRecords::Fixed(60),
            partitions_per_request: 1,
            acks: Acks::Leader,
            codec: Codec::None,
            in_flight: 5,
            rate: None,
            keys: None,
            content: Content::JsonLog,
            allow_zeros: false,
            idempotent: false,
        })
    }
}

impl Producers {
    fn check(&self) -> Result<()> {
        let (least, most) = self.batch_records.bounds();
        ensure!(self.count >= 1, "producers.count: at least 1");
        ensure!(
            least >= 1 && least <= most,
            "producers.batch_records: at least 1, and [least, most] in this order"
        );
        ensure!(
            u64::from(self.record_bytes) * u64::from(most) <= 64 << 20,
            "producers: a batch would be over 64 MiB"
        );
        ensure!(self.in_flight >= 1, "producers.in_flight: at least 1");
        ensure!(
            self.partitions_per_request >= 1,
            "producers.partitions_per_request: at least 1"
        );
        ensure!(
            self.rate != Some(0),
            "producers.rate: at least 1 record a second, or absent for as fast as possible"
        );
        ensure!(
            self.keys != Some(0),
            "producers.keys: at least 1, or absent for none"
        );
        if self.content == Content::Zeros && !self.allow_zeros {
            bail!(
                "producers.content = \"zeros\" makes every broker look fast; set allow_zeros = true if that is what you want"
            );
        }
        ensure!(
            !self.idempotent || self.acks == Acks::All,
            "producers.idempotent needs acks = \"all\", as in Kafka"
        );
        ensure!(
            !self.idempotent || self.in_flight <= 5,
            "producers.idempotent allows at most 5 in flight, as in Kafka"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"
        name = "plain"
        about = "a test"
        warm_up_seconds = 1
        duration_seconds = 2
        topic = { partitions = 4 }
        [producers]
        count = 1
        record_bytes = 100
        batch_records = [1, 10]
        acks = "all"
    "#;

    const CHECKED_IN: [&str; 35] = [
        "big-batches-acks-1",
        "big-batches-acks-all",
        "codec-gzip",
        "codec-lz4",
        "codec-snappy",
        "codec-zstd",
        "cold-read-1",
        "cold-read-10",
        "cold-read-2-gib",
        "consumer-behind",
        "fan-out-1",
        "fan-out-10",
        "fan-out-50",
        "fsync-every-ack",
        "growth-40-producers",
        "idempotent",
        "idle-connections-1000",
        "keyed-1-partition",
        "keyed-100-partitions",
        "keyed-1000-partitions",
        "latency",
        "linkedin-1-producer-acks-0",
        "linkedin-1-producer-acks-1",
        "linkedin-1-producer-acks-all",
        "linkedin-3-producers-acks-0",
        "linkedin-3-producers-acks-1",
        "linkedin-3-producers-acks-all",
        "linkedin-producer-and-consumer",
        "one-a-request-20000",
        "openmessaging-100-partitions-rate",
        "openmessaging-16-partitions",
        "quick",
        "records-100k",
        "tail",
        "tail-and-cold",
    ];

    #[test]
    fn a_plain_scenario_is_read_with_defaults() {
        let scenario = Scenario::parse(PLAIN).expect("a valid scenario");
        let producers = scenario.producers.expect("producers");
        assert_eq!(producers.batch_records.bounds(), (1, 10));
        assert_eq!(
            (producers.acks.wire(), producers.in_flight, producers.codec),
            (-1, 5, Codec::None)
        );
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = Scenario::parse(&PLAIN.replace("count = 1", "count = 1\nbatchsize = 3"))
            .expect_err("unknown key");
        assert!(format!("{error:#}").contains("batchsize"), "{error:#}");
    }

    #[test]
    fn zeros_have_to_be_asked_for_twice() {
        let zeros = PLAIN.replace("acks", "content = \"zeros\"\nacks");
        assert!(Scenario::parse(&zeros).is_err());
        assert!(Scenario::parse(&zeros.replace("acks", "allow_zeros = true\nacks")).is_ok());
    }

    #[test]
    fn contradictions_are_refused() {
        for (from, to) in [
            ("count = 1", "count = 0"),
            ("[1, 10]", "[10, 1]"),
            ("\"all\"", "\"all\"\nrate = 0"),
            ("\"all\"", "\"1\"\nidempotent = true"),
            ("name = \"plain\"", "name = \"a b\""),
            ("duration_seconds = 2", "duration_seconds = 0"),
        ] {
            assert!(Scenario::parse(&PLAIN.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn every_scenario_is_there_valid_and_named_after_its_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut seen = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the folder of scenarios") {
            let path = entry.expect("an entry").path();
            let scenario = Scenario::read(&path).expect("a valid scenario");
            assert_eq!(
                Some(scenario.name.as_str()),
                path.file_stem().and_then(|stem| stem.to_str())
            );
            seen.push(scenario.name);
        }
        seen.sort();
        assert_eq!(seen, CHECKED_IN);
    }
}
