//! Sound inputs of every target: files as this broker writes them, behind the byte that chooses their decoder.

use broker::config::directories::MetaProperties;
use broker::metadata::{Placement, QuorumState};
use bytes::Bytes;
use protocol::Uuid;
use protocol::records::{BatchBuilder, Compression};
use protocol::stored::{
    GroupKey, GroupMetadataKey, GroupMetadataValue, GroupMetadataValueMemberMetadata, GroupValue,
    MetadataRecord, OffsetCommitKey, OffsetCommitValue, PartitionRecord, TopicRecord,
};
use storage::checkpoint;
use storage::producer::{ProducerState, snapshot};
use storage::{BatchHeader, EpochEntry, TopicPartition};

pub fn of(target: &str) -> Vec<Vec<u8>> {
    match target {
        "storage_files" => storage_files(),
        "broker_files" => broker_files(),
        "metadata_log" => metadata_log(),
        "group_log" => group_log(),
        "config" => config(),
        "dumped" => dumped(),
        _ => Vec::new(),
    }
}

fn chosen(which: u8, rest: impl AsRef<[u8]>) -> Vec<u8> {
    [&[which], rest.as_ref()].concat()
}

fn storage_files() -> Vec<Vec<u8>> {
    let mut offsets = 1_000_000u32.to_be_bytes().to_vec();
    let mut times = Vec::new();
    for entry in 1..5u32 {
        offsets.extend((entry * 10).to_be_bytes());
        offsets.extend((entry * 5000).to_be_bytes());
        times.extend((i64::from(entry) * 1_000_000).to_be_bytes());
        times.extend((entry * 10).to_be_bytes());
    }
    let partitions = [
        TopicPartition::new("orders", 0),
        TopicPartition::new("a.b-c", 11),
    ];
    let checkpoint = checkpoint::encode_offsets(partitions.iter().map(|at| (at, 42)));
    let epochs = [(0, 0), (2, 100), (7, 100)].map(|(epoch, start_offset)| EpochEntry {
        epoch,
        start_offset,
    });
    vec![
        chosen(0, offsets),
        chosen(1, times),
        chosen(2, producers()),
        chosen(3, checkpoint.concat()),
        chosen(4, checkpoint::encode_epochs(&epochs).concat()),
        chosen(5, checkpoint::encode_partition_metadata(Uuid([9; 16]))),
        chosen(6, checkpoint::encode_clean_shutdown(77)),
    ]
}

/// A snapshot of two producers, and a batch of one of them.
fn producers() -> Vec<u8> {
    let batch = |producer, sequence| {
        let mut batch = BatchBuilder::new(10).producer(producer, 1, sequence);
        batch.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
        batch.build().expect("a batch")
    };
    let mut state = ProducerState::default();
    for producer in [7, 9] {
        let header = BatchHeader::parse(&batch(producer, 0)).expect("a header");
        state.apply_batch(&header);
    }
    [&snapshot::encode(&state)[..], &batch(7, 1)].concat()
}

fn broker_files() -> Vec<Vec<u8>> {
    let meta = MetaProperties {
        cluster_id: "MkU3OEVBNTcwNTJENDM2Qg".to_owned(),
        node_id: 1,
        directory_id: Some(Uuid([3; 16])),
    };
    let mut placement = Placement::new(2);
    for index in 0..5 {
        placement.assign(Uuid([7; 16]), index);
    }
    // Without magic and checksum, which the entry puts there, behind the length that it looks for.
    let placement = placement.encode().expect("a table")[1].slice(8..);
    let length = u16::try_from(placement.len()).expect("a few entries");
    let placement = [&length.to_be_bytes(), &placement[..]].concat();
    let quorum = |static_voters| QuorumState {
        leader_id: Some(1),
        leader_epoch: 3,
        voted_id: None,
        voted_directory_id: Uuid::ZERO,
        static_voters,
    };
    vec![
        chosen(0, meta.to_bytes(1_700_000_000_000)),
        chosen(1, quorum(None).to_json()),
        chosen(1, quorum(Some(vec![1, 2])).to_json()),
        chosen(2, placement),
        chosen(3, "00000000000000000010-0000000001.checkpoint"),
        chosen(4, "1@localhost:9093"),
    ]
}

fn with_lengths(pieces: &[Bytes]) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in pieces {
        all.extend((piece.len() as u16).to_be_bytes());
        all.extend_from_slice(piece);
    }
    all
}

