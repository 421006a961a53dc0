//! What the fuzz targets do with some bytes, one function a group of decoders. `cargo test` runs the same functions over
//! the saved corpus and over seeded mutations.
//!
//! Each answers whether something could be read, and panics where a promise is broken. The first byte chooses the decoder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use broker::config::directories::MetaProperties;
use broker::config::{BrokerConfig, Settings, Voter, properties, validate_overrides};
use broker::coordinator::record::LogRecord;
use broker::coordinator::state::Durable;
use broker::coordinator::{Coordinator, Settings as GroupSettings, subscribed_topics};
use broker::metadata::snapshot_file::{
    SnapshotId, read_checkpoint, replay_snapshot, write_snapshot,
};
use broker::metadata::{Placement, QuorumState, Replay, read_entries};
use broker::tools::Tool;
use bytes::Bytes;
use clap::{ArgMatches, FromArgMatches, Subcommand};
use protocol::records::BatchBuilder;
use protocol::{Pieces, Uuid};
use storage::checkpoint;
use storage::index::{OffsetEntries, TimeEntries};
use storage::producer::{AppendOrigin, ProducerState, snapshot};
use storage::{BatchHeader, LeaderEpochs};

/// The files of a partition's directory and of a log directory.
pub fn storage_files(data: &[u8]) -> bool {
    let Some((which, rest)) = data.split_first() else {
        return false;
    };
    match which % 7 {
        0 => offset_index(rest),
        1 => time_index(rest),
        2 => producer_snapshot(rest),
        3 => text(rest, offset_checkpoint),
        4 => text(rest, epoch_checkpoint),
        5 => text(rest, |text| {
            let id = checkpoint::decode_partition_metadata(text);
            if let Ok(id) = id {
                let again = checkpoint::encode_partition_metadata(id);
                assert_eq!(checkpoint::decode_partition_metadata(&again).ok(), Some(id));
            }
            id.is_ok()
        }),
        _ => text(rest, |text| {
            let epoch = checkpoint::decode_clean_shutdown(text);
            if let Some(epoch) = epoch {
                let again = checkpoint::encode_clean_shutdown(epoch);
                assert_eq!(checkpoint::decode_clean_shutdown(&again), Some(epoch));
            }
            epoch.is_some()
        }),
    }
}

fn text(bytes: &[u8], read: impl FnOnce(&str) -> bool) -> bool {
    std::str::from_utf8(bytes).is_ok_and(read)
}

/// Four bytes of segment size, then the index. What passes its check is searched.
fn offset_index(data: &[u8]) -> bool {
    let Some((size, bytes)) = data.split_first_chunk() else {
        return false;
    };
    let size = u32::from_be_bytes(*size);
    let entries = OffsetEntries(bytes);
    if entries.check(size).is_err() {
        return false;
    }
    let mut probes = vec![0, 1, size, u32::MAX];
    if let Some((relative, position)) = entries.last() {
        probes.extend([relative, relative.saturating_add(1), position]);
    }
    for probe in probes {
        assert!(entries.position_before(probe) < size.max(1));
        assert!(entries.position_not_above(probe) <= probe);
        assert!(entries.entries_below(probe) <= entries.len());
    }
    true
}

fn time_index(bytes: &[u8]) -> bool {
    let entries = TimeEntries(bytes);
    if entries.check().is_err() {
        return false;
    }
    let mut probes = vec![i64::MIN, -1, 0, i64::MAX];
    probes.extend(entries.last().map(|(timestamp, _)| timestamp));
    for probe in probes {
        let offset = entries.offset_before(probe);
        assert!(offset <= entries.last().map_or(0, |(_, last)| last));
        assert!(entries.entries_below(offset) <= entries.len());
    }
    true
}

/// A snapshot, its checksum made right, and behind it the header of a batch that meets this state.
fn producer_snapshot(data: &[u8]) -> bool {
    const HEADER: usize = 10;
    const ENTRY: usize = 46;
    let mut bytes = data.to_vec();
    let count = bytes.get(6..HEADER).map_or(0, |count| {
        usize::from(u8::from(count[..3] != [0, 0, 0])) * 1000 + usize::from(count[3])
    });
    let end = bytes.len().min(HEADER + count * ENTRY);
    let batch = bytes.split_off(end);
    if let Some(summed) = bytes.get(6..) {
        let crc = crc32c::crc32c(summed).to_be_bytes();
        bytes[2..6].copy_from_slice(&crc);
    }
    let Ok(mut state) = snapshot::decode(&bytes) else {
        return false;
    };
    let again = snapshot::encode(&state);
    assert_eq!(snapshot::decode(&again).ok().as_ref(), Some(&state));
    if let Ok(header) = BatchHeader::parse(&batch) {
        meet(&mut state, &header);
    }
    state.enforce_limit(2);
    state.remove_expired(i64::MAX, 0);
    true
}

