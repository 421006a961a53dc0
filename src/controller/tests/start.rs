//! What a start writes: the kinds of records that Apache Kafka 4.4.0 writes, in its order.

use bytes::Bytes;

use super::harness::{DIRECTORIES, World, entries, kinds, node, settings};
use super::topics::{create, topic};
use crate::controller::Command;
use crate::controller::start::StartError;
use crate::metadata::snapshot_file::{Checkpoint, read_checkpoint};
use crate::metadata::{Entry, MetadataVersion, Replay, read_entries};

const APACHE_LOG: &[u8] = include_bytes!("../../metadata/golden/static-voters.log");
const DYNAMIC_LOG: &[u8] = include_bytes!("../../metadata/golden/dynamic-voters.log");
const DYNAMIC_BOOTSTRAP: &[u8] = include_bytes!(
    "../../metadata/golden/dynamic-voters-00000000000000000000-0000000000.checkpoint"
);

/// Kinds of Apache's records up to the first unfenced broker, without NoOps (KIP-835), which a lone
/// controller has no use for, and without what depends on features not built yet.
fn kinds_of_apache(log: &[u8]) -> Vec<String> {
    let all = kinds(&entries(log));
    let mut unfenced = 0;
    let mut kept: Vec<String> = Vec::new();
    for kind in all {
        if kind == "BrokerRegistrationChange" {
            unfenced += 1;
        }
        if !["NoOp", "Config"].contains(&kind.as_str()) && kept.last() != Some(&kind) {
            kept.push(kind);
        }
        if unfenced == 2 {
            break;
        }
    }
    kept
}

fn our_kinds(world: &World) -> Vec<String> {
    let mut kinds = kinds(&entries(&world.log));
    kinds.dedup();
    kinds
}

fn world_on(bootstrap: &Checkpoint) -> World {
    let mut world = World::new();
    world.log.clear();
    world.end_offset = 0;
    world.machine =
        crate::controller::Machine::new(world.machine.settings.clone(), 1, Replay::default());
    world.start(Some(bootstrap)).unwrap();
    world
}

#[test]
fn a_first_start_writes_what_apache_writes() {
    let world = World::new();
    assert_eq!(our_kinds(&world), kinds_of_apache(APACHE_LOG));
    let image = world.image();
    assert_eq!(image.features.metadata_version(), Some(33));
    let broker = image.broker(1).unwrap();
    assert!(!broker.fenced && broker.cordoned_log_dirs.as_deref() == Some(&[][..]));
    let registered = entries(&world.log);
    let offset_of = |kind: &str| {
        let at = kinds(&registered).iter().position(|it| it == kind).unwrap();
        registered[at].offset
    };
    assert_eq!(broker.epoch, offset_of("RegisterBroker"));
    assert!(image.controller(1).is_some());
}

#[test]
fn a_dynamic_quorum_brings_its_voters_into_the_log() {
    let bootstrap = read_checkpoint(Bytes::from_static(DYNAMIC_BOOTSTRAP).into()).unwrap();
    let world = world_on(&bootstrap);
    assert_eq!(our_kinds(&world), kinds_of_apache(DYNAMIC_LOG));
    assert_eq!(world.machine.replay().quorum().kraft_version, 1);
    assert_eq!(
        world.machine.replay().quorum().voters,
        bootstrap.quorum.voters
    );
    // Formatted by Apache's tool with features that are not built here.
    assert_eq!(world.image().features.level("group.version"), 0);
    assert_eq!(world.image().features.level("transaction.version"), 0);
}

#[test]
fn every_start_is_a_new_incarnation_and_raises_the_epochs_of_what_it_leads() {
    let mut world = World::new();
    create(&mut world, vec![topic("t", 3, 1)]);
    for starts in 1..4 {
        let before = world.image().clone();
        let written = world.log.len();
        world.restart();
        let (old, new) = (before.broker(1).unwrap(), world.image().broker(1).unwrap());
        assert!(new.epoch > old.epoch && new.incarnation_id != old.incarnation_id);
        assert!(world.image().provenance.epoch > before.provenance.epoch);
        for (_, partition) in world.image().topic_by_name("t").unwrap().partitions.iter() {
            assert_eq!((partition.leader, partition.leader_epoch), (1, starts));
            assert_eq!(partition.partition_epoch, starts);
        }
        let mut again = kinds(&entries(&world.log[written..]));
        again.dedup();
        let wanted = [
            "LeaderChange",
            "RegisterController",
            "RegisterBroker",
            "BrokerRegistrationChange",
            "PartitionChange",
        ];
        assert_eq!(again, wanted);
    }
}

