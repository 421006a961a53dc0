//! The `ringmain` binary: for now `ringmain serve [--override KEY=VALUE]...`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::ExitCode;

use broker::config::directories::{self, Directories, MetaProperties};
use broker::config::{BrokerConfig, Settings, single_node};
use protocol::Uuid;

fn main() -> ExitCode {
    let level = std::env::var("RINGMAIN_LOG")
        .ok()
        .and_then(|level| level.parse().ok());
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level.unwrap_or(tracing::Level::INFO))
        .init();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            tracing::error!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("serve") {
        return Err("usage: ringmain serve [--override KEY=VALUE]...".into());
    }
    let mut overrides = BTreeMap::new();
    while let Some(argument) = arguments.next() {
        let pair = match argument.as_str() {
            "--override" => arguments.next().unwrap_or_default(),
            other => return Err(format!("{other} is not understood").into()),
        };
        let (key, value) = pair.split_once('=').ok_or("--override takes KEY=VALUE")?;
        overrides.insert(key.to_owned(), value.to_owned());
    }
    let config = BrokerConfig::new(Settings::new(single_node(&overrides))?)?;
    let directories = format_missing(&config)?;
    broker::server::serve(config, directories)?;
    Ok(())
}

/// Directories without `meta.properties` are formatted: this is a node without a file.
fn format_missing(config: &BrokerConfig) -> Result<Directories, Box<dyn std::error::Error>> {
    let storage = &config.storage;
    let found = directories::look(&storage.log_dirs);
    let metadata_dir = &storage.metadata_log_dir;
    let cluster_id = match directories::verify(config.node_id, metadata_dir, &found) {
        Ok(directories) => return Ok(directories),
        Err(directories::DirectoryProblem::Unformatted { cluster_id, .. }) => cluster_id,
        Err(problem) => return Err(problem.into()),
    };
    let cluster_id = cluster_id.unwrap_or_else(|| random_id().to_string());
    for path in &storage.log_dirs {
        if found.get(path) == Some(&directories::Found::Unformatted) {
            std::fs::create_dir_all(path)?;
            let meta = MetaProperties {
                cluster_id: cluster_id.clone(),
                node_id: config.node_id,
                directory_id: Some(random_id()),
            };
            std::fs::write(path.join(directories::META_PROPERTIES), meta.to_bytes(0))?;
        }
    }
    let found = directories::look(&storage.log_dirs);
    Ok(directories::verify(config.node_id, metadata_dir, &found)?)
}

fn random_id() -> Uuid {
    use std::hash::{BuildHasher, RandomState};
    Uuid::random(|| RandomState::new().hash_one(0u8))
}
