//! Files that Apache Kafka 4.4.0 wrote, read and written again.
//!
//! `static-voters`: one node with `controller.quorum.voters`, topics created, grown, deleted and
//! created again, configs, an ACL, a quota, a SCRAM credential, a clean stop and a second start.
//! `dynamic-voters`: one node formatted with `--standalone`, first start.

use bytes::Bytes;

use super::snapshot_file::{
    FIRST_CHECKPOINT, SnapshotId, read_checkpoint, replay_snapshot, write_snapshot,
};
use super::*;

const LOG: &[u8] = include_bytes!("golden/static-voters.log");
const FIRST: &[u8] =
    include_bytes!("golden/static-voters-00000000000000000000-0000000000.checkpoint");
const SNAPSHOT: &[u8] =
    include_bytes!("golden/static-voters-00000000000000000091-0000000001.checkpoint");
const DYNAMIC_LOG: &[u8] = include_bytes!("golden/dynamic-voters.log");
const DYNAMIC_FIRST: &[u8] =
    include_bytes!("golden/dynamic-voters-00000000000000000000-0000000000.checkpoint");
const DYNAMIC_SNAPSHOT: &[u8] =
    include_bytes!("golden/dynamic-voters-00000000000000000048-0000000001.checkpoint");
const ALL: [&[u8]; 6] = [
    LOG,
    FIRST,
    SNAPSHOT,
    DYNAMIC_LOG,
    DYNAMIC_FIRST,
    DYNAMIC_SNAPSHOT,
];

const AT_91: SnapshotId = SnapshotId {
    end_offset: 91,
    epoch: 1,
};

/// Replays the log up to `end`, exclusive.
fn replay(log: &'static [u8], end: i64) -> Replay {
    let mut replay = Replay::default();
    read_entries(Bytes::from_static(log), |entry| {
        if entry.offset < end {
            replay.apply(&entry)
        } else {
            Ok(())
        }
    })
    .unwrap();
    replay
}

/// Entries with the timestamps of their batches.
fn entries(bytes: &[u8]) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    read_entries(Bytes::copy_from_slice(bytes), |entry| {
        entries.push(entry);
        Ok(())
    })
    .unwrap();
    entries
}

#[test]
fn batches_come_back_byte_for_byte() {
    for file in ALL {
        let mut written = Vec::new();
        for batch in protocol::records::split_batches(Bytes::from_static(file)) {
            let batch = batch.unwrap();
            let mut writer = EntryWriter::new(
                batch.base_offset,
                batch.partition_leader_epoch,
                batch.max_timestamp,
            );
            for entry in entries(batch.bytes()) {
                match entry.entry {
                    Entry::Control(control) => writer.control(&control).unwrap(),
                    Entry::Metadata(record) => writer.metadata(&record).unwrap(),
                }
            }
            written.extend(writer.finish().unwrap().concat());
        }
        assert!(written == file, "a batch came back otherwise");
    }
}

#[test]
fn records_are_written_in_the_versions_that_apache_chooses() {
    let version = MetadataVersion(LATEST_METADATA_VERSION);
    for entry in ALL.into_iter().flat_map(entries) {
        if let Entry::Metadata(record) = entry.entry {
            assert_eq!(version.versioned(record.record.clone()), record);
        }
    }
}

#[test]
fn a_snapshot_says_what_the_log_up_to_it_says() {
    let from_log = replay(LOG, AT_91.end_offset);
    let from_snapshot = replay_snapshot(Bytes::from_static(SNAPSHOT).into(), AT_91).unwrap();
    let (mut log, mut snapshot) = (from_log.image().clone(), from_snapshot.image().clone());
    assert_eq!(log.provenance, snapshot.provenance);
    // Where the level changed last is not in a snapshot.
    log.features.changed_at = 0;
    snapshot.features.changed_at = 0;
    sort_features(&mut log);
    sort_features(&mut snapshot);
    assert_eq!(log, snapshot);
    assert_eq!(SnapshotId::of(&log), AT_91);
}

/// Apache's registrations list features in the order of a hash map.
fn sort_features(image: &mut Image) {
    for broker in image.brokers.clone().values() {
        let mut broker = (**broker).clone();
        broker
            .features
            .sort_by(|one, other| one.name.cmp(&other.name));
        image.brokers.insert(broker.id, broker.into());
    }
    for controller in image.controllers.clone().values() {
        let mut controller = (**controller).clone();
        controller
            .features
            .sort_by(|one, other| one.name.cmp(&other.name));
        image.controllers.insert(controller.id, controller.into());
    }
}

#[test]
fn our_snapshot_holds_the_records_of_apaches() {
    for (bytes, id) in [
        (SNAPSHOT, AT_91),
        (
            DYNAMIC_SNAPSHOT,
            SnapshotId {
                end_offset: 48,
                epoch: 1,
            },
        ),
    ] {
        let theirs = replay_snapshot(Bytes::from_static(bytes).into(), id).unwrap();
        let ours = write_snapshot(theirs.image(), theirs.quorum(), 7).unwrap();
        // The same records, though in another order within a kind: Apache's is that of hash maps.
        let mut wanted: Vec<String> = records(bytes);
        let mut written: Vec<String> = records(&ours.concat());
        assert_eq!(kinds(&wanted), kinds(&written));
        wanted.sort();
        written.sort();
        assert_eq!(wanted, written);
        let again = replay_snapshot(ours.into(), id).unwrap();
        assert_eq!(again.image(), theirs.image());
        assert_eq!(again.quorum(), theirs.quorum());
    }
}