fn meet(state: &mut ProducerState, header: &BatchHeader) {
    for origin in [
        AppendOrigin::Client,
        AppendOrigin::Coordinator,
        AppendOrigin::Replication,
    ] {
        for never_written in [true, false] {
            let _ = state.check(header, origin, never_written);
        }
    }
    for (_, producer) in state.iter() {
        for batch in producer.batches() {
            let _ = (batch.first_offset(), batch.first_sequence());
        }
    }
    let before = state.clone();
    let undo = state.apply_batch(header);
    let _ = state.check(header, AppendOrigin::Client, false);
    state.undo(undo);
    assert_eq!(*state, before);
}

fn offset_checkpoint(text: &str) -> bool {
    let Ok(offsets) = checkpoint::decode_offsets(&mut text.as_bytes()) else {
        return false;
    };
    let again = checkpoint::encode_offsets(offsets.iter().map(|(at, offset)| (at, *offset)));
    assert_eq!(
        checkpoint::decode_offsets(&mut Pieces::from(again)).ok(),
        Some(offsets)
    );
    true
}

fn epoch_checkpoint(text: &str) -> bool {
    let Ok(entries) = checkpoint::decode_epochs(&mut text.as_bytes()) else {
        return false;
    };
    let again = checkpoint::encode_epochs(&entries);
    assert_eq!(
        checkpoint::decode_epochs(&mut Pieces::from(again))
            .ok()
            .as_ref(),
        Some(&entries)
    );
    let mut epochs = LeaderEpochs::from_entries(entries);
    let sorted = |epochs: &LeaderEpochs| {
        epochs
            .entries()
            .is_sorted_by(|a, b| a.epoch < b.epoch && a.start_offset <= b.start_offset)
    };
    assert!(sorted(&epochs));
    let probes: Vec<(i32, i64)> = epochs
        .entries()
        .iter()
        .map(|entry| (entry.epoch, entry.start_offset))
        .chain([(0, 0), (i32::MAX, i64::MAX), (-1, -1)])
        .collect();
    for (epoch, offset) in &probes {
        let _ = epochs.end_offset_for(*epoch, *offset);
        let _ = epochs.epoch_for(*offset);
    }
    for (epoch, offset) in probes {
        let mut cut = epochs.clone();
        cut.truncate_from_end(offset);
        assert!(sorted(&cut));
        cut.truncate_from_start(offset);
        assert!(sorted(&cut));
        epochs.assign(epoch, offset);
        assert!(sorted(&epochs));
    }
    true
}

/// The small files of a node.
pub fn broker_files(data: &[u8]) -> bool {
    let Some((which, rest)) = data.split_first() else {
        return false;
    };
    match which % 5 {
        0 => {
            let Ok(meta) = MetaProperties::parse(rest) else {
                return false;
            };
            assert_eq!(MetaProperties::parse(&meta.to_bytes(0)), Ok(meta));
            true
        }
        1 => text(rest, |text| {
            let Ok(state) = QuorumState::from_json(text) else {
                return false;
            };
            assert_eq!(QuorumState::from_json(&state.to_json()), Ok(state));
            true
        }),
        2 => placement(rest),
        3 => text(rest, |text| {
            let id = SnapshotId::from_file_name(text);
            if let Some(id) = id {
                assert_eq!(SnapshotId::from_file_name(&id.file_name()), Some(id));
            }
            id.is_some()
        }),
        _ => text(rest, |text| Voter::parse(text).is_ok()),
    }
}

/// The placement table with magic, lengths and checksums made right.
fn placement(data: &[u8]) -> bool {
    let mut file = b"RMPLACE2".to_vec();
    for piece in pieces(data) {
        file.extend((piece.len() as u32).to_be_bytes());
        file.extend(crc32c::crc32c(&piece).to_be_bytes());
        file.extend(piece);
    }
    let Ok(table) = Placement::read(&mut &file[..]) else {
        return false;
    };
    let again = table.encode().expect("it was read").concat();
    assert_eq!(Placement::read(&mut &again[..]).as_ref(), Ok(&table));
    let mut table = table.for_cores(2);
    table.assign(Uuid::ONE, 0);
    table.move_to(Uuid::ONE, 0, 1);
    table.remove(Uuid::ONE, 0);
    true
}

