//! `ringmain serve`: settings, data directories, then the server.

use std::path::{Path, PathBuf};

use clap::Args;

use super::environment::Environment;
use super::storage::{FormatPlan, format_directories, write_meta_properties};
use super::{Failure, Overrides, load, random_id, wall_clock_ms};
use crate::config::BrokerConfig;
use crate::config::directories::{self, Directories, DirectoryProblem, MetaProperties};
use crate::{server, telemetry};

#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// The configuration file; without it a node for this machine, with its data in ./ringmain-data
    file: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

pub(super) fn run(arguments: &ServeArgs) -> Result<(), Failure> {
    let file = arguments.file.as_deref();
    let environment = Environment::read(std::env::vars_os())?;
    let config = load::config_with(file, &environment, &arguments.overrides)?;
    let levels = telemetry::log::set_up().map_err(|error| Failure::new(error.to_string()))?;
    for warning in environment.warnings.iter().chain(&warnings(file, &config)) {
        tracing::warn!("{warning}");
    }
    let directories = prepare(file, &config, &environment)?;
    for (path, why) in &directories.failed {
        tracing::error!("running without {}: {why}", path.display());
    }
    server::serve(config, directories, levels).map_err(|error| Failure::new(error.to_string()))
}

/// What a person should know about the settings; without a file only about those that were overridden.
fn warnings(file: Option<&Path>, config: &BrokerConfig) -> Vec<String> {
    let mut lines = config.warnings();
    if file.is_none()
        && let Ok(built_in) = BrokerConfig::single_node(&[])
    {
        let known = built_in.warnings();
        lines.retain(|line| !known.contains(line));
    }
    lines
}

/// The directories of the node, after all checks. Without a file, or where the environment names a cluster, they are
/// formatted where needed.
fn prepare(
    file: Option<&Path>,
    config: &BrokerConfig,
    environment: &Environment,
) -> Result<Directories, Failure> {
    let metadata = &config.storage.metadata_log_dir;
    let look = || {
        let all = config.storage.log_dirs.iter().chain([metadata]);
        directories::verify(config.node_id, metadata, &directories::look(all))
    };
    let formats = file.is_none() || environment.cluster_id.is_some();
    match look() {
        Ok(directories) => name_directories(config.node_id, directories),
        Err(DirectoryProblem::Unformatted { cluster_id, .. }) if formats => {
            let cluster_id = match cluster_id.or_else(|| environment.cluster_id.clone()) {
                Some(id) => id,
                None => random_id()?.to_string(),
            };
            let plan = FormatPlan::of_one_node(config, cluster_id, random_id()?, wall_clock_ms())?;
            format_directories(config, &plan)?;
            look().map_err(|problem| Failure::new(problem.to_string()))
        }
        Err(problem) => Err(Failure::new(with_remedy(file, config, &problem))),
    }
}

/// Gives an id to each directory that has none: those of brokers before Kafka 3.7.
fn name_directories(node_id: i32, mut directories: Directories) -> Result<Directories, Failure> {
    for (path, id) in directories.usable.iter_mut().filter(|(_, id)| id.is_none()) {
        let directory_id = random_id()?;
        let cluster_id = directories.cluster_id.clone();
        let meta = MetaProperties {
            cluster_id,
            node_id,
            directory_id: Some(directory_id),
        };
        write_meta_properties(path, &meta, wall_clock_ms())?;
        tracing::info!("{} is now known as {directory_id}", path.display());
        *id = Some(directory_id);
    }
    Ok(directories)
}

