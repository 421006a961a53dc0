//! `ringmain features`: the levels at which a cluster's features are.

use std::collections::BTreeMap;
use std::io::Write;

use clap::{Args, Subcommand};
use protocol::messages::{
    ApiVersionsRequest, UpdateFeaturesRequest, UpdateFeaturesRequestFeatureUpdateKey,
};

use super::Failure;
use super::client::{Client, ClientError, Node, Target};
use super::flags::MaybeAddresses;
use crate::features::{
    METADATA_VERSION, metadata_level_name, metadata_level_of_release, supported_releases,
};

/// Features besides `metadata.version`, and from which level of that each level of theirs is the default, in Kafka's order.
const DEFAULT_SINCE: &[(&str, &[i16])] = &[
    ("kraft.version", &[21]),
    ("transaction.version", &[24, 24]),
    ("group.version", &[22]),
    ("eligible.leader.replicas.version", &[26]),
    ("share.version", &[28, 31]),
    ("streams.version", &[29]),
];

/// A level of a feature that needs another: feature, level, and the level of `metadata.version`.
const DEPENDENCIES: &[(&str, i16, i16)] = &[("eligible.leader.replicas.version", 1, 23)];

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

#[derive(Args, Debug)]
pub struct FeaturesArgs {
    #[command(flatten)]
    addresses: MaybeAddresses,
    #[command(subcommand)]
    command: FeaturesCommand,
}

#[derive(Subcommand, Debug)]
enum FeaturesCommand {
    /// Show the levels that are supported and in force
    Describe {
        /// Which node to ask
        #[arg(long, value_name = "ID", allow_negative_numbers = true)]
        node_id: Option<i32>,
    },
    /// Raise features to levels
    Upgrade(LevelArgs),
    /// Lower features to levels
    Downgrade {
        #[command(flatten)]
        levels: LevelArgs,
        /// Even where metadata may be lost
        #[arg(long = "unsafe")]
        lossy: bool,
    },
    /// Lower features to level 0
    Disable {
        /// A feature; may be repeated
        #[arg(long = "feature", value_name = "FEATURE")]
        features: Vec<String>,
        /// Even where metadata may be lost
        #[arg(long = "unsafe")]
        lossy: bool,
        /// Only check whether it can be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Show which levels a release brings
    VersionMapping {
        /// The release, such as 4.4-IV2; the latest if not given
        #[arg(long, value_name = "RELEASE")]
        release_version: Option<String>,
    },
    /// Show what a level of a feature needs
    FeatureDependencies {
        /// A feature and its level; may be repeated
        #[arg(long = "feature", value_name = "FEATURE=LEVEL", required = true)]
        features: Vec<String>,
    },
}

#[derive(Args, Debug)]
struct LevelArgs {
    /// Deprecated: the release whose metadata.version is meant
    #[arg(long, value_name = "RELEASE")]
    metadata: Option<String>,
    /// The release whose levels are meant, of all features
    #[arg(long, value_name = "RELEASE", conflicts_with_all = ["metadata", "features"])]
    release_version: Option<String>,
    /// A feature and its level; may be repeated
    #[arg(long = "feature", value_name = "FEATURE=LEVEL")]
    features: Vec<String>,
    /// Only check whether it can be done
    #[arg(long)]
    dry_run: bool,
}

/// What UpdateFeatures shall do, in the words of the command.
struct Update<'a> {
    verb: &'a str,
    levels: BTreeMap<String, i16>,
    kind: i8,
    dry_run: bool,
}

pub(super) fn run(arguments: &FeaturesArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let connect = || arguments.addresses.connect();
    let down = |lossy: bool| {
        if lossy {
            UNSAFE_DOWNGRADE
        } else {
            SAFE_DOWNGRADE
        }
    };
    match &arguments.command {
        FeaturesCommand::Describe { node_id } => describe(connect, *node_id, out),
        FeaturesCommand::Upgrade(levels) => {
            let update = wanted(levels, "upgrade", UPGRADE, out)?;
            update.run(&mut connect()?, out)
        }
        FeaturesCommand::Downgrade { levels, lossy } => {
            let update = wanted(levels, "downgrade", down(*lossy), out)?;
            update.run(&mut connect()?, out)
        }
        FeaturesCommand::Disable {
            features,
            lossy,
            dry_run,
        } => {
            let mut levels = BTreeMap::new();
            for feature in features {
                insert(&mut levels, feature, 0)?;
            }
            let update = Update {
                verb: "disable",
                levels,
                kind: down(*lossy),
                dry_run: *dry_run,
            };
            update.run(&mut connect()?, out)
        }
        FeaturesCommand::VersionMapping { release_version } => {
            version_mapping(release_version.as_deref(), out)
        }
        FeaturesCommand::FeatureDependencies { features } => dependencies(features, out),
    }
}

