//! How a record is shown: Kafka's formatters, by their names.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bytes::Bytes;
use protocol::json::Json;
use protocol::records::{Record, TimestampType};

use crate::tools::Failure;
use crate::tools::consumer::RecordBatch;
use crate::tools::dump_log;
use crate::tools::properties::Typed;
use crate::tools::stored::Coordinator;

/// One of Kafka's formatters.
pub(super) enum Formatter {
    Default(Box<Columns>),
    Nothing,
    /// Records of a coordinator, of these types only.
    Coordinator(Coordinator, &'static [i16]),
    RemoteLogMetadata,
}

/// What stands in a line of the default formatter.
pub(super) struct Columns {
    timestamp: bool,
    partition: bool,
    offset: bool,
    delivery: bool,
    epoch: bool,
    headers: bool,
    key: bool,
    value: bool,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null_literal: String,
    key_deserializer: Deserializer,
    value_deserializer: Deserializer,
    headers_deserializer: Deserializer,
}

/// Kafka's deserializers, of which the text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deserializer {
    /// As they are.
    Bytes,
    String,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Boolean,
    Uuid,
}

impl Formatter {
    pub(super) fn new(
        class: &str,
        properties: &BTreeMap<String, String>,
    ) -> Result<Formatter, Failure> {
        let name = class.rsplit(['.', '$']).next().unwrap_or(class);
        Ok(match name {
            "DefaultMessageFormatter" | "LoggingMessageFormatter" => {
                Formatter::Default(Box::new(Columns::new(properties)?))
            }
            "NoOpMessageFormatter" => Formatter::Nothing,
            "OffsetsMessageFormatter" => Formatter::Coordinator(Coordinator::Group, &[0, 1]),
            "GroupMetadataMessageFormatter" => Formatter::Coordinator(Coordinator::Group, &[2]),
            "ShareGroupMessageFormatter" => {
                Formatter::Coordinator(Coordinator::Group, &[10, 11, 12, 13, 14, 15])
            }
            "TransactionLogMessageFormatter" => {
                Formatter::Coordinator(Coordinator::Transaction, &[0])
            }
            "ShareGroupStateMessageFormatter" => {
                Formatter::Coordinator(Coordinator::Share, &[0, 1])
            }
            "RemoteLogMetadataFormatter" => Formatter::RemoteLogMetadata,
            _ => {
                return Err(Failure::new(format!(
                    "--formatter {class}: Java classes cannot be loaded here; there are DefaultMessageFormatter, NoOpMessageFormatter, OffsetsMessageFormatter, GroupMetadataMessageFormatter, ShareGroupMessageFormatter, TransactionLogMessageFormatter, ShareGroupStateMessageFormatter and RemoteLogMetadataFormatter"
                )));
            }
        })
    }

    /// The inner error is the record's, the outer one that of the output.
    pub(super) fn write(
        &self,
        batch: &RecordBatch,
        record: &Record,
        out: &mut dyn Write,
    ) -> io::Result<Result<(), Failure>> {
        match self {
            Formatter::Default(columns) => columns.write(batch, record, out),
            Formatter::Nothing => Ok(Ok(())),
            Formatter::Coordinator(coordinator, types) => {
                match coordinator_line(*coordinator, types, record) {
                    Ok(Some(json)) => write!(out, "{json}").map(Ok),
                    Ok(None) => Ok(Ok(())),
                    Err(failure) => Ok(Err(failure)),
                }
            }
            Formatter::RemoteLogMetadata => writeln!(
                out,
                "partition: {}, offset: {}, value: {}",
                batch.partition.number,
                record.offset,
                dump_log::remote_log_metadata(record)
            )
            .map(Ok),
        }
    }
}

/// Nothing for a record without a key or of a type that is not asked for.
fn coordinator_line(
    coordinator: Coordinator,
    types: &[i16],
    record: &Record,
) -> Result<Option<Json>, Failure> {
    let Some(key) = &record.key else {
        return Ok(None);
    };
    let shown = match coordinator.read(key.clone(), record.value.clone(), false) {
        Ok(shown) => shown,
        Err(crate::tools::stored::Unreadable::Type(_)) => return Ok(None),
        Err(why) => {
            return Err(Failure::new(format!(
                "Could not read record at offset {} due to: {why}",
                record.offset
            )));
        }
    };
    if !types.contains(&shown.type_id) {
        return Ok(None);
    }
    let numbered =
        |name, number: i16, data| Json::Object(vec![(name, Json::from(&number)), ("data", data)]);
    let value = match shown.value {
        Some((version, value)) => numbered("version", version, value),
        None => Json::Null,
    };
    Ok(Some(Json::Object(vec![
        ("key", numbered("type", shown.type_id, shown.key)),
        ("value", value),
    ])))
}