fn metadata_log() -> Vec<Vec<u8>> {
    let id = Uuid([5; 16]);
    let topic = MetadataRecord::from(TopicRecord {
        name: "orders".into(),
        topic_id: id,
    });
    let partition = MetadataRecord::from(PartitionRecord {
        topic_id: id,
        replicas: [1].into(),
        isr: [1].into(),
        leader: 1,
        ..PartitionRecord::default()
    });
    let far = MetadataRecord::from(PartitionRecord {
        topic_id: id,
        partition_id: i32::MAX,
        replicas: [1].into(),
        ..PartitionRecord::default()
    });
    let records = [topic, partition, far].map(|record| record.encode(0).expect("a record"));
    let mut batch = BatchBuilder::new(0);
    for record in &records {
        batch.append(0, None, Some(record), &[]);
    }
    // KRaftVersion, and the header and footer of a snapshot.
    let control = [
        &[0u8, 0, 0, 3][..],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 5],
        &[0, 0, 0, 1, 0],
        &[0, 0, 0, 4],
        &[0, 0, 0],
    ]
    .map(Bytes::from_static);
    vec![
        chosen(0, batch.build().expect("a batch")),
        chosen(1, with_lengths(&records)),
        chosen(2, with_lengths(&control)),
        chosen(3, batch.build().expect("a batch")),
    ]
}

fn group_log() -> Vec<Vec<u8>> {
    let group = GroupKey::from(GroupMetadataKey { group: "g".into() });
    let member = GroupMetadataValueMemberMetadata {
        member_id: "m".into(),
        client_id: "c".into(),
        client_host: "h".into(),
        session_timeout: 1000,
        subscription: Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\0\0\0\0"),
        ..GroupMetadataValueMemberMetadata::default()
    };
    let value = GroupValue::GroupMetadata(GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 1,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        current_state_timestamp: 5,
        members: [member].into(),
    });
    let offset = GroupKey::from(OffsetCommitKey {
        group: "g".into(),
        topic: "t".into(),
        partition: 0,
    });
    let commit = GroupValue::OffsetCommit(OffsetCommitValue {
        offset: 3,
        ..OffsetCommitValue::default()
    });
    let records = [
        group.encode().expect("a key"),
        value.encode(3).expect("a value"),
        offset.encode().expect("a key"),
        commit.encode(3).expect("a value"),
    ];
    let subscription = [Bytes::from_static(
        b"\0\x01\0\0\0\x02\0\x01t\0\x02uv\xff\xff\xff\xff",
    )];
    vec![with_lengths(&records), with_lengths(&subscription)]
}

fn config() -> Vec<Vec<u8>> {
    let node = "process.roles=broker,controller\nnode.id=1\n\
                controller.quorum.voters=1@127.0.0.1:9093\n\
                listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n\
                controller.listener.names=CONTROLLER\nlog.dirs=/data\n";
    let more = "# a comment\nnum.partitions : 3\nlog.retention.ms=\\u0037\\\n  00\nfoo bar\n\
                compression.type=zstd\nqueued.max.request.bytes=104857600\n";
    vec![
        node.into(),
        more.into(),
        [node, more].concat().into(),
        "segment.bytes=1048576\ncleanup.policy=compact,delete\nmin.insync.replicas=1\n".into(),
    ]
}

/// In the order of the kinds and flags of `decoders::DUMPS`.
fn dumped() -> Vec<Vec<u8>> {
    let log = |which: u8, how: u8, bytes: &[u8]| [&[which, how], bytes].concat();
    let batch = |codec| {
        let mut batch = BatchBuilder::new(0).codec(codec).producer(7, 1, 0);
        for at in 0..3 {
            let header = (&b"h"[..], Some(&b"v"[..]));
            batch.append(1_000 + at, Some(b"key"), Some(&at.to_be_bytes()), &[header]);
        }
        batch.build().expect("a batch")
    };
    let plain = batch(Compression::None);
    let group = group_log().remove(0);
    let metadata = metadata_log();
    let with_key: Vec<u8> = {
        let value = &metadata[1][1..];
        // Records of the metadata log have no key.
        let length = 2 + usize::from(u16::from_be_bytes([value[0], value[1]]));
        [&[0, 0], &value[..length]].concat()
    };
    let index: Vec<u8> = [[0u32, 0], [2, 0]]
        .concat()
        .iter()
        .flat_map(|it| it.to_be_bytes())
        .collect();
    let mut times = 1_002i64.to_be_bytes().to_vec();
    times.extend(2u32.to_be_bytes());
    let beside =
        |entries: Vec<u8>| with_lengths(&[Bytes::from(entries), Bytes::copy_from_slice(&plain)]);
    let mut aborted = 0u16.to_be_bytes().to_vec();
    aborted.extend([7i64, 0, 5, 6].iter().flat_map(|it| it.to_be_bytes()));
    let mut all: Vec<Vec<u8>> = Compression::ALL
        .iter()
        .map(|codec| log(0, 3, &batch(*codec)))
        .collect();
    all.extend([
        log(1, 0, &plain),
        log(2, 2, &group),
        log(3, 2, &group),
        log(4, 2, &with_key),
        log(4, 1, &metadata[2][1..]),
        log(5, 2, &with_key),
        log(6, 2, &group),
        log(7, 2, &with_key),
        log(8, 3, &beside(index.clone())),
        log(9, 3, &beside(index)),
        log(10, 3, &beside(times.clone())),
        log(11, 3, &beside(times)),
        log(12, 3, &snapshot::encode(&ProducerState::default())),
        log(13, 3, &aborted),
    ]);
    all
}