/// The problem, and for unformatted directories the command that formats them.
fn with_remedy(file: Option<&Path>, config: &BrokerConfig, problem: &DirectoryProblem) -> String {
    let (DirectoryProblem::Unformatted { cluster_id, .. }, Some(file)) = (problem, file) else {
        return problem.to_string();
    };
    let cluster = match cluster_id {
        Some(id) => format!("{id} --ignore-formatted"),
        None => "$(ringmain storage random-uuid)".to_string(),
    };
    let quorum = if config.quorum.static_voters.is_empty() {
        " --standalone"
    } else {
        ""
    };
    format!(
        "{problem}; run: ringmain storage format --config {} --cluster-id {cluster}{quorum}",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(root: &Path, settings: &[(&str, &str)]) -> BrokerConfig {
        let directory = root.join("data").display().to_string();
        BrokerConfig::single_node(&[&[("log.dirs", directory.as_str())], settings].concat())
            .unwrap()
    }

    #[test]
    fn without_a_file_directories_are_formatted_and_found_again() {
        let root = tempfile::tempdir().unwrap();
        let first = prepare(None, &config(root.path(), &[]), &Environment::default()).unwrap();
        assert_eq!(first.usable.len(), 1);
        assert_eq!(
            prepare(None, &config(root.path(), &[]), &Environment::default()).unwrap(),
            first
        );
        let both = format!("{0}/data,{0}/more", root.path().display());
        let grown = prepare(
            None,
            &config(root.path(), &[("log.dirs", &both)]),
            &Environment::default(),
        )
        .unwrap();
        assert_eq!(
            (grown.usable.len(), grown.cluster_id),
            (2, first.cluster_id)
        );
        let other = prepare(
            None,
            &config(root.path(), &[("node.id", "2")]),
            &Environment::default(),
        )
        .unwrap_err();
        assert!(
            other
                .to_string()
                .contains("belongs to node 1, but node.id is 2"),
            "{other}"
        );
    }

    #[test]
    fn the_environment_names_the_cluster_of_new_directories() {
        let root = tempfile::tempdir().unwrap();
        let file = Path::new("/etc/node.properties");
        let named = |id: &str| Environment {
            cluster_id: Some(id.to_owned()),
            ..Environment::default()
        };
        let voters = [("controller.quorum.voters", "1@localhost:9093")];
        let config = config(root.path(), &voters);
        let first = prepare(Some(file), &config, &named("5L6g3nShT-eMCtK--X86sw")).unwrap();
        assert_eq!(first.cluster_id, "5L6g3nShT-eMCtK--X86sw");
        let again = prepare(Some(file), &config, &named("another")).unwrap();
        assert_eq!(again, first, "what is formatted stays what it is");
    }

    #[test]
    fn without_a_file_only_overrides_are_warned_about() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(warnings(None, &config(root.path(), &[])), [""; 0]);
        let lines = warnings(
            None,
            &config(root.path(), &[("foo", "1"), ("ssl.protocol", "x")]),
        );
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "unknown and ignored: foo");
    }

    #[test]
    fn a_directory_without_an_id_gets_one_and_keeps_it() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(
            data.join("meta.properties"),
            "version=1\ncluster.id=c\nnode.id=1\n",
        )
        .unwrap();
        let first = prepare(None, &config(root.path(), &[]), &Environment::default()).unwrap();
        assert!(first.usable[&data].is_some());
        assert_eq!(
            prepare(None, &config(root.path(), &[]), &Environment::default()).unwrap(),
            first
        );
    }

    #[test]
    fn with_a_file_the_command_to_run_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = Path::new("/etc/node.properties");
        let shown = |config: &BrokerConfig| {
            let failure = prepare(Some(file), config, &Environment::default())
                .unwrap_err()
                .to_string();
            failure.replace(&root.path().display().to_string(), "@")
        };
        let format = "run: ringmain storage format --config /etc/node.properties --cluster-id";
        let new = "$(ringmain storage random-uuid)";
        assert_eq!(
            shown(&config(root.path(), &[])),
            format!("@/data is not formatted; {format} {new} --standalone")
        );
        let voters = [("controller.quorum.voters", "1@localhost:9093")];
        let voters = config(root.path(), &voters);
        assert_eq!(
            shown(&voters),
            format!("@/data is not formatted; {format} {new}")
        );
        assert!(!root.path().join("data").exists());
        let known = prepare(None, &config(root.path(), &[]), &Environment::default())
            .unwrap()
            .cluster_id;
        let both = format!("{0}/data,{0}/more", root.path().display());
        assert_eq!(
            shown(&config(root.path(), &[("log.dirs", &both)])),
            format!("@/more is not formatted; {format} {known} --ignore-formatted --standalone")
        );
    }
}