impl Columns {
    fn new(properties: &BTreeMap<String, String>) -> Result<Columns, Failure> {
        let typed = Typed(properties);
        let flag = |key: &str, default: &'static str| {
            typed.text(key, default).eq_ignore_ascii_case("true")
        };
        let text = |key: &str, default: &str| {
            properties
                .get(key)
                .map_or_else(|| default.to_owned(), Clone::clone)
        };
        let deserializer = |key: &str| match properties.get(key) {
            Some(class) => Deserializer::of_class(key, class),
            None => Ok(Deserializer::Bytes),
        };
        Ok(Columns {
            timestamp: flag("print.timestamp", "false"),
            partition: flag("print.partition", "false"),
            offset: flag("print.offset", "false"),
            delivery: flag("print.delivery", "false"),
            epoch: flag("print.epoch", "false"),
            headers: flag("print.headers", "false"),
            key: flag("print.key", "false"),
            value: flag("print.value", "true"),
            key_separator: text("key.separator", "\t"),
            line_separator: text("line.separator", "\n"),
            headers_separator: text("headers.separator", ","),
            null_literal: text("null.literal", "null"),
            key_deserializer: deserializer("key.deserializer")?,
            value_deserializer: deserializer("value.deserializer")?,
            headers_deserializer: deserializer("headers.deserializer")?,
        })
    }

    fn write(
        &self,
        batch: &RecordBatch,
        record: &Record,
        out: &mut dyn Write,
    ) -> io::Result<Result<(), Failure>> {
        let shown = match self.columns(batch, record) {
            Ok(shown) => shown,
            Err(failure) => return Ok(Err(failure)),
        };
        for (at, column) in shown.iter().enumerate() {
            if at > 0 {
                out.write_all(self.key_separator.as_bytes())?;
            }
            out.write_all(column)?;
        }
        out.write_all(self.line_separator.as_bytes()).map(Ok)
    }

    fn columns(&self, batch: &RecordBatch, record: &Record) -> Result<Vec<Bytes>, Failure> {
        let mut shown: Vec<Bytes> = Vec::with_capacity(2);
        if self.timestamp {
            let text = match batch.timestamp_type {
                Some(TimestampType::CreateTime) => format!("CreateTime:{}", record.timestamp),
                Some(TimestampType::LogAppendTime) => format!("LogAppendTime:{}", record.timestamp),
                None => "NO_TIMESTAMP".to_owned(),
            };
            shown.push(text.into());
        }
        if self.partition {
            shown.push(format!("Partition:{}", batch.partition.number).into());
        }
        if self.offset {
            shown.push(format!("Offset:{}", record.offset).into());
        }
        if self.delivery {
            shown.push("Delivery:NOT_PRESENT".into());
        }
        if self.epoch {
            // Kafka's tool does not hand it on to its formatter.
            shown.push("Epoch:NOT_PRESENT".into());
        }
        if self.headers {
            shown.push(self.headers_column(record)?);
        }
        if self.key {
            shown.push(self.text(self.key_deserializer, record.key.as_ref(), record)?);
        }
        if self.value {
            shown.push(self.text(self.value_deserializer, record.value.as_ref(), record)?);
        }
        Ok(shown)
    }

    fn headers_column(&self, record: &Record) -> Result<Bytes, Failure> {
        if record.headers.is_empty() {
            return Ok(Bytes::from_static(b"NO_HEADERS"));
        }
        let mut all = Vec::new();
        for (at, header) in record.headers.iter().enumerate() {
            if at > 0 {
                all.extend_from_slice(self.headers_separator.as_bytes());
            }
            all.extend_from_slice(String::from_utf8_lossy(&header.key).as_bytes());
            all.push(b':');
            let deserializer = self.headers_deserializer;
            all.extend_from_slice(&self.text(deserializer, header.value.as_ref(), record)?);
        }
        Ok(all.into())
    }

    fn text(
        &self,
        deserializer: Deserializer,
        part: Option<&Bytes>,
        record: &Record,
    ) -> Result<Bytes, Failure> {
        match part {
            None => Ok(Bytes::copy_from_slice(self.null_literal.as_bytes())),
            Some(bytes) => deserializer.text(bytes).map_err(|why| {
                Failure::new(format!("the record at offset {}: {why}", record.offset))
            }),
        }
    }
}