/// Pieces of the input, each behind two bytes of length.
fn pieces(mut data: &[u8]) -> Vec<Bytes> {
    let mut all = Vec::new();
    while let Some(([high, low], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high & 3, *low])).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        all.push(Bytes::copy_from_slice(piece));
        data = rest;
    }
    all
}

/// The metadata log and its snapshots: batches as they are, or records put into batches that are right.
pub fn metadata_log(data: &[u8]) -> bool {
    let Some((which, rest)) = data.split_first() else {
        return false;
    };
    let bytes = match which % 4 {
        0 => {
            let mut sealed = rest.to_vec();
            seal(&mut sealed);
            sealed.into()
        }
        1 => batches(rest, false),
        2 => batches(rest, true),
        _ => Bytes::copy_from_slice(rest),
    };
    let mut replay = Replay::default();
    let mut read = 0;
    let replayed = read_entries(bytes.clone(), |entry| {
        read += 1;
        replay.apply(&entry)
    });
    let _ = (replay.latest(), replay.open_transaction(), replay.quorum());
    if replayed.is_ok() {
        comes_back(&replay);
    }
    let id = SnapshotId {
        end_offset: 10,
        epoch: 1,
    };
    let whole = read_checkpoint(bytes.clone().into()).is_ok();
    if let Ok(replay) = replay_snapshot(bytes.into(), id) {
        assert!(whole);
        comes_back(&replay);
    }
    read > 0
}

/// What was read is written as a snapshot, and read again.
fn comes_back(replay: &Replay) {
    let image = replay.image();
    let Ok(bytes) = write_snapshot(image, replay.quorum(), 0) else {
        return;
    };
    let again =
        replay_snapshot(bytes.into(), SnapshotId::of(image)).expect("a snapshot that we wrote");
    assert_eq!(again.image().topics().count(), image.topics().count());
}

/// Makes length and checksum of a first batch right, so that the rest is believed.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < 61 {
        return;
    }
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// Batches of the pieces: the values of data records, or keys and values of control records.
fn batches(data: &[u8], control: bool) -> Bytes {
    let mut all = Vec::new();
    let pieces = pieces(data);
    let records: Vec<(Option<&Bytes>, &Bytes)> = if control {
        pieces
            .chunks_exact(2)
            .map(|pair| (Some(&pair[0]), &pair[1]))
            .collect()
    } else {
        pieces.iter().map(|value| (None, value)).collect()
    };
    let mut offset = 0;
    for group in records.chunks(3) {
        let mut batch = BatchBuilder::new(offset)
            .partition_leader_epoch(1)
            .control(control);
        for (key, value) in group {
            batch.append(0, key.map(|key| &key[..]), Some(value), &[]);
        }
        offset += group.len() as i64;
        if let Ok(bytes) = batch.build() {
            all.extend_from_slice(&bytes);
        }
    }
    all.into()
}

/// The log of a group coordinator, key and value by turns, and what members say of themselves.
pub fn group_log(data: &[u8]) -> bool {
    let pieces = pieces(data);
    let mut read = false;
    let mut coordinator = Coordinator::new(GroupSettings::default());
    let mut durable = Durable::default();
    for (offset, pair) in (0i64..).zip(pieces.chunks(2)) {
        read |= subscribed_topics(&pair[0]).is_some();
        let value = pair.get(1).filter(|value| !value.is_empty()).cloned();
        let producer = offset % 3 - 1;
        let record = LogRecord::decode_parts(producer, pair[0].clone(), value);
        coordinator.replay(offset, &record);
        durable.apply(offset, &record);
    }
    assert_eq!(coordinator.durable(), &durable);
    read |= durable != Durable::default();
    for group in durable.groups().map(|(id, _)| id.clone()) {
        let _ = durable.partitions_with_offsets(&group);
    }
    let now_ms = 1_700_000_000_000;
    let _ = coordinator.loaded(now_ms);
    let _ = coordinator.unload(now_ms);
    read
}

/// `server.properties`, and a topic's own settings.
pub fn config(data: &[u8]) -> bool {
    let Ok(written) = properties::parse(data) else {
        return false;
    };
    let overrides: BTreeMap<&str, &str> = written
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    if let Ok(defaults) = Settings::new(BTreeMap::new()) {
        let _ = validate_overrides(&defaults, &overrides);
    }
    let pairs: Vec<(&str, &str)> = overrides.into_iter().collect();
    let single = BrokerConfig::single_node(&pairs);
    let read = single.is_ok();
    if let Ok(config) = single {
        let _ = config.warnings();
        let _ = config.offsets.topic_overrides();
    }
    if let Ok(settings) = Settings::new(written.clone())
        && let Ok(config) = BrokerConfig::new(settings)
    {
        let _ = config.warnings();
        return true;
    }
    read
}

