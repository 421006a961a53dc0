//! A start: a new epoch of the quorum, bootstrap records on an empty log, a new incarnation of
//! controller and broker. The records and their order are those that Apache Kafka 4.4 writes.

use protocol::stored::{
    AbortTransactionRecord, BeginTransactionRecord, BrokerRegistrationChangeRecord,
    EndTransactionRecord, FeatureLevelRecord, LeaderChangeMessage, LeaderChangeMessageVoter,
    MetadataRecord,
};
use protocol::{Array, Str, Uuid};

use super::draft::Draft;
use super::leadership;
use crate::features::supported_feature;
use crate::metadata::records::{broker_record, controller_record};
use crate::metadata::snapshot_file::{Checkpoint, kraft_version_entry};
use crate::metadata::{
    BrokerRegistration, ControlEntry, ControllerRegistration, EntryError, LATEST_METADATA_VERSION,
    METADATA_VERSION, MINIMUM_METADATA_VERSION, MetadataVersion, QuorumFacts, VersionedRecord,
};

/// What this node registers as. Ids of incarnations, epochs and fencing are set by the start.
#[derive(Clone, Debug)]
pub struct NodeRegistration {
    pub broker: BrokerRegistration,
    pub controller: ControllerRegistration,
}

/// The log belongs to something that this node must not lead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(
        "metadata.version is {level}, this node runs {MINIMUM_METADATA_VERSION} to \
         {LATEST_METADATA_VERSION}: start a version of Kafka that knows it, or finish the upgrade \
         with one that knows both"
    )]
    MetadataVersion { level: i16 },
    #[error("a record of the start does not fit the log: {0}")]
    Record(#[from] EntryError),
}

/// Name of the transaction around the bootstrap records.
const BOOTSTRAP_TRANSACTION: &str = "Bootstrap records";

/// Drafts everything that a start writes.
///
/// `bootstrap` is what `storage format` left, used while the log is empty.
pub(super) fn draft_start(
    draft: &mut Draft,
    bootstrap: Option<&Checkpoint>,
    node: &NodeRegistration,
    random: &mut dyn FnMut() -> u64,
) -> Result<(), StartError> {
    let node_id = node.broker.id;
    let first = draft.next_offset() == 0;
    let quorum = bootstrap
        .filter(|_| first)
        .map(|checkpoint| &checkpoint.quorum);
    draft.add_control(new_epoch(node_id, quorum))?;
    let activation = activation(draft, bootstrap)?;
    draft.add(activation)?;
    check_version(draft.machine().metadata_version())?;
    register_controller(draft, node, random)?;
    register_broker(draft, node, random)?;
    unfence(draft, node_id)?;
    Ok(())
}

/// This node leads; with a quorum of dynamic voters the first epoch writes them to the log.
fn new_epoch(node_id: i32, bootstrap: Option<&QuorumFacts>) -> Vec<ControlEntry> {
    let voter = || LeaderChangeMessageVoter {
        voter_id: node_id,
        ..Default::default()
    };
    let mut entries = vec![ControlEntry::LeaderChange(LeaderChangeMessage {
        version: 0,
        leader_id: node_id,
        voters: [voter()].into(),
        granting_voters: [voter()].into(),
    })];
    if let Some(quorum) = bootstrap.filter(|quorum| quorum.kraft_version > 0) {
        entries.push(kraft_version_entry(quorum.kraft_version));
        entries.extend(quorum.voters.clone().map(ControlEntry::Voters));
    }
    entries
}

/// The end of an unfinished transaction, and the bootstrap records if the log has none.
fn activation(
    draft: &Draft,
    bootstrap: Option<&Checkpoint>,
) -> Result<Vec<VersionedRecord>, StartError> {
    let machine = draft.machine();
    let mut records: Vec<MetadataRecord> = Vec::new();
    if machine.replay().open_transaction().is_some() {
        let reason = Some(Str::from_static("Controller failover"));
        records.push(AbortTransactionRecord { reason }.into());
    }
    if machine.image().features.metadata_version().is_some() {
        return Ok(versioned(machine.metadata_version(), records));
    }
    let (level, bootstrap) = bootstrap_records(bootstrap);
    let version = MetadataVersion(level);
    check_version(version)?;
    if version.has_transactions() {
        let name = Some(Str::from_static(BOOTSTRAP_TRANSACTION));
        records.push(BeginTransactionRecord { name }.into());
        records.extend(bootstrap);
        records.push(EndTransactionRecord::default().into());
    } else {
        records.extend(bootstrap);
    }
    Ok(versioned(version, records))
}

