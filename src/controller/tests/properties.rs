//! Random histories: what the image must hold whatever was asked.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestCreatePartitionsTopic, CreateTopicsRequest,
    DeleteTopicsRequest,
};
use protocol::stored::{
    AccessControlEntryRecord, ClientQuotaRecord, ClientQuotaRecordEntityData, ConfigRecord,
    DelegationTokenRecord, MetadataRecord, RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord, RemoveUserScramCredentialRecord, UserScramCredentialRecord,
};
use protocol::{Str, Uuid};

use super::harness::{DIRECTORIES, World, entries, replayed};
use super::topics::topic;
use crate::controller::{AutoTopic, Command};
use crate::metadata::snapshot_file::{SnapshotId, replay_snapshot, write_snapshot};
use crate::metadata::{Entry, Image, LogEntry, Placement, Replay, changed_partitions};

#[derive(Clone, Debug)]
enum Step {
    Create(u8, i32),
    Delete(u8),
    Grow(u8, i32),
    Ask(u8),
    ProducerIds,
    Offline(bool),
    Move(u8, bool),
    Restart {
        clean: bool,
    },
    /// Something that another broker wrote, by number, with a value or gone.
    Foreign(u8, Option<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..6, -2i32..5).prop_map(|(name, count)| Step::Create(name, count)),
        3 => (0u8..6).prop_map(Step::Delete),
        2 => (0u8..6, -1i32..9).prop_map(|(name, count)| Step::Grow(name, count)),
        1 => (0u8..8).prop_map(Step::Ask),
        1 => Just(Step::ProducerIds),
        1 => any::<bool>().prop_map(Step::Offline),
        1 => (0u8..6, any::<bool>()).prop_map(|(name, second)| Step::Move(name, second)),
        2 => any::<bool>().prop_map(|clean| Step::Restart { clean }),
        3 => (0u8..16, proptest::option::of(any::<u8>()))
            .prop_map(|(number, value)| Step::Foreign(number, value)),
    ]
}

/// Names of which some collide and some are wrong.
fn name(number: u8) -> Str {
    const NAMES: [&str; 8] = [
        "a",
        "b.c",
        "b_c",
        "d",
        "e-f",
        "__consumer_offsets",
        "a b",
        "..",
    ];
    Str::from_static(NAMES[usize::from(number) % NAMES.len()])
}

/// Records of features that are not built: quotas, credentials, access control, tokens; and configurations.
fn foreign(number: u8, value: Option<u8>) -> MetadataRecord {
    let name = Str::from(format!("n{}", number / 5));
    let id = Uuid([number + 1; 16]);
    let text = value.map(|value| Str::from(value.to_string()));
    match (number % 5, value) {
        (0, value) => ClientQuotaRecord {
            entity: [ClientQuotaRecordEntityData {
                entity_type: Str::from_static("user"),
                entity_name: Some(name).filter(|_| number < 10),
            }]
            .into(),
            key: Str::from_static("producer_byte_rate"),
            value: f64::from(value.unwrap_or(0)),
            remove: value.is_none(),
        }
        .into(),
        (1, Some(value)) => UserScramCredentialRecord {
            name,
            mechanism: 1,
            salt: Bytes::from(vec![value; 9]),
            iterations: 4096,
            ..Default::default()
        }
        .into(),
        (1, None) => RemoveUserScramCredentialRecord { name, mechanism: 1 }.into(),
        (2, Some(value)) => AccessControlEntryRecord {
            id,
            resource_name: name,
            resource_type: 2,
            operation: (value % 10) as i8,
            ..Default::default()
        }
        .into(),
        (2, None) => RemoveAccessControlEntryRecord { id }.into(),
        (3, Some(value)) => DelegationTokenRecord {
            token_id: name,
            expiration_timestamp: i64::from(value),
            ..Default::default()
        }
        .into(),
        (3, None) => RemoveDelegationTokenRecord { token_id: name }.into(),
        _ => ConfigRecord {
            resource_type: if number < 10 { 4 } else { 32 },
            resource_name: name,
            name: Str::from_static("some.key"),
            value: text,
        }
        .into(),
    }
}

