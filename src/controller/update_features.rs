//! UpdateFeatures: which levels of Kafka's features the cluster runs at.
//!
//! All or nothing: the first update that cannot be is the answer to the whole request.

use std::collections::BTreeMap;

use protocol::stored::{
    BrokerRegistrationChangeRecord, FeatureLevelRecord, MetadataRecord, VotersRecord,
    VotersRecordEndpoint, VotersRecordKRaftVersionFeature, VotersRecordVoter,
};
use protocol::{Array, ErrorCode, Str, Uuid};

use super::machine::{Decided, Machine, Reply, Surroundings};
use super::refusal::Refusal;
use crate::features::{KRAFT_VERSION, SUPPORTED_FEATURES, changes_metadata, supported_feature};
use crate::metadata::records::controller_record;
use crate::metadata::snapshot_file::kraft_version_entry;
use crate::metadata::{
    ControlEntry, LATEST_METADATA_VERSION, METADATA_VERSION, MINIMUM_METADATA_VERSION,
    MetadataVersion,
};

/// One feature and the level that it shall have.
#[derive(Clone, Debug)]
pub struct FeatureUpdate {
    pub feature: Str,
    pub level: i16,
    /// As on the wire: 1 to a higher level, 2 to a lower one that loses nothing, 3 to any lower one.
    pub upgrade_type: i8,
}

/// The request.
#[derive(Clone, Debug, Default)]
pub struct UpdateFeatures {
    pub updates: Vec<FeatureUpdate>,
    /// Only checks.
    pub validate_only: bool,
}

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

/// What one update writes.
#[derive(Default)]
struct Written {
    records: Array<MetadataRecord>,
    control: Vec<ControlEntry>,
}

pub(super) fn decide(
    machine: &Machine,
    request: &UpdateFeatures,
    around: &mut Surroundings<'_>,
) -> Decided {
    // Of a feature that is named twice the last counts.
    let updates: BTreeMap<&str, &FeatureUpdate> = request
        .updates
        .iter()
        .map(|update| (&*update.feature, update))
        .collect();
    let mut decided = Decided::reply(Reply::UpdateFeatures(Ok(())));
    for update in updates.into_values() {
        match one(machine, update, around) {
            Ok(written) => {
                decided.records.extend(written.records);
                decided.control.extend(written.control);
            }
            Err(refusal) => {
                let refused = (refusal.code, refusal.message.unwrap_or_default());
                return Decided::reply(Reply::UpdateFeatures(Err(refused)));
            }
        }
    }
    if request.validate_only {
        return Decided::reply(Reply::UpdateFeatures(Ok(())));
    }
    decided
}

fn invalid(update: &FeatureUpdate, why: &str) -> Refusal {
    let (level, feature) = (update.level, &update.feature);
    let text = format!("Invalid update version {level} for feature {feature}. {why}");
    Refusal::new(ErrorCode::InvalidUpdateVersion, text)
}

fn one(
    machine: &Machine,
    update: &FeatureUpdate,
    around: &mut Surroundings<'_>,
) -> Result<Written, Refusal> {
    let refuse = |why: &str| Err(invalid(update, why));
    if !(UPGRADE..=UNSAFE_DOWNGRADE).contains(&update.upgrade_type) {
        return refuse("The controller does not support the given upgrade type.");
    }
    if update.level < 0 {
        return refuse("A feature version cannot be less than 0.");
    }
    if let Some(why) = unsupported(machine, &update.feature, update.level) {
        return refuse(&why);
    }
    let current = current_level(machine, &update.feature);
    if update.level < current && update.upgrade_type == UPGRADE {
        return refuse(
            "Can't downgrade the version of this feature without setting the upgrade type to \
             either safe or unsafe downgrade.",
        );
    }
    if update.level > current && update.upgrade_type != UPGRADE {
        return refuse("Can't downgrade to a newer version.");
    }
    match &*update.feature {
        METADATA_VERSION => metadata_version(machine, update, around),
        KRAFT_VERSION => match update.level {
            level if level < current => refuse("Can't downgrade the version of this feature."),
            level if level > current => Ok(dynamic_voters(machine)),
            _ => Ok(Written::default()),
        },
        name if supported_feature(name).is_none() => refuse(&format!("Feature {name} not found.")),
        _ => Ok(Written {
            records: [level_record(update)].into(),
            ..Written::default()
        }),
    }
}