impl Deserializer {
    fn of_class(key: &str, class: &str) -> Result<Deserializer, Failure> {
        Ok(match class.rsplit('.').next().unwrap_or(class) {
            "ByteArrayDeserializer" | "BytesDeserializer" | "ByteBufferDeserializer" => {
                Deserializer::Bytes
            }
            "StringDeserializer" => Deserializer::String,
            "ShortDeserializer" => Deserializer::Short,
            "IntegerDeserializer" => Deserializer::Integer,
            "LongDeserializer" => Deserializer::Long,
            "FloatDeserializer" => Deserializer::Float,
            "DoubleDeserializer" => Deserializer::Double,
            "BooleanDeserializer" => Deserializer::Boolean,
            "UUIDDeserializer" => Deserializer::Uuid,
            _ => {
                return Err(Failure::new(format!(
                    "{key}={class}: Java classes cannot be loaded here; there are the deserializers of Kafka for String, Short, Integer, Long, Float, Double, Boolean, UUID and ByteArray"
                )));
            }
        })
    }

    fn text(self, bytes: &Bytes) -> Result<Bytes, String> {
        let shown = match self {
            Deserializer::Bytes => return Ok(bytes.clone()),
            Deserializer::String | Deserializer::Uuid => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Deserializer::Short => i16::from_be_bytes(sized(bytes, self)?).to_string(),
            Deserializer::Integer => i32::from_be_bytes(sized(bytes, self)?).to_string(),
            Deserializer::Long => i64::from_be_bytes(sized(bytes, self)?).to_string(),
            Deserializer::Float => {
                let value = f32::from_be_bytes(sized(bytes, self)?);
                format!("{value:?}")
            }
            Deserializer::Double => {
                let value = f64::from_be_bytes(sized(bytes, self)?);
                Json::Float(value).to_string().replace('"', "")
            }
            Deserializer::Boolean => (sized::<1>(bytes, self)? == [1]).to_string(),
        };
        Ok(shown.into())
    }
}

fn sized<const N: usize>(bytes: &Bytes, kind: Deserializer) -> Result<[u8; N], String> {
    bytes
        .as_ref()
        .try_into()
        .map_err(|_| format!("Size of data received by {kind:?}Deserializer is not {N}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::client::Partition;
    use protocol::Str;
    use protocol::records::Header;

    fn shown(properties: &[(&str, &str)]) -> String {
        let properties = properties
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let formatter = Formatter::new("a.b.DefaultMessageFormatter", &properties).unwrap();
        let record = Record {
            offset: 5,
            timestamp: 1000,
            key: None,
            value: Some(Bytes::from_static(&[0, 0, 0, 7])),
            headers: vec![
                Header {
                    key: "a".into(),
                    value: Some("1".into()),
                },
                Header {
                    key: "b".into(),
                    value: None,
                },
            ],
        };
        let batch = RecordBatch {
            partition: Partition {
                topic: Str::from("t"),
                number: 3,
            },
            records: Vec::new(),
            timestamp_type: Some(TimestampType::CreateTime),
            leader_epoch: 9,
            next_offset: 6,
        };
        let mut out = Vec::new();
        match formatter.write(&batch, &record, &mut out).unwrap() {
            Ok(()) => String::from_utf8(out).unwrap(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn columns_come_in_kafkas_order() {
        let integer = ("value.deserializer", "x.IntegerDeserializer");
        let all = [
            ("print.timestamp", "true"),
            ("print.key", "true"),
            ("print.offset", "true"),
            ("print.partition", "true"),
            ("print.headers", "true"),
            ("print.epoch", "true"),
            ("key.separator", "|"),
            ("headers.separator", ";"),
            integer,
        ];
        assert_eq!(
            shown(&all),
            "CreateTime:1000|Partition:3|Offset:5|Epoch:NOT_PRESENT|a:1;b:null|null|7\n"
        );
        assert_eq!(shown(&[integer, ("line.separator", "!")]), "7!");
        assert_eq!(
            shown(&[("print.value", "false"), ("print.offset", "true")]),
            "Offset:5\n"
        );
        let long = ("value.deserializer", "LongDeserializer");
        assert_eq!(
            shown(&[long]),
            "the record at offset 5: Size of data received by LongDeserializer is not 8"
        );
    }

    #[test]
    fn other_classes_are_named() {
        let none = BTreeMap::new();
        let error = Formatter::new("com.acme.Mine", &none)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with("--formatter com.acme.Mine: Java classes"),
            "{error}"
        );
    }
}