fn records(bytes: &[u8]) -> Vec<String> {
    let text = |entry: LogEntry| format!("{:?}", entry.entry);
    entries(bytes).into_iter().map(text).collect()
}

/// Names of the records' types, each run once.
fn kinds(records: &[String]) -> Vec<String> {
    let mut kinds: Vec<String> = records
        .iter()
        .map(|text| text.split('(').take(3).collect::<Vec<_>>().join("("))
        .map(|text| text.split(['{', '"']).take(2).collect())
        .collect();
    kinds.dedup();
    kinds
}

#[test]
fn what_the_log_says_is_what_was_done() {
    let replay = replay(LOG, i64::MAX);
    let image = replay.image();
    let names: Vec<&str> = image.topics().map(|topic| topic.name.as_str()).collect();
    assert_eq!(names, ["a.b", "auto1", "bc2", "bc2.x", "bc2_x", "man"]);
    assert_eq!(image.partition_count(), 10);
    assert_eq!(image.producer_ids.next_id, 1000);
    assert_eq!(image.features.metadata_version(), Some(33));
    assert_eq!(image.features.level("group.version"), 0);
    assert_eq!(image.features.level("transaction.version"), 2);
    assert_eq!(image.kept.iter().count(), 3);
    assert_eq!(image.unknown_records, 0);
    let broker = image.broker(1).unwrap();
    assert_eq!(
        (broker.epoch, broker.fenced, broker.in_controlled_shutdown),
        (131, true, true)
    );
    let man = image.topic_by_name("man").unwrap();
    let partition = man.partitions.get(0).unwrap();
    // Created, assigned to a directory, stopped, started, stopped.
    assert_eq!(
        (
            partition.leader,
            partition.leader_epoch,
            partition.partition_epoch
        ),
        (-1, 3, 4)
    );
    assert_eq!(
        (&*partition.isr, &*partition.elr, &*partition.last_known_elr),
        (&[][..], &[1][..], &[1][..])
    );
    assert!(image.replicas_in_directory(partition.directories[0]) > 0);
    assert_eq!(
        image
            .configs
            .topic("man")
            .unwrap()
            .get("max.message.bytes")
            .unwrap(),
        "12345"
    );
    assert!(
        image.configs.topic("a.b").is_none(),
        "went with the deleted topic"
    );
    assert_eq!(
        image
            .configs
            .cluster_default()
            .unwrap()
            .get("min.insync.replicas")
            .unwrap(),
        "1"
    );
    assert_eq!(
        image
            .configs
            .broker(1)
            .unwrap()
            .get("log.cleaner.threads")
            .unwrap(),
        "2"
    );
    assert_eq!(image.first_leader_epoch("def", 2), 1);
    assert_eq!(replay.quorum().leader_id, Some(1));
    assert_eq!(replay.quorum().kraft_version, 0);
}

#[test]
fn half_a_transaction_is_not_seen() {
    let bootstrapping = replay(LOG, 8);
    assert_eq!(bootstrapping.open_transaction(), Some(1));
    assert_eq!(bootstrapping.image().features.metadata_version(), None);
    assert_eq!(bootstrapping.latest().features.metadata_version(), Some(33));
    assert_eq!(
        replay(LOG, 10).image().features.metadata_version(),
        Some(33)
    );
}

#[test]
fn bootstrap_records_are_read_with_the_voters() {
    let plain = read_checkpoint(Bytes::from_static(FIRST).into()).unwrap();
    assert_eq!(plain.records.len(), 6);
    assert_eq!((plain.quorum.kraft_version, plain.quorum.voters), (0, None));
    let dynamic = read_checkpoint(Bytes::from_static(DYNAMIC_FIRST).into()).unwrap();
    assert_eq!(dynamic.quorum.kraft_version, 1);
    let voters = dynamic.quorum.voters.unwrap();
    let directory = voters.voters[0].voter_directory_id;
    assert!(is_only_voter(&voters, 1, directory));
    assert!(!is_only_voter(&voters, 2, directory));
    assert!(!is_only_voter(&voters, 1, protocol::Uuid([9; 16])));
    assert_eq!(
        FIRST_CHECKPOINT.file_name(),
        "00000000000000000000-0000000000.checkpoint"
    );
}

#[test]
fn a_cut_snapshot_is_refused() {
    let whole = Bytes::from_static(SNAPSHOT);
    let batch_ends: Vec<usize> = {
        let mut batches = protocol::records::split_batches(whole.clone());
        let mut ends = Vec::new();
        while batches.next().is_some() {
            ends.push(batches.position());
        }
        ends
    };
    for length in (0..whole.len())
        .step_by(7)
        .chain(batch_ends.iter().copied())
    {
        if length < whole.len() {
            assert!(
                read_checkpoint(whole.slice(..length).into()).is_err(),
                "cut at {length}"
            );
        }
    }
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0x10;
        // The CRC covers all but the leader epoch, which the file's name tells as well.
        let epoch = |end: &usize| (end + 12..end + 16).contains(&at);
        if !epoch(&0) && !batch_ends.iter().any(epoch) {
            assert!(
                read_checkpoint(Bytes::from(damaged).into()).is_err(),
                "a bit of byte {at} turned"
            );
        }
    }
}