/// Kinds of files with the flags that `dump-log` gets for them.
const DUMPS: [(&str, &[&str]); 14] = [
    ("log", &["--deep-iteration"]),
    (
        "log",
        &["--print-data-log", "--value-decoder-class", "LongDecoder"],
    ),
    ("log", &["--offsets-decoder"]),
    ("log", &["--transaction-log-decoder"]),
    ("log", &["--cluster-metadata-decoder"]),
    ("log", &["--remote-log-metadata-decoder"]),
    ("log", &["--share-group-state-decoder"]),
    ("checkpoint", &["--cluster-metadata-decoder"]),
    ("index", &[]),
    ("index", &["--index-sanity-check"]),
    ("timeindex", &[]),
    ("timeindex", &["--verify-index-only"]),
    ("snapshot", &[]),
    ("txnindex", &[]),
];

/// The files of one directory, and the commands that dump them.
struct Dumps {
    directory: PathBuf,
    commands: Vec<ArgMatches>,
}

impl Dumps {
    fn new() -> Self {
        let unique = format!("ringmain-dumped-{}", std::process::id());
        let directory = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&directory).expect("a directory for files to dump");
        let commands = DUMPS.iter().map(|(kind, flags)| {
            let command = Tool::augment_subcommands(clap::Command::new("ringmain"));
            let path = Self::path(&directory, kind);
            let front = ["ringmain", "dump-log", "--files"].map(OsString::from);
            let arguments = front.into_iter().chain([path.into_os_string()]);
            let flags = flags.iter().map(OsString::from);
            command
                .try_get_matches_from(arguments.chain(flags))
                .expect("flags of Kafka's")
        });
        Self {
            commands: commands.collect(),
            directory,
        }
    }

    fn path(directory: &Path, kind: &str) -> PathBuf {
        let stem = match kind {
            "checkpoint" => "00000000000000000010-0000000001",
            _ => "00000000000000000000",
        };
        directory.join(format!("{stem}.{kind}"))
    }
}

impl Drop for Dumps {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// What `ringmain dump-log` reads. The second byte says how the bytes of a log are made: as they are, sealed, or as the
/// contents of records; an index stands beside the log that follows it.
pub fn dumped(data: &[u8]) -> bool {
    thread_local! {
        static DUMPS_HERE: Dumps = Dumps::new();
    }
    let Some(([which, how], rest)) = data.split_first_chunk() else {
        return false;
    };
    let which = usize::from(*which) % DUMPS.len();
    let kind = DUMPS[which].0;
    DUMPS_HERE.with(|dumps| {
        let write = |kind: &str, bytes: &[u8]| {
            std::fs::write(Dumps::path(&dumps.directory, kind), bytes).expect("space for a file");
        };
        match kind {
            "log" | "checkpoint" => write(kind, &log_of(*how, rest)),
            "index" | "timeindex" => {
                let mut parts = pieces(rest).into_iter();
                write(kind, &parts.next().unwrap_or_default());
                write("log", &log_of(*how, &parts.next().unwrap_or_default()));
            }
            _ => write(kind, rest),
        }
        let tool = Tool::from_arg_matches(&dumps.commands[which]).expect("it was parsed");
        tool.run_with(&mut std::io::sink(), &mut std::io::sink())
            .is_ok()
    })
}

/// The bytes of a log.
fn log_of(how: u8, data: &[u8]) -> Bytes {
    match how % 4 {
        0 => {
            let mut sealed = data.to_vec();
            seal(&mut sealed);
            sealed.into()
        }
        1 => batches(data, true),
        2 => keyed(data),
        _ => Bytes::copy_from_slice(data),
    }
}

/// A batch of data records with the keys and values of the pieces, by turns.
fn keyed(data: &[u8]) -> Bytes {
    let mut batch = BatchBuilder::new(0);
    for pair in pieces(data).chunks(2) {
        let value = pair.get(1).filter(|value| !value.is_empty());
        let key = Some(&pair[0]).filter(|key| !key.is_empty());
        batch.append(
            0,
            key.map(|key| &key[..]),
            value.map(|value| &value[..]),
            &[],
        );
    }
    batch.build_bytes().unwrap_or_default()
}