#[test]
fn a_clean_stop_fences_the_broker() {
    let mut world = World::new();
    world.run(Command::Shutdown);
    let broker = world.image().broker(1).unwrap();
    assert!(broker.fenced && broker.in_controlled_shutdown);
    let end = world.end_offset;
    world.run(Command::Shutdown);
    assert_eq!(world.end_offset, end, "twice is once");
    world.restart();
    assert!(world.image().is_active(1));
}

/// Apache left all partitions without a leader, with an empty ISR and the broker as an eligible
/// leader replica, when it was stopped; we lead them, and it could do the same with ours.
#[test]
fn a_directory_from_apache_goes_on() {
    let mut replay = Replay::default();
    read_entries(Bytes::from_static(APACHE_LOG), |entry| replay.apply(&entry)).unwrap();
    let before = replay.image().clone();
    let directories = before.broker(1).unwrap().log_dirs.clone();
    let end_offset = before.provenance.offset + 1;
    let mut world = World::with(settings(&[]));
    world.log.clear();
    world.log.extend_from_slice(APACHE_LOG);
    world.end_offset = end_offset;
    let settings = world.machine.settings.clone();
    world.machine = crate::controller::Machine::new(settings, 3, replay);
    let mut registration = node();
    registration.broker.log_dirs = directories;
    world.start_as(None, &registration).unwrap();
    let image = world.image();
    assert_eq!(image.topic_count(), before.topic_count());
    for topic in image.topics() {
        for (index, partition) in topic.partitions.iter() {
            assert_eq!(
                (partition.leader, &*partition.isr),
                (1, &[1][..]),
                "{}-{index}",
                topic.name
            );
            assert!(partition.elr.is_empty() && partition.last_known_elr.is_empty());
            let old = before.partition(topic.id, index).unwrap();
            assert_eq!(partition.leader_epoch, old.leader_epoch + 1);
        }
    }
    let replayed = super::harness::replayed(&world.log);
    assert_eq!(replayed.image(), world.image());
}

#[test]
fn a_partition_in_a_directory_that_is_gone_has_no_leader() {
    let mut world = World::new();
    create(&mut world, vec![topic("t", 2, 1)]);
    let settings = world.machine.settings.clone();
    let replay = super::harness::replayed(&world.log);
    world.machine = crate::controller::Machine::new(settings, 2, replay);
    let mut registration = node();
    registration.broker.log_dirs = vec![DIRECTORIES[0]];
    world.start_as(None, &registration).unwrap();
    for (_, partition) in world.image().topic_by_name("t").unwrap().partitions.iter() {
        let there = partition.directories[0] == DIRECTORIES[0];
        assert_eq!(partition.leader == 1, there);
    }
}

#[test]
fn a_log_of_a_later_kafka_is_refused() {
    let mut bootstrap = read_checkpoint(Bytes::from_static(DYNAMIC_BOOTSTRAP).into()).unwrap();
    let protocol::stored::MetadataRecord::FeatureLevel(level) = &mut bootstrap.records[0].record
    else {
        panic!()
    };
    level.feature_level = 34;
    let mut world = World::new();
    let settings = world.machine.settings.clone();
    world.machine = crate::controller::Machine::new(settings, 1, Replay::default());
    world.end_offset = 0;
    let error = world.start(Some(&bootstrap)).unwrap_err();
    assert_eq!(error, StartError::MetadataVersion { level: 34 });
}

#[test]
fn half_of_the_bootstrap_is_aborted_and_written_again() {
    let bootstrap = read_checkpoint(Bytes::from_static(DYNAMIC_BOOTSTRAP).into()).unwrap();
    let whole = world_on(&bootstrap);
    let mut replay = Replay::default();
    let cut = entries(&whole.log)
        .iter()
        .position(
            |it| matches!(&it.entry, Entry::Metadata(record) if record.record.type_id() == 24),
        )
        .unwrap();
    for entry in &entries(&whole.log)[..cut] {
        replay.apply(entry).unwrap();
    }
    assert!(replay.open_transaction().is_some());
    let mut world = World::new();
    let settings = world.machine.settings.clone();
    world.log.clear();
    world.end_offset = replay.latest().provenance.offset + 1;
    world.machine = crate::controller::Machine::new(settings, 2, replay);
    world.start(Some(&bootstrap)).unwrap();
    assert_eq!(world.machine.metadata_version(), MetadataVersion(33));
    assert!(world.machine.replay().open_transaction().is_none());
    assert_eq!(kinds(&entries(&world.log))[1], "AbortTransaction");
}
