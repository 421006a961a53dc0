//! UpdateFeatures and UnregisterBroker as pure decisions.

use protocol::ErrorCode;
use protocol::messages::CreateTopicsRequest;
use protocol::stored::MetadataRecord;

use super::harness::{DIRECTORIES, NODE, World, settings};
use super::topics::topic;
use crate::controller::machine::{Command, Decision, Reply};
use crate::controller::update_features::{FeatureUpdate, UpdateFeatures};
use crate::metadata::snapshot_file::Checkpoint;
use crate::metadata::{METADATA_VERSION, NO_LEADER, VersionedRecord};

const UPGRADE: i8 = 1;
const SAFE: i8 = 2;
const UNSAFE: i8 = 3;

fn update(world: &mut World, updates: &[(&str, i16, i8)], validate_only: bool) -> Decision {
    let updates = updates
        .iter()
        .map(|(feature, level, upgrade_type)| FeatureUpdate {
            feature: (*feature).into(),
            level: *level,
            upgrade_type: *upgrade_type,
        });
    world.decide(&Command::UpdateFeatures(UpdateFeatures {
        updates: updates.collect(),
        validate_only,
    }))
}

/// The text of a refusal; every one here has the same code and writes nothing.
fn refused(decision: &Decision) -> &str {
    assert!(decision.records.is_empty() && decision.control.is_empty());
    match &decision.reply {
        Reply::UpdateFeatures(Err((ErrorCode::InvalidUpdateVersion, text))) => text,
        other => panic!("{other:?}"),
    }
}

fn done(decision: &Decision) -> bool {
    decision.reply == Reply::UpdateFeatures(Ok(()))
}

/// A world at a level of `metadata.version`, with static voters.
fn at_level(level: i16) -> World {
    let mut world = World::not_started(settings(&[]));
    let record = protocol::stored::FeatureLevelRecord {
        name: METADATA_VERSION.into(),
        feature_level: level,
    };
    let bootstrap = Checkpoint {
        records: vec![VersionedRecord {
            version: 0,
            record: record.into(),
        }],
        ..Default::default()
    };
    world.start(Some(&bootstrap)).unwrap();
    world
}

#[test]
fn levels_that_cannot_be_are_refused_in_kafkas_words() {
    let mut world = World::new();
    for (feature, level, upgrade_type, text) in [
        (
            METADATA_VERSION,
            34,
            UPGRADE,
            "Invalid update version 34 for feature metadata.version. Local controller 1 only supports versions 7-33",
        ),
        (
            METADATA_VERSION,
            32,
            UPGRADE,
            "Invalid update version 32 for feature metadata.version. Can't downgrade the version of this \
             feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            METADATA_VERSION,
            32,
            SAFE,
            "Unsupported metadata.version downgrade from 33 to 32. Refusing to perform the requested downgrade \
             because it might delete metadata information.",
        ),
        (
            METADATA_VERSION,
            8,
            UNSAFE,
            "Unsupported metadata.version downgrade from 33 to 8. Unsafe metadata downgrade is not supported in \
             this version.",
        ),
        (
            "group.version",
            1,
            UPGRADE,
            "Invalid update version 1 for feature group.version. Local controller 1 does not support this feature.",
        ),
        (
            "nothing",
            0,
            UPGRADE,
            "Invalid update version 0 for feature nothing. Feature nothing not found.",
        ),
        (
            METADATA_VERSION,
            -1,
            UPGRADE,
            "Invalid update version -1 for feature metadata.version. A feature version cannot be less than 0.",
        ),
        (
            METADATA_VERSION,
            33,
            0,
            "Invalid update version 33 for feature metadata.version. The controller does not support the given \
             upgrade type.",
        ),
    ] {
        let decision = update(&mut world, &[(feature, level, upgrade_type)], false);
        assert_eq!(refused(&decision), text);
    }
}

#[test]
fn one_wrong_update_refuses_all() {
    let mut world = at_level(22);
    let both = [(METADATA_VERSION, 33, UPGRADE), ("nothing", 1, UPGRADE)];
    refused(&update(&mut world, &both, false));
    assert_eq!(world.machine.metadata_version().0, 22);
}