fn run(world: &mut World, step: &Step) {
    let command = match step {
        Step::Create(number, count) => Command::CreateTopics(CreateTopicsRequest {
            topics: [topic(&name(*number), *count, 1), topic("other", 1, 1)].into(),
            ..Default::default()
        }),
        Step::Delete(number) => Command::DeleteTopics(
            DeleteTopicsRequest {
                topic_names: [name(*number)].into(),
                ..Default::default()
            },
            5,
        ),
        Step::Grow(number, count) => Command::CreatePartitions(CreatePartitionsRequest {
            topics: [CreatePartitionsRequestCreatePartitionsTopic {
                name: name(*number),
                count: *count,
                assignments: None,
            }]
            .into(),
            ..Default::default()
        }),
        Step::Ask(number) => Command::AutoCreateTopics(vec![AutoTopic {
            name: name(*number),
            partitions: Some(2),
            ..Default::default()
        }]),
        Step::ProducerIds => Command::AllocateProducerIds,
        Step::Offline(second) => {
            Command::TakeDirectoriesOffline(vec![DIRECTORIES[usize::from(*second)]])
        }
        Step::Move(number, second) => {
            let id = world.image().topic_id(&name(*number)).unwrap_or(Uuid::ZERO);
            Command::AssignDirectories([(id, 0, DIRECTORIES[usize::from(*second)])].into())
        }
        Step::Restart { clean } => {
            if *clean {
                world.run(Command::Shutdown);
            }
            return world.restart();
        }
        Step::Foreign(number, value) => {
            let record = foreign(*number, *value);
            // What is not there cannot go.
            if value.is_some() || replayable(world, &record) {
                world.write(vec![record]);
            }
            return;
        }
    };
    world.run(command);
}

/// Whether the record makes sense after all that was written.
fn replayable(world: &World, record: &MetadataRecord) -> bool {
    let mut replay = world.machine.replay().clone();
    let entry = LogEntry {
        offset: world.end_offset,
        epoch: world.machine.quorum_epoch(),
        timestamp_ms: 1000,
        entry: Entry::Metadata(world.machine.metadata_version().versioned(record.clone())),
    };
    replay.apply(&entry).is_ok()
}

/// The epoch in which a new partition is led first.
fn new_leader_epoch(entry: &LogEntry) -> Option<i32> {
    match &entry.entry {
        Entry::Metadata(record) => match &record.record {
            MetadataRecord::Partition(partition) => Some(partition.leader_epoch),
            _ => None,
        },
        Entry::Control(_) => None,
    }
}

fn with_leader_epoch_0(mut entry: LogEntry) -> LogEntry {
    if let Entry::Metadata(record) = &mut entry.entry
        && let MetadataRecord::Partition(partition) = &mut record.record
    {
        partition.leader_epoch = 0;
    }
    entry
}

/// Highest leader epoch that was ever shown for a partition of a name.
type Epochs = BTreeMap<(Str, i32), i32>;

fn check(before: &Image, after: &Image, epochs: &mut Epochs) {
    assert!(after.provenance.offset >= before.provenance.offset);
    assert!(after.provenance.epoch >= before.provenance.epoch);
    assert!(after.producer_ids.next_id >= before.producer_ids.next_id);
    let mut partitions = 0;
    let mut in_directory: BTreeMap<Uuid, u32> = BTreeMap::new();
    for topic in after.topics() {
        assert_eq!(after.topic_by_name(&topic.name).unwrap().id, topic.id);
        assert_eq!(after.topic(topic.id).unwrap().name, topic.name);
        let indexes: Vec<i32> = topic.partitions.iter().map(|(index, _)| index).collect();
        assert!(
            indexes
                .iter()
                .copied()
                .eq(0..i32::try_from(indexes.len()).unwrap())
        );
        for (index, partition) in topic.partitions.iter() {
            partitions += 1;
            assert_eq!(partition.replicas.len(), partition.directories.len());
            for directory in &partition.directories {
                *in_directory.entry(*directory).or_default() += 1;
            }
            if let Some(old) = before.partition(topic.id, index) {
                assert!(partition.partition_epoch >= old.partition_epoch);
                let changed = partition.leader != old.leader;
                assert!(!changed || partition.leader_epoch > old.leader_epoch);
            }
            let shown = epochs.entry((topic.name.clone(), index)).or_insert(0);
            assert!(
                partition.leader_epoch >= *shown,
                "{}-{index} went back",
                topic.name
            );
            *shown = partition.leader_epoch;
        }
    }
    assert_eq!(after.partition_count(), partitions);
    assert_eq!(after.topic_count(), after.topics().count());
    for directory in DIRECTORIES {
        let wanted = in_directory.get(&directory).copied().unwrap_or(0);
        assert_eq!(after.replicas_in_directory(directory), wanted);
    }
}

