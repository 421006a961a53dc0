//! What two brokers cannot have in common, replaced by names that they can: ids that a broker makes up, its port, the
//! time now. A value that was met before has the name it got then, so that a wrong one still differs.
use crate::case::Names;
use crate::side::Side;
use crate::support::clock;
use crate::value::Value;

/// The answer of a side in words that both sides share.
pub fn normalise(side: &Side, names: &Names, mut answer: Value) -> Value {
    answer.each_mut(&mut |name, value| {
        if name == "records"
            && let Value::Bytes(bytes) = value
        {
            *value = batches(bytes);
        }
    });
    answer.each_mut(&mut |_, value| leave_out_other_cases(names, value));
    answer.each_mut(&mut |name, value| recognise(side, name, value));
    sort("", &mut answer);
    let mut met = Met::default();
    answer.each_mut(&mut |name, value| met.rename(name, value));
    answer
}

/// What earlier cases made, in answers about everything there is: one side may still be taking it away.
fn leave_out_other_cases(names: &Names, value: &mut Value) {
    if let Value::Array(values) = value {
        values.retain(|value| {
            let text = ["name", "group_id", "resource_name", "topic"]
                .iter()
                .find_map(|key| value.field(key));
            match text {
                Some(Value::Text(text)) => !text.starts_with("new-") || names.own(text),
                _ => true,
            }
        });
    }
}

/// Numbers that only this broker means, so that they cannot be taken for others by chance.
const OWN_NUMBERS: &[&str] = &["producer_id", "session_id"];

/// Offsets in the log of `produced`, told by how far they are from its end: what is written there is not as long on both
/// sides. Those of a topic that the fixture wrote are smaller than where `produced` begins to grow.
const ENDS: &[&str] = &["base_offset", "high_watermark", "last_stable_offset"];

fn recognise(side: &Side, name: &str, value: &mut Value) {
    let port = side.broker.port;
    match value {
        Value::Int(number) if name == "port" && *number == i64::from(port) => {
            *value = Value::known("port");
        }
        Value::Int(number)
            if name == "port" && *number == i64::from(side.broker.controller_port) =>
        {
            *value = Value::known("controller's port");
        }
        Value::Int(number) if OWN_NUMBERS.contains(&name) && *number != 0 => {
            if let Some((known, _)) = side.known.iter().find(|(_, known)| *known == value) {
                *value = Value::known(known);
            }
        }
        Value::Int(number) if ENDS.contains(&name) => {
            if let Some(Value::Int(end)) = side.known.get("end")
                && (-20..1_000).contains(&(*number - *end))
            {
                *value = Value::Known(format!("end{:+}", *number - *end));
            }
        }
        Value::Uuid(id) if *id != [0; 16] => {
            if let Some((known, _)) = side.known.iter().find(|(_, known)| *known == value) {
                *value = Value::known(known);
            }
        }
        Value::Text(text) => {
            for (known, own) in &side.known {
                match own {
                    Value::Text(own) if !own.is_empty() => {
                        *text = text.replace(own.as_str(), &format!("{{{known}}}"));
                    }
                    Value::Uuid(id) => {
                        *text = text.replace(&uuid_text(*id), &format!("{{{known}}}"));
                    }
                    _ => {}
                }
            }
            if let Some(at) = text.find("The timestamp should be within [") {
                text.truncate(at);
                text.push_str("The timestamp should be within {a time that depends on now}");
            }
            *text = text.replace(&port.to_string(), "{port}");
            let controller = side.broker.controller_port.to_string();
            *text = text.replace(&controller, "{controller's port}");
            *text = text.replace(
                &side.broker.directory.to_string_lossy().into_owned(),
                "{directory}",
            );
        }
        _ => {}
    }
}

/// Kafka's way to write an id: base64 for addresses, without padding.
fn uuid_text(id: [u8; 16]) -> String {
    let (most, least) = id.split_at(8);
    let half = |half: &[u8]| u64::from_be_bytes(half.try_into().expect("half of an id"));
    protocol::Uuid::from_halves(half(most), half(least)).to_string()
}