/// Level of `metadata.version`, and the records, of what `storage format` left.
///
/// A feature that is not built here is finalized at 0, whatever the tool of another broker chose.
fn bootstrap_records(bootstrap: Option<&Checkpoint>) -> (i16, Vec<MetadataRecord>) {
    let mut level = None;
    let mut records = Vec::new();
    for record in bootstrap
        .into_iter()
        .flat_map(|checkpoint| &checkpoint.records)
    {
        let mut record = record.record.clone();
        if let MetadataRecord::FeatureLevel(feature) = &mut record {
            if feature.name == METADATA_VERSION {
                level = Some(feature.feature_level);
            } else {
                let highest = supported_feature(&feature.name).map_or(0, |it| it.max);
                feature.feature_level = feature.feature_level.min(highest);
                if feature.feature_level <= 0 {
                    continue;
                }
            }
        }
        records.push(record);
    }
    let level = level.unwrap_or_else(|| {
        records.insert(
            0,
            MetadataRecord::from(FeatureLevelRecord {
                name: Str::from_static(METADATA_VERSION),
                feature_level: LATEST_METADATA_VERSION,
            }),
        );
        LATEST_METADATA_VERSION
    });
    (level, records)
}

fn check_version(version: MetadataVersion) -> Result<(), StartError> {
    if (MINIMUM_METADATA_VERSION..=LATEST_METADATA_VERSION).contains(&version.0) {
        return Ok(());
    }
    Err(StartError::MetadataVersion { level: version.0 })
}

fn register_controller(
    draft: &mut Draft,
    node: &NodeRegistration,
    random: &mut dyn FnMut() -> u64,
) -> Result<(), StartError> {
    let version = draft.machine().metadata_version();
    if version.has_controller_registration() {
        let mut controller = node.controller.clone();
        controller.incarnation_id = Uuid::random(random);
        let record = MetadataRecord::from(controller_record(&controller));
        draft.add(vec![version.versioned(record)])?;
    }
    Ok(())
}

/// A new incarnation, fenced at first; its epoch is the offset of this record.
fn register_broker(
    draft: &mut Draft,
    node: &NodeRegistration,
    random: &mut dyn FnMut() -> u64,
) -> Result<(), StartError> {
    let version = draft.machine().metadata_version();
    let epoch = draft.next_offset();
    let mut broker = node.broker.clone();
    broker.epoch = epoch;
    broker.incarnation_id = Uuid::random(random);
    broker.fenced = true;
    broker.in_controlled_shutdown = false;
    broker.cordoned_log_dirs = None;
    let record = MetadataRecord::from(broker_record(&broker));
    draft.add(vec![version.versioned(record)])?;
    if version.has_cordoned_directories() {
        let change = BrokerRegistrationChangeRecord {
            broker_id: broker.id,
            broker_epoch: epoch,
            cordoned_log_dirs: Some(
                node.broker
                    .cordoned_log_dirs
                    .clone()
                    .unwrap_or_default()
                    .into(),
            ),
            ..Default::default()
        };
        draft.add(vec![version.versioned(change.into())])?;
    }
    Ok(())
}

/// The broker serves from here on, and leads what it led, under higher leader epochs.
fn unfence(draft: &mut Draft, node_id: i32) -> Result<(), StartError> {
    let version = draft.machine().metadata_version();
    let image = draft.machine().latest();
    let Some(broker) = image.broker(node_id) else {
        return Ok(());
    };
    let change = BrokerRegistrationChangeRecord {
        broker_id: node_id,
        broker_epoch: broker.epoch,
        fenced: -1,
        ..Default::default()
    };
    let mut records = Array::from([MetadataRecord::from(change)]);
    records.extend(leadership::take_over(image, broker));
    draft.add(records.into_iter().map(|record| version.versioned(record)))?;
    Ok(())
}

fn versioned(version: MetadataVersion, records: Vec<MetadataRecord>) -> Vec<VersionedRecord> {
    records
        .into_iter()
        .map(|record| version.versioned(record))
        .collect()
}