/// All partitions of an image, by topic and index.
fn listed(image: &Image) -> BTreeMap<(Uuid, i32), crate::metadata::Partition> {
    let of = |topic: &crate::metadata::Topic| {
        let id = topic.id;
        let all: Vec<_> = topic
            .partitions
            .iter()
            .map(|(index, it)| ((id, index), (**it).clone()))
            .collect();
        all
    };
    image.topics().flat_map(|topic| of(topic)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_history_keeps_the_image_sound(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        let mut epochs = Epochs::new();
        let mut placement = Placement::new(3);
        let mut snapshot: Option<(Bytes, SnapshotId)> = None;
        for (number, step) in steps.iter().enumerate() {
            let before = world.image().clone();
            run(&mut world, step);
            check(&before, world.image(), &mut epochs);

            let changes = changed_partitions(&before, world.image());
            let mut followed = listed(&before);
            for change in &changes {
                prop_assert!(change.old.map(|it| &**it) != change.new.map(|it| &**it));
                match change.new {
                    Some(new) => drop(followed.insert((change.topic, change.index), (**new).clone())),
                    None => drop(followed.remove(&(change.topic, change.index))),
                }
            }
            prop_assert_eq!(followed, listed(world.image()), "the diff tells everything");
            placement.follow(&changes, 1);
            let mut whole = placement.clone();
            prop_assert!(!whole.reconcile(world.image(), 1), "following is enough");

            if number == steps.len() / 2 {
                let quorum = world.machine.replay().quorum().clone();
                let content = write_snapshot(world.image(), &quorum, 5).unwrap();
                let content = Bytes::from(content.concat());
                snapshot = Some((content, SnapshotId::of(world.image())));
            }
        }
        let replay = replayed(&world.log);
        prop_assert_eq!(replay.image(), world.image(), "replaying the log gives the live image");
        if let Some((content, id)) = snapshot {
            let mut from_snapshot = replay_snapshot(content.into(), id).unwrap();
            for entry in entries(&world.log).iter().filter(|it| it.offset >= id.end_offset) {
                from_snapshot.apply(entry).unwrap();
            }
            let mut image = from_snapshot.image().clone();
            // Where features changed last is not in a snapshot.
            image.features.changed_at = world.image().features.changed_at;
            prop_assert_eq!(&image, world.image(), "a snapshot and the log behind it, too");
        }
    }

    /// From any point on, a node that starts from a snapshot decides as one that has replayed all of its log: what they
    /// write from then on is the same, also over further starts. Only leader epochs of new topics may begin higher, since
    /// those of deleted topics of the same name are not in a snapshot.
    #[test]
    fn a_start_from_a_snapshot_equals_one_from_the_whole_log(
        before in prop::collection::vec(step(), 0..25),
        after in prop::collection::vec(step(), 1..25),
    ) {
        let mut world = World::new();
        before.iter().for_each(|step| run(&mut world, step));
        let mut other = world.started_from_snapshot();
        world.restart();
        other.restart();
        for step in &after {
            run(&mut world, step);
            run(&mut other, step);
            prop_assert_eq!(&world.end_offset, &other.end_offset, "they part at {:?}", step);
        }
        for (live, other) in entries(&world.log).into_iter().zip(entries(&other.log)) {
            prop_assert!(new_leader_epoch(&other) >= new_leader_epoch(&live));
            prop_assert_eq!(with_leader_epoch_0(live), with_leader_epoch_0(other));
        }
        let mut image = other.read_back().image().clone();
        let whole = replayed(&other.log);
        // Where features changed last is not in a snapshot.
        image.features.changed_at = whole.image().features.changed_at;
        prop_assert_eq!(&image, whole.image());
    }

    /// Records in any order, also those that make no sense: an error leaves the image as it was.
    #[test]
    fn wrong_records_change_nothing(
        picks in prop::collection::vec(0usize..1000, 1..60),
    ) {
        let mut world = World::new();
        for step in [Step::Create(0, 2), Step::Create(1, 3), Step::Grow(0, 4), Step::Delete(1),
            Step::ProducerIds, Step::Restart { clean: true }] {
            run(&mut world, &step);
        }
        let all = entries(&world.log);
        let mut replay = Replay::default();
        for pick in picks {
            let before = replay.clone();
            if replay.apply(&all[pick % all.len()]).is_err() {
                prop_assert_eq!(replay.image(), before.image());
                prop_assert_eq!(replay.latest(), before.latest());
            }
        }
    }
}