fn describe(
    connect: impl Fn() -> Result<Client, Failure>,
    node_id: Option<i32>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(id) = node_id.filter(|id| *id < 0) {
        return Err(Failure::new(format!(
            "Invalid node id {id}: must be non-negative."
        )));
    }
    let mut client = connect()?;
    let node = node_id.map_or(Node::Any, Node::Id);
    let request = ApiVersionsRequest {
        client_software_name: "ringmain".into(),
        client_software_version: env!("CARGO_PKG_VERSION").into(),
        ..ApiVersionsRequest::default()
    };
    let answer = client.retrying(|client| {
        let answer = client.send(node, &request)?;
        ClientError::check(answer.error_code, None)?;
        Ok(answer)
    })?;
    let mut supported = Vec::from(answer.supported_features);
    supported.sort_by(|a, b| a.name.cmp(&b.name));
    let epoch = match answer.finalized_features_epoch {
        epoch if epoch >= 0 => epoch.to_string(),
        _ => "-".to_owned(),
    };
    for feature in supported {
        let finalized = answer.finalized_features.iter();
        let finalized = finalized.clone().find(|row| row.name == feature.name);
        let level = finalized.map_or(0, |row| row.max_version_level);
        let shown = |level| shown(&feature.name, level);
        writeln!(
            out,
            "Feature: {:<40}  SupportedMinVersion: {:<15}  SupportedMaxVersion: {:<15}  FinalizedVersionLevel: {:<15}  \
             Epoch: {epoch}",
            &*feature.name,
            shown(feature.min_version),
            shown(feature.max_version),
            shown(level),
        )?;
    }
    Ok(())
}

/// Levels of `metadata.version` have names.
fn shown(feature: &str, level: i16) -> String {
    if feature != METADATA_VERSION {
        return level.to_string();
    }
    metadata_level_name(level).map_or_else(|| format!("UNKNOWN {level}"), str::to_owned)
}

fn release_level(release: &str) -> Result<i16, Failure> {
    metadata_level_of_release(release).ok_or_else(|| {
        let (first, last) = supported_releases();
        Failure::new(format!(
            "Unknown metadata.version '{release}'. Supported metadata.version are: {first} to {last}"
        ))
    })
}

/// The level that a feature has by default at a level of `metadata.version`.
fn default_level(since: &[i16], metadata: i16) -> i16 {
    let reached = since.iter().filter(|&&level| level <= metadata).count();
    i16::try_from(reached).unwrap_or_default()
}

fn parse_level(text: &str) -> Result<(&str, i16), Failure> {
    let cannot =
        |why: &str| Failure::new(format!("Can't parse feature=level string {text}: {why}"));
    let (name, level) = text
        .split_once('=')
        .ok_or_else(|| cannot("equals sign not found."))?;
    let level = level.trim();
    let number = level.parse();
    let number = number.map_err(|_| cannot(&format!("unable to parse {level} as a short.")))?;
    Ok((name.trim(), number))
}

fn insert(levels: &mut BTreeMap<String, i16>, feature: &str, level: i16) -> Result<(), Failure> {
    match levels.insert(feature.to_owned(), level) {
        None => Ok(()),
        Some(_) => Err(Failure::new(format!(
            "Feature {feature} was specified more than once."
        ))),
    }
}

fn wanted<'a>(
    arguments: &LevelArgs,
    verb: &'a str,
    kind: i8,
    out: &mut dyn Write,
) -> Result<Update<'a>, Failure> {
    let mut levels = BTreeMap::new();
    if let Some(release) = &arguments.release_version {
        let metadata = release_level(release)?;
        levels.insert(METADATA_VERSION.to_owned(), metadata);
        for (feature, since) in DEFAULT_SINCE {
            let level = default_level(since, metadata);
            // Level 0 is where every feature begins: nothing to raise.
            if kind != UPGRADE || level > 0 {
                levels.insert((*feature).to_owned(), level);
            }
        }
    }
    if let Some(release) = &arguments.metadata {
        writeln!(
            out,
            " `metadata` flag is deprecated and may be removed in a future release."
        )?;
        levels.insert(METADATA_VERSION.to_owned(), release_level(release)?);
    }
    for text in &arguments.features {
        let (feature, level) = parse_level(text)?;
        insert(&mut levels, feature, level)?;
    }
    Ok(Update {
        verb,
        levels,
        kind,
        dry_run: arguments.dry_run,
    })
}

