//! Small durable facts in text: Kafka's checkpoint files, `partition.metadata` and the clean-shutdown marker.
//!
//! Pure formats over plain data; `disk` reads and writes the files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use bytes::Bytes;
use protocol::Uuid;

use crate::epochs::EpochEntry;
use crate::names::TopicPartition;

/// Format version of every checkpoint file so far.
const VERSION: &str = "0";
/// A piece of a text that is written in pieces.
const PIECE_BYTES: usize = 32 << 10;
/// No line is as long as this: a topic's name has at most 249 characters.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Where and why a text is not what it should be; the caller adds the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFault {
    /// 1-based; 0 where the text as a whole is at fault.
    pub line: usize,
    pub why: String,
}

fn fault<T>(line: usize, why: impl Into<String>) -> Result<T, TextFault> {
    Err(TextFault {
        line,
        why: why.into(),
    })
}

/// Version line, count line, then one line an entry. In pieces: a line for each partition makes a long text.
fn encode_lines(lines: impl ExactSizeIterator<Item = String>) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    for line in lines {
        if text.len() + line.len() >= PIECE_BYTES && !text.is_empty() {
            pieces.push(Bytes::from(std::mem::take(&mut text)));
        }
        text.push_str(&line);
        text.push('\n');
    }
    pieces.push(Bytes::from(text));
    pieces
}

/// The lines of a text, without their ends.
struct Lines<'a> {
    text: &'a mut dyn BufRead,
    line: Vec<u8>,
    /// 1-based number of the line that came last.
    number: usize,
}

impl Lines<'_> {
    /// The next line; bytes that are no text become U+FFFD.
    fn next(&mut self) -> Result<Option<Cow<'_, str>>, TextFault> {
        self.number += 1;
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64;
        let read = (&mut *self.text)
            .take(limit)
            .read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => Ok(None),
            Ok(LINE_BYTES_MAX) => fault(self.number, "longer than any line can be"),
            Ok(_) => {
                let line = self.line.trim_ascii_end();
                Ok(Some(String::from_utf8_lossy(line)))
            }
            Err(error) => fault(self.number, error.to_string()),
        }
    }
}

/// The inverse. An empty file has no entries (Kafka creates it before its first write).
fn decode_lines<T, C: Default + Extend<T>>(
    text: &mut dyn BufRead,
    mut entry: impl FnMut(&[&str]) -> Option<T>,
) -> Result<C, TextFault> {
    let mut lines = Lines {
        text,
        line: Vec::new(),
        number: 0,
    };
    let mut entries = C::default();
    match lines.next()? {
        None => return Ok(entries),
        Some(version) if version.trim() == VERSION => {}
        Some(version) => return fault(1, format!("version {version:?}, expected {VERSION}")),
    }
    let count = match lines.next()? {
        None => return Ok(entries),
        Some(text) => match text.trim().parse::<usize>() {
            Ok(count) => count,
            Err(_) => return fault(2, format!("{text:?} is not a number of entries")),
        },
    };
    let mut found = 0;
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match entry(&fields) {
            Some(value) => entries.extend([value]),
            None => {
                let why = format!("malformed line {line:?}");
                return fault(lines.number, why);
            }
        }
        found += 1;
    }
    if found != count {
        return fault(2, format!("{count} entries promised, {found} found"));
    }
    Ok(entries)
}

/// `recovery-point-offset-checkpoint` and its siblings: `topic partition offset` a line.
pub fn encode_offsets<'a>(
    offsets: impl ExactSizeIterator<Item = (&'a TopicPartition, i64)>,
) -> Vec<Bytes> {
    encode_lines(offsets.map(|(at, offset)| format!("{} {} {offset}", at.topic, at.partition)))
}

/// # Errors
/// The line that cannot be read.
pub fn decode_offsets(text: &mut dyn BufRead) -> Result<BTreeMap<TopicPartition, i64>, TextFault> {
    decode_lines(text, |fields| match fields {
        [topic, partition, offset] => Some((
            TopicPartition::new(*topic, partition.parse().ok()?),
            offset.parse().ok()?,
        )),
        _ => None,
    })
}

/// `leader-epoch-checkpoint`: `epoch start-offset` a line.
pub fn encode_epochs(epochs: &[EpochEntry]) -> Vec<Bytes> {
    encode_lines(
        epochs
            .iter()
            .map(|entry| format!("{} {}", entry.epoch, entry.start_offset)),
    )
}

/// # Errors
/// The line that cannot be read.
pub fn decode_epochs(text: &mut dyn BufRead) -> Result<Vec<EpochEntry>, TextFault> {
    decode_lines(text, |fields| match fields {
        [epoch, start] => Some(EpochEntry {
            epoch: epoch.parse().ok()?,
            start_offset: start.parse().ok()?,
        }),
        _ => None,
    })
}