fn level_record(update: &FeatureUpdate) -> MetadataRecord {
    MetadataRecord::from(FeatureLevelRecord {
        name: update.feature.detached(),
        feature_level: update.level,
    })
}

fn current_level(machine: &Machine, feature: &str) -> i16 {
    match feature {
        METADATA_VERSION => machine.metadata_version().0,
        KRAFT_VERSION => machine.replay().quorum().kraft_version,
        _ => machine.latest().features.level(feature),
    }
}

/// Which node cannot run at this level, in Kafka's words.
fn unsupported(machine: &Machine, feature: &str, level: i16) -> Option<String> {
    let node = machine.node_id();
    let own = supported_feature(feature).map_or((0, 0), |own| (own.min, own.max));
    let image = machine.latest();
    let ranges = |features: &[crate::metadata::SupportedFeature]| {
        let found = features.iter().find(|it| &*it.name == feature);
        found.map_or((0, 0), |it| (it.min, it.max))
    };
    let brokers = image
        .brokers()
        .map(|it| (format!("Broker {}", it.id), ranges(&it.features)));
    let controllers = image
        .controllers()
        .filter(|it| machine.metadata_version().has_controller_registration() && it.id != node)
        .map(|it| (format!("Controller {}", it.id), ranges(&it.features)));
    std::iter::once((format!("Local controller {node}"), own))
        .chain(brokers)
        .chain(controllers)
        .find(|(_, (min, max))| !(*min..=*max).contains(&level))
        .map(|(who, (min, max))| match max {
            0 => format!("{who} does not support this feature."),
            _ => format!("{who} only supports versions {min}-{max}"),
        })
}

/// Another level of `metadata.version`. Records that the new level has and the old one had not are written with it, as
/// Apache's nodes register anew then.
fn metadata_version(
    machine: &Machine,
    update: &FeatureUpdate,
    around: &mut Surroundings<'_>,
) -> Result<Written, Refusal> {
    let (before, after) = (machine.metadata_version(), MetadataVersion(update.level));
    debug_assert!((MINIMUM_METADATA_VERSION..=LATEST_METADATA_VERSION).contains(&after.0));
    if after < before && changes_metadata(before.0, after.0) {
        let why = match update.upgrade_type {
            SAFE_DOWNGRADE => {
                "Refusing to perform the requested downgrade because it might delete metadata \
                 information."
            }
            _ => "Unsafe metadata downgrade is not supported in this version.",
        };
        let text = format!(
            "Unsupported metadata.version downgrade from {} to {}. {why}",
            before.0, after.0
        );
        return Err(Refusal::new(ErrorCode::InvalidUpdateVersion, text));
    }
    let mut records = Array::from([level_record(update)]);
    let node = &machine.settings.node;
    if after.has_controller_registration() && !before.has_controller_registration() {
        let mut controller = node.controller.clone();
        controller.incarnation_id = Uuid::random(&mut *around.random);
        records.push(controller_record(&controller).into());
    }
    let registered = machine.latest().broker(machine.node_id());
    if let Some(broker) =
        registered.filter(|_| after.has_directories() && !before.has_directories())
    {
        records.push(MetadataRecord::from(BrokerRegistrationChangeRecord {
            broker_id: broker.id,
            broker_epoch: broker.epoch,
            log_dirs: node.broker.log_dirs.clone().into(),
            ..Default::default()
        }));
    }
    Ok(Written {
        records,
        ..Written::default()
    })
}

/// From now on the voters stand in the log (KIP-853): this node alone.
fn dynamic_voters(machine: &Machine) -> Written {
    let settings = &machine.settings;
    let endpoints = settings.node.controller.endpoints.iter();
    let range = SUPPORTED_FEATURES
        .iter()
        .find(|feature| feature.name == KRAFT_VERSION);
    let voter = VotersRecordVoter {
        voter_id: settings.node_id,
        voter_directory_id: settings.directory_id,
        endpoints: endpoints
            .map(|endpoint| VotersRecordEndpoint {
                name: endpoint.name.clone(),
                host: endpoint.host.clone(),
                port: endpoint.port,
            })
            .collect(),
        kraft_version_feature: VotersRecordKRaftVersionFeature {
            min_supported_version: range.map_or(0, |range| range.min),
            max_supported_version: range.map_or(0, |range| range.max),
        },
    };
    let voters = VotersRecord {
        version: 0,
        voters: [voter].into(),
    };
    Written {
        control: vec![kraft_version_entry(1), ControlEntry::Voters(voters)],
        ..Written::default()
    }
}