impl Update<'_> {
    fn run(&self, client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
        if self.levels.is_empty() {
            let verb = self.verb;
            return Err(Failure::new(format!(
                "You must specify at least one feature to {verb}"
            )));
        }
        let mut failed = 0;
        let results = self.ask(client);
        for (feature, level) in &self.levels {
            let to = match self.verb {
                "disable" => String::new(),
                _ => format!(" to {level}"),
            };
            match results.get(feature) {
                Some(Err(error)) => {
                    let not = if self.dry_run { "Can not" } else { "Could not" };
                    writeln!(out, "{not} {} {feature}{to}. {error}", self.verb)?;
                    failed += 1;
                }
                _ => {
                    let done = if self.dry_run { "can be" } else { "was" };
                    writeln!(out, "{feature} {done} {}d{to}.", self.verb)?;
                }
            }
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::new(format!(
                "{failed} out of {} operation(s) failed.",
                self.levels.len()
            ))),
        }
    }

    /// What became of each feature. Later versions of the API have one result for all.
    fn ask(&self, client: &mut Client) -> BTreeMap<String, Result<(), ClientError>> {
        let node = match client.settings().target {
            Target::Brokers => Node::Any,
            Target::Controllers => Node::Controller,
        };
        let update = |(feature, &level): (&String, &i16)| UpdateFeaturesRequestFeatureUpdateKey {
            feature: feature.into(),
            max_version_level: level,
            allow_downgrade: false,
            upgrade_type: self.kind,
        };
        let request = UpdateFeaturesRequest {
            feature_updates: self.levels.iter().map(update).collect(),
            validate_only: self.dry_run,
            ..UpdateFeaturesRequest::default()
        };
        let answer = client.retrying(|client| {
            let answer = client.send(node, &request)?;
            ClientError::check(answer.error_code, answer.error_message.as_ref())?;
            Ok(answer.results)
        });
        let all = self.levels.keys();
        match answer {
            Ok(results) => results
                .into_iter()
                .map(|row| {
                    let done = ClientError::check(row.error_code, row.error_message.as_ref());
                    (row.feature.to_string(), done)
                })
                .collect(),
            Err(error) => {
                let text = error.to_string();
                let same = || Err(ClientError::Settings(text.clone()));
                all.map(|feature| (feature.clone(), same())).collect()
            }
        }
    }
}

/// Prints the levels that a release brings, the latest if none is named.
pub(crate) fn version_mapping(release: Option<&str>, out: &mut dyn Write) -> Result<(), Failure> {
    let release = release.unwrap_or_else(|| supported_releases().1);
    let metadata = release_level(release)?;
    writeln!(out, "{METADATA_VERSION}={metadata} ({release})")?;
    for (feature, since) in DEFAULT_SINCE {
        writeln!(out, "{feature}={}", default_level(since, metadata))?;
    }
    Ok(())
}

/// Prints what levels, as `feature=level`, need.
pub(crate) fn dependencies(features: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    for text in features {
        let (feature, level) = parse_level(text)?;
        let name = metadata_level_name(level);
        if feature == METADATA_VERSION {
            let name =
                name.ok_or_else(|| Failure::new(format!("Unknown {METADATA_VERSION} {level}")))?;
            writeln!(out, "{feature}={level} ({name}) has no dependencies.")?;
            continue;
        }
        let known = DEFAULT_SINCE.iter().find(|(name, _)| *name == feature);
        let levels = known
            .map(|(_, since)| since.len())
            .ok_or_else(|| Failure::new(format!("Unknown feature: {feature}")))?;
        if usize::try_from(level).map_or(true, |level| level > levels) {
            return Err(Failure::new(format!(
                "No feature:{feature} with feature level {level}"
            )));
        }
        let needs = DEPENDENCIES
            .iter()
            .find(|(name, at, _)| *name == feature && *at == level);
        match needs {
            None => writeln!(out, "{feature}={level} has no dependencies.")?,
            Some((_, _, metadata)) => {
                writeln!(out, "{feature}={level} requires:")?;
                let name = shown(METADATA_VERSION, *metadata);
                writeln!(out, "    {METADATA_VERSION}={metadata} ({name})")?;
            }
        }
    }
    Ok(())
}