/// `partition.metadata`: the topic's id, so that a directory of a deleted topic is never taken for its successor's.
pub fn encode_partition_metadata(topic_id: Uuid) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

/// # Errors
/// Where the text is not a version line and a topic id other than zero.
pub fn decode_partition_metadata(text: &str) -> Result<Uuid, TextFault> {
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("version:"));
    match version.and_then(|version| version.trim().parse::<u32>().ok()) {
        // A later version keeps these two lines (Kafka reads any version from 0 on).
        Some(_) => {}
        None => return fault(1, "no version"),
    }
    let id = lines.next().and_then(|line| line.strip_prefix("topic_id:"));
    match id.and_then(|id| id.trim().parse::<Uuid>().ok()) {
        Some(id) if id != Uuid::ZERO => Ok(id),
        _ => fault(2, "no topic id"),
    }
}

/// `.kafka_cleanshutdown`: JSON with version 0 and the broker epoch (KIP-966).
pub fn encode_clean_shutdown(broker_epoch: i64) -> String {
    format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}")
}

/// The broker epoch in a clean-shutdown marker. `None` where it has none: older brokers wrote an empty file,
/// which is as clean.
pub fn decode_clean_shutdown(text: &str) -> Option<i64> {
    let (_, after) = text.split_once("\"brokerEpoch\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = value
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

/// For error texts: `line 3: malformed line "x"`.
impl std::fmt::Display for TextFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_checkpoints_are_kafkas_text() {
        let a = TopicPartition::new("orders", 0);
        let b = TopicPartition::new("orders", 11);
        let text = encode_offsets([(&a, 5), (&b, 0)].into_iter()).concat();
        assert_eq!(text, b"0\n2\norders 0 5\norders 11 0\n");
        let offsets = BTreeMap::from([(a, 5), (b, 0)]);
        assert_eq!(decode_offsets(&mut &text[..]).unwrap(), offsets);
        assert_eq!(decode_offsets(&mut &b""[..]).unwrap(), BTreeMap::new());
    }

    #[test]
    fn many_offsets_are_written_in_pieces() {
        let offsets: BTreeMap<TopicPartition, i64> = (0..10_000)
            .map(|number| (TopicPartition::new("orders", number), i64::from(number)))
            .collect();
        let pieces = encode_offsets(offsets.iter().map(|(at, offset)| (at, *offset)));
        assert!(pieces.len() > 3);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
        assert_eq!(decode_offsets(&mut &pieces.concat()[..]).unwrap(), offsets);
    }

    #[test]
    fn a_line_without_an_end_is_not_read_whole() {
        let text = [b"0\n1\n".to_vec(), vec![b'x'; 1 << 20]].concat();
        let failure = decode_offsets(&mut &text[..]).unwrap_err();
        assert_eq!(
            (failure.line, &*failure.why),
            (3, "longer than any line can be")
        );
    }

    #[test]
    fn damaged_checkpoints_name_the_line() {
        let line = |text: &str| decode_offsets(&mut text.as_bytes()).unwrap_err().line;
        assert_eq!(line("1\n0\n"), 1);
        assert_eq!(line("0\nx\n"), 2);
        assert_eq!(line("0\n1\norders 0\n"), 3);
        assert_eq!(line("0\n2\norders 0 1\n"), 2);
    }

    #[test]
    fn epochs_round_trip() {
        let epochs = [
            EpochEntry {
                epoch: 0,
                start_offset: 0,
            },
            EpochEntry {
                epoch: 7,
                start_offset: 120,
            },
        ];
        let text = encode_epochs(&epochs).concat();
        assert_eq!(text, b"0\n2\n0 0\n7 120\n");
        assert_eq!(decode_epochs(&mut &text[..]).unwrap(), epochs);
    }

    #[test]
    fn partition_metadata_is_kafkas_text() {
        let text = "version: 0\ntopic_id: JGSrYWUcTBKJqrKYrkPzUw";
        let id = decode_partition_metadata(text).unwrap();
        assert_eq!(encode_partition_metadata(id), text);
        assert!(decode_partition_metadata("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA").is_err());
        assert!(decode_partition_metadata("").is_err());
    }

    #[test]
    fn the_clean_marker_is_kafkas_json() {
        assert_eq!(
            encode_clean_shutdown(34),
            "{\"version\":0,\"brokerEpoch\":34}"
        );
        assert_eq!(
            decode_clean_shutdown("{\"version\":0,\"brokerEpoch\":34}"),
            Some(34)
        );
        assert_eq!(
            decode_clean_shutdown("{ \"brokerEpoch\" : -1, \"version\" : 0 }"),
            Some(-1)
        );
        assert_eq!(decode_clean_shutdown(""), None);
    }
}
