//! Requests out of choices: values of every field by the schema, with names and numbers that mean something to the broker.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;
use protocol::ApiKey;
use protocol::records::{BatchBuilder, Compression};

use crate::choices::Choices;
use crate::interpreter::Value;
use crate::known::Known;
use crate::schema::{self, Field, Kind, Message, Struct, Type};

/// Names that the broker gives and takes; what begins with `witness` is nobody's but the witness's.
pub const TOPICS: [&str; 3] = ["one", "two", "three"];

const GROUPS: &[&str] = &["group", "other", ""];
const ODD_NAMES: &[&str] = &[
    "",
    "..",
    "__consumer_offsets",
    "a/b",
    "a b",
    "ä→🦀",
    "two.more",
];
const PROTOCOLS: &[&str] = &["range", "roundrobin"];
const CONFIGS: &[&str] = &[
    "cleanup.policy",
    "segment.bytes",
    "retention.ms",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.type",
    "flush.messages",
    "no.such.key",
];
const CONFIG_VALUES: &[&str] = &[
    "1",
    "-1",
    "0",
    "compact",
    "delete",
    "zstd",
    "LogAppendTime",
    "9223372036854775808",
    "",
    "1048576",
];
const EDGES: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    -2,
    -3,
    5,
    10,
    100,
    0x7f,
    0x80,
    0x7fff,
    -0x8000,
    1000,
    6000,
    60_000,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
];

/// A topic gets no more partitions,
pub const PARTITIONS_MAX: i64 = 16;
/// or more than the broker adds with one request.
pub const REFUSED_ABOVE: i64 = 20_000;

/// The requests of all APIs, as the schema describes them.
#[derive(Clone)]
pub struct Schema(Rc<BTreeMap<i16, Message>>);

impl Schema {
    pub fn read() -> Self {
        Self(Rc::new(all_of(Kind::Request)))
    }

    pub fn request(&self, api: ApiKey) -> &Message {
        &self.0[&api.code()]
    }
}

/// The answers of all APIs.
#[allow(dead_code, reason = "for the hostile broker, which shares this file")]
pub fn responses() -> BTreeMap<i16, Message> {
    all_of(Kind::Response)
}

fn all_of(kind: Kind) -> BTreeMap<i16, Message> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = schema::read_folder(&root.join("protocol/schema/api"));
    let messages = files.into_iter().flat_map(|file| file.messages);
    messages
        .filter(|message| message.kind == kind)
        .filter_map(|message| Some((message.id?, message)))
        .collect()
}

pub struct Generator<'a, 'b> {
    pub message: &'a Message,
    pub version: i16,
    pub choices: &'a mut Choices<'b>,
    pub known: &'a Known,
}

impl Generator<'_, '_> {
    pub fn value(&mut self) -> Value {
        self.structure(self.message.structure(&self.message.name), 0)
    }

    fn structure(&mut self, one: &Struct, depth: usize) -> Value {
        let version = self.version;
        let all = one.fields.iter();
        let mut fields = BTreeMap::new();
        for field in all.filter(|field| field.versions.contains(version)) {
            // Left out: the default.
            if self.choices.one_in(12) {
                continue;
            }
            let value = if field.nullable.contains(version) && self.choices.one_in(10) {
                Value::Null
            } else {
                self.plain(field, &field.kind, depth)
            };
            fields.insert(field.name.clone(), value);
        }
        Value::Struct(fields)
    }

    fn plain(&mut self, field: &Field, kind: &Type, depth: usize) -> Value {
        match kind {
            Type::Bool => Value::Bool(self.choices.one_in(2)),
            Type::Int8 => Value::Int((self.number(&field.name) as i8).into()),
            Type::Int16 => Value::Int((self.number(&field.name) as i16).into()),
            Type::Int32 => Value::Int((self.number(&field.name) as i32).into()),
            Type::Int64 => Value::Int(self.number(&field.name)),
            Type::Uint16 => Value::Int((self.number(&field.name) as u16).into()),
            Type::Uint32 => Value::Int((self.number(&field.name) as u32).into()),
            Type::Float64 => Value::Float(self.number(&field.name) as f64),
            Type::Uuid => Value::Uuid(self.uuid()),
            Type::String => Value::Text(self.text(&field.name)),
            Type::Bytes => Value::Bytes(self.bytes(&field.name)),
            Type::Records => Value::Bytes(self.records()),
            Type::Struct(name) => self.structure(self.message.structure(name), depth + 1),
            Type::Array(element) => {
                let most = if depth > 1 { 2 } else { 3 };
                // One element, where the input has ended.
                let count = (self.choices.below(most + 1) + 1) % (most + 1);
                Value::Array(
                    (0..count)
                        .map(|_| self.plain(field, element, depth))
                        .collect(),
                )
            }
        }
    }