/// The order of most answers is that of some hash table, so it says nothing. Fetch is the exception: the order is whose
/// turn it is.
fn sort(name: &str, value: &mut Value) {
    match value {
        Value::Struct(fields) => fields
            .iter_mut()
            .for_each(|(name, value)| sort(name, value)),
        Value::Array(values) => {
            values.iter_mut().for_each(|value| sort(name, value));
            if !["responses", "partitions", "batches"].contains(&name) {
                values.sort();
            }
        }
        _ => {}
    }
}

#[derive(Default)]
struct Met {
    ids: Vec<String>,
}

impl Met {
    fn number(&mut self, id: &str) -> usize {
        let found = self.ids.iter().position(|met| met == id);
        found.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        })
    }

    fn rename(&mut self, name: &str, value: &mut Value) {
        let day = 24 * 3_600_000;
        match value {
            // Ids that a request made up are the same on both sides.
            Value::Uuid(id) if *id != [0; 16] && *id != [0x12; 16] && id[..15] != [0; 15] => {
                *value = Value::Known(format!("id {}", self.number(&uuid_text(*id))));
            }
            Value::Int(number) if OWN_NUMBERS.contains(&name) && ![0, -1].contains(number) => {
                *value = Value::Known(format!("number {}", self.number(&number.to_string())));
            }
            Value::Int(number)
                if name.contains("time") && (clock::wall_clock_ms() - *number).abs() < day =>
            {
                *value = Value::known("now");
            }
            Value::Int(number)
                if ["finalized_features_epoch", "log_end_offset"].contains(&name)
                    && *number >= 0 =>
            {
                *value = Value::known("an offset of the metadata log");
            }
            Value::Struct(fields) if fields.contains_key("current_voters") => {
                if let Some(Value::Int(0..)) = fields.get("high_watermark") {
                    let known = Value::known("an offset of the metadata log");
                    fields.insert("high_watermark".to_owned(), known);
                }
            }
            Value::Int(_) if name == "usable_bytes" => *value = Value::known("what is free now"),
            Value::Text(text) => *text = self.rename_ids(text),
            _ => {}
        }
    }

    /// Member ids end in a UUID of 36 letters.
    fn rename_ids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(id) = rest.get(..36).filter(|id| is_uuid(id)) {
                out += &format!("{{id {}}}", self.number(id));
                rest = &rest[36..];
            } else {
                let letter = rest.chars().next().expect("not empty");
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        out
    }
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| {
        if [8, 13, 18, 23].contains(&at) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    })
}

const HEAD: usize = 61;

/// The batches of an answer, field by field, and the piece of one that may stand behind them.
fn batches(mut bytes: &[u8]) -> Value {
    let mut found = Vec::new();
    while bytes.len() >= 12 {
        let int = |from: usize, width: usize| {
            let start = if bytes[from] & 0x80 == 0 { 0 } else { -1 };
            bytes[from..from + width]
                .iter()
                .fold(start, |number: i64, byte| number << 8 | i64::from(*byte))
        };
        let length = usize::try_from(int(8, 4)).unwrap_or(usize::MAX);
        let whole = length.saturating_add(12);
        if whole > bytes.len() || whole < HEAD {
            break;
        }
        let batch = &bytes[..whole];
        let sum = crc32c::crc32c(&batch[21..]);
        found.push(Value::fields([
            ("base_offset", Value::Int(int(0, 8))),
            ("leader_epoch", Value::Int(int(12, 4))),
            ("magic", Value::Int(int(16, 1))),
            ("checksum", Value::Bool(batch[17..21] == sum.to_be_bytes())),
            ("attributes", Value::Int(int(21, 2))),
            ("last_offset_delta", Value::Int(int(23, 4))),
            ("base_timestamp", Value::Int(int(27, 8))),
            ("max_timestamp", Value::Int(int(35, 8))),
            ("producer_id", Value::Int(int(43, 8))),
            ("producer_epoch", Value::Int(int(51, 2))),
            ("base_sequence", Value::Int(int(53, 4))),
            ("count", Value::Int(int(57, 4))),
            ("content", Value::Bytes(batch[HEAD..].to_vec())),
        ]));
        bytes = &bytes[whole..];
    }
    Value::fields([
        ("batches", Value::Array(found)),
        ("piece", Value::Bytes(bytes.to_vec())),
    ])
}
