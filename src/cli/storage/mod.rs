//! `ringmain storage`: the commands of Kafka's storage tool.

mod files;
mod format;
mod info;
mod levels;
mod voter;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Failure, Overrides, load, print_line, random_id, wall_clock_ms};
use crate::config::BrokerConfig;
use crate::tools::features;
use levels::Levels;
use voter::DynamicVoter;

pub use format::{FormatPlan, NewFile, new_files};
pub(super) use format::{format_directories, write_meta_properties};

#[derive(Subcommand, Debug)]
pub(super) enum StorageCommand {
    /// Print a random id, for a new cluster
    RandomUuid,
    /// Format the data directories of this node
    Format(FormatArgs),
    /// Show which cluster and node the data directories belong to
    Info {
        /// The configuration file of the node
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Show which levels of features a release brings
    VersionMapping {
        /// The release, such as 4.4-IV2; the latest if not given
        #[arg(short, long, value_name = "RELEASE")]
        release_version: Option<String>,
    },
    /// Show what a level of a feature needs
    FeatureDependencies {
        /// A feature and its level; may be repeated
        #[arg(short, long = "feature", value_name = "FEATURE=LEVEL", required = true)]
        features: Vec<String>,
    },
}

/// Kafka's flags.
#[derive(Args, Debug)]
pub(super) struct FormatArgs {
    /// The id of the cluster; the same on all its nodes
    #[arg(short = 't', long)]
    cluster_id: String,
    /// The configuration file of the node
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    quorum: QuorumArgs,
    /// Skip directories that are formatted already, instead of failing
    #[arg(short = 'g', long)]
    ignore_formatted: bool,
    /// The level of a feature; may be repeated
    #[arg(short, long = "feature", value_name = "FEATURE=LEVEL")]
    features: Vec<String>,
    /// The release whose features are used at first
    #[arg(short, long, value_name = "RELEASE")]
    release_version: Option<String>,
    /// A SCRAM credential (refused: SASL is not supported yet)
    #[arg(short = 'S', long = "add-scram", value_name = "CREDENTIAL")]
    scram: Vec<String>,
}

/// How the controllers of a dynamic quorum are found; none of them with `controller.quorum.voters`.
#[derive(Args, Debug, Default)]
#[group(multiple = false)]
struct QuorumArgs {
    /// This node is the only controller of a dynamic quorum
    #[arg(short, long)]
    standalone: bool,
    /// The controllers of the quorum are told later
    #[arg(short = 'N', long)]
    no_initial_controllers: bool,
    /// The controllers of a dynamic quorum, as id@host:port:directory-id,...
    #[arg(short = 'I', long, value_name = "CONTROLLERS")]
    initial_controllers: Option<String>,
}

pub(super) fn run(command: StorageCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        StorageCommand::RandomUuid => print_line(out, random_id()?),
        StorageCommand::Format(arguments) => format(&arguments, out),
        StorageCommand::Info { config } => info::run(
            &load::broker_config(Some(&config), &Overrides::default())?,
            out,
        ),
        StorageCommand::VersionMapping { release_version } => {
            Ok(features::version_mapping(release_version.as_deref(), out)?)
        }
        StorageCommand::FeatureDependencies { features: levels } => {
            Ok(features::dependencies(&levels, out)?)
        }
    }
}

fn format(arguments: &FormatArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let config = load::broker_config(Some(&arguments.config), &Overrides::default())?;
    if !arguments.scram.is_empty() {
        return Err(Failure::new(
            "--add-scram: SASL is not supported yet, so the credential would be of no use",
        ));
    }
    let voter = initial_voter(&arguments.quorum, &config)?;
    let dynamic = config.quorum.static_voters.is_empty();
    let release = arguments.release_version.as_deref();
    let levels = Levels::new(release, &arguments.features, dynamic)?;
    let plan = FormatPlan {
        cluster_id: arguments.cluster_id.clone(),
        metadata_level: levels.metadata,
        kraft_version: levels.kraft,
        voter,
        ignore_formatted: arguments.ignore_formatted,
        now_ms: wall_clock_ms(),
    };
    for line in format_directories(&config, &plan)? {
        print_line(out, line)?;
    }
    Ok(())
}

/// The voter that goes into the first checkpoint of a dynamic quorum.
fn initial_voter(
    quorum: &QuorumArgs,
    config: &BrokerConfig,
) -> Result<Option<DynamicVoter>, Failure> {
    let dynamic = config.quorum.static_voters.is_empty();
    if !dynamic && (quorum.standalone || quorum.initial_controllers.is_some()) {
        return Err(Failure::new(
            "You cannot specify controller.quorum.voters and format the node with \
             --initial-controllers or --standalone. If you want to use dynamic quorum, please \
             remove controller.quorum.voters and specify controller.quorum.bootstrap.servers \
             instead.",
        ));
    }
    if quorum.standalone {
        return DynamicVoter::of_this_node(config, random_id()?).map(Some);
    }
    if let Some(text) = &quorum.initial_controllers {
        return DynamicVoter::only_one_of(text, config.node_id).map(Some);
    }
    if dynamic && !quorum.no_initial_controllers {
        return Err(Failure::new(
            "Because controller.quorum.voters is not set on this controller, you must specify one \
             of the following: --standalone, --initial-controllers, or --no-initial-controllers.",
        ));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::tests::ringmain;

    #[test]
    fn ids_are_random_and_never_look_like_a_flag() {
        let ids: Vec<String> = (0..50)
            .map(|_| ringmain(&["storage", "random-uuid"]).unwrap())
            .collect();
        for id in &ids {
            assert_eq!(id.len(), 23);
            assert!(!id.starts_with('-') && id.trim().parse::<protocol::Uuid>().is_ok());
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