    fn number(&mut self, name: &str) -> i64 {
        let answers = self.message.kind == Kind::Response;
        match name {
            "port" if answers && !self.choices.one_in(8) => {
                return self.known.port.unwrap_or_default().into();
            }
            "error_code" if answers && !self.choices.one_in(10) => return 0,
            _ => {}
        }
        let small: &[i64] = match name {
            "node_id" | "leader_id" | "controller_id" | "broker_id" | "leader" if answers => &[1],
            "coordinator" | "replica_nodes" | "isr_nodes" if answers => &[1, 2],
            "offset" | "high_watermark" | "base_offset" if answers => &[0, 1, 5],
            "acks" => &[-1, 1, 0],
            "partition" | "partitions" | "partition_index" | "partition_indexes" | "index" => {
                &[0, 1, 2, -1]
            }
            "num_partitions" | "count" => &[1, 2, -1, 4],
            "replication_factor" => &[1, -1],
            "replica_id" => &[-1],
            "max_wait_ms" | "timeout_ms" => &[0, 10, 1000],
            "session_timeout_ms" | "rebalance_timeout_ms" => &[1000, 10, 6000],
            "resource_type" => &[2, 4],
            "partition_max_bytes" | "max_bytes" => &[1 << 20, 1, 1000],
            _ => &[],
        };
        let number = match self.choices.below(8) {
            0..=4 if !small.is_empty() => *self.choices.pick(small),
            0..=1 if !self.known.numbers.is_empty() => *self.choices.pick(&self.known.numbers),
            2 | 3 => self.choices.byte().into(),
            4 => self.choices.long(),
            _ => *self.choices.pick(EDGES),
        };
        // Thousands of partitions may be had, and take the memory of thousands.
        match name {
            "num_partitions" | "count" if (PARTITIONS_MAX..=REFUSED_ABOVE).contains(&number) => {
                REFUSED_ABOVE + 1
            }
            _ => number,
        }
    }

    fn uuid(&mut self) -> [u8; 16] {
        match self.choices.below(8) {
            0..=5 if !self.known.topics.is_empty() => self.choices.pick(&self.known.topics).0,
            6 => [0; 16],
            _ => [self.choices.byte(); 16],
        }
    }

    fn text(&mut self, name: &str) -> String {
        let answers = self.message.kind == Kind::Response;
        let usual: &[&str] = match name {
            "host" if answers => &["127.0.0.1"],
            "group_state" if answers => &["Stable", "Empty", "PreparingRebalance"],
            "protocol_data" if answers => PROTOCOLS,
            _ if answers && self.message.name == "JoinGroupResponse" => PROTOCOLS,
            "group_id" | "groups_names" | "groups" | "key" | "coordinator_keys" => GROUPS,
            "protocol_type" => &["consumer", ""],
            "protocol_name" => PROTOCOLS,
            "group_instance_id" => &["static-1", "static-2"],
            "value" => CONFIG_VALUES,
            "configuration_keys" => CONFIGS,
            _ if self.message.name == "JoinGroupRequest" => PROTOCOLS,
            _ if name == "name" && self.choices.one_in(4) => CONFIGS,
            _ => &TOPICS,
        };
        match self.choices.below(16) {
            0..=9 if name.contains("member_id") && !self.known.members.is_empty() => {
                self.choices.pick(&self.known.members).clone()
            }
            10 => (*self.choices.pick(ODD_NAMES)).to_owned(),
            11 => "x".repeat(usize::from(self.choices.byte()) * 128),
            12 => {
                let length = self.choices.below(8);
                let bytes: Vec<u8> = (0..length).map(|_| self.choices.byte()).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            13 if name.contains("resource_name") => "1".to_owned(),
            _ if name.contains("member_id") => String::new(),
            _ => (*self.choices.pick(usual)).to_owned(),
        }
    }

    fn bytes(&mut self, name: &str) -> Vec<u8> {
        if name == "metadata" && !self.choices.one_in(4) {
            return b"\0\0\0\0\0\x01\0\x03one\xff\xff\xff\xff".to_vec();
        }
        let answers = self.message.kind == Kind::Response;
        if answers && name.ends_with("assignment") && !self.choices.one_in(4) {
            return b"\0\0\0\0\0\x01\0\x03one\0\0\0\x01\0\0\0\0\xff\xff\xff\xff".to_vec();
        }
        let length = self.choices.below(24);
        (0..length).map(|_| self.choices.byte()).collect()
    }

    /// A batch, mostly a sound one.
    fn records(&mut self) -> Vec<u8> {
        let codec = *self.choices.pick(&Compression::ALL);
        let mut batch = BatchBuilder::new(0).codec(codec);
        if self.choices.one_in(3) {
            let producer = match self.known.numbers.is_empty() {
                true => self.choices.byte().into(),
                false => *self.choices.pick(&self.known.numbers),
            };
            let (epoch, sequence) = (self.choices.below(3), self.choices.byte());
            batch = batch.producer(producer, epoch as i16, sequence.into());
        }
        batch = batch
            .transactional(self.choices.one_in(12))
            .control(self.choices.one_in(12));
        // The time of the simulation's first day, or any.
        let timestamp = match self.choices.one_in(6) {
            true => self.choices.long(),
            false => 1_750_000_000_000,
        };
        for _ in 0..=self.choices.below(4) {
            let value = vec![b'v'; usize::from(self.choices.byte()) * 4];
            let key = self.choices.one_in(2).then(|| Bytes::from_static(b"key"));
            batch.append(timestamp, key.as_deref(), Some(&value), &[]);
        }
        let Ok(built) = batch.build() else {
            return Vec::new();
        };
        let mut bytes = built.to_vec();
        if self.choices.one_in(4) {
            self.damage(&mut bytes);
        }
        if self.choices.one_in(6) {
            bytes.extend_from_within(..);
        }
        bytes
    }

    /// Changes a batch, and mostly makes its checksum right again.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = (usize::from(self.choices.byte()) | usize::from(self.choices.byte()) << 8)
            % bytes.len();
        bytes[at] = self.choices.byte();
        if self.choices.one_in(4) {
            bytes.truncate(at.max(1));
        }
        if bytes.len() > 61 && !self.choices.one_in(4) {
            let crc = crc32c::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
    }
}
