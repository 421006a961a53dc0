//! Names of directories and files inside a log directory, as Apache Kafka chooses them.

use std::fmt;

/// A partition by topic name and number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: String,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<String>, partition: i32) -> TopicPartition {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }

    /// `<topic>-<partition>`.
    pub fn directory_name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }

    /// `<topic>-<partition>.<32 hex digits>-delete`. The topic is shortened where the name would exceed 255 bytes.
    pub fn delete_name(&self, unique: u128) -> String {
        self.unique_name(unique, DELETE_SUFFIX)
    }

    /// `<topic>-<partition>.<32 hex digits>-stray`, for directories that metadata does not know.
    pub fn stray_name(&self, unique: u128) -> String {
        self.unique_name(unique, STRAY_SUFFIX)
    }

    fn unique_name(&self, unique: u128, suffix: &str) -> String {
        let tail = format!("-{}.{unique:032x}{suffix}", self.partition);
        let room = 255 - tail.len();
        // Topic names are ASCII (Kafka's rule); cutting at a char boundary keeps a foreign one from panicking.
        let mut end = self.topic.len().min(room);
        while !self.topic.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}{tail}", &self.topic[..end])
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

const DELETE_SUFFIX: &str = "-delete";
const STRAY_SUFFIX: &str = "-stray";
const FUTURE_SUFFIX: &str = "-future";

/// What a directory below a log directory is, judged by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryKind {
    /// A live partition.
    Partition(TopicPartition),
    /// Being deleted: what remains may be removed.
    Deleted,
    /// Set aside by an earlier start.
    Stray,
    /// A replica being moved here from another disk.
    Future(TopicPartition),
    /// Nothing of ours.
    Other,
}

/// Reads a directory's name back. Never fails: a name that fits no rule is `Other`.
pub fn directory_kind(name: &str) -> DirectoryKind {
    if name.ends_with(DELETE_SUFFIX) && has_unique_part(name, DELETE_SUFFIX) {
        return DirectoryKind::Deleted;
    }
    if name.ends_with(STRAY_SUFFIX) && has_unique_part(name, STRAY_SUFFIX) {
        return DirectoryKind::Stray;
    }
    if has_unique_part(name, FUTURE_SUFFIX) {
        return match name
            .rsplit_once('.')
            .and_then(|(front, _)| parse_partition(front))
        {
            Some(partition) => DirectoryKind::Future(partition),
            None => DirectoryKind::Other,
        };
    }
    parse_partition(name).map_or(DirectoryKind::Other, DirectoryKind::Partition)
}

/// Matches `(\S+)-(\S+)\.(\S+)<suffix>`.
fn has_unique_part(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        .and_then(|front| front.rsplit_once('.'))
        .is_some_and(|(front, unique)| !unique.is_empty() && front.contains('-'))
}

fn parse_partition(name: &str) -> Option<TopicPartition> {
    let (topic, partition) = name.rsplit_once('-')?;
    if topic.is_empty() || partition.is_empty() || !partition.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(TopicPartition::new(topic, partition.parse().ok()?))
}

/// The files of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
}

impl FileKind {
    pub fn suffix(self) -> &'static str {
        match self {
            FileKind::Log => ".log",
            FileKind::OffsetIndex => ".index",
            FileKind::TimeIndex => ".timeindex",
            FileKind::TransactionIndex => ".txnindex",
            FileKind::ProducerSnapshot => ".snapshot",
        }
    }

    const ALL: [FileKind; 5] = [
        FileKind::Log,
        FileKind::OffsetIndex,
        FileKind::TimeIndex,
        FileKind::TransactionIndex,
        FileKind::ProducerSnapshot,
    ];
}

/// States a segment file passes through on its way in (compaction) and out (deletion).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStage {
    Live,
    Deleted,
    Cleaned,
    Swap,
}

/// The offset in a file name, 20 digits.
pub fn file_name(offset: i64, kind: FileKind) -> String {
    format!("{offset:020}{}", kind.suffix())
}

/// Reads a segment file's name back: offset, kind and stage.
pub fn parse_file_name(name: &str) -> Option<(i64, FileKind, FileStage)> {
    let (stem, stage) = if let Some(stem) = name.strip_suffix(".deleted") {
        (stem, FileStage::Deleted)
    } else if let Some(stem) = name.strip_suffix(".cleaned") {
        (stem, FileStage::Cleaned)
    } else if let Some(stem) = name.strip_suffix(".swap") {
        (stem, FileStage::Swap)
    } else {
        (name, FileStage::Live)
    };
    let kind = FileKind::ALL
        .into_iter()
        .find(|kind| stem.ends_with(kind.suffix()))?;
    let digits = stem.strip_suffix(kind.suffix())?;
    if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, kind, stage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_names_round_trip() {
        let partition = TopicPartition::new("a-b.c_d", 12);
        assert_eq!(partition.directory_name(), "a-b.c_d-12");
        assert_eq!(
            directory_kind("a-b.c_d-12"),
            DirectoryKind::Partition(partition.clone())
        );
        assert_eq!(
            directory_kind(&partition.delete_name(7)),
            DirectoryKind::Deleted
        );
        assert_eq!(
            directory_kind(&partition.stray_name(7)),
            DirectoryKind::Stray
        );
        assert_eq!(
            directory_kind("a-b.c_d-12.0123abc-future"),
            DirectoryKind::Future(partition.clone())
        );
        assert_eq!(
            partition.delete_name(7),
            format!("a-b.c_d-12.{:032x}-delete", 7)
        );
    }

    #[test]
    fn long_topics_stay_within_a_file_name() {
        let partition = TopicPartition::new("x".repeat(249), 123_456);
        assert_eq!(partition.delete_name(u128::MAX).len(), 255);
    }

    #[test]
    fn foreign_directories_are_left_alone() {
        for name in [
            "lost+found",
            "-1",
            "topic",
            "topic-",
            "topic-x1",
            "topic-99999999999",
            "",
        ] {
            assert_eq!(directory_kind(name), DirectoryKind::Other, "{name}");
        }
    }

    #[test]
    fn file_names_round_trip() {
        assert_eq!(file_name(42, FileKind::Log), "00000000000000000042.log");
        assert_eq!(
            parse_file_name("00000000000000000042.timeindex.swap"),
            Some((42, FileKind::TimeIndex, FileStage::Swap))
        );
        assert_eq!(
            parse_file_name("00000000000000000042.index"),
            Some((42, FileKind::OffsetIndex, FileStage::Live))
        );
        assert_eq!(parse_file_name("42.log"), None);
        assert_eq!(
            parse_file_name("00000000000000000042-0000000001.checkpoint"),
            None
        );
        assert_eq!(parse_file_name("leader-epoch-checkpoint"), None);
    }
}
