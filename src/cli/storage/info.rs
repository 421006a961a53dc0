//! `ringmain storage info`: whose the data directories are.

use std::io::Write;

use super::Failure;
use crate::cli::print_line;
use crate::config::BrokerConfig;
use crate::config::directories::{self, Found, MetaProperties};

pub(super) fn run(config: &BrokerConfig, out: &mut dyn Write) -> Result<(), Failure> {
    let metadata = &config.storage.metadata_log_dir;
    let found = directories::look(config.storage.log_dirs.iter().chain([metadata]));
    let mut problems = Vec::new();
    let mut directories = Vec::new();
    let mut first: Option<&MetaProperties> = None;
    for (path, state) in &found {
        if path.is_dir() {
            directories.push(path.display().to_string());
        }
        match state {
            Found::Unformatted if path.is_dir() => {
                problems.push(format!("{} is not formatted.", path.display()));
            }
            Found::Unformatted => problems.push(format!("{} does not exist", path.display())),
            Found::Failed(_) if path.exists() && !path.is_dir() => {
                problems.push(format!("{} is not a directory", path.display()));
            }
            Found::Failed(why) => problems.push(format!("Error loading {why}")),
            Found::Formatted(meta) => {
                let known = first.get_or_insert(meta);
                for (same, what) in [
                    (known.cluster_id == meta.cluster_id, "cluster"),
                    (known.node_id == meta.node_id, "node"),
                ] {
                    if !same {
                        problems.push(format!(
                            "Mismatched {what} IDs between storage directories."
                        ));
                    }
                }
            }
        }
    }
    section(
        out,
        ["Found log directory", "Found log directories"],
        &directories,
    )?;
    if let Some(meta) = first {
        let directory = meta.directory_id.map(|id| format!("directory.id={id}, "));
        print_line(
            out,
            format_args!(
                "Found metadata: {{cluster.id={}, {}node.id={}, version=1}}\n",
                meta.cluster_id,
                directory.unwrap_or_default(),
                meta.node_id
            ),
        )?;
    }
    section(out, ["Found problem", "Found problems"], &problems)?;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::new("the data directories are not ready"))
    }
}

/// A title for one line or for many, and the lines.
fn section(out: &mut dyn Write, titles: [&str; 2], lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    print_line(
        out,
        format_args!("{}:", titles[usize::from(lines.len() > 1)]),
    )?;
    for line in lines {
        print_line(out, format_args!("  {line}"))?;
    }
    print_line(out, "")
}
