//! What keys and values say: text and numbers of an ordinary topic, or the records of one of Kafka's own.

use std::fmt::Display;
use std::str::FromStr;

use bytes::Bytes;
use protocol::Str;
use protocol::json::Json;
use protocol::records::Record;
use protocol::stored::MetadataRecord;

use super::{Failure, remote};
use crate::tools::stored::{Coordinator, Unreadable};

#[derive(Clone, Copy, Debug)]
pub(super) enum Decoder {
    Offsets,
    Transactions,
    ClusterMetadata,
    RemoteLogMetadata,
    ShareGroupState,
    Text {
        key: TextDecoder,
        value: TextDecoder,
    },
}

/// Kafka's decoders of one key or value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TextDecoder {
    #[default]
    String,
    Integer,
    Long,
    /// The bytes as they are.
    Default,
}

impl FromStr for TextDecoder {
    type Err = String;

    fn from_str(class: &str) -> Result<TextDecoder, String> {
        let name = class.rsplit('.').next().unwrap_or(class);
        match name {
            "StringDecoder" => Ok(TextDecoder::String),
            "IntegerDecoder" => Ok(TextDecoder::Integer),
            "LongDecoder" => Ok(TextDecoder::Long),
            "DefaultDecoder" => Ok(TextDecoder::Default),
            _ => Err(
                "Java classes cannot be loaded here; there are StringDecoder, IntegerDecoder, LongDecoder and \
                 DefaultDecoder"
                    .to_owned(),
            ),
        }
    }
}

impl TextDecoder {
    fn decode(self, bytes: &Bytes, offset: i64) -> Result<String, Failure> {
        let wrong = |kind: &str, size: usize| {
            Failure::new(format!(
                "the record at offset {offset}: {} bytes are no {kind}, which has {size}",
                bytes.len()
            ))
        };
        match self {
            TextDecoder::String => Ok(String::from_utf8_lossy(bytes).into_owned()),
            TextDecoder::Integer => {
                let number = bytes.as_ref().try_into().map(i32::from_be_bytes);
                let number = number.map_err(|_| wrong("integer", 4))?;
                Ok(number.to_string())
            }
            TextDecoder::Long => {
                let number = bytes.as_ref().try_into().map(i64::from_be_bytes);
                let number = number.map_err(|_| wrong("long", 8))?;
                Ok(number.to_string())
            }
            TextDecoder::Default => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}

/// What is printed of key and value.
type Shown = (Option<String>, Option<String>);

impl Decoder {
    pub(super) fn decode(self, record: &Record) -> Result<Shown, Failure> {
        let coordinator = match self {
            Decoder::Offsets => Coordinator::Group,
            Decoder::Transactions => Coordinator::Transaction,
            Decoder::ShareGroupState => Coordinator::Share,
            Decoder::ClusterMetadata => return Ok((None, Some(metadata_record(record)))),
            Decoder::RemoteLogMetadata => return Ok((None, Some(remote::show(record)))),
            Decoder::Text { key, value } => {
                let show = |decoder: TextDecoder, part: &Option<Bytes>| {
                    let decode = |bytes| decoder.decode(bytes, record.offset);
                    part.as_ref().map(decode).transpose()
                };
                return Ok((show(key, &record.key)?, show(value, &record.value)?));
            }
        };
        let offset = record.offset;
        let Some(key) = &record.key else {
            return Err(Failure::new(format!(
                "Failed to decode message at offset {offset} using the specified decoder (message had a missing key)"
            )));
        };
        Ok(
            match coordinator.read(key.clone(), record.value.clone(), true) {
                Ok(shown) => {
                    let key = labelled("type", shown.type_id, shown.key);
                    let value = match shown.value {
                        Some((version, value)) => labelled("version", version, value).to_string(),
                        None => "<DELETE>".to_owned(),
                    };
                    (Some(key.to_string()), Some(value))
                }
                Err(Unreadable::Type(kind)) => {
                    let text = format!("Unknown record type {kind} at offset {offset}, skipping.");
                    (Some(text), None)
                }
                Err(why) => (
                    Some(format!("Error at offset {offset}, skipping. {why}")),
                    None,
                ),
            },
        )
    }
}

/// Numbers in front of a coordinator's records are shown as text.
fn labelled(label: &'static str, number: i16, data: Json) -> Json {
    let number = Json::Text(Str::from(number.to_string()));
    Json::Object(vec![(label, number), ("data", data)])
}

fn metadata_record(record: &Record) -> String {
    let value = record.value.clone().unwrap_or_default();
    let skipping = |why: &dyn Display| format!("Error at {}, skipping. {why}", record.offset);
    match MetadataRecord::decode(value) {
        Ok((MetadataRecord::Unknown(unknown), version)) => skipping(&format!(
            "type {} in version {version} is not known",
            unknown.type_id
        )),
        Ok((known, version)) => {
            let name = Json::Text(Str::from(constant_case(known.name().unwrap_or_default())));
            let data = known.json(version).unwrap_or(Json::Null);
            let version = Json::Int(i64::from(version));
            Json::Object(vec![("type", name), ("version", version), ("data", data)]).to_string()
        }
        Err(error) => skipping(&error),
    }
}

/// `TopicRecord` is `TOPIC_RECORD`.
fn constant_case(name: &str) -> String {
    let mut out = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}