#[test]
fn an_upgrade_is_checked_then_made_and_kept_over_a_restart() {
    let mut world = at_level(22);
    let upgrade = [(METADATA_VERSION, 33, UPGRADE)];
    let checked = update(&mut world, &upgrade, true);
    assert!(done(&checked) && checked.records.is_empty());
    assert_eq!(world.machine.metadata_version().0, 22);
    assert!(done(&update(&mut world, &upgrade, false)));
    assert_eq!(world.machine.metadata_version().0, 33);
    world.restart();
    assert_eq!(world.machine.metadata_version().0, 33);
}

#[test]
fn a_downgrade_over_levels_that_change_no_records_is_done() {
    let mut world = at_level(22);
    assert!(done(&update(
        &mut world,
        &[(METADATA_VERSION, 18, SAFE)],
        false
    )));
    assert_eq!(world.machine.metadata_version().0, 18);
    let lower = update(&mut world, &[(METADATA_VERSION, 16, SAFE)], false);
    assert!(refused(&lower).contains("from 18 to 16. Refusing"));
}

#[test]
fn an_upgrade_brings_the_registrations_that_the_new_level_has() {
    let mut world = at_level(8);
    assert!(world.machine.image().controller(NODE).is_none());
    assert!(
        world
            .machine
            .image()
            .broker(NODE)
            .unwrap()
            .log_dirs
            .is_empty()
    );
    let decision = update(&mut world, &[(METADATA_VERSION, 33, UPGRADE)], false);
    assert!(done(&decision));
    let change = decision.records.last().unwrap();
    assert!(matches!(
        change.record,
        MetadataRecord::BrokerRegistrationChange(_)
    ));
    assert_eq!(change.version, 2, "as the new level writes it");
    assert!(world.machine.image().controller(NODE).is_some());
    assert_eq!(
        world.machine.image().broker(NODE).unwrap().log_dirs,
        DIRECTORIES
    );
}

#[test]
fn kraft_version_1_puts_the_voter_into_the_log() {
    let mut world = at_level(33);
    assert_eq!(world.machine.image().kraft_version, 0);
    assert!(done(&update(
        &mut world,
        &[("kraft.version", 1, UPGRADE)],
        true
    )));
    assert_eq!(world.machine.image().kraft_version, 0);
    assert!(done(&update(
        &mut world,
        &[("kraft.version", 1, UPGRADE)],
        false
    )));
    world.restart();
    assert_eq!(world.machine.image().kraft_version, 1);
    let voters = world
        .machine
        .replay()
        .quorum()
        .voters
        .clone()
        .unwrap()
        .voters;
    assert_eq!((voters.len(), voters[0].voter_id), (1, NODE));
    assert_eq!(voters[0].voter_directory_id, DIRECTORIES[0]);
    assert!(done(&update(
        &mut world,
        &[("kraft.version", 1, UPGRADE)],
        false
    )));
    let lower = update(&mut world, &[("kraft.version", 0, UNSAFE)], false);
    assert_eq!(
        refused(&lower),
        "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature."
    );
}

#[test]
fn a_broker_that_is_forgotten_leads_nothing_and_comes_back_with_the_next_start() {
    let mut world = World::new();
    world.run(Command::CreateTopics(CreateTopicsRequest {
        topics: [topic("t", 2, 1)].into(),
        ..Default::default()
    }));
    let unknown = world.decide(&Command::UnregisterBroker(7));
    let text = "Broker ID 7 is not currently registered";
    let refusal = (ErrorCode::BrokerIdNotRegistered, text.into());
    assert_eq!(unknown.reply, Reply::UnregisterBroker(Err(refusal)));
    assert!(unknown.records.is_empty());

    world.decide(&Command::UnregisterBroker(NODE));
    let leaders = |world: &World| -> Vec<i32> {
        let topic = world.machine.image().topic_by_name("t").unwrap().clone();
        topic.partitions.iter().map(|(_, it)| it.leader).collect()
    };
    assert!(world.machine.image().broker(NODE).is_none());
    assert_eq!(leaders(&world), [NO_LEADER, NO_LEADER]);
    world.restart();
    assert!(world.machine.image().broker(NODE).is_some());
    assert_eq!(leaders(&world), [NODE, NODE]);
}
